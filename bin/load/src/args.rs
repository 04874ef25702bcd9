//! The command line.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::pace::Rate;
use crate::plan::{Expect, Mode, Origin, Plan};
use crate::tls::TlsOptions;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
usage: ballast-load [http] [options] TARGET...       requests and answers
       ballast-load connect [options] TARGET...      the same, with a new connection per request
       ballast-load handshakes [options] TARGET...   TLS handshakes, and no request
       ballast-load websockets [options] TARGET...   connections that stay, and echo

TARGET is HOST:PORT, http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix@/PATH/OF/SOCKET.
Connections are spread over the targets. It never stops at a failure: every one is counted by its
class.

  --connections N         connections (16; connect: 64; websockets: 1000)
  --threads N             threads (1)
  --h2                    requests are HTTP/2: clear with prior knowledge, over TLS by ALPN
  --streams N             with --h2: requests at the same time on a connection (1)
  --close                 a new connection per request
  --rate R                open loop: R requests a second, each due at its time; latency counts
                          from there. Without it: as fast as answers come
  --requests N            end after N requests
  --duration T            end after T (10s when --requests is not given): 500ms, 10s, 2m
  --timeout T             how long a request may take, connecting included (5s)
  --no-retry              a kept connection that was closed under a request is a failure at once
  --path P                ask for this path; several are asked for in turn (/; websockets: /ws)
  --method M              (GET)
  --header 'NAME: VALUE'  add this field; may be given again
  --body-bytes N          send a body of N bytes
  --expect-status LIST    statuses that are no failure: 200,301-308 (200-399)
  --expect-body-bytes N   the length every body must have
  --expect-body-prefix S  what every body must begin with
  --every-ms MS           websockets: between two messages on one connection (1000)
  --tls                   targets without http:// are over TLS (handshakes: they always are)
  --cacert FILE           certificates that may sign the server's (PEM); and it must cover the name
  --insecure              any certificate will do
  --expect-name NAME      the name that the certificate must cover (sni: the one asked for)
  --sni NAME              ask for this name instead of the target's; again: several in turn
  --sni-file FILE         names, one in a line; behind it what its certificate must cover, if that
                          is another
  --sni-random            names in random order
  --cert FILE --key FILE  the client's certificate; its key may be in the same file
  --tls-version V         1.2 or 1.3 (both)
  --ciphers LIST          cipher suites, by their names in the standards, OpenSSL or rustls
  --groups LIST           groups of the key exchange (X25519MLKEM768:X25519:P-256:P-384)
  --alpn LIST             protocols, as in h2,http/1.1 (requests: HTTP/1 only; --h2: h2)
  --resume HOW            sessions: never, always (names without one get one, unmeasured),
                          tickets (as a browser), ids (likewise; TLS 1.2 without tickets) (never)
  --timeline MS           print rate, failures and longest latency of every MS milliseconds
  --json                  print JSON instead of a table

It exits with 0 when nothing failed, 1 when something did, 2 when it could not begin.
";

/// A larger number is probably a typing error.
const CONNECTION_COUNT_MAX: u64 = 200_000;
const THREAD_COUNT_MAX: u64 = 256;
const STREAM_COUNT_MAX: u64 = 10_000;
const BODY_BYTES_MAX: u64 = 64 << 20;
const RATE_MAX: f64 = 1e7;
const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Parses the arguments; `None` when help is requested.
///
/// # Errors
///
/// The error message.
pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Option<Plan>, String> {
    let mut words = words.peekable();
    let modes = ["http", "connect", "handshakes", "websockets"];
    let mode = words.next_if(|word| modes.contains(&word.as_str()));
    let mut plan = defaults(mode.as_deref().unwrap_or("http"));
    let mut tls = TlsOptions::default();
    tls.is_default = plan.mode == Mode::Handshakes;
    let (mut targets, mut paths, mut is_h2) = (Vec::new(), Vec::new(), false);
    while let Some(word) = words.next() {
        let (name, mut inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            inline
                .take()
                .or_else(|| words.next())
                .ok_or_else(|| format!("{name} wants a value"))
        };
        match name {
            "-h" | "--help" => return Ok(None),
            "--path" => paths.push(path(value)?),
            "--h2" => {
                is_h2 = true;
                option(&mut plan, name, value)?;
            }
            _ if tls.take(name, &mut value)? => {}
            _ if name.starts_with('-') => option(&mut plan, name, value)?,
            _ => targets.push(word),
        }
    }
    if targets.is_empty() {
        return Err("no target".to_owned());
    }
    match plan.streams {
        None => {}
        Some(_) if !is_h2 => return Err("--streams wants --h2".to_owned()),
        Some(_) if plan.mode != Mode::Http => return Err("--h2 is for requests".to_owned()),
        Some(2..) if plan.is_closing => {
            return Err("--streams: a connection per request has one".to_owned());
        }
        Some(_) if tls.resumes_always() => return Err("--resume always: not with --h2".to_owned()),
        Some(_) => tls.offer_h2(),
    }
    if plan.requests.is_none() && plan.duration.is_none() {
        plan.duration = Some(Duration::from_secs(10));
    }
    plan.threads = plan.threads.min(plan.connections);
    for target in targets {
        let origin = Origin::read(&target, tls.is_default);
        let mut origin = origin.map_err(|error| format!("{target}: {error}"))?;
        if plan.mode == Mode::Handshakes && origin.tls.is_none() {
            return Err(format!("{target}: handshakes are over TLS"));
        }
        origin.paths.extend(paths.iter().cloned());
        if origin.paths.is_empty() {
            let default_path = match plan.mode {
                Mode::WebSockets => "/ws",
                Mode::Handshakes | Mode::Http => "/",
            };
            origin.paths.push(default_path.to_owned());
        }
        plan.origins.push(origin);
    }
    if plan.origins.iter().all(|origin| origin.tls.is_none()) {
        tls.assert_unused()?;
    } else if plan.mode != Mode::Handshakes && tls.offers_other_protocols(is_h2) {
        return Err(
            "--alpn: requests are HTTP/1, or HTTP/2 with --h2; `handshakes` may offer others"
                .to_owned(),
        );
    } else {
        plan.tls = Some(tls.client(plan.connections)?);
    }
    plan.compose_requests();
    Ok(Some(plan))
}

fn defaults(mode: &str) -> Plan {
    Plan {
        mode: match mode {
            "handshakes" => Mode::Handshakes,
            "websockets" => Mode::WebSockets,
            _ => Mode::Http,
        },
        origins: Vec::new(),
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
        body_bytes: 0,
        expect: Expect {
            statuses: vec![200..=399],
            ..Expect::default()
        },
        tls: None,
        every: Duration::from_secs(1),
        timeline: None,
        is_json: false,
    }
}

fn option(
    plan: &mut Plan,
    name: &str,
    mut value: impl FnMut() -> Result<String, String>,
) -> Result<(), String> {
    match name {
        "--close" => plan.is_closing = true,
        "--h2" => _ = plan.streams.get_or_insert(1),
        "--streams" => plan.streams = Some(count(name, value()?, 1, STREAM_COUNT_MAX)?),
        "--json" => plan.is_json = true,
        "--no-retry" => plan.may_retry = false,
        "--connections" => plan.connections = count(name, value()?, 1, CONNECTION_COUNT_MAX)?,
        "--threads" => plan.threads = count(name, value()?, 1, THREAD_COUNT_MAX)?,
        "--rate" => plan.rate = Some(rate(&value()?)?),
        "--requests" => plan.requests = Some(number(name, &value()?, 1, u64::MAX >> 12)?),
        "--duration" => plan.duration = Some(duration(name, &value()?)?),
        "--timeout" => plan.timeout = duration(name, &value()?)?,
        "--method" => plan.method = method(value()?)?,
        "--header" => plan.fields.push(field(value()?)?),
        "--body-bytes" => plan.body_bytes = count(name, value()?, 0, BODY_BYTES_MAX)?,
        "--expect-status" => plan.expect.statuses = statuses(&value()?)?,
        "--expect-body-bytes" => {
            plan.expect.body_bytes = Some(number(name, &value()?, 0, u64::MAX)?);
        }
        "--expect-body-prefix" => plan.expect.body_prefix = value()?.into_bytes(),
        "--every-ms" => plan.every = milliseconds(name, &value()?)?,
        "--timeline" => plan.timeline = Some(milliseconds(name, &value()?)?),
        _ => return Err(format!("unknown argument {name}")),
    }
    Ok(())
}

fn number(name: &str, text: &str, min: u64, max: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("{name} {text}: wants a number from {min} to {max}"))
}

fn count(name: &str, text: String, min: u64, max: u64) -> Result<usize, String> {
    let number = number(name, &text, min, max)?;
    usize::try_from(number).map_err(|_| format!("{name} {text}: too much for this machine"))
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    number(name, text, 1, 86_400_000).map(Duration::from_millis)
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate <= RATE_MAX)
        .map(Rate)
        .ok_or_else(|| format!("--rate {text}: wants requests per second, at most {RATE_MAX}"))
}

/// `10`, `10s`, `500ms`, `2m`.
fn duration(name: &str, text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        _ => 0.0,
    };
    digits
        .parse()
        .ok()
        .and_then(|number: f64| Duration::try_from_secs_f64(number * scale).ok())
        .filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX)
        .ok_or_else(|| format!("{name} {text}: wants a time such as 500ms, 10s or 2m"))
}

/// `200,204,300-399`.
fn statuses(text: &str) -> Result<Vec<RangeInclusive<u16>>, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse().ok()?..=last.parse().ok()?;
        let is_right = *range.start() >= 100 && *range.end() <= 999 && !range.is_empty();
        is_right.then_some(range)
    };
    text.split(',')
        .map(|part| range(part.trim()))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("--expect-status {text}: wants statuses such as 200,301-308"))
}

fn path(mut value: impl FnMut() -> Result<String, String>) -> Result<String, String> {
    let path = value()?;
    let is_right = !path.is_empty() && path.bytes().all(|byte| byte.is_ascii_graphic());
    is_right
        .then_some(path)
        .ok_or_else(|| "--path wants a path without spaces and line ends".to_owned())
}

fn method(text: String) -> Result<String, String> {
    let is_right = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_right
        .then_some(text)
        .ok_or_else(|| "--method wants a word".to_owned())
}

fn field(text: String) -> Result<String, String> {
    let is_right = text.find(':').is_some_and(|at| at > 0)
        && text.bytes().all(|byte| byte >= b' ' || byte == b'\t');
    is_right
        .then_some(text)
        .ok_or_else(|| "--header wants 'NAME: VALUE' on one line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        read(line.split(' ').map(str::to_owned)).map(|plan| plan.expect("no help was asked for"))
    }

    #[test]
    fn a_line_becomes_requests() {
        let plan = plan(
            "http --path /a --path /b --header A:b --method POST --body-bytes 3 --close \
             http://127.0.0.1:81/c 127.0.0.1:82 unix@/tmp/s --expect-status=200,300-308",
        )
        .unwrap();
        let paths: Vec<usize> = plan.origins.iter().map(|o| o.requests.len()).collect();
        assert_eq!(paths, [3, 2, 2]);
        assert_eq!(
            String::from_utf8(plan.origins[0].requests[0].clone()).unwrap(),
            "POST /c HTTP/1.1\r\nHost: 127.0.0.1:81\r\nA:b\r\nContent-Length: 3\r\n\
             Connection: close\r\n\r\nxxx"
        );
        assert_eq!(plan.origins[2].address.to_string(), "unix@/tmp/s");
        assert_eq!(plan.expect.statuses, [200..=200, 300..=308]);
        assert!(!plan.is_idempotent());
    }

    #[test]
    fn what_is_not_said_is_usual() {
        let http = plan("127.0.0.1").unwrap();
        assert_eq!(http.origins[0].address.to_string(), "127.0.0.1:80");
        assert_eq!(http.duration, Some(Duration::from_secs(10)));
        assert!(!http.is_closing && http.is_idempotent());
        assert!(plan("connect 127.0.0.1:1").unwrap().is_closing);
        let sockets = plan("websockets 127.0.0.1:1").unwrap();
        assert_eq!(sockets.mode, Mode::WebSockets);
        assert_eq!(sockets.origins[0].paths, ["/ws"]);
    }

    #[test]
    fn requests_may_be_http2() {
        assert_eq!(plan("127.0.0.1:1").unwrap().streams, None);
        assert_eq!(plan("--h2 127.0.0.1:1").unwrap().streams, Some(1));
        assert_eq!(
            plan("--streams 3 --h2 127.0.0.1:1").unwrap().streams,
            Some(3)
        );
        assert!(plan("--h2 https://127.0.0.1:1 --insecure").is_ok());
        assert!(plan("connect --h2 127.0.0.1:1").unwrap().is_closing);
    }

    #[test]
    fn a_target_may_be_over_tls() {
        let name = |line: &str| {
            let plan = plan(&format!("{line} --insecure")).unwrap();
            assert!(plan.tls.is_some(), "{line}");
            let name = plan.origins[0].tls.as_ref().unwrap().to_str().into_owned();
            (name, plan.origins[0].address.to_string())
        };
        let expected = |name: &str, address: &str| (name.to_owned(), address.to_owned());
        assert_eq!(
            name("https://127.0.0.1"),
            expected("127.0.0.1", "127.0.0.1:443")
        );
        assert_eq!(name("https://[::1]:81/x"), expected("::1", "[::1]:81"));
        assert_eq!(
            name("--tls 127.0.0.1:81"),
            expected("127.0.0.1", "127.0.0.1:81")
        );
        assert_eq!(
            name("handshakes unix@/tmp/s"),
            expected("localhost", "unix@/tmp/s")
        );
        assert!(plan("--tls http://127.0.0.1:81 --insecure").is_err());
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("2", 2000), ("1.5s", 1500), ("20ms", 20), ("1m", 60_000)] {
            assert_eq!(duration("", text), Ok(Duration::from_millis(ms)));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for line in [
            "",
            "--rate 0 127.0.0.1:1",
            "--rate fast 127.0.0.1:1",
            "--connections 0 127.0.0.1:1",
            "--duration 1h 127.0.0.1:1",
            "--duration -1 127.0.0.1:1",
            "--expect-status 20 127.0.0.1:1",
            "--header nothing 127.0.0.1:1",
            "--what 127.0.0.1:1",
            "--streams 2 127.0.0.1:1",
            "--h2 --streams 0 127.0.0.1:1",
            "connect --h2 --streams 2 127.0.0.1:1",
            "websockets --h2 127.0.0.1:1",
            "--h2 https://127.0.0.1:1 --insecure --alpn http/1.1",
            "--path",
            "127.0.0.1:99999",
            "--sni a.example --insecure 127.0.0.1:1",
            "https://127.0.0.1:1",
            "https://127.0.0.1:1 --insecure --cacert /nowhere",
            "https://127.0.0.1:1 --cacert /nowhere",
            "https://127.0.0.1:1 --insecure --alpn h2",
            "https://127.0.0.1:1 --insecure --ciphers RC4-MD5",
            "https://127.0.0.1:1 --insecure --groups P-192",
            "https://127.0.0.1:1 --insecure --tls-version 1.1",
            "https://127.0.0.1:1 --insecure --tls-version 1.3 --ciphers ECDHE-RSA-AES128-GCM-SHA256",
            "https://127.0.0.1:1 --insecure --resume sometimes",
            "https://127.0.0.1:1 --insecure --key /nowhere",
            "handshakes --insecure http://127.0.0.1:1",
        ] {
            assert!(plan(line).is_err(), "{line}");
        }
    }
}
