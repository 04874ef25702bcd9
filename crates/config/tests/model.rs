//! The model of whole texts.

use std::time::Duration;

use ballast_config::{EmptyMachine, LoadedConfig, Options, StandInMachine, load};
use ballast_model::{
    Address, CheckMethod, CheckRule, CliLevel, ErrorPage, H2LoggedErrors, H2Tuning, HttpProtocol,
    InitAddr, Level, LogEndpoint, OnMarkedDown, Password, PortSpec, ServerStates,
    TransparentSource, WebsocketProtocol,
};
use ballast_syntax::Severity;

fn read(text: &str) -> LoadedConfig {
    let files = vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
    load(files, &StandInMachine(EmptyMachine), Options::default())
}

/// Loads a text that must have no alerts; warnings are allowed.
fn good(text: &str) -> LoadedConfig {
    let loaded = read(text);
    let alerts = said(&loaded, Severity::Alert);
    assert!(alerts.is_empty(), "{alerts:#?}");
    loaded
}

fn said(loaded: &LoadedConfig, severity: Severity) -> Vec<String> {
    let all = loaded.diagnostics.iter();
    all.filter(|one| one.severity == severity)
        .map(|one| one.message.clone())
        .collect()
}

/// The first alert of a text that has some.
fn alert(text: &str) -> String {
    let loaded = read(text);
    said(&loaded, Severity::Alert)
        .into_iter()
        .next()
        .unwrap_or_else(|| "accepted".to_owned())
}

fn warned(text: &str) -> String {
    said(&read(text), Severity::Warning).join("\n")
}

#[test]
fn a_netscaler_has_a_number_and_an_rdp_cookie_a_name() {
    let listen = |words: &str| {
        format!(
            "listen l\n mode tcp\n timeout client 1s\n timeout connect 1s\n timeout server 1s\n \
             bind 192.0.2.1:1 {words}\n server s 192.0.2.2:1\n"
        )
    };
    let loaded = good(&listen(
        "accept-netscaler-cip 4294967295\n persist rdp-cookie",
    ));
    let bind = &loaded.config.frontends[0].binds[0];
    let magic = bind.netscaler_cip_magic.map(u32::from);
    assert_eq!(magic, Some(u32::MAX));
    let backend = &loaded.config.backends[0];
    assert_eq!(backend.rdp_cookie_name.as_deref(), Some("msts"));
    let loaded = good(&listen("\n persist rdp-cookie(Other)"));
    let backend = &loaded.config.backends[0];
    assert_eq!(backend.rdp_cookie_name.as_deref(), Some("Other"));
    for (line, message) in [
        ("accept-netscaler-cip 0", "between 1 and 4294967295"),
        ("accept-netscaler-cip x", "expects a magic number"),
        ("\n persist rdp-cookie()", "requires an rdp cookie name"),
        ("\n persist rdp-cookie(a", "requires an rdp cookie name"),
        ("\n persist sticky", "unknown persist method 'sticky'"),
        ("\n bind rhttp@be/s", "belongs to reverse HTTP"),
        ("nbconn 5", "belongs to reverse HTTP"),
        ("\n server t rhttp@", "belongs to reverse HTTP"),
        (
            "\n tcp-request session attach-srv be/s",
            "belongs to reverse HTTP",
        ),
    ] {
        let said = alert(&listen(line));
        assert!(said.contains(message), "{line}: {said}");
    }
}

#[test]
fn port_ranges_and_lists_become_binds() {
    let loaded = good(
        "frontend f\n bind 127.0.0.1:80-82,[::1]:90 name a id 7 accept-proxy maxconn 5\n bind /run/x.sock mode 600 uid 3\n bind abns@y\n bind fd@4\n",
    );
    let binds = &loaded.config.frontends[0].binds;
    let shown: Vec<_> = binds.iter().map(|bind| bind.address.to_string()).collect();
    assert_eq!(
        shown,
        [
            "127.0.0.1:80",
            "127.0.0.1:81",
            "127.0.0.1:82",
            "[::1]:90",
            "unix@/run/x.sock",
            "abns@y",
            "fd@4"
        ]
    );
    let ids: Vec<_> = binds.iter().map(|bind| bind.id).collect();
    assert_eq!(ids, [7, 8, 9, 10, 5, 6, 11]);
    assert!(binds[3].accept_proxy && binds[3].connection_count_max == Some(5));
    assert_eq!(binds[4].unix_owner.mode, Some(0o600));
    assert_eq!(binds[4].origin.line, 3);
}

/// Observed on HAProxy 2.6: `show stat` of the same text.
#[test]
fn numbers_are_dealt_as_haproxy_deals_them() {
    let loaded = good(
        "global\n stats socket /tmp/s level admin\n\
         frontend f1\n bind :81\n default_backend b1\n\
         listen l1\n bind :83\n server s1 127.0.0.1:1\n id 2\n\
         backend b1\n server s1 127.0.0.1:1\n server s2 127.0.0.1:1 id 1\n \
         server-template t 2 127.0.0.1:1\n server s3 127.0.0.1:1\n\
         frontend f2\n bind :84\n",
    );
    let config = &loaded.config;
    let fronts: Vec<_> = config
        .frontends
        .iter()
        .map(|one| (one.common.name.as_str(), one.common.id))
        .collect();
    assert_eq!(fronts, [("f1", 3), ("l1", 2), ("f2", 6)]);
    let back = config.backend("b1").unwrap();
    assert_eq!(back.common.id, 5);
    let servers: Vec<_> = back
        .servers
        .iter()
        .map(|one| (one.name.as_str(), one.id))
        .collect();
    assert_eq!(
        servers,
        [("s1", 2), ("s2", 1), ("t1", 4), ("t2", 5), ("s3", 6)]
    );
    assert_eq!(config.global.stats_sockets[0].level, CliLevel::Admin);
}

#[test]
fn agents_ask_where_checks_do_unless_told_otherwise() {
    let text = "backend b\n server a 127.0.0.1:1 agent-check port 9 addr 127.0.0.2\n \
                server b 127.0.0.1:1 agent-check agent-addr 127.0.0.3 agent-port 7 port 9 addr 127.0.0.2\n";
    let loaded = good(text);
    let servers = &loaded.config.backends[0].servers;
    let shown = |index: usize| {
        let checks = &servers[index].checks;
        let address = checks.agent_address.as_ref().map(ToString::to_string);
        (address, checks.agent_port)
    };
    assert_eq!(shown(0), (Some("127.0.0.2:0".to_owned()), Some(9)));
    assert_eq!(shown(1), (Some("127.0.0.3:0".to_owned()), Some(7)));
    assert_eq!(
        alert("backend b\n server c 127.0.0.1:1 agent-check\n"),
        "'server b/c' : server c does not have agent port. Agent check has been disabled."
    );
}

#[test]
fn what_number_was_written_is_known() {
    let loaded = good("backend b\n id 7\n server a /s id 5\n server c /s\nbackend d\n");
    let backends = &loaded.config.backends;
    assert!(backends[0].common.id_is_explicit.0 && !backends[1].common.id_is_explicit.0);
    let servers = &backends[0].servers;
    assert!(servers[0].id_is_explicit.0 && !servers[1].id_is_explicit.0);
}

#[test]
fn servers_begin_with_default_server() {
    let loaded = good(
        "defaults\n default-server inter 1s rise 5 weight 9\nbackend b\n \
         server a 192.0.2.1:80 check\n default-server weight 3 on-marked-down shutdown-sessions\n \
         server c 192.0.2.2:+10 cookie x backup maxconn 7 init-addr none,libc source 192.0.2.9:100-200 send-proxy-v2 proxy-v2-options crc32c\n \
         server d name.example:8080 slowstart 10s track a\n",
    );
    let servers = &loaded.config.backends[0].servers;
    assert_eq!(servers[0].checks.interval, Duration::from_secs(1));
    assert_eq!((servers[0].checks.rise, servers[0].weight), (5, 9));
    assert!(servers[0].checks.enabled && !servers[1].checks.enabled);
    assert_eq!(servers[1].weight, 3);
    assert_eq!(servers[1].port_mapping, PortSpec::Offset(10));
    assert_eq!(servers[1].on_marked_down, OnMarkedDown::ShutdownSessions);
    assert_eq!(servers[1].init_addr, [InitAddr::None, InitAddr::Libc]);
    assert_eq!(servers[1].source.as_ref().unwrap().port_last, Some(200));
    assert!(servers[1].send_proxy.as_ref().unwrap().crc32c);
    // Names are resolved, here to a stand-in of the documentation range.
    assert_eq!(servers[2].host_name.as_deref(), Some("name.example"));
    assert_eq!(servers[2].address.to_string(), "192.0.2.1:8080");
    assert_eq!(servers[2].track, Some(("b".to_owned(), "a".to_owned())));
    assert!(
        loaded
            .stand_ins
            .iter()
            .any(|stub| stub.contains("name.example"))
    );
}

#[test]
fn a_name_nobody_knows_stops_the_start_unless_told() {
    let text = "backend b\n server a name.example:80\n";
    let files = |text: &str| vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
    let loaded = load(files(text), &EmptyMachine, Options::default());
    assert_eq!(
        said(&loaded, Severity::Alert),
        [
            "backend 'b' : 'server a' : could not resolve address 'name.example': Name or service not known."
        ]
    );
    let text = "backend b\n server a name.example:80 init-addr last,libc,none\n";
    let loaded = load(files(text), &EmptyMachine, Options::default());
    assert!(!loaded.has_alerts());
    let address = &loaded.config.backends[0].servers[0].address;
    assert!(matches!(address, Address::Name { .. }));
}

#[test]
fn defaults_are_inherited_by_name_and_by_order() {
    let loaded = good(
        "defaults a\n mode http\n timeout client 1s\n timeout connect 2s\n timeout server 3s\n retries 7\n\
         defaults b from a\n timeout client 9s\n no option redispatch\n\
         frontend f from a\n bind :80\n\
         frontend g\n bind :81\n\
         backend x from b\n server s 192.0.2.1:80\n\
         defaults\n\
         backend y\n",
    );
    let config = &loaded.config;
    assert_eq!(
        config.frontends[0].timeouts.client,
        Some(Duration::from_secs(1))
    );
    assert_eq!(
        config.frontends[1].timeouts.client,
        Some(Duration::from_secs(9))
    );
    let x = config.backend("x").unwrap();
    assert_eq!(x.retry_count_max, 7);
    assert_eq!(x.timeouts.connect, Some(Duration::from_secs(2)));
    assert_eq!(config.backend("y").unwrap().retry_count_max, 3);
    assert!(
        warned("defaults a\ndefaults b from a\nfrontend f from b\n bind :80\nbackend c\n")
            .contains("implicitly")
    );
    assert_eq!(
        alert("defaults a\ndefaults b\nbackend c from d\n"),
        "defaults section 'd' not found for backend 'c'."
    );
    assert!(alert("defaults a\ndefaults a\nbackend c from a\n").contains("ambiguous"));
}

#[test]
fn log_lines_and_error_groups_arrive() {
    let loaded = good(
        "global\n log 192.0.2.5 len 2048 format rfc5424 sample 1,3-4:5 local3 notice err\n log /dev/log user\n log stdout format raw daemon\n\
         http-errors site\n errorfile 503 /e/503\n errorfile 404 /e/404\n\
         frontend f\n mode http\n bind :80\n log global\n log fd@5 local1\n errorfiles site 503\n",
    );
    let common = &loaded.config.frontends[0].common;
    let logs = &common.log_targets;
    assert_eq!(logs.len(), 4);
    assert_eq!(
        logs[0].endpoint,
        LogEndpoint::Udp(Address::Inet("192.0.2.5:514".parse().unwrap()))
    );
    assert_eq!((logs[0].line_bytes_max, logs[0].facility.0), (2048, 19));
    assert_eq!(
        (logs[0].level_max, logs[0].level_min),
        (Level::Notice, Some(Level::Err))
    );
    assert_eq!(logs[0].sample.as_ref().unwrap().ranges, [(1, 1), (3, 4)]);
    assert_eq!(logs[1].endpoint, LogEndpoint::Unix("/dev/log".to_owned()));
    assert_eq!(logs[3].endpoint, LogEndpoint::Fd(5));
    assert!(matches!(
        common.error_pages.page(503),
        Some(ErrorPage::Raw { .. })
    ));
    assert!(common.error_pages.page(404).is_none());
}

#[test]
fn the_global_section_arrives() {
    let loaded = good(
        "global\n maxconn 5000\n nbthread 3\n cpu-map auto:1/1-2 0-1\n user nobody\n chroot /var/empty\n tune.bufsize 32k\n hard-stop-after 30s\n no strict-limits\n stats timeout 1m\n spread-checks 5\n unix-bind prefix /run mode 660\n ssl-default-bind-ciphers X\n\
         frontend f\n bind /a.sock\n",
    );
    let global = &loaded.config.global;
    assert_eq!(global.connection_count_max, Some(5000));
    assert_eq!(global.cpu.thread_count, Some(3));
    assert_eq!(global.cpu.map_of(1, 2).to_string(), "1");
    assert_eq!(global.tune.buffer_bytes, 32768);
    assert_eq!(global.hard_stop_after, Some(Duration::from_secs(30)));
    assert!(!global.strict_limits);
    let bind = &loaded.config.frontends[0].binds[0];
    assert_eq!(bind.address, Address::Unix("/run/a.sock".to_owned()));
    assert_eq!(bind.unix_owner.mode, Some(0o660));
    assert!(loaded.unimplemented.is_empty());
}

#[test]
fn users_know_their_groups() {
    let loaded = good(
        "userlist u\n group g users a\n group h\n user a insecure-password x groups h\n user b password y\n",
    );
    let list = &loaded.config.userlists[0];
    assert_eq!(list.users[0].groups, ["h", "g"]);
    assert_eq!(
        list.users[1].password,
        Some(Password::Hashed("y".to_owned()))
    );
    assert_eq!(
        alert("userlist u\n user a groups none\n"),
        "userlist 'u': no such group 'none'"
    );
}

#[test]
fn names_must_lead_somewhere() {
    for (text, message) in [
        (
            "frontend f\n bind :80\n default_backend x\n",
            "Proxy 'f': unable to find required default_backend: 'x'.",
        ),
        (
            "frontend f\n bind :80\n use_backend x if TRUE\n",
            "Proxy 'f': unable to find required use_backend: 'x'.",
        ),
        (
            "backend b\n use-server x if TRUE\n",
            "backend 'b' : unable to find server 'x' referenced in a 'use-server' rule.",
        ),
        (
            "backend b\n server a 192.0.2.1:80 track x\n",
            "'server b/a' : unable to find required server 'x' for tracking.",
        ),
        (
            "backend b\n server a 192.0.2.1:80 track x/a\n",
            "'server b/a' : unable to find required proxy 'x' for tracking.",
        ),
        (
            "backend b\n server a 192.0.2.1:80 track a\n",
            "'server b/a' : unable to track b/a as it belongs to a tracking chain looping back to b/a.",
        ),
        (
            "backend b\n http-check disable-on-404\n server a 192.0.2.1:80 check\nbackend c\n server a 192.0.2.1:80 track b/a\n",
            "'server c/a' : unable to use b/a fortracking: disable-on-404 option inconsistency.",
        ),
        (
            "backend b\n server a 192.0.2.1 check\n",
            "backend 'b': server 'a' has neither service port nor check port nor tcp_check rule 'connect' with port information.",
        ),
        (
            "backend b\nbackend b\n",
            "backend 'b' has the same name as backend 'b' declared at t.cfg:1.",
        ),
        (
            "backend b\n server a 192.0.2.1:80 resolvers x\n",
            "'resolvers' : unable to find resolvers 'x'",
        ),
        (
            "frontend f\n mode http\n bind :80\n default_backend b\nbackend b\n",
            "http frontend 'f' tries to use incompatible tcp backend 'b' as the default backend (see 'mode').",
        ),
        (
            "frontend f\n bind :80\n http-request deny if { nbsrv(x) lt 1 }\n",
            "unable to find backend 'x' referenced in an expression of frontend 'f'.",
        ),
        (
            "listen l :80\n",
            "please use the 'bind' keyword for listening addresses.",
        ),
    ] {
        assert_eq!(alert(text), message, "{text}");
    }
}

#[test]
fn what_a_mode_cannot_give_is_said() {
    let text = "listen l\n bind :80\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n log 127.0.0.1 local0\n option httplog\n http-request deny\n cookie a insert\n balance uri\n server s 192.0.2.1:80 cookie b\n";
    let warnings = warned(text);
    for part in [
        "Falling back to 'option tcplog'.",
        "'http-request' rules ignored for proxy 'l' as they require HTTP mode.",
        "cookie will be ignored for proxy 'l' (needs 'mode http').",
        "Falling back to round robin.",
        "ignoring cookie for server 's' as HTTP mode is disabled.",
    ] {
        assert!(warnings.contains(part), "{part} not in {warnings}");
    }
    let loaded = read(text);
    assert!(loaded.config.backends[0].cookie.is_none());
    let format = loaded.config.frontends[0].log.format.as_ref().unwrap();
    assert_eq!(format.source, ballast_expr::TCP_LOG_FORMAT);
}

#[test]
fn what_is_forgotten_is_said() {
    let warnings = warned("frontend f\n default_backend b\nbackend b\n server s 192.0.2.1:80\n");
    assert!(
        warnings.contains("frontend 'f' has no 'bind' directive."),
        "{warnings}"
    );
    assert!(
        warnings.contains("missing timeouts for backend 'b'."),
        "{warnings}"
    );
}

#[test]
fn what_is_not_served_yet_is_named() {
    let loaded = good(
        "listen l\n mode http\n bind :80\n server s 192.0.2.1:80 resolvers dns\nresolvers dns\n nameserver a 192.0.2.53:53\n",
    );
    let words: Vec<_> = loaded
        .unimplemented
        .iter()
        .map(|one| (one.word.as_str(), one.feature.as_str()))
        .collect();
    assert_eq!(words, [("resolvers", "DNS resolvers")]);
}

#[test]
fn keywords_of_another_place_are_ignored_or_refused() {
    assert_eq!(
        alert("frontend f\n bind :80\n server s 192.0.2.1:80\n"),
        "'server' not allowed because frontend 'f' has no backend capability."
    );
    assert!(
        warned("backend b\n bind :80\n")
            .contains("'bind' ignored because backend 'b' has no frontend capability.")
    );
    assert_eq!(
        alert("defaults\n bind :80\n"),
        "'bind' not allowed in 'defaults' section."
    );
    assert_eq!(
        alert("global\n maxcon 4\n"),
        "unknown keyword 'maxcon' in 'global' section; did you mean 'maxconn' maybe ?"
    );
}

/// What is missing because of an error is not reported as missing too.
#[test]
fn one_fault_is_told_once() {
    for text in [
        "frontend f\n mode http\n timeout client 1s\n bind 23200\n",
        "frontend f from nosuch\n bind :80\n",
    ] {
        let files = vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
        let loaded = load(files, &EmptyMachine, Options::default());
        let said = loaded.diagnostics.iter();
        let said: Vec<_> = said
            .filter(|one| one.severity >= Severity::Warning)
            .collect();
        assert_eq!(said.len(), 1, "{said:#?}");
    }
}

/// All errors of all files come in one run.
#[test]
fn every_error_is_told_at_once() {
    let files = vec![
        ("a.cfg".to_owned(), b"global\n foo\n maxconn x\n".to_vec()),
        (
            "b.cfg".to_owned(),
            b"backend b\n server s\n balance y\n".to_vec(),
        ),
    ];
    let loaded = load(files, &EmptyMachine, Options::default());
    let indexes: Vec<_> = loaded
        .diagnostics
        .iter()
        .filter(|one| one.severity == Severity::Alert)
        .map(|one| {
            let at = loaded.sources.locate(one.span.unwrap());
            format!("{}:{}", at.file, at.line)
        })
        .collect();
    assert_eq!(indexes, ["a.cfg:2", "a.cfg:3", "b.cfg:2", "b.cfg:3"]);
}

/// A diagnostic about a removed directive contains the exact replacement line.
#[test]
fn removed_directives_come_with_their_successors() {
    let loaded = read("listen l\n bind :80\n  reqadd X-A:\\ b if TRUE\n");
    let alert = loaded
        .diagnostics
        .iter()
        .find(|one| one.code == "refused-keyword")
        .unwrap();
    let edit = alert.replacement.as_ref().unwrap();
    assert_eq!(edit.text, "http-request add-header X-A b if TRUE");
    assert_eq!(loaded.sources.text(edit.span), "reqadd X-A:\\ b if TRUE");
}

#[test]
fn servers_leave_from_where_their_source_says() {
    let loaded = good(
        "backend b\n source 192.0.2.9 usesrc clientip interface lo\n \
         server a 192.0.2.1:80\n \
         server c 192.0.2.1:80 source 192.0.2.8:100-200 usesrc hdr_ip(x-from,1)\n \
         server d 192.0.2.1:80 source 192.0.2.8 usesrc 192.0.2.7:44\n",
    );
    let sources: Vec<_> = loaded.config.backends[0]
        .servers
        .iter()
        .map(|server| server.source.clone().unwrap())
        .collect();
    assert_eq!(sources[0].transparent, Some(TransparentSource::ClientIp));
    assert_eq!(sources[0].interface.as_deref(), Some("lo"));
    assert!(matches!(
        sources[1].transparent,
        Some(TransparentSource::Header(_))
    ));
    assert_eq!(sources[1].port_last, Some(200));
    let address = "192.0.2.7:44".parse().unwrap();
    assert_eq!(
        sources[2].transparent,
        Some(TransparentSource::Address(address))
    );
    assert!(loaded.unimplemented.is_empty());
}

#[test]
fn state_files_are_found_where_the_base_says() {
    let loaded = good(
        "global\n server-state-base /var/lb\n server-state-file all\n\
         defaults\n load-server-state-from-file global\n\
         backend a\n server s 192.0.2.1:80\n\
         backend b\n load-server-state-from-file local\n\
         backend c\n load-server-state-from-file local\n server-state-file-name own\n\
         backend d\n load-server-state-from-file local\n server-state-file-name /own\n\
         backend e\n load-server-state-from-file none\n",
    );
    let config = &loaded.config;
    assert_eq!(
        config.global.server_state_file.as_deref(),
        Some("/var/lb/all")
    );
    let states: Vec<_> = config
        .backends
        .iter()
        .map(|backend| backend.server_states.clone())
        .collect();
    let local = |file: &str| Some(ServerStates::Local(file.to_owned()));
    assert_eq!(
        states,
        [
            Some(ServerStates::Global),
            local("/var/lb/b"),
            local("/var/lb/own"),
            local("/own"),
            None
        ]
    );
}

#[test]
fn external_checks_need_their_leave() {
    let farm = "backend b\n option external-check\n external-check command /bin/true\n";
    assert!(alert(farm).contains("unable to find required 'global.external-check'"));
    let allowed = format!("global\n external-check\n{farm}");
    assert!(warned(&allowed).contains("'insecure-fork-wanted' not enabled"));
    let loaded = good(&format!(
        "global\n external-check\n insecure-fork-wanted\n{farm}"
    ));
    assert!(loaded.unimplemented.is_empty() && !loaded.has_warnings());
}

#[test]
fn words_of_http2_reach_the_model() {
    let global = |words: &str| good(&format!("global\n {words}\n")).config.global.tune.h2;
    assert_eq!(global(""), H2Tuning::default());
    let tuning = global(
        "tune.h2.initial-window-size 65535\n tune.h2.fe.initial-window-size 0\n \
         tune.h2.be.max-concurrent-streams 7\n tune.h2.fe.rxbuf 64k\n \
         tune.h2.fe.glitches-threshold 9\n tune.h2.be.max-frames-at-once -1\n \
         tune.h2.log-errors connection\n h2-workaround-bogus-websocket-clients",
    );
    let mut expected = H2Tuning {
        window_bytes: Some(65_535),
        logged_errors: H2LoggedErrors::Connection,
        offers_websocket: false,
        ..H2Tuning::default()
    };
    expected.back.stream_count_max = Some(7);
    expected.front.receive_bytes = Some(65_536);
    expected.front.glitch_count_max = 9;
    assert_eq!(tuning, expected);

    let loaded = good(
        "defaults\n mode http\n option disable-h2-upgrade\nfrontend f\n bind :80 proto h1\n bind :81\n\
         frontend g\n no option disable-h2-upgrade\n bind :82\n\
         backend b\n server s 192.0.2.1:80 proto h1 ws h1\n server t 192.0.2.1:81\n",
    );
    let [f, g] = &loaded.config.frontends[..] else {
        panic!("two frontends");
    };
    let upgrades = (f.options.disable_h2_upgrade, g.options.disable_h2_upgrade);
    assert_eq!(upgrades, (true, false));
    let protocols: Vec<_> = f.binds.iter().map(|bind| bind.protocol).collect();
    assert_eq!(protocols, [Some(HttpProtocol::Http1), None]);
    let servers = loaded.config.backends[0].servers.iter();
    let protocols: Vec<_> = servers
        .map(|server| (server.protocol, server.websocket_protocol))
        .collect();
    let expected = [
        (Some(HttpProtocol::Http1), WebsocketProtocol::Http1),
        (None, WebsocketProtocol::Auto),
    ];
    assert_eq!(protocols, expected);
}

#[test]
fn a_protocol_that_does_not_fit_the_mode_is_refused() {
    let bind = |mode: &str, name: &str| {
        alert(&format!(
            "frontend f\n mode {mode}\n bind :80 proto {name}\n"
        ))
    };
    let server = |mode: &str, name: &str| {
        alert(&format!(
            "backend b\n mode {mode}\n server s 192.0.2.1:80 proto {name}\n"
        ))
    };
    let refused = |name: &str| {
        format!("frontend 'f' : MUX protocol '{name}' is not usable for 'bind :80' at [t.cfg:3].")
    };
    for (mode, name) in [
        ("http", "none"),
        ("http", "fcgi"),
        ("tcp", "h1"),
        ("tcp", "h2"),
    ] {
        assert_eq!(bind(mode, name), refused(name), "{mode}");
    }
    assert_eq!(
        server("http", "none"),
        "backend 'b' : MUX protocol 'none' is not usable for server 's' at [t.cfg:3]."
    );
    for (mode, name) in [("http", "quic"), ("tcp", "h1"), ("tcp", "h2")] {
        assert_ne!(server(mode, name), "accepted", "{mode} {name}");
    }
    for (mode, name) in [("http", "h1"), ("tcp", "none")] {
        assert_eq!(bind(mode, name), "accepted");
        assert_eq!(server(mode, name), "accepted");
    }
}

#[test]
fn checks_have_a_protocol_of_their_kind() {
    let backend = |check: &str, words: &str| {
        format!("backend b\n mode http\n {check}\n server s 192.0.2.1:80 check {words}\n")
    };
    let loaded = good(&backend("option httpchk", "check-proto h2 ws h2 proto h1"));
    let server = &loaded.config.backends[0].servers[0];
    let (checks, traffic) = (server.checks.protocol, server.protocol);
    let expected = (Some(HttpProtocol::Http2), Some(HttpProtocol::Http1));
    assert_eq!((checks, traffic), expected);
    assert_eq!(server.websocket_protocol, WebsocketProtocol::Http2);
    let connect = "option httpchk\n http-check connect proto h2";
    let loaded = good(&backend(connect, ""));
    let CheckMethod::Http { rules, .. } = &loaded.config.backends[0].check else {
        panic!("an HTTP check");
    };
    let CheckRule::Connect(rule) = &rules[0] else {
        panic!("it connects");
    };
    assert_eq!(rule.protocol, Some(HttpProtocol::Http2));

    let misfit = "config: backend 'b': server 's' uses an incompatible MUX protocol for the selected \
                  check type";
    for (check, words, message) in [
        ("option httpchk", "check-proto none", misfit),
        ("option tcp-check", "check-proto h2", misfit),
        ("", "check-proto h1", misfit),
        (
            "option tcp-check\n tcp-check connect proto h2",
            "",
            "'tcp-check connect' : 'proto' : invalid MUX protocol 'h2' for tcp-check.",
        ),
        (
            "option httpchk\n http-check connect proto none",
            "",
            "'http-check connect' : 'proto' : invalid MUX protocol 'none' for http-check.",
        ),
        (
            "option httpchk\n http-check connect proto h9",
            "",
            "'http-check connect' : 'proto' : unknown MUX protocol 'h9'.",
        ),
    ] {
        assert_eq!(alert(&backend(check, words)), message);
    }
    for (check, words) in [
        ("option tcp-check\n tcp-check connect proto none", ""),
        ("option tcp-check", "check-proto none"),
        ("option httpchk", "check-proto h1"),
    ] {
        assert_eq!(alert(&backend(check, words)), "accepted");
    }
}
