//! Words that a `server` line needs where `default-server` says something else.
//!
//! A server that a command adds takes nothing from `default-server`; its line in a file does. What the
//! server does not have is taken back by words of its own.

use std::time::Duration;

use ballast_edit::quoted_line;
use ballast_model::{
    HashKey, HttpProtocol, InitAddr, InitState, Observe, OnError, OnMarkedDown, OnMarkedUp, Server,
    WebsocketProtocol,
};

/// The words for a value; `None`: no word says it.
type Words = Option<Vec<String>>;

/// A setting that `default-server` can set.
struct Row {
    /// Its word.
    word: &'static str,
    /// Whether two servers have the same.
    is_same: fn(&Server, &Server) -> bool,
    /// The words that give a line what the server has. Where only a value of the same effect has words,
    /// the server gets it.
    words: fn(&mut Server) -> Words,
}

/// A row about a field.
macro_rules! row {
    ($word:literal, $($field:ident).+, $words:expr) => {
        Row {
            word: $word,
            is_same: |one, other| one.$($field).+ == other.$($field).+,
            words: $words,
        }
    };
}

/// Where a row has no words, the server has the value that stands for none: another one has its word on the
/// line already.
const ROWS: &[Row] = &[
    row!("weight", weight, |server| value("weight", server.weight)),
    row!("backup", backup, |server| switch("backup", server.backup)),
    row!("disabled", disabled, |server| plain(if server.disabled {
        "disabled"
    } else {
        "enabled"
    })),
    row!("cookie", cookie, |_| None),
    row!("maxconn", connection_count_max, |server| {
        value("maxconn", server.connection_count_max)
    }),
    row!("minconn", connection_count_min, |server| {
        value("minconn", server.connection_count_min)
    }),
    row!("strict-maxconn", has_strict_maxconn, |_| None),
    row!("maxqueue", queue_count_max, |server| value(
        "maxqueue",
        server.queue_count_max
    )),
    row!("check", checks.enabled, |server| switch(
        "check",
        server.checks.enabled
    )),
    row!("healthcheck", checks.method, |_| None),
    row!("addr", checks.address, |_| None),
    row!("port", checks.port, |server| value(
        "port",
        server.checks.port.unwrap_or(0)
    )),
    row!("inter", checks.interval, |server| time(
        "inter",
        server.checks.interval
    )),
    row!("fastinter", checks.fast_interval, |server| {
        let own = server.checks.interval;
        let checks = &mut server.checks;
        time("fastinter", *checks.fast_interval.get_or_insert(own))
    }),
    row!("downinter", checks.down_interval, |server| {
        let own = server.checks.interval;
        let checks = &mut server.checks;
        time("downinter", *checks.down_interval.get_or_insert(own))
    }),
    row!("rise", checks.rise, |server| value(
        "rise",
        server.checks.rise
    )),
    row!("fall", checks.fall, |server| value(
        "fall",
        server.checks.fall
    )),
    row!("check-send-proxy", checks.sends_proxy_header, |server| {
        switch("check-send-proxy", server.checks.sends_proxy_header)
    }),
    row!("check-via-socks4", checks.via_socks4, |_| None),
    row!("check-proto", checks.protocol, |server| protocol(
        "check-proto",
        server.checks.protocol
    )),
    row!("observe", checks.observe, |server| {
        let text = match server.checks.observe {
            None => "none",
            Some(Observe::Layer4) => "layer4",
            Some(Observe::Layer7) => "layer7",
        };
        value("observe", text)
    }),
    row!("error-limit", checks.error_limit, |server| value(
        "error-limit",
        server.checks.error_limit
    )),
    row!("on-error", checks.on_error, |server| {
        let text = match server.checks.on_error {
            OnError::FastInter => "fastinter",
            OnError::FailCheck => "fail-check",
            OnError::SuddenDeath => "sudden-death",
            OnError::MarkDown => "mark-down",
        };
        value("on-error", text)
    }),
    row!("agent-check", checks.agent_enabled, |server| switch(
        "agent-check",
        server.checks.agent_enabled
    )),
    row!("agent-addr", checks.agent_address, |_| None),
    row!("agent-port", checks.agent_port, |server| {
        value("agent-port", server.checks.agent_port.unwrap_or(0))
    }),
    row!("agent-inter", checks.agent_interval, |server| {
        let own = server.checks.interval;
        let checks = &mut server.checks;
        time("agent-inter", *checks.agent_interval.get_or_insert(own))
    }),
    row!("agent-send", checks.agent_send, |_| None),
    row!("slowstart", slow_start, |server| time(
        "slowstart",
        server.slow_start
    )),
    row!("on-marked-down", on_marked_down, |server| {
        match server.on_marked_down {
            OnMarkedDown::Nothing => None,
            OnMarkedDown::ShutdownSessions => value("on-marked-down", "shutdown-sessions"),
        }
    }),
    row!("on-marked-up", on_marked_up, |server| {
        match server.on_marked_up {
            OnMarkedUp::Nothing => None,
            OnMarkedUp::ShutdownBackupSessions => value("on-marked-up", "shutdown-backup-sessions"),
        }
    }),
    row!("init-addr", init_addr, init_addr),
    row!("init-state", init_state, |server| {
        let text = match server.init_state {
            InitState::FullyUp => "fully-up",
            InitState::Up => "up",
            InitState::Down => "down",
            InitState::FullyDown => "fully-down",
        };
        value("init-state", text)
    }),
    row!("send-proxy", send_proxy, send_proxy),
    row!("proto", protocol, |server| protocol(
        "proto",
        server.protocol
    )),
    row!("ws", websocket_protocol, |server| {
        let text = match server.websocket_protocol {
            WebsocketProtocol::Auto => "auto",
            WebsocketProtocol::Http1 => "h1",
            WebsocketProtocol::Http2 => "h2",
        };
        value("ws", text)
    }),
    row!("source", source, |_| None),
    row!("socks4", socks4, |_| None),
    row!("namespace", namespace, |_| None),
    row!("track", track, |_| None),
    row!("tfo", tcp_fast_open, |server| switch(
        "tfo",
        server.tcp_fast_open
    )),
    row!("tcp-ut", tcp_user_timeout, |server| {
        time("tcp-ut", server.tcp_user_timeout.unwrap_or_default())
    }),
    row!("cc", congestion_algorithm, |_| None),
    row!("redir", redirect_prefix, |_| None),
    row!("pool-max-conn", idle_count_max, |server| {
        unlimited("pool-max-conn", server.idle_count_max)
    }),
    row!("pool-purge-delay", idle_purge_delay, |server| {
        time("pool-purge-delay", server.idle_purge_delay)
    }),
    row!("idle-ping", idle_ping, |server| time(
        "idle-ping",
        server.idle_ping.unwrap_or_default()
    )),
    row!("max-reuse", reuse_count_max, |server| unlimited(
        "max-reuse",
        server.reuse_count_max
    )),
    row!("hash-key", hash_key, |server| {
        let text = match server.hash_key {
            HashKey::Id => "id",
            HashKey::Addr => "addr",
            HashKey::AddrPort => "addr-port",
        };
        value("hash-key", text)
    }),
    row!("non-stick", non_stick, |server| plain(
        if server.non_stick {
            "non-stick"
        } else {
            "stick"
        }
    )),
    row!("ssl", tls, tls),
    row!("pool-conn-name", pool_connection_name, |_| None),
];

/// The words that a line needs to say `server`, where it says `read` without them; `server` becomes what
/// they say.
pub(crate) fn differing(server: &mut Server, read: &Server) -> String {
    let mut line = Vec::new();
    for row in ROWS {
        if !(row.is_same)(server, read) {
            line.extend((row.words)(server).unwrap_or_default());
        }
    }
    // Its settings go on where they act on nothing: no word takes them back.
    if server.tls.is_none() && read.tls.is_some() {
        line.extend(["no-ssl", "no-check-ssl"].map(str::to_owned));
    }
    quoted_line(&line)
}

/// The settings in which two servers differ, for a message.
pub(crate) fn names(server: &Server, read: &Server) -> String {
    let rows = ROWS.iter().filter(|row| !(row.is_same)(server, read));
    let words: Vec<&str> = rows.map(|row| row.word).collect();
    words.join(", ")
}

/// Takes settings of a line that act on nothing there: of TLS that is not spoken, of checks and agents that
/// the server does not have, of a limit that there is not.
pub(crate) fn take_unused(server: &mut Server, read: &Server) {
    let tls = read.tls.as_deref();
    if server.tls.is_none() && tls.is_some_and(|tls| !tls.traffic && !tls.probes) {
        server.tls.clone_from(&read.tls);
    }
    if !server.checks.enabled {
        let checks = &mut server.checks;
        checks.method.clone_from(&read.checks.method);
        checks.address.clone_from(&read.checks.address);
        checks.protocol.clone_from(&read.checks.protocol);
    }
    if !server.checks.agent_enabled {
        let checks = &mut server.checks;
        checks.agent_address.clone_from(&read.checks.agent_address);
        checks.agent_send.clone_from(&read.checks.agent_send);
    }
    if server.connection_count_max == 0 && read.connection_count_max == 0 {
        server.has_strict_maxconn = read.has_strict_maxconn;
    }
    if server.socks4.is_none() && read.socks4.is_none() {
        server.checks.via_socks4 = read.checks.via_socks4;
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a row's words")]
fn value(word: &str, value: impl ToString) -> Words {
    Some(vec![word.to_owned(), value.to_string()])
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a row's words")]
fn plain(word: &str) -> Words {
    Some(vec![word.to_owned()])
}

fn switch(word: &str, on: bool) -> Words {
    if on {
        plain(word)
    } else {
        plain(&format!("no-{word}"))
    }
}

fn time(word: &str, time: Duration) -> Words {
    value(word, format!("{}ms", time.as_millis()))
}

fn unlimited(word: &str, limit: Option<u32>) -> Words {
    value(word, limit.map_or(-1, i64::from))
}

fn protocol(word: &str, protocol: Option<HttpProtocol>) -> Words {
    match protocol? {
        HttpProtocol::Http1 => value(word, "h1"),
        HttpProtocol::Http2 => value(word, "h2"),
    }
}

fn init_addr(server: &mut Server) -> Words {
    if server.init_addr.is_empty() {
        server.init_addr = vec![InitAddr::Last, InitAddr::Libc];
    }
    let methods = server.init_addr.iter().map(|method| match method {
        InitAddr::Last => "last".to_owned(),
        InitAddr::Libc => "libc".to_owned(),
        InitAddr::None => "none".to_owned(),
        InitAddr::Address(ip) => ip.to_string(),
    });
    value("init-addr", methods.collect::<Vec<_>>().join(","))
}

fn send_proxy(server: &mut Server) -> Words {
    let mut words = vec!["no-send-proxy".to_owned(), "no-send-proxy-v2-ssl-cn".into()];
    if let Some(header) = &server.send_proxy {
        words.push(if header.version == 1 {
            "send-proxy".into()
        } else {
            "send-proxy-v2".into()
        });
        let options = [
            (header.crc32c, "crc32c"),
            (header.unique_id, "unique-id"),
            (header.authority, "authority"),
            (header.ssl, "ssl"),
            (header.cert_cn, "cert-cn"),
            (header.cert_key, "cert-key"),
            (header.cert_sig, "cert-sig"),
            (header.ssl_cipher, "ssl-cipher"),
        ];
        let options = options.iter().filter(|(is_on, _)| *is_on);
        let options: Vec<&str> = options.map(|(_, option)| *option).collect();
        if !options.is_empty() {
            words.extend(["proxy-v2-options".to_owned(), options.join(",")]);
        }
    }
    Some(words)
}

/// What a server speaks TLS with; names and files have no words that take them back.
fn tls(server: &mut Server) -> Words {
    let tls = server.tls.as_deref()?;
    let mut words = vec![
        "verify".to_owned(),
        if tls.verify { "required" } else { "none" }.to_owned(),
    ];
    let switches = [
        (tls.traffic, "ssl", "no-ssl"),
        (tls.probes, "check-ssl", "no-check-ssl"),
        (tls.reuse, "ssl-reuse", "no-ssl-reuse"),
        (tls.tickets, "tls-tickets", "no-tls-tickets"),
    ];
    words.extend(switches.map(|(is_on, on, off)| if is_on { on } else { off }.to_owned()));
    Some(words)
}
