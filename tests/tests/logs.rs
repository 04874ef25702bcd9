//! Log lines that cannot be sent: they are counted and reported, and a receiver that appears later
//! gets the next ones. HAProxy counts only the losses of slow targets in `DroppedLogs`; here all
//! are counted.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Program, RuntimeApi, WAIT_MAX, eventually, free_port};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A process that logs each request.
struct Logging {
    directory: TempDir,
    port: u16,
    child: Child,
}

impl Logging {
    /// Lines of the global section; `DIR` is replaced by the directory.
    fn start(directory: TempDir, global: &str, output: Stdio) -> Self {
        Self::start_as(&["-db"], directory, global, output)
    }

    fn start_as(words: &[&str], directory: TempDir, global: &str, output: Stdio) -> Self {
        let said = File::create(directory.path().join("stderr")).expect("a file");
        Self::launch(words, directory, global, (output, said.into()))
    }

    fn launch(
        words: &[&str],
        directory: TempDir,
        global: &str,
        (output, said): (Stdio, Stdio),
    ) -> Self {
        let port = free_port();
        let global = global.replace("DIR", &directory.path().display().to_string());
        let text = format!(
            "global\n    stats socket unix@ctl.sock level admin\n    {global}\n\
             frontend www\n    mode http\n    bind 127.0.0.1:{port}\n    timeout client 20s\n    \
             log global\n    log-format \"path %HP\"\n    \
             http-request return status 200 content-type text/plain string hello\n"
        );
        fs::write(directory.path().join("a.cfg"), text).expect("the configuration is written");
        let child = Command::new(Program::ballast().path())
            .args(words)
            .args(["-f", "a.cfg"])
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(said)
            .spawn()
            .expect("the program starts");
        eventually("it listens", || is_listening(port));
        Self {
            directory,
            port,
            child,
        }
    }

    fn get(&self, path: &str) {
        assert_eq!(Client::get_once(self.port, path).text(), "hello");
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a child has a positive id"), signal).expect("it lives");
    }

    fn said(&self) -> String {
        fs::read_to_string(self.directory.path().join("stderr")).unwrap_or_default()
    }

    fn until_lost(&self, count: u32, why: &str) {
        let api = RuntimeApi::at(self.directory.path().join("ctl.sock"));
        let line = format!("DroppedLogs: {count}\n");
        eventually("what is lost is counted", || {
            api.ask("show info").contains(&line)
        });
        eventually("what is lost is said", || {
            self.said().contains("log lines were lost")
        });
        assert!(self.said().contains(why), "{}", self.said());
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- stderr:\n{}", self.said());
        }
        // A master stops its worker when it is asked to, not when it is killed.
        self.signal(Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A log daemon that anybody may write to.
fn daemon(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).expect("the path is free");
    socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    fs::set_permissions(path, Permissions::from_mode(0o666)).expect("it is ours");
    socket
}

fn line(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let count = socket.recv(&mut bytes).expect("a line comes");
    String::from_utf8_lossy(&bytes[..count])
        .trim_end()
        .to_owned()
}

#[test]
fn a_log_daemon_that_is_started_anew_is_found() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("log.sock");
    let first = daemon(&path);
    let global = "log DIR/log.sock format raw local0";
    let logging = Logging::start(directory, global, Stdio::null());
    logging.get("/one");
    assert_eq!(line(&first), "path /one");
    drop(first);
    fs::remove_file(&path).expect("it is there");
    logging.get("/two");
    logging.until_lost(1, "No such file or directory");
    let second = daemon(&path);
    logging.get("/three");
    assert_eq!(line(&second), "path /three");
    logging.until_lost(1, "log.sock");
}

#[test]
fn a_chroot_does_not_hide_the_log_daemon() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("log.sock");
    let inside: PathBuf = directory
        .path()
        .join("root")
        .join(path.strip_prefix("/").expect("the path is whole"));
    fs::create_dir_all(inside.parent().expect("a directory")).expect("a new root");
    let first = daemon(&path);
    let global = "log DIR/log.sock format raw local0\n    chroot DIR/root\n    user nobody\n    \
                  group nogroup";
    let logging = Logging::start(directory, global, Stdio::null());
    for path in ["/one", "/two"] {
        logging.get(path);
        assert_eq!(line(&first), format!("path {path}"));
    }
    drop(first);
    logging.get("/three");
    logging.until_lost(1, "log.sock");
    // Where a systemd unit or a configuration of rsyslog puts a second one.
    let second = daemon(&inside);
    logging.get("/four");
    assert_eq!(line(&second), "path /four");
}

#[test]
fn a_full_disk_is_said_and_serves_on() {
    let directory = TempDir::new().expect("a temporary directory");
    let full = File::options().write(true).open("/dev/full");
    let output = Stdio::from(full.expect("there is /dev/full"));
    let logging = Logging::start(directory, "log stdout format raw local0", output);
    for path in ["/one", "/two", "/three"] {
        logging.get(path);
    }
    logging.until_lost(3, "No space left on device");
}

/// The parent process no longer reads our output: that must not block anything.
#[test]
fn a_standard_error_that_nobody_reads_holds_up_no_worker() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a flag");
    for piece in [4096, 1] {
        while writer.write(&vec![b'x'; piece]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(&writer, false).expect("a flag");
    let global = "nbthread 1\n    log DIR/absent.sock format raw local0";
    let ends = (Stdio::null(), Stdio::from(writer));
    let logging = Logging::launch(&["-db"], directory, global, ends);
    let api = RuntimeApi::at(logging.directory.path().join("ctl.sock"));
    for count in ["1", "2"] {
        logging.get("/one");
        let line = format!("DroppedLogs: {count}\n");
        eventually("what is lost is counted", || {
            api.ask("show info").contains(&line)
        });
    }
}

/// Changes by commands: who, what, how long.
#[test]
fn every_change_leaves_a_line() {
    let directory = TempDir::new().expect("a temporary directory");
    let log = daemon(&directory.path().join("log.sock"));
    let global = "log DIR/log.sock format priority local0";
    let logging = Logging::start(directory, global, Stdio::null());
    let api = RuntimeApi::at(logging.directory.path().join("ctl.sock"));
    let file = logging.directory.path().join("a.cfg");
    let caller = format!("by unix@ctl.sock (pid {}, uid ", std::process::id());
    let apply = format!("apply file {}", file.display());
    let before = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, format!("{before}    maxconn 77\n")).expect("the file is written");
    for (level, command, outcome) in [
        ("<135>", "set maxconn frontend www 50", "): done in "),
        ("<135>", "disable frontend none", "): refused in "),
        ("<133>", apply.as_str(), "): done in "),
        ("<133>", "rollback 1", "): done in "),
        ("<132>", "set frontend www no such", "): refused in "),
    ] {
        let _ = api.ask(&format!("set timeout cli 9; show info; {command}"));
        let line = line(&log);
        let begins = format!("{level}Change '{command}' {caller}");
        assert!(line.starts_with(&begins), "{line}");
        assert!(line.contains(outcome) && line.contains(" ms"), "{line}");
    }
    logging.signal(Signal::USR2);
    assert!(line(&log).starts_with("<133>Change 'reload' by SIGUSR2: done in "));
    fs::write(&file, "frontend www\n    bogus\n").expect("the file is written");
    logging.signal(Signal::USR2);
    let line = line(&log);
    assert!(
        line.starts_with("<132>Change 'reload' by SIGUSR2: refused in "),
        "{line}"
    );
    assert!(line.contains("unknown keyword 'bogus'"), "{line}");
    assert!(
        logging.said().contains("unknown keyword 'bogus'"),
        "{}",
        logging.said()
    );
}

/// Refused by the worker itself, and by the scout that inspects the machine for it.
#[test]
fn a_master_says_why_a_reload_is_refused() {
    for identity in ["", "user nobody\n    group nogroup"] {
        let directory = TempDir::new().expect("a temporary directory");
        let log = daemon(&directory.path().join("log.sock"));
        let global = format!("log DIR/log.sock format raw local0 notice\n    {identity}");
        let logging = Logging::start_as(
            &["-W", "-S", "unix@m.sock"],
            directory,
            &global,
            Stdio::null(),
        );
        let file = logging.directory.path().join("a.cfg");
        logging.signal(Signal::USR2);
        let done = line(&log);
        assert!(
            done.starts_with("Change 'reload' by a signal to the master: done in "),
            "{done}"
        );
        fs::write(&file, "frontend www\n    bogus\n").expect("the file is written");
        let master = RuntimeApi::at(logging.directory.path().join("m.sock"));
        assert!(master.ask("reload; quit").starts_with("Success=0"));
        let refused = line(&log);
        let begins = "Change 'reload' by the master's socket: refused in ";
        assert!(refused.starts_with(begins), "{refused}");
        assert!(refused.contains("unknown keyword 'bogus'"), "{refused}");
        let said = logging.said();
        assert_eq!(said.matches("unknown keyword 'bogus'").count(), 1, "{said}");
    }
}
