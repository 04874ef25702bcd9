//! Lines of every format, compared byte for byte with those of the installed HAProxy.
#![expect(clippy::unwrap_used, reason = "a test; the lint knows unit tests only")]

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_wire::syslog::{DateTime, Format, Level, LineText, Origin, TimestampText};

const MESSAGE: &str = "hello /abc";
const PATIENCE: Duration = Duration::from_secs(5);

struct Oracle(Child);

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts HAProxy with one collector per format; `None` without HAProxy.
fn start(global: &str, frontend: &str, collectors: &[UdpSocket], port: u16) -> Option<Oracle> {
    let mut config = format!(
        "global\n{global}defaults\n mode http\n timeout client 5s\n\
         frontend fe\n bind 127.0.0.1:{port}\n http-request return status 200\n\
         log-format \"{MESSAGE}\"\n{frontend}"
    );
    for (format, collector) in Format::ALL.iter().zip(collectors) {
        let address = collector.local_addr().unwrap();
        config += &format!(" log {address} format {} local3\n", format.word());
    }
    let child = Command::new(installed::haproxy()?)
        .args(["-db", "-q", "-f", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = Oracle(child.ok()?);
    let mut input = child.0.stdin.take().unwrap();
    input.write_all(config.as_bytes()).unwrap();
    drop(input);
    Some(child)
}

fn request(port: u16) {
    let begun = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(e) => assert!(begun.elapsed() < PATIENCE, "HAProxy does not start: {e}"),
        }
        std::thread::yield_now();
    };
    stream.write_all(b"GET /abc HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
}

/// The date at the start of an ISO timestamp, and its microsecond.
fn date(stamp: &str) -> (DateTime, u32) {
    let number = |from: usize, to: usize| stamp[from..to].parse::<u32>().unwrap();
    let small = |from: usize, to: usize| u8::try_from(number(from, to)).unwrap();
    let offset = (number(27, 29) * 3600 + number(30, 32) * 60).cast_signed();
    let time = DateTime {
        year: number(0, 4).cast_signed(),
        month: small(5, 7),
        day: small(8, 10),
        hour: small(11, 13),
        minute: small(14, 16),
        second: small(17, 19),
        utc_offset_s: if &stamp[26..27] == "-" {
            -offset
        } else {
            offset
        },
    };
    (time, number(20, 26))
}

/// What is compared: the settings for HAProxy, and those for our writer.
struct Case {
    global: &'static str,
    frontend: &'static str,
    hostname: Option<&'static str>,
    tag: &'static str,
    structured_data: &'static str,
}

fn compare(case: &Case) -> bool {
    let collector = |_: &Format| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let collectors: Vec<_> = Format::ALL.iter().map(collector).collect();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let Some(oracle) = start(case.global, case.frontend, &collectors, port) else {
        return false;
    };
    request(port);
    let receive = |collector: &UdpSocket| {
        let mut bytes = [0; 2048];
        let n = collector.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..n].to_vec()).unwrap()
    };
    let theirs: Vec<_> = collectors.iter().map(receive).collect();
    let iso = theirs
        .iter()
        .zip(Format::ALL)
        .find(|(_, f)| *f == Format::Iso);
    let (second, _) = date(iso.unwrap().0);
    for (line, format) in theirs.iter().zip(Format::ALL) {
        // Timestamps with microseconds differ from line to line.
        let (time, microsecond) = match format {
            Format::Iso => date(line),
            Format::Timed => date(line.split_once('>').unwrap().1),
            Format::Rfc5424 => date(line.split_once(">1 ").unwrap().1),
            _ => (second, 0),
        };
        let facility = "local3".parse().unwrap();
        let origin = Origin::new(
            format,
            facility,
            case.hostname.map(str::as_bytes),
            case.tag.as_bytes(),
            oracle.0.id(),
        );
        let text = LineText {
            tag: None,
            structured_data: case.structured_data.as_bytes(),
            message: MESSAGE.as_bytes(),
        };
        let mut ours = Vec::new();
        let stamp = TimestampText::new(&time);
        origin.write_line(&mut ours, Level::Info, &stamp, microsecond, text, 1024);
        assert_eq!(String::from_utf8(ours).unwrap(), *line, "{format:?}");
    }
    true
}

#[test]
fn lines_are_those_of_haproxy() {
    let cases = [
        Case {
            global: "",
            frontend: "",
            hostname: None,
            tag: "haproxy",
            structured_data: "",
        },
        Case {
            global: " log-send-hostname myhost\n log-tag mytag\n",
            frontend: " log-format-sd \"[a@1 b=c]\"\n",
            hostname: Some("myhost"),
            tag: "mytag",
            structured_data: "[a@1 b=c]",
        },
    ];
    for case in &cases {
        if !compare(case) {
            return;
        }
    }
}
