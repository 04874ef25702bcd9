//! Commands about the connections of clients.
//!
//! Source: management manual, section 9.3, "show sess" and "shutdown session".

use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ballast_engine::sessions::SessionInfo;
use ballast_model::CliLevel;
use ballast_net::local_time;

use super::anonymous::NameMasking;
use crate::answer::{CommandAnswer, ReportBatches};
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::control::Control;
use crate::shared::ProcessRole;

/// How many positions of a worker's list are read at once.
const POSITION_COUNT: usize = 1000;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["show", "sess"],
        "show sess [help|<id>|all] [opts...]",
        "list the sessions, or tell all about one",
        show,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["shutdown", "session"],
        "shutdown session [id]",
        "end a session",
        shutdown,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
];

const HELP: &str = "Usage: show sess [<id> | all] [<filter>]*\n\
     <id>                 all about one session (0x...)\n\
     all                  all about each\n\
     older <age>          only those that are older (seconds, or with a unit)\n\
     susp                 suspicious sessions only: none, they are not detected\n\
     frontend <name>      only those of a frontend\n\
     backend <name>       only those of a backend\n\
     server <bk>/<srv>    only those of a server\n\
     uri <prefix>         only those whose request asks for what begins so\n";

/// Which sessions are shown, and with how many details.
#[derive(Clone, Debug, Default)]
struct SessionFilter {
    id: Option<u64>,
    in_full: bool,
    older: Option<Duration>,
    none: bool,
    frontend: Option<String>,
    backend: Option<String>,
    server: Option<(String, String)>,
    uri: Option<String>,
}

impl SessionFilter {
    fn read(words: &[String]) -> Result<Self, CommandAnswer> {
        let mut filter = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let mut value = |what: &str| match words.next() {
                Some(value) => Ok(value.to_owned()),
                None => Err(CommandAnswer::error(format!("'{word}' expects {what}."))),
            };
            match word {
                "help" => return Err(CommandAnswer::Report(HELP.into())),
                "all" => filter.in_full = true,
                "susp" => filter.none = true,
                "older" => {
                    let age = value("an age")?;
                    let age = super::session::delay(&age);
                    let age = age.ok_or_else(|| CommandAnswer::error("Expects a valid age."))?;
                    filter.older = Some(age);
                }
                "frontend" => filter.frontend = Some(value("the name of a frontend")?),
                "backend" => filter.backend = Some(value("the name of a backend")?),
                "server" => {
                    let name = value("<backend>/<server>")?;
                    let Some((backend, server)) = name.split_once('/') else {
                        return Err(CommandAnswer::error("Require 'backend/server'."));
                    };
                    filter.server = Some((backend.to_owned(), server.to_owned()));
                }
                "uri" => filter.uri = Some(value("the beginning of a URI")?),
                other => match number(other) {
                    Some(id) => (filter.id, filter.in_full) = (Some(id), true),
                    None => {
                        let other = other.escape_debug();
                        let message =
                            format!("Unsupported option '{other}', try 'help' for more info.");
                        return Err(CommandAnswer::error(message));
                    }
                },
            }
        }
        Ok(filter)
    }

    fn fits(&self, session: &SessionInfo) -> bool {
        let backend = session.backend.as_ref();
        let is_at = |(name, server): &(String, String)| {
            backend.is_some_and(|backend| backend.name == *name)
                && session
                    .server
                    .as_ref()
                    .is_some_and(|known| known.0 == *server)
        };
        !self.none
            && self.id.is_none_or(|id| id == session.id)
            && self.older.is_none_or(|age| session.age >= age)
            && self.frontend.as_ref().is_none_or(|name| *name == session.frontend.name)
            && self
                .backend
                .as_ref()
                .is_none_or(|name| backend.is_some_and(|backend| backend.name == *name))
            && self.server.as_ref().is_none_or(is_at)
            && self.uri.as_ref().is_none_or(|uri| session.uri.starts_with(uri.as_str()))
            // A connection that waits for a request, its first or another, has no stream: HAProxy does
            // not list it either.
            && (session.is_busy || self.id.is_some())
    }
}

/// Parses the id of a session, as the list shows it.
fn number(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn show(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(control) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let filter = match SessionFilter::read(call.args) {
        Ok(filter) => filter,
        Err(answer) => return answer,
    };
    let control = Arc::clone(control);
    let mut callers = call.shared.sessions();
    callers.retain(|caller| filter.fits(caller));
    if let Some(id) = filter.id {
        // The id contains the number of the worker.
        let worker = usize::try_from(id >> 40).unwrap_or(0);
        let names = NameMasking::of(call.session);
        return CommandAnswer::pending(async move {
            let found = match worker.checked_sub(1) {
                Some(worker) => find(&*control, worker, id).await,
                None => callers.pop(),
            };
            let Some(session) = found.filter(|session| filter.fits(session)) else {
                return CommandAnswer::Report("Session not found.\n".into());
            };
            let mut text = String::new();
            in_full(&session, names, &mut text);
            CommandAnswer::Report(text)
        });
    }
    CommandAnswer::Batches(Box::new(SessionWalk {
        control,
        names: NameMasking::of(call.session),
        filter,
        callers,
        next: Some((0, 0)),
    }))
}

/// The session with an id.
async fn find(control: &dyn Control, worker: usize, id: u64) -> Option<SessionInfo> {
    let mut next = Some(0);
    while let Some(position) = next {
        let page = control.sessions(worker, position, POSITION_COUNT).await;
        let mut sessions = page.sessions.into_iter();
        if let Some(session) = sessions.find(|session| session.id == id) {
            return Some(session);
        }
        next = page.next;
    }
    None
}

/// A walk through the sessions of all workers. It holds at most [`POSITION_COUNT`] of them.
struct SessionWalk {
    control: Arc<dyn Control>,
    names: NameMasking,
    filter: SessionFilter,
    /// The callers on the command sockets, until they are shown.
    callers: Vec<SessionInfo>,
    /// The worker and the position where the list continues.
    next: Option<(usize, usize)>,
}

impl ReportBatches for SessionWalk {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + '_>> {
        Box::pin(async {
            let (worker, position) = self.next?;
            let page = self
                .control
                .sessions(worker, position, POSITION_COUNT)
                .await;
            self.next = match page.next {
                Some(position) => Some((worker, position)),
                None => (worker + 1 < ballast_worker::worker_count()).then_some((worker + 1, 0)),
            };
            let mut text = String::new();
            let filter = &self.filter;
            let callers = std::mem::take(&mut self.callers);
            let sessions = callers.iter().chain(&page.sessions);
            for session in sessions.filter(|session| filter.fits(session)) {
                if self.filter.in_full {
                    in_full(session, self.names, &mut text);
                } else {
                    in_short(session, self.names, &mut text);
                }
            }
            Some(text)
        })
    }
}

/// An age in HAProxy's format.
fn human(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Writes a session in one line. Fields about HAProxy's internals are zero.
fn in_short(session: &SessionInfo, names: NameMasking, into: &mut String) {
    let backend = session.backend.as_ref();
    let server = session.server.as_ref();
    let _ = writeln!(
        into,
        "0x{:x}: proto={} src={} fe={} be={} srv={} ts={:02x} epoch=0 age={} calls={} rate=0 \
         cpu=0 lat=0 rq[f=000000h,i=0,an=00h] rp[f=000000h,i=0,an=00h] scf=[8,0h,fd=-1] \
         scb=[8,0h,fd=-1] exp= rc=0 c_exp=",
        session.id,
        session.protocol,
        names.address(&session.source),
        names.name(&session.frontend.name),
        backend.map_or("<NONE>".into(), |backend| names.name(&backend.name)),
        server.map_or("<none>".into(), |server| names.name(&server.0)),
        session.worker,
        human(session.age),
        session.exchange_count,
    );
}

/// Writes a session in several lines.
fn in_full(session: &SessionInfo, names: NameMasking, into: &mut String) {
    let _ = write!(
        into,
        "0x{:x}: [{}] id={} proto={} source={}\n  \
         frontend={} (id={} mode={}), listener={} (id={}) addr={}\n",
        session.id,
        clock(session.accepted_at),
        session.id & 0xff_ffff_ffff,
        session.protocol,
        names.address(&session.source),
        names.name(&session.frontend.name),
        session.frontend.id,
        session.frontend.mode,
        session.listener.0.as_deref().unwrap_or("?"),
        session.listener.1,
        names.address(&session.destination),
    );
    match &session.backend {
        Some(backend) => {
            let (name, id, mode) = (names.name(&backend.name), backend.id, backend.mode);
            let _ = writeln!(into, "  backend={name} (id={id} mode={mode})");
        }
        None => into.push_str("  backend=<NONE> (id=-1 mode=-)\n"),
    }
    match &session.server {
        Some((name, id, address)) => {
            let (name, address) = (names.name(name), names.address(address));
            let _ = writeln!(into, "  server={name} (id={id}) addr={address}");
        }
        None => into.push_str("  server=<NONE> (id=-1)\n"),
    }
    let state = if session.is_busy { "busy" } else { "idle" };
    let _ = writeln!(
        into,
        "  worker={} state={state} age={} requests={} uri={}",
        session.worker,
        human(session.age),
        session.exchange_count,
        names.name(&session.uri).escape_debug(),
    );
}

/// `21/Nov/2026:12:41:09.846938`.
fn clock(moment: SystemTime) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = local_time(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    format!(
        "{:02}/{}/{:04}:{:02}:{:02}:{:02}.{:06}",
        time.day,
        MONTHS[usize::from(time.month.clamp(1, 12)) - 1],
        time.year,
        time.hour,
        time.minute,
        time.second,
        since.subsec_micros()
    )
}

fn shutdown(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(control) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let Some(id) = number(call.arg(0)) else {
        return CommandAnswer::error("Session pointer expected (use 'show sess').");
    };
    let control = Arc::clone(control);
    CommandAnswer::pending(async move {
        if control.end_session(id).await {
            CommandAnswer::Done
        } else {
            CommandAnswer::error("No such session (use 'show sess').")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_engine::sessions::ProxyName;

    fn session() -> SessionInfo {
        SessionInfo {
            id: 0x100_0000_0001,
            worker: 0,
            protocol: "tcpv4",
            source: "10.0.0.1:99".into(),
            destination: "10.0.0.2:80".into(),
            frontend: ProxyName {
                name: "fe".into(),
                id: 2,
                mode: "http",
            },
            listener: (None, 1),
            backend: Some(ProxyName {
                name: "be".into(),
                id: 3,
                mode: "http",
            }),
            server: Some(("s1".into(), 1, "10.0.0.3:80".into())),
            accepted_at: UNIX_EPOCH,
            age: Duration::from_secs(70),
            exchange_count: 4,
            uri: "/a?b".into(),
            is_busy: true,
        }
    }

    #[test]
    fn filters_choose() {
        let fits = |words: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            SessionFilter::read(&words).unwrap().fits(&session())
        };
        for yes in [
            "",
            "all",
            "older 1m",
            "frontend fe backend be",
            "server be/s1",
            "uri /a",
            "0x10000000001",
        ] {
            assert!(fits(yes), "{yes}");
        }
        for no in [
            "older 2m",
            "frontend x",
            "server be/s2",
            "uri /b",
            "susp",
            "0x1",
        ] {
            assert!(!fits(no), "{no}");
        }
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            SessionFilter::read(&words).is_err()
        };
        assert!(read(&["older"]) && read(&["older", "x"]) && read(&["nosuch"]));
    }

    #[test]
    fn a_line_names_client_and_server() {
        let mut text = String::new();
        in_short(&session(), NameMasking::default(), &mut text);
        let begins = "0x10000000001: proto=tcpv4 src=10.0.0.1:99 fe=fe be=be srv=s1 ts=00 epoch=0 \
                      age=1m10s calls=4 ";
        assert!(text.starts_with(begins), "{text}");
        text.clear();
        in_full(&session(), NameMasking::default(), &mut text);
        assert!(
            text.contains("\n  server=s1 (id=1) addr=10.0.0.3:80\n"),
            "{text}"
        );
    }
}
