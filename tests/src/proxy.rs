//! A proxy under test: HAProxy or Ballast, started with a configuration and stopped with the test.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::ports::is_listening;
use crate::{LOOK_AGAIN, WAIT_MAX, eventually, program};

/// A program that reads `haproxy.cfg`.
#[derive(Clone, Debug)]
pub struct Program {
    name: &'static str,
    path: PathBuf,
}

impl Program {
    /// The program under test: the one named by `BALLAST`, else that of `make build`.
    ///
    /// # Panics
    ///
    /// As [`program`].
    #[must_use]
    pub fn ballast() -> Self {
        Self {
            name: "ballast",
            path: program("BALLAST", "target/debug/ballast"),
        }
    }

    /// The oracle: the program named by `HAPROXY`, else the one that `scripts/oracle` unpacked.
    ///
    /// # Panics
    ///
    /// As [`program`].
    #[must_use]
    pub fn haproxy() -> Self {
        Self {
            name: "haproxy",
            path: program("HAPROXY", "target/oracle/root/usr/sbin/haproxy"),
        }
    }

    /// The oracle first: a test that fails on HAProxy proves nothing.
    #[must_use]
    pub fn both() -> [Self; 2] {
        [Self::haproxy(), Self::ballast()]
    }

    /// `ballast` or `haproxy`, for the messages of assertions.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True for Ballast: for the few cases where a test goes beyond the oracle.
    #[must_use]
    pub fn is_ballast(&self) -> bool {
        self.name == "ballast"
    }

    /// Puts a copy of the binary at a place, at once: a program that runs from there keeps its own.
    ///
    /// Another process writes it. If this one did, a child that another thread starts meanwhile
    /// would have the file open for writing, and who executes it then is told that it is busy.
    ///
    /// # Panics
    ///
    /// When it cannot be copied.
    pub fn copy_to(&self, place: &Path) {
        let new = place.with_extension("new");
        let copied = Command::new("cp").arg(&self.path).arg(&new).status();
        assert!(copied.is_ok_and(|status| status.success()), "a copy");
        fs::rename(new, place).expect("in its place");
    }

    /// The binary.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs the program to its end with these arguments: for `-c`, `-v` etc.
    ///
    /// # Panics
    ///
    /// When the program cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> ProgramResult {
        let output = Command::new(&self.path)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        ProgramResult {
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    }

    /// Checks a configuration given as text, as `-c -f` does.
    ///
    /// # Panics
    ///
    /// When the text cannot be written or the program not started.
    #[must_use]
    pub fn check(&self, configuration: &str) -> ProgramResult {
        let directory = TempDir::new().expect("a temporary directory");
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, configuration).expect("the configuration is written");
        self.run(&["-c", "-f", &file.to_string_lossy()])
    }
}

/// The results of a program that has ended.
#[derive(Clone, Debug)]
pub struct ProgramResult {
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote to standard error.
    pub stderr: String,
    /// All it wrote to standard output.
    pub stdout: String,
}

/// How a proxy is started, besides its program and configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Launch<'a> {
    /// Files (name, content) to write into the working directory first.
    pub files: &'a [(&'a str, &'a str)],
    /// Ports of 127.0.0.1 that must be listened on before the test continues.
    pub ports: &'a [u16],
    /// A command that runs the program, `strace -D` for example: it must become the program.
    pub under: &'a [&'a str],
    /// Environment variables, besides those of the test.
    pub variables: &'a [(&'a str, &'a str)],
    /// Arguments in place of `-db`, `-W` for example.
    pub words: &'a [&'a str],
}

/// A running proxy. Dropping it kills it.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    directory: TempDir,
    program: Program,
}

impl Proxy {
    /// Starts the program in the foreground with this configuration, and returns when all
    /// `ports` (of 127.0.0.1) are listened on.
    ///
    /// # Panics
    ///
    /// When the program ends first, or is not ready in time: the message holds its stderr.
    #[must_use]
    pub fn start(program: &Program, configuration: &str, ports: &[u16]) -> Self {
        Self::launch(
            program,
            configuration,
            &Launch {
                ports,
                ..Launch::default()
            },
        )
    }

    /// As [`Proxy::start`], with all options.
    ///
    /// # Panics
    ///
    /// As [`Proxy::start`].
    #[must_use]
    pub fn launch(program: &Program, configuration: &str, launch: &Launch<'_>) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        for (name, content) in launch.files.iter().chain(&[("haproxy.cfg", configuration)]) {
            fs::write(directory.path().join(name), content).expect("a file of the test is written");
        }
        let stderr = File::create(directory.path().join("stderr")).expect("a file for stderr");
        let stdout = File::create(directory.path().join("stdout")).expect("a file for stdout");
        let words: Vec<&OsStr> = launch.under.iter().map(OsStr::new).collect();
        let words = [&words, &[program.path().as_os_str()][..]].concat();
        let child = Command::new(words[0])
            .args(&words[1..])
            .args(if launch.words.is_empty() {
                &["-db"]
            } else {
                launch.words
            })
            .args(["-f", "haproxy.cfg"])
            .envs(launch.variables.iter().copied())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stderr(stderr)
            .stdout(stdout)
            .spawn()
            .expect("the program starts");
        let mut proxy = Self {
            child,
            directory,
            program: program.clone(),
        };
        proxy.wait_until_listening(launch.ports);
        proxy
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its working directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its standard error output so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        fs::read_to_string(self.directory.path().join("stderr")).unwrap_or_default()
    }

    /// Its standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        fs::read_to_string(self.directory.path().join("stdout")).unwrap_or_default()
    }

    /// How many descriptors the process has open.
    #[must_use]
    pub fn descriptor_count(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// The resident memory of the process.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        // `size resident shared ...`, in pages.
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid())).unwrap_or_default();
        let pages = statm
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<usize>().ok());
        pages.unwrap_or(0) * rustix::param::page_size()
    }

    /// The processor time of the process so far, in steps of ten milliseconds.
    #[must_use]
    pub fn processor_time(&self) -> Duration {
        // After the name in parentheses: state, ten more, utime, stime, in ticks.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 = after_name
            .split_ascii_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum();
        Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
    }

    /// Sends a signal to the process, and waits for its effect if it stops the process.
    ///
    /// # Panics
    ///
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a child has a positive id"), signal).expect("the proxy lives");
        if signal == Signal::STOP {
            eventually("each of its threads stands still", || self.stands_still());
        }
    }

    fn stands_still(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid()));
        threads.into_iter().flatten().flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| rest.starts_with(" T"))
        })
    }

    /// Waits until the process ends by itself.
    ///
    /// # Panics
    ///
    /// When it does not within [`WAIT_MAX`].
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "{} did not end: {}",
                self.program.name,
                self.stderr()
            );
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// True while the process runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn wait_until_listening(&mut self, ports: &[u16]) {
        let deadline = Instant::now() + WAIT_MAX;
        while !ports.iter().all(|port| is_listening(*port)) {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                assert!(
                    status.success() && status.signal().is_none(),
                    "{} ended before it listened: {status}\n{}",
                    self.program.name,
                    self.stderr()
                );
            }
            assert!(
                Instant::now() < deadline,
                "{} does not listen on {ports:?}\n{}",
                self.program.name,
                self.stderr()
            );
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Proxy {
    /// Kills the process, and prints its output if the test is failing.
    fn drop(&mut self) {
        // Both fail only when the process has ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- stderr of {}:\n{}", self.program.name, self.stderr());
        }
    }
}
