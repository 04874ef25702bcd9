//! What the entries of stick tables count, whoever tracks them: each data type, at each level, in HTTP/1,
//! HTTP/2 and TCP, for exchanges that end in as many ways. HAProxy says how much.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ballast_tests::frame_client::{END_STREAM, kind};
use ballast_tests::origin::answer;
use ballast_tests::{
    Client, FrameClient, Origin, Program, Proxy, RuntimeApi, eventually, free_port,
};

const DATA_TYPES: &str = "gpc0,gpc0_rate(1h),gpc1,gpc1_rate(1h),conn_cnt,conn_cur,conn_rate(1h),sess_cnt,\
    sess_rate(1h),http_req_cnt,http_req_rate(1h),http_err_cnt,http_err_rate(1h),http_fail_cnt,\
    http_fail_rate(1h),bytes_in_cnt,bytes_in_rate(1h),bytes_out_cnt,bytes_out_rate(1h),glitch_cnt,\
    glitch_rate(1h)";

/// Where a key can be tracked: the words of the rule, and whether it stands in the backend.
const LEVELS: [(&str, bool); 8] = [
    ("tcp-request connection", false),
    ("tcp-request session", false),
    ("tcp-request content", false),
    ("tcp-request content", true),
    ("http-request", false),
    ("http-request", true),
    ("http-response", false),
    ("http-response", true),
];

/// RFC 9113, section 6.4.
const RST_STREAM: u8 = 3;
/// RFC 9113, section 6.8.
const GOAWAY: u8 = 7;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Protocol {
    Http1,
    Http2,
    Tcp,
}

/// What a client does on one connection.
#[derive(Clone, Copy, Debug)]
enum Conversation {
    /// It sends bytes, and reads to the end.
    Bytes(&'static str),
    /// It opens streams for these paths, one after the other. One that does not begin with a slash breaks
    /// the rules.
    Streams(&'static [&'static str]),
    /// It opens a stream, and sends a frame besides: its type and stream, and what is in it.
    Frame(u8, u32, &'static [u8]),
}

fn conversations() -> Vec<(Protocol, Conversation)> {
    use Conversation::{Bytes, Frame, Streams};
    let http1 = [
        Bytes("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        Bytes("GET /404 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        Bytes("GET /500 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        Bytes("GET /deny HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        Bytes("GET /return HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        Bytes("GET /garbage HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        Bytes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
        Bytes(
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n\
             GET /404 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ),
        Bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\nG@T\x01 / HTTP/1.1\r\n\r\n"),
        Bytes("GET / HTTP/1.1\r\nno field\r\n\r\n"),
        Bytes(""),
    ];
    let http2 = [
        Streams(&["/"]),
        Streams(&["/404"]),
        Streams(&["/500"]),
        Streams(&["/deny"]),
        Streams(&["/return"]),
        Streams(&["/", "/404", "/return"]),
        Streams(&["noslash"]),
        Streams(&["/", "noslash", "noslash", "/404"]),
        // SETTINGS cut short, PRIORITY and WINDOW_UPDATE that make no sense, what is unknown.
        Frame(kind::SETTINGS, 0, b"\0"),
        Frame(2, 3, b"\0\0\0\x03\x10"),
        Frame(kind::WINDOW_UPDATE, 0, b"\0\0\0\0"),
        Frame(77, 0, b"x"),
    ];
    let tcp = [
        Bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        Bytes("POST /404 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    ];
    let of = |protocol, conversation: &Conversation| (protocol, *conversation);
    let http1 = http1.iter().map(|one| of(Protocol::Http1, one));
    let http2 = http2.iter().map(|one| of(Protocol::Http2, one));
    let tcp = tcp.iter().map(|one| of(Protocol::Tcp, one));
    http1.chain(http2).chain(tcp).collect()
}

/// A frontend whose rule at one level tracks clients in a table of its own.
struct Site {
    protocol: Protocol,
    level: String,
    table: String,
    port: u16,
}

/// A site for each protocol and level, and the configuration of all.
fn sites(origin_port: u16) -> (Vec<Site>, String) {
    let mut text = String::from(
        "global\n nbthread 1\n stats socket unix@api.sock level admin\n\
         defaults\n timeout connect 5s\n timeout client 10s\n timeout server 10s\n",
    );
    let mut sites = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Tcp] {
        for (rule, in_backend) in LEVELS {
            let is_tcp = protocol == Protocol::Tcp;
            if is_tcp && rule.starts_with("http") {
                continue;
            }
            let (number, port) = (sites.len(), free_port());
            let (mode, rules) = match is_tcp {
                true => ("tcp", ""),
                false => (
                    "http",
                    " http-request deny if { path /deny }\n \
                     http-request return status 404 if { path /return }\n",
                ),
            };
            let words = if protocol == Protocol::Http2 {
                " proto h2"
            } else {
                ""
            };
            let track = format!(" {rule} track-sc0 src table t{number}\n");
            let (front, back) = match in_backend {
                true => ("", track.as_str()),
                false => (track.as_str(), ""),
            };
            write!(
                text,
                "backend t{number}\n stick-table type ip size 100 expire 1h store {DATA_TYPES}\n\
                 frontend f{number}\n mode {mode}\n bind 127.0.0.1:{port}{words}\n{front}{rules} default_backend b{number}\n\
                 backend b{number}\n mode {mode}\n{back} server s 127.0.0.1:{origin_port}\n"
            )
            .expect("a string takes all");
            sites.push(Site {
                protocol,
                level: format!("{rule}{}", if in_backend { " of the backend" } else { "" }),
                table: format!("t{number}"),
                port,
            });
        }
    }
    (sites, text)
}

/// Converses to the end.
fn converse(site: &Site, conversation: Conversation) {
    match conversation {
        Conversation::Bytes(bytes) => {
            let mut client = Client::connect(site.port);
            client.send(bytes);
            // In HTTP/1, HAProxy forgets requests that wait behind one when their client ends its side.
            if site.protocol == Protocol::Tcp || bytes.is_empty() {
                client.finish();
            }
            let _ = client.rest();
        }
        Conversation::Streams(paths) => {
            let mut client = FrameClient::connect(site.port, &[]);
            for (stream, path) in (1..).step_by(2).zip(paths) {
                client.get(stream, path);
                end_of(&mut client, stream);
            }
        }
        Conversation::Frame(kind, stream, payload) => {
            let mut client = FrameClient::connect(site.port, &[]);
            client.get(1, "/");
            end_of(&mut client, 1);
            client.send(kind, 0, stream, payload);
            // What the frame led to has been counted when this is answered.
            client.send(kind::PING, 0, 0, &[0; 8]);
            loop {
                let frame = client.receive();
                if matches!(frame.kind, GOAWAY | kind::PING | RST_STREAM) {
                    break;
                }
            }
        }
    }
}

/// Reads to the end of a stream.
fn end_of(client: &mut FrameClient, stream: u32) {
    loop {
        let frame = client.receive();
        let ends = match frame.kind {
            kind::DATA | kind::HEADERS => frame.flags & END_STREAM != 0,
            RST_STREAM => true,
            _ => false,
        };
        if ends && frame.stream == stream {
            break;
        }
    }
}

/// What the entry of a table counts, once nobody tracks it any more; nothing if there is none.
fn entry_of(api: &RuntimeApi, table: &str) -> String {
    let mut entry = String::new();
    eventually("nobody tracks the entry", || {
        entry = api.ask(&format!("show table {table}"));
        !entry.contains("key=") || entry.contains(" use=0 ")
    });
    let _ = api.ask(&format!("clear table {table}"));
    let counts = entry.split_once(" shard=0 ").map(|(_, counts)| counts);
    let counts = counts.unwrap_or_default().trim();
    let is_counted = |word: &&str| !word.ends_with("=0");
    let words: Vec<&str> = counts.split(' ').filter(is_counted).collect();
    words.join(" ")
}

/// What each conversation is counted as, by its text and the level.
fn counted(program: &Program) -> BTreeMap<(String, String), String> {
    let origin = Origin::start(|request| match request.target() {
        "/404" => answer(404, "no"),
        "/500" => answer(500, "no"),
        "/garbage" => b"garbage\r\n\r\n".to_vec(),
        _ => answer(200, "ok"),
    });
    let (sites, configuration) = sites(origin.port());
    let ports: Vec<u16> = sites.iter().map(|site| site.port).collect();
    let proxy = Proxy::start(program, &configuration, &ports);
    let api = RuntimeApi::at(proxy.directory().join("api.sock"));
    let mut all = BTreeMap::new();
    for (protocol, conversation) in conversations() {
        let sites: Vec<&Site> = sites
            .iter()
            .filter(|site| site.protocol == protocol)
            .collect();
        for site in &sites {
            converse(site, conversation);
        }
        for site in &sites {
            let name = format!("{protocol:?} {conversation:?}");
            all.insert((name, site.level.clone()), entry_of(&api, &site.table));
        }
    }
    all
}

#[test]
fn each_data_type_counts_at_each_level_what_haproxy_counts() {
    let [oracle, ballast] = Program::both().map(|program| counted(&program));
    let different: Vec<String> = oracle
        .iter()
        .filter(|(key, expected)| ballast.get(key) != Some(expected))
        .map(|(key, expected)| format!("{key:?}: {expected}\n  Ballast: {:?}", ballast.get(key)))
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(
        oracle
            .values()
            .any(|counts| counts.contains("glitch_cnt=1"))
    );
}
