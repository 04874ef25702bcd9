//! Overrides: what wins when the file is read again, how they are written back, and the responses.

use std::fs;

use ballast_tests::fixture::{Fixture, configuration, site};
use ballast_tests::{Client, Launch, Origin, Program, Proxy, RuntimeApi, free_port};
use rustix::process::Signal;

#[test]
fn overrides_stay_and_the_file_wins_where_it_changed() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let lines = |weight: u32, extra: &str| {
        let back = format!(
            " server s1 127.0.0.1:{} weight {weight}\n server s2 127.0.0.1:{} weight 5\n{extra}",
            origins[0].port(),
            origins[1].port()
        );
        site("", &back)
    };
    let fixture = Fixture::start(&lines(1, ""));
    let api = &fixture.api;
    assert_eq!(api.ask("set server app/s1 weight 7"), "");
    assert_eq!(api.ask("set server app/s2 weight 8"), "");
    assert_eq!(api.ask("set server app/s2 state drain"), "");
    let added = format!(
        "add server app/mine 127.0.0.1:{} weight 9",
        origins[0].port()
    );
    assert_eq!(api.ask(&added), "New server registered.");
    assert_eq!(api.ask("enable server app/mine"), "");
    let hands = api.ask("show overrides");
    for word in ["app/s1", "app/s2", "app/mine"] {
        assert!(hands.contains(word), "{word}: {hands}");
    }
    // The file changes s1 and adds a line; s2 and mine stay as commands left them.
    fixture.write(&lines(3, " server s3 127.0.0.1:1 weight 4\n"));
    let said = api.ask("reload keep");
    assert!(said.starts_with("Success=1"), "{said}");
    let weight = |name: &str| fixture.api.stat_of(&format!("app/{name}"), "weight");
    assert_eq!(
        [weight("s1"), weight("s2"), weight("mine"), weight("s3")],
        ["3", "8", "9", "4"]
    );
    assert!(api.stat_of("app/s2", "status").contains("DRAIN"));
    // Unless overrides are kept, the process is what the file says.
    let said = api.ask("reload");
    assert!(said.starts_with("Success=1"), "{said}");
    assert!(!api.stat().contains_key("app/mine"), "{said}");
    assert_eq!(
        weight("s2"),
        "5",
        "what was set by command is dropped: {said}"
    );
    assert_eq!(api.stat_of("app/s2", "status"), "no check");
}

#[test]
fn a_rollback_leaves_no_override_that_is_not_in_force() {
    let origin = Origin::saying("one");
    let lines = |weight: u32| {
        let back = format!(
            " server s1 127.0.0.1:{0} weight {weight}\n server s2 127.0.0.1:{0} weight 5",
            origin.port()
        );
        site("", &back)
    };
    let fixture = Fixture::start(&lines(10));
    let api = &fixture.api;
    fixture.apply_well(&lines(20));
    assert_eq!(api.ask("set server app/s1 weight 3"), "");
    assert_eq!(api.ask("set server app/s2 weight 4"), "");
    let said = api.ask("rollback 1");
    assert!(
        said.contains("overrules what was set by command: server app/s1 weight"),
        "{said}"
    );
    let weights = || ["s1", "s2"].map(|name| api.stat_of(&format!("app/{name}"), "weight"));
    // The weight of s1 is another in the two configurations; that of s2 is not.
    assert_eq!(weights(), ["10", "4"]);
    let listed = api.ask("show overrides");
    assert!(
        !listed.contains("app/s1") && listed.contains("app/s2"),
        "{listed}"
    );
    let said = api.ask("persist now");
    assert_eq!(weights(), ["10", "4"], "{said}");
}

#[test]
fn overrides_are_written_back_and_nothing_else() {
    let origin = Origin::saying("one");
    let port = origin.port();
    let lines = format!(
        "# The shop.
frontend www
    bind 127.0.0.1:PORT   # in
    http-request set-header X-To %[path,map(to.map,none)]
    default_backend app

backend app # out
    balance  roundrobin
    server s1  127.0.0.1:{port}   weight  5  # first
    server s2 127.0.0.1:{port} # second
    server s3 127.0.0.1:{port}

    # the end
    retries 2
"
    );
    let front = free_port();
    let launch = Launch {
        ports: &[front],
        files: &[("to.map", "# paths\n/a x\n")],
        ..Launch::default()
    };
    let text = configuration(&lines, front);
    let proxy = Proxy::launch(&Program::ballast(), &text, &launch);
    let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
    let file = |name: &str| fs::read_to_string(proxy.directory().join(name)).unwrap();
    let mut client = Client::connect(front);
    assert_eq!(client.get("/").status, 200);
    assert_eq!(api.ask("persist now"), "Nothing to write.");
    for (command, answer) in [
        ("set server app/s1 weight 7", ""),
        ("set server app/s2 state maint", ""),
        (
            "disable server app/s3; del server app/s3",
            "Server deleted.",
        ),
        ("add map to.map /b y", ""),
    ] {
        assert_eq!(api.ask(command).trim_start(), answer, "{command}");
    }
    let added = api.ask(&format!(
        "add server app/mine 127.0.0.1:{port} weight 3; enable server app/mine"
    ));
    assert_eq!(added.trim_start(), "New server registered.");
    assert_eq!(
        file("haproxy.cfg"),
        text,
        "nothing is written before it is asked for"
    );
    let said = api.ask("persist now");
    assert!(said.contains("Written: haproxy.cfg"), "{said}");
    assert!(said.contains("Written: to.map"), "{said}");
    let wanted = text
        .replace("weight  5  # first", "weight  7  # first")
        .replace(" # second", " disabled # second")
        .replace(
            &format!("    server s3 127.0.0.1:{port}\n"),
            &format!("    server mine 127.0.0.1:{port} weight 3 id 3\n"),
        );
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&file("haproxy.cfg")), sorted(&wanted));
    assert!(file("to.map").contains("/b y"), "{}", file("to.map"));
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    assert_eq!(
        api.ask("show overrides").lines().count(),
        1,
        "{}",
        api.ask("show overrides")
    );
    assert_eq!(api.stat_of("app/s1", "weight"), "7");
    assert_eq!(api.stat_of("app/s2", "status"), "MAINT");
    assert_eq!(client.get("/").text(), "one");
    // From now on automatically.
    assert_eq!(api.ask("persist on"), "Nothing to write.");
    assert_eq!(api.ask("set server app/s1 weight 9"), "");
    let began = std::time::Instant::now();
    while !file("haproxy.cfg").contains("weight  9  # first") {
        assert!(began.elapsed() < ballast_tests::WAIT_MAX, "it is written");
    }
    // A file that somebody else changed is not overwritten.
    let mine = file("haproxy.cfg").replace("retries 2", "retries 3");
    fs::write(proxy.directory().join("haproxy.cfg"), &mine).unwrap();
    assert_eq!(api.ask("persist off"), "Nothing is written any more.");
    assert_eq!(api.ask("set server app/s1 weight 10"), "");
    let said = api.ask("persist now");
    assert!(said.contains("The files have changed"), "{said}");
    assert_eq!(file("haproxy.cfg"), mine);
}

#[test]
fn whoever_is_killed_while_writing_leaves_a_whole_file() {
    let origin = Origin::saying("one");
    let back = format!(" server s1 127.0.0.1:{} weight 1 # here\n", origin.port());
    for round in 0..4 {
        let mut fixture = Fixture::start(&site("", &back));
        assert_eq!(fixture.api.ask("persist on"), "Nothing to write.");
        let begun = configuration(&site("", &back), fixture.port);
        for n in 2..(20 + round * 7) {
            assert_eq!(
                fixture.api.ask(&format!("set server app/s1 weight {n}")),
                ""
            );
        }
        fixture.proxy.signal(Signal::KILL);
        let _ = fixture.proxy.wait();
        let left = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
        let weight = left
            .split("weight ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let weight: usize = weight.expect("the word is there").parse().unwrap();
        assert!((1..20 + round * 7).contains(&weight), "{weight}");
        assert_eq!(
            left,
            begun.replace("weight 1 #", &format!("weight {weight} #")),
            "round {round}"
        );
    }
}

#[test]
fn the_idioms_of_adding_and_deleting_servers_answer_as_recorded() {
    let origin = Origin::saying("one");
    let back = format!(
        " server-template srv 1-4 127.0.0.1:{} check port {} disabled\n server one 127.0.0.1:{}\n",
        origin.port(),
        origin.port(),
        origin.port()
    );
    let fixture = Fixture::start(&site("", &back));
    let port = origin.port();
    let demo = "app/demo";
    let said: &[(String, &str)] = &[
        (
            format!(
                "add server {demo} 127.0.0.1:{port} check weight 10 maxconn 200 id 123 \
                 init-state down port {port} check"
            ),
            "New server registered.",
        ),
        // HAProxy refuses some words here that are allowed in a file.
        (
            format!("add server app/x 127.0.0.1:{port} no-ssl init-addr last,none"),
            "New server registered.",
        ),
        (
            format!("add server app/y 127.0.0.1:{port} track app/srv1"),
            "New server registered.",
        ),
        (
            format!("add server app/z 127.0.0.1:{port} weight 10 id 123"),
            "'id' : custom id 123 already used at (null):0 ('server demo').",
        ),
        (format!("enable health {demo}"), ""),
        (format!("enable server {demo}"), ""),
        (format!("set server {demo} weight 30"), ""),
        (format!("get weight {demo}"), "30 (initial 10)"),
        (
            format!("del server {demo}"),
            "Only servers in maintenance mode can be deleted.",
        ),
        (
            format!("wait 100ms srv-removable {demo}"),
            "Failed. Only servers in maintenance mode can be deleted.",
        ),
        (format!("disable server {demo}"), ""),
        (format!("shutdown sessions server {demo}"), ""),
        (format!("wait 100ms srv-removable {demo}"), "Done."),
        (format!("del server {demo}"), "Server deleted."),
        ("set server app/srv1 state ready".to_owned(), ""),
        (
            "add backend be_new from web mode http".to_owned(),
            "New backend registered.",
        ),
        ("publish backend be_new".to_owned(), "Backend published."),
        (
            "unpublish backend be_new".to_owned(),
            "Backend unpublished.",
        ),
        ("del backend be_new".to_owned(), "Backend deleted."),
    ];
    for (command, answer) in said {
        assert_eq!(fixture.api.ask(command), *answer, "{command}");
    }
}

/// HAProxy accepts new servers by command only for algorithms that need no recomputation.
#[test]
fn servers_come_and_go_under_any_algorithm() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    for balance in ["static-rr", "source", "uri", "hdr(x-key)"] {
        let lines = format!(
            " balance {balance}\n server s1 127.0.0.1:{}\n",
            origins[0].port()
        );
        let fixture = Fixture::start(&site("", &lines));
        let api = &fixture.api;
        let said = api.ask(&format!(
            "add server app/s2 127.0.0.1:{}",
            origins[1].port()
        ));
        assert_eq!(said, "New server registered.", "{balance}");
        assert_eq!(
            api.ask("enable server app/s2; disable server app/s1")
                .trim(),
            ""
        );
        assert_eq!(fixture.client().get("/").text(), "two", "{balance}");
        assert_eq!(api.ask("del server app/s1"), "Server deleted.");
        let mut client = fixture.client();
        let texts: Vec<String> = (0..8)
            .map(|n| client.get(&format!("/{n}")).text())
            .collect();
        assert_eq!(texts, ["two"; 8], "{balance}");
    }
}

#[test]
fn a_slot_of_a_template_is_filled_and_emptied() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let back = " server-template slot 1-3 127.0.0.1:1 disabled\n";
    let fixture = Fixture::start(&site("", back));
    let api = &fixture.api;
    assert_eq!(fixture.client().get("/").status, 503);
    for (n, origin) in origins.iter().enumerate() {
        let slot = format!("app/slot{}", n + 1);
        let said = api.ask(&format!(
            "set server {slot} addr 127.0.0.1 port {}",
            origin.port()
        ));
        assert!(said.contains("changed from"), "{said}");
        assert_eq!(api.ask(&format!("set server {slot} state ready")), "");
    }
    let mut client = fixture.client();
    let mut texts = [client.get("/").text(), client.get("/").text()];
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    // The address was set by command: a file that does not change it leaves it, if overrides are
    // kept.
    fixture.write(&site(" maxconn 44", back));
    let said = api.ask("reload keep");
    assert!(said.starts_with("Success=1"), "{said}");
    let mut texts = [client.get("/").text(), client.get("/").text()];
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(api.ask("set server app/slot1 state maint"), "");
    assert_eq!(client.get("/").text(), "two");
}

#[test]
fn what_was_said_when_files_were_read_last_is_repeated() {
    let fixture = Fixture::start(&site("", " server s1 127.0.0.1:1\n"));
    assert_eq!(fixture.api.ask("show startup-logs"), "");
    fixture.write(&site(" maxcon 5", " server s1 127.0.0.1:1\n"));
    let refused = fixture.api.ask("reload");
    assert!(refused.contains("maxcon"), "{refused}");
    let log = fixture.api.ask("show startup-logs");
    assert!(
        log.contains("Configuration refused") && log.contains("maxcon"),
        "{log}"
    );
    fixture.write(&site(" maxconn 5", " server s1 127.0.0.1:1\n"));
    let said = fixture.api.ask("reload");
    assert!(said.starts_with("Success=1"), "{said}");
    let log = fixture.api.ask("show startup-logs");
    assert!(log.contains("~ frontend www: maxconn unset -> 5"), "{log}");
}

#[test]
fn a_server_at_rest_gets_another_name_and_stays_what_it_was() {
    let origin = Origin::saying("one");
    let port = origin.port();
    let back = format!(" server s1 127.0.0.1:{port}\n server s2 127.0.0.1:{port} weight 3\n");
    let fixture = Fixture::start(&site("", &back));
    let api = &fixture.api;
    let added = api.ask(&format!("add server app/s3 127.0.0.1:{port}"));
    assert_eq!(added, "New server registered.");
    assert_eq!(api.ask("disable server app/s1").trim(), "");
    assert_eq!(fixture.client().get("/").text(), "one");
    let said = api.ask("set server app/s2 name other");
    assert_eq!(said, "Only servers in maintenance mode can be renamed.");
    let taken = api.ask("set server app/s1 name s2");
    assert!(taken.contains("Already exists a server"), "{taken}");
    assert_eq!(api.ask("set server app/s2 weight 7"), "");
    assert_eq!(api.ask("set maxconn server app/s2 33"), "");
    assert_eq!(
        api.ask("disable server app/s2; enable server app/s1")
            .trim(),
        ""
    );
    let id = api.stat_of("app/s2", "sid");
    for (was, is) in [("s2", "two"), ("s3", "three")] {
        let said = api.ask(&format!("set server app/{was} name {is}"));
        assert_eq!(said, "", "{was}");
        assert!(!api.stat().contains_key(&format!("app/{was}")));
        assert_eq!(api.stat_of(&format!("app/{is}"), "status"), "MAINT");
    }
    assert_eq!(api.stat_of("app/two", "stot"), "1");
    assert_eq!(api.stat_of("app/two", "weight"), "7");
    assert_eq!(api.stat_of("app/two", "slim"), "33");
    assert_eq!(api.stat_of("app/two", "sid"), id);
    assert_eq!(
        api.ask("enable server app/two; disable server app/s1")
            .trim(),
        ""
    );
    assert_eq!(fixture.client().get("/").text(), "one");
    let said = api.ask("persist now");
    assert!(said.starts_with("Written: haproxy.cfg"), "{said}");
    let file = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    assert!(
        file.contains(&format!("server two 127.0.0.1:{port} weight 7")),
        "{file}"
    );
    assert!(
        file.contains(&format!("server three 127.0.0.1:{port} id 3")),
        "{file}"
    );
    assert_eq!(api.ask("show plan"), "Plan: nothing");
}

/// Writing back changes nothing in the running process: a server continues as it was.
#[test]
fn writing_back_changes_nothing_of_what_runs() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let ports = [origins[0].port(), origins[1].port()];
    let back = format!(" server s1 127.0.0.1:{}\n", ports[0]);
    let fixture = Fixture::start(&site("", &back));
    let api = &fixture.api;
    for (name, hand) in [
        (
            "c1",
            "set server app/c1 weight 5; set maxconn server app/c1 33".to_owned(),
        ),
        ("c2", "set server app/c2 state drain".to_owned()),
        (
            "c3",
            format!("set server app/c3 addr 127.0.0.1 port {}", ports[1]),
        ),
    ] {
        let added = api.ask(&format!("add server app/{name} 127.0.0.1:{}", ports[0]));
        assert_eq!(added, "New server registered.");
        let _ = api.ask(&format!("enable server app/{name}; {hand}"));
    }
    let looks = || {
        let shown = api.ask("show servers state app");
        let rows = shown.lines().skip(2).map(|row| {
            let words: Vec<&str> = row.split(' ').collect();
            // That a line is `disabled` (4) is independent of a server's maintenance.
            let rests = words[6].parse::<u8>().expect("a number") & !4;
            // Name, state, weight, port.
            format!(
                "{} {} {} {} {}",
                words[3], words[5], rests, words[7], words[18]
            )
        });
        rows.collect::<Vec<_>>()
    };
    let before = looks();
    let said = api.ask("persist now");
    assert!(said.contains("Not written: server app/c2 state"), "{said}");
    assert_eq!(looks(), before, "{said}");
    assert_eq!(api.stat_of("app/c1", "slim"), "33");
    let file = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    for line in [
        format!(
            "server c1 127.0.0.1:{} id 2 maxconn 33 weight 5\n",
            ports[0]
        ),
        format!("server c3 127.0.0.1:{} id 4\n", ports[1]),
    ] {
        assert!(file.contains(&line), "{file}");
    }
    // What cannot be written in a file would not survive a reload.
    let plan = api.ask("show plan");
    let lines = "- override server app/c2 state drain\nPlan: changes";
    assert_eq!(plan, lines);
}

#[test]
fn persist_that_cannot_write_says_that_it_stays_off() {
    let origin = Origin::saying("one");
    let server = format!(" server s1 127.0.0.1:{}\n", origin.port());
    let fixture = Fixture::start(&site("", &server));
    let api = &fixture.api;
    assert_eq!(api.ask("set server app/s1 weight 7"), "");
    let later = site("", &server.replace("s1", "s2"));
    fixture.write(&later);
    let refused = "'persist' stays off: The files have changed since they were read: reload first.";
    assert_eq!(api.ask("persist on"), refused);
    assert!(!api.ask("show overrides").contains("persist"));
    // Nothing is tried, and nothing is reported, while this follows.
    fixture.write(&site("", &server));
    assert_eq!(api.ask("set server app/s1 weight 8"), "");
    assert_eq!(api.ask("persist off"), "Nothing is written any more.");
    let left = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    assert!(!left.contains("weight"));
    // What was on stays on.
    assert!(api.ask("persist on").contains("Written: haproxy.cfg"));
    fixture.write(&later);
    assert_eq!(api.ask("persist on"), refused.split_once(": ").unwrap().1);
    assert!(api.ask("show overrides").contains("persist"));
    // Each command says that its change is not in the files, and the reload that it drops it.
    let why =
        "Not written to the files: The files have changed since they were read: reload first.";
    assert_eq!(api.ask("set server app/s1 weight 9"), why);
    let rule = api.ask("add rule backend app http-request deny if { path /x }");
    assert_eq!(rule, format!("Rule added.\n{why}"));
    let said = api.ask("reload");
    assert!(
        said.starts_with("Success=1")
            && said.contains("The reload dropped what commands changed")
            && said.contains("server app/s1 weight")
            && said.contains("backend app"),
        "{said}"
    );
    assert_eq!(api.ask("set server app/s2 weight 9"), "");
}

#[test]
fn a_check_that_is_enabled_again_needs_no_word() {
    let origin = Origin::saying("one");
    let server = format!(
        " default-server inter 500ms fall 2\n server s1 127.0.0.1:{} check\n",
        origin.port()
    );
    let fixture = Fixture::start(&site("", &server));
    let api = &fixture.api;
    assert_eq!(api.ask("disable health app/s1"), "");
    let said = api.ask("persist now");
    assert!(said.contains("Not written: server app/s1 health"), "{said}");
    assert_eq!(api.ask("enable health app/s1"), "");
    assert_eq!(api.ask("persist now"), "Nothing to write.");
    let added = format!("add server app/s2 127.0.0.1:{} check", origin.port());
    assert_eq!(api.ask(&added), "New server registered.");
    assert_eq!(api.ask("enable health app/s2"), "");
    assert_eq!(api.ask("enable server app/s2"), "");
    assert_eq!(api.ask("persist now"), "Written: haproxy.cfg");
    let text = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    assert!(text.contains("check id 2 inter 2000ms fall 3\n"), "{text}");
    assert_eq!(api.ask("show plan"), "Plan: nothing");
}

#[test]
fn what_is_set_while_overrides_are_written_back_is_not_undone() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site(
        "",
        &format!(" server s1 127.0.0.1:{}\n", origin.port()),
    ));
    let api = &fixture.api;
    assert_eq!(api.ask("persist on"), "Nothing to write.");
    for n in 0..12 {
        let server = format!("app/d{n}");
        let added = api.ask(&format!("add server {server} 127.0.0.1:{}", origin.port()));
        assert_eq!(added, "New server registered.");
        assert_eq!(api.ask(&format!("enable server {server}")), "");
    }
    for n in 0..40 {
        let _ = api.ask(&format!("set server app/s1 weight {}", n + 100));
        std::thread::sleep(std::time::Duration::from_millis(n % 4));
        let _ = api.ask(&format!("set server app/s1 weight {}", n + 10));
        let _ = api.ask("set server app/d1 state maint");
        std::thread::sleep(std::time::Duration::from_millis(n % 3));
        let _ = api.ask("set server app/d1 state ready");
        // The last state is the one that is in the file after writing.
        let _ = api.ask("persist now");
        assert_eq!(api.stat_of("app/s1", "weight"), (n + 10).to_string());
        assert_eq!(api.stat_of("app/d1", "status"), "no check", "{n}");
    }
    for n in 0..12 {
        assert_eq!(
            api.stat_of(&format!("app/d{n}"), "status"),
            "no check",
            "d{n}"
        );
    }
    let file = fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    assert!(!file.contains("disabled"), "{file}");
}
