//! Log lines that cannot be sent: they are counted and said, and whoever listens again gets the
//! next ones. HAProxy counts in `DroppedLogs` only what a slow target loses; here it is all.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Desk, Program, WAIT_MAX, eventually, free_port};
use tempfile::TempDir;

/// A process that logs each request.
struct Logging {
    directory: TempDir,
    port: u16,
    child: Child,
}

impl Logging {
    /// Lines of the global section, with the directory for `DIR`.
    fn start(directory: TempDir, global: &str, output: Stdio) -> Self {
        let port = free_port();
        let global = global.replace("DIR", &directory.path().display().to_string());
        let text = format!(
            "global\n    stats socket unix@ctl.sock level admin\n    {global}\n\
             frontend www\n    mode http\n    bind 127.0.0.1:{port}\n    timeout client 20s\n    \
             log global\n    log-format \"path %HP\"\n    \
             http-request return status 200 content-type text/plain string hello\n"
        );
        fs::write(directory.path().join("a.cfg"), text).expect("the configuration is written");
        let said = File::create(directory.path().join("stderr")).expect("a file");
        let child = Command::new(Program::ballast().path())
            .args(["-db", "-f", "a.cfg"])
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

    fn said(&self) -> String {
        fs::read_to_string(self.directory.path().join("stderr")).unwrap_or_default()
    }

    fn until_lost(&self, count: u32, why: &str) {
        let desk = Desk::at(self.directory.path().join("ctl.sock"));
        let line = format!("DroppedLogs: {count}\n");
        eventually("what is lost is counted", || {
            desk.ask("show info").contains(&line)
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
        let _ = self.child.kill();
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
    // Where a unit of systemd or a configuration of rsyslog puts a second one.
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
