//! The first steps of a new user: `make run`, a request, Ctrl-C; and the configurations in
//! `examples/`, which both programs must accept.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_tests::ports::is_listening;
use ballast_tests::{Authority, Client, Profile, Program, WAIT_MAX, free_port, repository};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// `make run` on free ports, in a process group of its own, as in a terminal.
struct Run {
    make: Child,
    /// The frontend, then the two servers.
    ports: [u16; 3],
}

impl Run {
    fn start(program: &Program) -> Self {
        let ports = [free_port(), free_port(), free_port()];
        let origin = ballast_tests::program("ORIGIN", "target/debug/ballast-origin");
        // A shell that started us in the background made us ignore Ctrl-C, and a signal that is
        // ignored at the start cannot be trapped: `env` restores it.
        let make = Command::new("env")
            .args([
                "--default-signal=INT",
                "make",
                "--no-print-directory",
                "run",
            ])
            .current_dir(repository())
            .env("BALLAST", program.path())
            .env("ORIGIN", origin)
            .env("PORT", ports[0].to_string())
            .env("BLUE_PORT", ports[1].to_string())
            .env("GREEN_PORT", ports[2].to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("make is installed");
        Self { make, ports }
    }

    fn interrupt(&self) {
        let group = i32::try_from(self.make.id()).ok().and_then(Pid::from_raw);
        kill_process_group(group.expect("a child has a positive id"), Signal::INT)
            .expect("the group is there");
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let group = i32::try_from(self.make.id()).ok().and_then(Pid::from_raw);
        if let (Ok(None), Some(group)) = (self.make.try_wait(), group) {
            // This fails only when the group is gone.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.make.wait();
        }
    }
}

#[test]
fn make_run_shows_the_addresses_serves_and_stops_on_ctrl_c() {
    for program in Program::both() {
        let mut run = Run::start(&program);
        let mut output = BufReader::new(run.make.stdout.take().expect("stdout is a pipe"));
        let mut said = String::new();
        while !said.contains("Ctrl-C stops") {
            let length = output.read_line(&mut said).expect("make writes UTF-8");
            assert_ne!(length, 0, "{}: make run ended: {said}", program.name());
        }
        assert!(
            said.contains(&format!("http://127.0.0.1:{}/", run.ports[0])),
            "{said}"
        );
        assert!(said.contains("curl "), "{said}");

        let answered: Vec<String> = (0..2)
            .map(|_| Client::get_once(run.ports[0], "/"))
            .inspect(|response| assert_eq!(response.status, 200))
            .map(|response| response.header("x-origin").unwrap_or_default().to_owned())
            .collect();
        assert!(answered.contains(&"blue".to_owned()), "{answered:?}");
        assert!(answered.contains(&"green".to_owned()), "{answered:?}");

        run.interrupt();
        run.make.wait().expect("make can be waited for");
        let deadline = Instant::now() + WAIT_MAX;
        while run.ports.iter().any(|port| is_listening(*port)) {
            assert!(
                Instant::now() < deadline,
                "{}: something lives on",
                program.name()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn examples_are_valid_for_both() {
    let examples = fs::read_dir(repository().join("examples")).expect("there are examples");
    let files: Vec<_> = examples
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cfg"))
        .collect();
    assert!(files.len() >= 4, "the examples are there");
    let directory = TempDir::new().expect("a temporary directory");
    let certificates = directory.path().join("certs");
    fs::create_dir(&certificates).expect("a directory");
    let certificate = Authority::new("an authority").issue(&Profile::server(&["www.example.com"]));
    fs::write(certificates.join("site.pem"), certificate.bundle()).expect("it is written");
    let copy = directory.path().join("example.cfg");
    for program in Program::both() {
        for file in &files {
            let text = fs::read_to_string(file).expect("it is read");
            let text = text.replace("/etc/haproxy/certs", &certificates.to_string_lossy());
            fs::write(&copy, text).expect("it is written");
            let finished = program.run(&["-c", "-f", &copy.to_string_lossy()]);
            assert!(
                finished.status.success(),
                "{} refuses {}:\n{}",
                program.name(),
                file.display(),
                finished.stderr
            );
        }
    }
}
