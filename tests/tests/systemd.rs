//! The example unit and the instructions in docs/migration.md, without a running systemd: its
//! checker reads the unit, the test runs the unit's commands with the unit's restrictions, and the
//! instructions are run with a `systemctl` that records its arguments.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Program, WAIT_MAX, eventually, free_port, repository};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Debian's configuration, which a unit's must fit.
const PACKAGED: &str = "/etc/haproxy/haproxy.cfg";

/// The path of the program in the unit.
const INSTALLED: &str = "/usr/sbin/ballast";

/// `examples/ballast.service`, line by line.
struct Unit {
    text: String,
}

impl Unit {
    fn example() -> Self {
        let path = repository().join("examples/ballast.service");
        Self {
            text: fs::read_to_string(path).expect("the unit is there"),
        }
    }

    /// The values of a setting, in order.
    fn values(&self, word: &str) -> Vec<&str> {
        let lines = self.text.lines().filter_map(|line| line.split_once('='));
        lines
            .filter(|(name, _)| *name == word)
            .map(|(_, value)| value)
            .collect()
    }

    /// The words of all values of a setting.
    fn words(&self, word: &str) -> Vec<&str> {
        let values = self.values(word).into_iter();
        values.flat_map(str::split_whitespace).collect()
    }

    /// A command line as systemd expands it: `${NAME}` is one word, `$NAME` is split.
    fn command_line(line: &str, environment: &BTreeMap<&str, String>) -> Vec<String> {
        let value = |name: &str| environment.get(name).cloned().unwrap_or_default();
        let words = line.split_whitespace().flat_map(|word| {
            if let Some(name) = word.strip_prefix("${").and_then(|w| w.strip_suffix('}')) {
                vec![value(name)]
            } else if let Some(name) = word.strip_prefix('$') {
                value(name).split_whitespace().map(str::to_owned).collect()
            } else {
                vec![word.to_owned()]
            }
        });
        words.collect()
    }

    /// A command of the unit, with the unit's restrictions.
    fn command(&self, line: &str, environment: &BTreeMap<&str, String>) -> Command {
        let mut words = Self::command_line(line, environment).into_iter();
        let installed = words.next().expect("a command has a program");
        let program = if installed == INSTALLED {
            Program::ballast().path().to_owned()
        } else {
            PathBuf::from(installed)
        };
        let rights = self.words("CapabilityBoundingSet").into_iter();
        let rights = rights.map(|right| right.replace("CAP_", "+").to_lowercase());
        let rights: Vec<_> = std::iter::once("-all".to_owned()).chain(rights).collect();
        let mut command = Command::new("setpriv");
        assert_eq!(self.values("NoNewPrivileges"), ["true"]);
        command
            .arg(format!("--bounding-set={}", rights.join(",")))
            .args(["--inh-caps=-all", "--no-new-privs"])
            .arg(program)
            .args(words)
            .stdin(Stdio::null());
        command
    }

    /// The writable directories.
    fn writable(&self) -> Vec<PathBuf> {
        let of = |word: &str, parent: &'static str| {
            let names = self.words(word).into_iter();
            names.map(move |name| Path::new(parent).join(name.trim_start_matches('-')))
        };
        of("RuntimeDirectory", "/run")
            .chain(of("StateDirectory", "/var/lib"))
            .chain(of("ReadWritePaths", "/"))
            .collect()
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

#[test]
fn systemd_finds_nothing_wrong_in_the_unit() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("ballast.service");
    let program = Program::ballast().path().display().to_string();
    let text = Unit::example().text.replace(INSTALLED, &program);
    fs::write(&path, text).expect("the unit is written");
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(path)
        .output()
        .expect("Debian's package systemd is installed");
    assert!(
        output.status.success() && said(&output).is_empty(),
        "{}",
        said(&output)
    );
}

#[test]
fn the_unit_may_write_where_debians_configuration_does_and_log_from_its_chroot() {
    let unit = Unit::example();
    assert_eq!(unit.values("ProtectSystem"), ["strict"]);
    let packaged = fs::read_to_string(PACKAGED).expect("Debian's package haproxy is installed");
    let rows: Vec<Vec<&str>> = packaged
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let sockets = rows
        .iter()
        .filter(|row| row.starts_with(&["stats", "socket"]));
    let sockets: Vec<&str> = sockets.map(|row| row[2]).collect();
    assert!(!sockets.is_empty(), "{packaged}");
    let writable = unit.writable();
    for socket in sockets {
        let may = writable
            .iter()
            .any(|within| Path::new(socket).starts_with(within));
        assert!(may, "{socket}: {writable:?}");
    }
    let mut chroots = rows.iter().filter(|row| row.first() == Some(&"chroot"));
    let chroot = chroots.next().expect("Debian's file has a chroot")[1];
    assert!(rows.iter().any(|row| row.starts_with(&["log", "/dev/log"])));
    assert!(
        unit.words("BindReadOnlyPaths")
            .contains(&&*format!("-/dev/log:{chroot}/dev/log"))
    );
}

fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = kill_process(pid.expect("a process number"), Signal::TERM);
}

/// Processes that are killed at the end of the test.
struct Started(Vec<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // A master stops its worker.
            if matches!(child.try_wait(), Ok(None)) {
                terminate(child);
            }
            let _ = child.wait();
        }
    }
}

/// Debian's file with the given sockets, and a frontend.
fn configuration(at: &Path, port: u16) -> String {
    let packaged = fs::read_to_string(PACKAGED).expect("Debian's package haproxy is installed");
    let socket = at.join("admin.sock").display().to_string();
    let packaged = packaged.replace("/run/haproxy/admin.sock", &socket);
    let given = packaged.replace("level admin", "level admin expose-fd listeners");
    format!(
        "{given}\nfrontend www\n    bind 127.0.0.1:{port}\n    http-request return status 200 \
         content-type text/plain string hello\n"
    )
}

#[test]
fn the_units_commands_take_over_reload_and_end() {
    let unit = Unit::example();
    let directory = TempDir::new().expect("a temporary directory");
    let (at, port) = (directory.path(), free_port());
    let file = at.join("haproxy.cfg");
    let text = configuration(at, port);
    fs::write(&file, &text).expect("the configuration is written");
    let manager = UnixDatagram::bind(at.join("notify")).expect("a socket");
    manager.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let hear = |wanted: &str| {
        let mut bytes = [0; 512];
        loop {
            let length = manager.recv(&mut bytes).expect("it says something");
            if String::from_utf8_lossy(&bytes[..length]).contains(wanted) {
                return;
            }
        }
    };
    // As in Debian's unit.
    let mut haproxy = Command::new(Program::haproxy().path());
    haproxy
        .args(["-Ws", "-f"])
        .arg(&file)
        .env_remove("NOTIFY_SOCKET");
    haproxy.stderr(Stdio::null());
    let mut started = Started(vec![haproxy.spawn().expect("it starts")]);
    let former = started.0[0].id();
    eventually("HAProxy serves", || is_listening(port));

    let mut environment = BTreeMap::new();
    environment.insert("CONFIG", file.display().to_string());
    let takeover = format!("-x {} -sf {former}", at.join("admin.sock").display());
    environment.insert("TAKEOVER", takeover);
    for line in unit.values("ExecStartPre") {
        let output = unit.command(line, &environment).output().expect("it runs");
        assert!(output.status.success(), "{line}: {}", said(&output));
    }
    let [line] = unit.values("ExecStart")[..] else {
        panic!("one ExecStart");
    };
    assert_eq!(unit.values("Type"), ["notify"]);
    let mut ballast = unit.command(line, &environment);
    ballast.env("NOTIFY_SOCKET", at.join("notify"));
    started.0.push(ballast.spawn().expect("it starts"));
    hear("READY=1");
    eventually("the former master ends", || {
        started.0[0].try_wait().expect("it is ours").is_some()
    });
    assert_eq!(Client::get_once(port, "/").text(), "hello");

    environment.insert("MAINPID", started.0[1].id().to_string());
    let reload = |environment: &BTreeMap<_, _>| {
        let mut commands = unit.values("ExecReload").into_iter();
        commands.all(|line| {
            let status = unit
                .command(line, environment)
                .stderr(Stdio::null())
                .status();
            status.expect("it runs").success()
        })
    };
    fs::write(&file, text.replace("string hello", "string hallo")).expect("it is written");
    assert!(reload(&environment));
    hear("RELOADING=1");
    hear("READY=1");
    assert_eq!(Client::get_once(port, "/").text(), "hallo");
    fs::write(&file, "frontend www\n    bind nowhere at all\n").expect("it is written");
    assert!(!reload(&environment), "a wrong file ends the reload");
    assert_eq!(Client::get_once(port, "/").text(), "hallo");

    assert_eq!(unit.values("KillMode"), ["mixed"]);
    terminate(&started.0[1]);
    let status = started.0[1].wait().expect("it ends");
    let code = status
        .code()
        .map(|code| code.to_string())
        .unwrap_or_default();
    let good = unit.words("SuccessExitStatus");
    assert!(code == "0" || good.contains(&&*code), "{status}");
}

/// A `systemctl` with drop-ins and `show`: the unit is what was on disk at the last
/// `daemon-reload`. `start` records how the manager would start the unit.
const SYSTEMCTL: &str = r#"#!/bin/sh
cd "$STAGE" || exit 1
has() { cat loaded/$1.service.d/* 2> /dev/null | grep -o "$2" | tail -1; }
case $1 in
daemon-reload) rm -rf loaded && cp -r run/systemd/system loaded ;;
show) [ "$*" = "show -p MainPID --value $5" ] && echo "number-of-$5" ;;
set-environment) echo "$2" > environment ;;
unset-environment) rm environment ;;
start) echo "start $2: $(cat environment 2> /dev/null)$(has $2 'EXTRAOPTS=[^"]*')" >> told
    for unit in haproxy ballast; do echo "  $unit $(has $unit 'Restart=.*')" >> told; done ;;
enable|disable) echo "$1 $2" >> told ;;
*) exit 9 ;;
esac
"#;

/// The first block of shell lines below a heading of docs/migration.md.
fn recipe(heading: &str) -> String {
    let path = repository().join("docs/migration.md");
    let text = fs::read_to_string(path).expect("it is there");
    let (_, section) = text
        .split_once(&format!("\n## {heading}\n"))
        .expect("the heading");
    let (_, lines) = section.split_once("\n```sh\n").expect("a recipe");
    lines.split_once("\n```\n").expect("its end").0.to_owned()
}

#[test]
fn the_recipe_for_systemd_lets_no_unit_restart_what_was_taken_over() {
    let stage = TempDir::new().expect("a temporary directory");
    let at = stage.path();
    for directory in ["run/systemd/system", "etc/systemd/system", "bin"] {
        fs::create_dir_all(at.join(directory)).expect("a directory");
    }
    let systemctl = at.join("bin/systemctl");
    fs::write(&systemctl, SYSTEMCTL).expect("it is written");
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = std::env::var("PATH").expect("there is a PATH");
    let follow = |heading: &str| {
        let mut script = recipe(heading);
        for top in ["/run/systemd", "/etc/systemd"] {
            script = script.replace(top, &format!("{}{top}", at.display()));
        }
        let output = Command::new("sh")
            .args(["-eu", "-c", &script])
            .current_dir(repository())
            .env("PATH", format!("{}:{path}", at.join("bin").display()))
            .env("STAGE", at)
            .output()
            .expect("there is a shell");
        assert!(output.status.success(), "{heading}: {}", said(&output));
        let told = fs::read_to_string(at.join("told")).expect("it was told something");
        fs::remove_file(at.join("told")).expect("it is ours");
        told
    };
    // The descriptors of the unit that stops at the start of the other one, and those of the other
    // one.
    let over = "start ballast: TAKEOVER=-x /run/haproxy/admin.sock -sf number-of-haproxy\n  \
                haproxy Restart=no\n  ballast \ndisable haproxy\nenable ballast\n";
    let back = "start haproxy: EXTRAOPTS=-S /run/haproxy-master.sock -x /run/haproxy/admin.sock \
                -sf number-of-ballast\n  haproxy \n  ballast Restart=no\ndisable ballast\nenable \
                haproxy\n";
    assert_eq!(follow("Over, with systemd"), over);
    assert!(at.join("etc/systemd/system/ballast.service").is_file());
    assert!(
        !at.join("environment").exists(),
        "TAKEOVER is for one start"
    );
    assert_eq!(follow("Back"), back);
    assert!(!at.join("loaded/haproxy.service.d/takeover.conf").exists());
    assert_eq!(follow("Over, with systemd"), over, "over once more");
}
