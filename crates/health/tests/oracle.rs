//! The same events on HAProxy and on our machines, compared.
//!
//! One HAProxy with an origin that can fail, an agent whose answer is set by the test, and its
//! runtime socket; the same events go to [`Health`] machines. HAProxy's log lines and states must
//! be equal to ours. Skipped with a message when haproxy is not installed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ballast_health::{
    BackendCounts, CheckOutcome, CheckSettings, CheckStatus, Effect, ForcedState, Health,
    HealthSettings, LineSeverity, no_server_line, parse_agent,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// An event.
#[derive(Clone, Copy, Debug)]
enum Event {
    Agent(&'static str),
    Cli(&'static str, fn(&mut Health) -> Vec<Effect>),
    Origin(u16),
    Weight(&'static str, u32),
}

/// One server in a backend of its own.
struct Player {
    backend: &'static str,
    health: Health,
    lines: Vec<String>,
    reasons: bool,
    tracked: Option<&'static str>,
    was_usable: bool,
}

impl Player {
    fn new(backend: &'static str, settings: HealthSettings, reasons: bool) -> Self {
        let health = Health::new(settings, false, 0);
        let tracked = settings.tracks.then_some("a/s");
        Self {
            backend,
            health,
            lines: Vec::new(),
            reasons,
            tracked,
            was_usable: true,
        }
    }

    /// Records what HAProxy would log; returns whether followers must be told.
    fn write_down(&mut self, effects: &[Effect]) -> bool {
        let mut changed = false;
        let balance = self.health.balance();
        let usable = balance.usable && balance.weight_user > 0;
        let mut outage = self.was_usable && !usable;
        self.was_usable = usable;
        for effect in effects {
            match effect {
                Effect::CheckReport(report) if !self.reasons => {
                    self.lines
                        .push(format!("<133>{}", report.line(self.backend, "s", false)));
                }
                Effect::Transition(transition) => {
                    let level = match transition.level() {
                        LineSeverity::Alert => 129,
                        LineSeverity::Emerg => 128,
                        LineSeverity::Notice => 133,
                    };
                    let counts = BackendCounts {
                        active: u32::from(usable),
                        ..BackendCounts::default()
                    };
                    let line = transition.line(
                        self.backend,
                        "s",
                        false,
                        self.tracked,
                        self.reasons,
                        &counts,
                    );
                    self.lines.push(format!("<{level}>{line}"));
                    changed = true;
                    if std::mem::take(&mut outage) {
                        self.lines.push(format!(
                            "<128>{}",
                            no_server_line("backend", self.backend, false)
                        ));
                    }
                }
                _ => {}
            }
        }
        if outage {
            self.lines.push(format!(
                "<128>{}",
                no_server_line("backend", self.backend, false)
            ));
        }
        changed
    }
}

struct Oracle {
    directory: tempfile::TempDir,
    process: Child,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Oracle {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cli(&self, command: &str) -> String {
        let mut socket = UnixStream::connect(self.path("cli")).unwrap();
        writeln!(socket, "{command}").unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).unwrap();
        said
    }

    /// `(status, check_health, op_state, admin_state, uweight)` of a server, as shown.
    fn shown(&self, backend: &str) -> (String, String, [u32; 3]) {
        let stat = self.cli("show stat");
        let names: Vec<_> = stat
            .lines()
            .next()
            .unwrap()
            .trim_start_matches("# ")
            .split(',')
            .collect();
        let row = stat
            .lines()
            .find(|line| line.starts_with(&format!("{backend},s,")))
            .unwrap();
        let cells: Vec<_> = row.split(',').collect();
        let cell = |name| cells[names.iter().position(|word| *word == name).unwrap()].to_owned();
        let state = self.cli(&format!("show servers state {backend}"));
        let row = state
            .lines()
            .find(|line| line.contains(&format!(" {backend} ")))
            .unwrap();
        let words: Vec<_> = row.split(' ').collect();
        let number = |index: usize| words[index].parse().unwrap();
        (
            cell("status"),
            words[12].to_owned(),
            [number(5), number(6), number(7)],
        )
    }
}

/// Answers every connection with the present value of `answer`, after reading if `reads`; counts the answers.
fn origin(answer: &Arc<Mutex<String>>, reads: bool) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::clone(answer);
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut buffer = [0; 1024];
            if reads && !matches!(socket.read(&mut buffer), Ok(1..)) {
                continue;
            }
            let text = answer.lock().unwrap().clone();
            let _ = socket.write_all(text.as_bytes());
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, served)
}

fn http(status: u16) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn verdict(status: u16) -> CheckOutcome {
    match status {
        200 => CheckOutcome::new(CheckStatus::L7Ok, 0).with_code(200),
        404 => CheckOutcome::new(CheckStatus::L7Conditional, 0).with_code(404),
        _ => CheckOutcome::new(CheckStatus::L7Status, 0)
            .with_code(status)
            .with_info("X"),
    }
}

/// Durations differ from run to run.
fn without_duration(line: &str) -> String {
    let Some((head, tail)) = line.split_once("check duration: ") else {
        return line.to_owned();
    };
    let (_, tail) = tail.split_once("ms").unwrap();
    format!("{head}check duration: 0ms{tail}")
}

fn script() -> Vec<Event> {
    use Event::{Agent, Cli, Origin, Weight};
    let up = |health: &mut Health| health.force_health(0, ForcedState::Up);
    let down = |health: &mut Health| health.force_health(0, ForcedState::Down);
    let drain = |health: &mut Health| health.set_drain(0);
    let maint = |health: &mut Health| health.set_maint(0);
    let ready = |health: &mut Health| health.set_ready(0);
    vec![
        Origin(200),
        Origin(500),
        Origin(200),
        Origin(404),
        Origin(200),
        Origin(404),
        Origin(500),
        Origin(404),
        Origin(200),
        Cli("set server a/s state drain", drain),
        Origin(500),
        Origin(200),
        Cli("set server b/s state drain", drain),
        Cli("set server b/s state ready", ready),
        Cli("set server b/s state drain", drain),
        Cli("set server a/s state ready", ready),
        Cli("set server a/s state drain", drain),
        Cli("set server b/s state ready", ready),
        Cli("set server a/s state ready", ready),
        Cli("set server a/s state maint", maint),
        Cli("set server a/s state ready", ready),
        Origin(200),
        Cli("set server a/s state maint", maint),
        Cli("set server a/s state drain", drain),
        Origin(200),
        Cli("set server a/s state maint", maint),
        Cli("set server a/s state ready", ready),
        Origin(200),
        Cli("set server a/s health up", up),
        Cli("set server c/s state drain", drain),
        Cli("set server c/s state maint", maint),
        Cli("set server c/s state ready", ready),
        Origin(200),
        Origin(500),
        Cli("set server c/s state drain", drain),
        Cli("set server c/s state maint", maint),
        Origin(200),
        Cli("set server c/s state ready", ready),
        Origin(200),
        Weight("c", 0),
        Weight("c", 7),
        Cli("set server e/s health down", down),
        Cli("set server e/s health up", up),
        Cli("set server e/s health stopping", |health| {
            health.force_health(0, ForcedState::Stopping)
        }),
        Cli("set server e/s health up", up),
        Cli("set server e/s state maint", maint),
        Cli("set server e/s state ready", ready),
        Agent("down"),
        Agent("up"),
        Agent("drain"),
        Agent("ready"),
        Agent("maint"),
        Agent("ready"),
        Agent("50%"),
        Agent("fail #why"),
        Agent("up 100%"),
        Agent("stopped"),
        Agent("up #all well"),
        Agent("down,drain # going home "),
        Agent("ready up"),
        Agent("junk"),
        Agent("up ready 100%"),
    ]
}

struct Fixture {
    agent: Arc<Mutex<String>>,
    agent_served: Arc<AtomicUsize>,
    answer: Arc<Mutex<String>>,
    heard: BTreeMap<String, Vec<String>>,
    log: UdpSocket,
    oracle: Oracle,
    players: Vec<Player>,
    status: u16,
}

fn stage() -> Option<Fixture> {
    let program = installed::haproxy()?;
    let answer = Arc::new(Mutex::new(http(200)));
    let agent = Arc::new(Mutex::new("up\n".to_owned()));
    let ((web, _), (aux, agent_served)) = (origin(&answer, true), origin(&agent, false));
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let log_port = log.local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display().to_string();
    let http_check = "option httpchk GET /\n  http-check disable-on-404\n";
    let config = format!(
        "global\n  nbthread 1\n  stats socket {at}/cli level admin\n  \
         log 127.0.0.1:{log_port} format rfc3164 local0 debug\n\
         defaults\n  mode http\n  log global\n  timeout client 5s\n  timeout server 5s\n  \
         timeout connect 5s\n  timeout check 5s\n\
         backend a\n  {http_check}  option log-health-checks\n  server s 127.0.0.1:{web} check inter 30\n\
         backend b\n  {http_check}  server s 127.0.0.1:1 track a/s\n\
         backend c\n  {http_check}  server s 127.0.0.1:{web} check inter 30 rise 1 fall 4 weight 7\n\
         backend d\n  option log-health-checks\n  server s 127.0.0.1:{aux} weight 40 agent-check agent-port {aux} agent-inter 30\n\
         backend e\n  server s 127.0.0.1:{web}\n"
    );
    let path = directory.path().join("haproxy.cfg");
    std::fs::write(&path, config).unwrap();
    let process = Command::new(program)
        .args(["-db", "-f"])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let oracle = Oracle { directory, process };
    let start = Instant::now();
    while UnixStream::connect(oracle.path("cli")).is_err() {
        assert!(start.elapsed() < PATIENCE, "haproxy does not start");
        std::thread::yield_now();
    }
    let check = Some(CheckSettings::HEALTH);
    let quick = Some(CheckSettings {
        fall: 4,
        rise: 1,
        ..CheckSettings::HEALTH
    });
    let agented = Some(CheckSettings::AGENT);
    let plain = HealthSettings::default();
    let players = vec![
        Player::new("a", HealthSettings { check, ..plain }, false),
        Player::new(
            "b",
            HealthSettings {
                tracks: true,
                ..plain
            },
            true,
        ),
        Player::new(
            "c",
            HealthSettings {
                check: quick,
                weight: 7,
                ..plain
            },
            true,
        ),
        Player::new(
            "d",
            HealthSettings {
                agent: agented,
                weight: 40,
                ..plain
            },
            false,
        ),
        Player::new("e", plain, true),
    ];
    Some(Fixture {
        agent,
        agent_served,
        answer,
        heard: BTreeMap::new(),
        log,
        oracle,
        players,
        status: 200,
    })
}

impl Fixture {
    fn act(&mut self, event: Event) {
        match event {
            Event::Origin(status) => {
                self.status = status;
                self.check();
                *self.answer.lock().unwrap() = http(status);
            }
            Event::Agent(line) => {
                for _ in 0..3 {
                    let answer = parse_agent(line.as_bytes());
                    let effects = self.players[3].health.agent_done(0, &answer, 0);
                    self.finish(3, &effects);
                }
                *self.agent.lock().unwrap() = format!("{line}\n");
                self.await_agent();
            }
            Event::Cli(command, act) => {
                let player = self.named(command.split(' ').nth(2).unwrap());
                let effects = act(&mut self.players[player].health);
                self.finish(player, &effects);
                // A server that leaves maintenance is checked at once.
                self.check();
                let said = self.oracle.cli(command);
                assert!(said.trim().is_empty(), "{command}: {said}");
            }
            Event::Weight(backend, weight) => {
                let player = self.named(backend);
                let effects = self.players[player].health.set_weight(0, weight);
                self.finish(player, &effects);
                self.oracle
                    .cli(&format!("set server {backend}/s weight {weight}"));
            }
        }
    }

    /// Waits until HAProxy has heard what the agent says now: the answer before the last one that was served
    /// since is judged. Not every one shows in a line or a state.
    fn await_agent(&self) {
        let (served, start) = (self.agent_served.load(Ordering::SeqCst), Instant::now());
        while self.agent_served.load(Ordering::SeqCst) < served + 3 {
            assert!(start.elapsed() < PATIENCE, "the agent is not asked");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs the health checks of those that have one, as often as the counter can move, and once
    /// more.
    fn check(&mut self) {
        for player in [0, 2] {
            for _ in 0..7 {
                if self.players[player].health.admin().is_maint() {
                    continue;
                }
                let effects = self.players[player]
                    .health
                    .check_done(0, verdict(self.status));
                self.finish(player, &effects);
            }
        }
    }

    fn named(&self, name: &str) -> usize {
        self.players
            .iter()
            .position(|player| name.starts_with(player.backend))
            .unwrap()
    }

    fn finish(&mut self, player: usize, effects: &[Effect]) {
        if self.players[player].write_down(effects) && player == 0 {
            let leader = self.players[0].health.clone();
            let effects = self.players[1].health.copy_tracked(0, &leader);
            self.players[1].write_down(&effects);
        }
    }

    /// Waits until HAProxy has logged as much and shows the same.
    fn compare(&mut self, event: Event) -> Result<usize, String> {
        let start = Instant::now();
        loop {
            self.listen();
            let difference = self.difference();
            match difference {
                None => return Ok(self.players.len()),
                Some(text) if start.elapsed() > Duration::from_secs(5) => {
                    return Err(format!("after {event:?}: {text}"));
                }
                Some(_) => {}
            }
        }
    }

    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(count) = self.log.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]);
            let priority = &text[..5];
            let line = text.trim_end().split_once("]: ").unwrap().1;
            let name = self
                .players
                .iter()
                .map(|player| player.backend)
                .find(|backend| {
                    line.contains(&format!(" {backend}/s "))
                        || line.starts_with(&format!("backend {backend} "))
                });
            let heard = self
                .heard
                .entry(name.unwrap_or("?").to_owned())
                .or_default();
            heard.push(without_duration(&format!("{priority}{line}")));
        }
    }

    fn difference(&self) -> Option<String> {
        for player in &self.players {
            let heard = self.heard.get(player.backend).cloned().unwrap_or_default();
            if heard != player.lines {
                let same = heard
                    .iter()
                    .zip(&player.lines)
                    .take_while(|(a, b)| a == b)
                    .count();
                let from = same.min(heard.len());
                return Some(format!(
                    "{}: ours {:#?}\ntheirs {:#?}",
                    player.backend,
                    &player.lines[same..],
                    &heard[from..]
                ));
            }
            let health = &player.health;
            let judged = if player.tracked.is_some() {
                &self.players[0].health
            } else {
                health
            };
            let snapshot = health.snapshot(0);
            let numbers = [
                snapshot.op_state.into(),
                snapshot.admin_state.into(),
                snapshot.weight_user,
            ];
            let status = health.status_text(judged, player.tracked);
            let counter = snapshot.check_health.to_string();
            let (shown, shown_counter, shown_numbers) = self.oracle.shown(player.backend);
            // A check that is under way when maintenance begins may still count in HAProxy.
            let is_open = health.settings().check.is_none() || health.admin().is_maint();
            let counts = is_open || shown_counter == counter;
            if shown != status || shown_numbers != numbers || !counts {
                return Some(format!(
                    "{}: ours {status} {counter} {numbers:?}, theirs {shown} {shown_counter} \
                     {shown_numbers:?}",
                    player.backend
                ));
            }
        }
        None
    }
}

#[test]
fn lines_and_states_are_haproxys() {
    let Some(mut stage) = stage() else { return };
    if installed::version() < (3, 2) {
        eprintln!("SKIPPED: HAProxy before 3.2 says of servers that drain what 3.2 does not");
        return;
    }
    // Every check must have run once before the first event.
    stage.act(Event::Agent("up"));
    let mut states = 0;
    for event in script() {
        stage.act(event);
        match stage.compare(event) {
            Ok(count) => states += count,
            Err(text) => panic!("{text}"),
        }
    }
    let lines: usize = stage.players.iter().map(|player| player.lines.len()).sum();
    eprintln!("compared {lines} log lines and {states} states");
}
