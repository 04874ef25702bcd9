//! The command line.

mod help;
mod values;

#[cfg(test)]
mod tests;

use std::iter::Peekable;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use crate::args::help::HELP;
use crate::args::values::{
    BODY_BYTES_MAX, body, count, duration, field, method, milliseconds, number, path, rate,
    statuses, url_lines,
};
use crate::origin::{self, TargetReader};
use crate::plan::{Expect, Hold, Mode, Plan};
use crate::tls::{TlsClient, TlsOptions};

/// A larger number is probably a typing error.
const CONNECTION_COUNT_MAX: u64 = 200_000;
const THREAD_COUNT_MAX: u64 = 256;
const STREAM_COUNT_MAX: u64 = 10_000;
/// What a server of WebSockets sends back in one frame.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// The words for modes.
const MODES: [&str; 4] = ["http", "connect", "handshakes", "websockets"];

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Run(Box<Plan>),
    /// A page from earlier reports.
    Page {
        reports: Vec<PathBuf>,
        html: PathBuf,
    },
}

/// Parses the arguments.
///
/// # Errors
///
/// The error message.
pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut words = words.peekable();
    if words.next_if(|word| word == "report").is_some() {
        return page(words);
    }
    let mode = words.next_if(|word| MODES.contains(&word.as_str()));
    let mut plan = defaults(mode.as_deref().unwrap_or("http"));
    let mut line = Line::new(&plan);
    while let Some(word) = words.next() {
        if !line.take(word, &mut words, &mut plan)? {
            return Ok(Command::Help);
        }
    }
    plan.command = command(mode.as_deref(), &line.shown);
    line.finish(plan).map(|plan| Command::Run(Box::new(plan)))
}

/// What is being read.
struct Line {
    targets: Vec<String>,
    paths: Vec<String>,
    tls: TlsOptions,
    is_h2: bool,
    has_method: bool,
    /// The words, without secrets.
    shown: Vec<String>,
}

impl Line {
    fn new(plan: &Plan) -> Self {
        let mut tls = TlsOptions::default();
        tls.is_default = plan.mode == Mode::Handshakes;
        Self {
            targets: Vec::new(),
            paths: Vec::new(),
            tls,
            is_h2: false,
            has_method: false,
            shown: Vec::new(),
        }
    }

    /// Takes a word and its value; false when help is requested.
    fn take(
        &mut self,
        word: String,
        words: &mut Peekable<impl Iterator<Item = String>>,
        plan: &mut Plan,
    ) -> Result<bool, String> {
        let (name, mut inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut shown = vec![name.to_owned()];
        let mut value = || {
            let value = inline.take().or_else(|| words.next());
            let value = value.ok_or_else(|| format!("{name} wants a value"))?;
            shown.push(without_secrets(name, &value));
            Ok(value)
        };
        match name {
            "-h" | "--help" => return Ok(false),
            "--path" => self.paths.push(path(value)?),
            "--urls" => self.targets.extend(url_lines(&value()?)?),
            "--h2" => {
                self.is_h2 = true;
                plan.streams.get_or_insert(1);
            }
            "--method" => {
                self.has_method = true;
                plan.method = method(value()?)?;
            }
            _ if self.tls.take(name, &mut value)? => {}
            _ if name.starts_with('-') => option(plan, name, value)?,
            _ if MODES.contains(&name) || name == "report" => {
                return Err(format!(
                    "'{name}' is a word for what to do, which comes before all others (a host of \
                     that name is written http://{name})"
                ));
            }
            _ => {
                shown[0].clone_from(&word);
                self.targets.push(word);
            }
        }
        self.shown.extend(shown);
        Ok(true)
    }

    /// Completes the plan.
    fn finish(mut self, mut plan: Plan) -> Result<Plan, String> {
        if self.targets.is_empty() {
            return Err("no target".to_owned());
        }
        self.check_streams(&plan)?;
        if plan.requests.is_none() && plan.duration.is_none() {
            plan.duration = Some(Duration::from_secs(10));
        }
        if !self.has_method && !plan.body.is_empty() {
            plan.method = "POST".to_owned();
        }
        if plan.mode == Mode::WebSockets && (plan.method != "GET" || !plan.body.is_empty()) {
            return Err("websockets begin with GET, and no body".to_owned());
        }
        plan.threads = plan.threads.min(plan.connections);
        let mut reader = TargetReader::default();
        let targets = self
            .targets
            .iter()
            .map(|line| reader.read(line, self.tls.is_default));
        let targets = targets.collect::<Result<_, _>>()?;
        let default_path = match plan.mode {
            Mode::WebSockets => "/ws",
            Mode::Handshakes | Mode::Http => "/",
        };
        plan.origins = origin::origins(targets, &self.paths, default_path)?;
        plan.shares = origin::share_connections(&plan.origins, plan.connections)?;
        plan.tls = self.tls_client(&plan)?;
        plan.compose_requests();
        Ok(plan)
    }

    fn check_streams(&mut self, plan: &Plan) -> Result<(), String> {
        match plan.streams {
            None => {}
            Some(_) if !self.is_h2 => return Err("--streams wants --h2".to_owned()),
            Some(_) if plan.mode != Mode::Http => return Err("--h2 is for requests".to_owned()),
            Some(2..) if plan.is_closing => {
                return Err("--streams: a connection per request has one".to_owned());
            }
            Some(_) if self.tls.resumes_always() => {
                return Err("--resume always: not with --h2".to_owned());
            }
            Some(_) => self.tls.offer_h2(),
        }
        Ok(())
    }

    fn tls_client(self, plan: &Plan) -> Result<Option<TlsClient>, String> {
        let clear = plan.origins.iter().find(|origin| origin.tls.is_none());
        if let (Some(origin), Mode::Handshakes) = (clear, plan.mode) {
            return Err(format!("{}: handshakes are over TLS", origin.address));
        }
        if plan.origins.iter().all(|origin| origin.tls.is_none()) {
            self.tls.assert_unused()?;
            return Ok(None);
        }
        if plan.mode != Mode::Handshakes && self.tls.offers_other_protocols(self.is_h2) {
            return Err(
                "--alpn: requests are HTTP/1, or HTTP/2 with --h2; `handshakes` may offer others"
                    .to_owned(),
            );
        }
        self.tls.client(plan.connections).map(Some)
    }
}

/// The value as a report may show it: fields and bodies may be secret.
fn without_secrets(name: &str, value: &str) -> String {
    match name {
        "--header" => {
            let field = value.split(':').next().unwrap_or_default();
            format!("{field}: ...")
        }
        "--body" if !value.starts_with('@') => "...".to_owned(),
        _ => value.to_owned(),
    }
}

/// The words as a shell takes them.
fn command(mode: Option<&str>, words: &[String]) -> String {
    let words = mode.into_iter().chain(words.iter().map(String::as_str));
    let mut command = "ballast-load".to_owned();
    for word in words {
        command.push(' ');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
        if !word.is_empty() && word.bytes().all(is_plain) {
            command.push_str(word);
        } else {
            command.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
        }
    }
    command
}

/// The arguments of `report`.
fn page(mut words: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut reports, mut html) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--html" => html = Some(words.next().ok_or("--html wants a value")?),
            _ if word.starts_with("--html=") => html = Some(word["--html=".len()..].to_owned()),
            _ if word.starts_with('-') => return Err(format!("unknown argument {word}")),
            _ => reports.push(PathBuf::from(word)),
        }
    }
    if reports.is_empty() {
        return Err("report: wants a file that --json printed".to_owned());
    }
    let html = html.ok_or("report: wants --html FILE")?.into();
    Ok(Command::Page { reports, html })
}

fn defaults(mode: &str) -> Plan {
    Plan {
        mode: match mode {
            "handshakes" => Mode::Handshakes,
            "websockets" => Mode::WebSockets,
            _ => Mode::Http,
        },
        origins: Vec::new(),
        shares: Vec::new(),
        connections: match mode {
            "connect" => 64,
            "websockets" => 1000,
            _ => 16,
        },
        threads: 1,
        streams: None,
        is_closing: matches!(mode, "connect" | "handshakes"),
        rate: None,
        requests: None,
        duration: None,
        timeout: Duration::from_secs(5),
        may_retry: true,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: bytes::Bytes::new(),
        expect: Expect {
            statuses: vec![200..=399],
            ..Expect::default()
        },
        tls: None,
        every: Duration::from_secs(1),
        hold: Hold::Echo(0),
        timeline: None,
        is_json: false,
        is_quiet: false,
        marks: None,
        html: None,
        title: None,
        command: String::new(),
    }
}

fn option(
    plan: &mut Plan,
    name: &str,
    mut value: impl FnMut() -> Result<String, String>,
) -> Result<(), String> {
    match name {
        "--close" => plan.is_closing = true,
        "--streams" => plan.streams = Some(count(name, value()?, 1, STREAM_COUNT_MAX)?),
        "--no-retry" => plan.may_retry = false,
        "--connections" => plan.connections = count(name, value()?, 1, CONNECTION_COUNT_MAX)?,
        "--threads" => plan.threads = count(name, value()?, 1, THREAD_COUNT_MAX)?,
        "--rate" => plan.rate = Some(rate(&value()?)?),
        "--requests" => plan.requests = Some(number(name, &value()?, 1, u64::MAX >> 12)?),
        "--duration" => plan.duration = Some(duration(name, &value()?)?),
        "--timeout" => plan.timeout = duration(name, &value()?)?,
        "--header" => plan.fields.push(field(value()?)?),
        "--content-type" => plan
            .fields
            .push(field(format!("Content-Type: {}", value()?))?),
        "--body" => plan.body = body(value()?)?,
        "--body-bytes" => {
            plan.body = vec![b'x'; count(name, value()?, 0, BODY_BYTES_MAX)?].into();
        }
        "--expect-status" => plan.expect.statuses = statuses(&value()?)?,
        "--expect-body-bytes" => {
            plan.expect.body_bytes = Some(number(name, &value()?, 0, u64::MAX)?);
        }
        "--expect-body-prefix" => plan.expect.body_prefix = value()?.into_bytes(),
        "--every-ms" => plan.every = milliseconds(name, &value()?)?,
        "--ping" => plan.hold = Hold::Ping,
        "--message-bytes" => {
            plan.hold = Hold::Echo(count(name, value()?, 1, MESSAGE_BYTES_MAX)?);
        }
        _ => return output_option(plan, name, value),
    }
    Ok(())
}

/// What is shown, and where.
fn output_option(
    plan: &mut Plan,
    name: &str,
    mut value: impl FnMut() -> Result<String, String>,
) -> Result<(), String> {
    match name {
        "--html" => plan.html = Some(value()?.into()),
        "--json" => plan.is_json = true,
        "--marks" => plan.marks = Some(value()?.into()),
        "--quiet" => plan.is_quiet = true,
        "--timeline" => plan.timeline = Some(milliseconds(name, &value()?)?),
        "--title" => plan.title = Some(value()?),
        _ => return Err(format!("unknown argument {name}")),
    }
    Ok(())
}
