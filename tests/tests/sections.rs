//! Sections written by command: they take effect at once, as if they were in the file, survive
//! changes elsewhere in the file, and are written back.

use std::fs;

use ballast_tests::fixture::{Fixture, site};
use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Launch, Origin, Program, Proxy, RuntimeApi, free_port};

/// The response to a successful command.
#[track_caller]
fn done(api: &RuntimeApi, command: &str, answer: &str) {
    assert_eq!(api.ask(command), answer, "{command}");
}

fn server(origin: &Origin) -> String {
    format!(" server s1 127.0.0.1:{}\n", origin.port())
}

#[test]
fn binds_come_and_go_and_are_written_anew() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site("", &server(&origin)));
    let api = &fixture.api;
    let (second, third) = (free_port(), free_port());
    let mut client = fixture.client();
    assert_eq!(client.get("/").text(), "one");
    let add = format!("add bind www 127.0.0.1:{second} name more maxconn 5");
    done(api, &add, "Bind added.");
    assert_eq!(Client::get_once(second, "/").text(), "one");
    let set = format!("set bind www/more 127.0.0.1:{third} name more");
    done(api, &set, "Bind changed.");
    assert_eq!(Client::get_once(third, "/").text(), "one");
    assert!(!is_listening(second));
    let shown = api.ask("show section frontend www");
    assert!(
        shown.contains(&format!("2  bind 127.0.0.1:{third} name more")),
        "{shown}"
    );
    // By its address, and by the number of its line.
    done(
        api,
        &format!("del bind www/127.0.0.1:{third}"),
        "Bind deleted.",
    );
    assert!(!is_listening(third));
    done(api, &add, "Bind added.");
    done(api, "del bind www/2", "Bind deleted.");
    assert!(!is_listening(second));
    let said = api.ask("del bind www/more");
    assert!(
        said.contains("No bind line of frontend www is called 'more'"),
        "{said}"
    );
    // The connection from the beginning was never affected.
    assert_eq!(client.get("/").text(), "one");
    // As in the file: no override is left.
    assert_eq!(api.ask("show overrides").lines().count(), 1);
}

#[test]
fn rules_come_where_they_are_told_to() {
    let origin = Origin::saying("one");
    let front = " acl bad path_beg /bad\n http-request deny if bad\n";
    let fixture = Fixture::start(&site(front, &server(&origin)));
    let api = &fixture.api;
    let status = |path: &str| Client::get_once(fixture.port, path).status;
    assert_eq!([status("/bad"), status("/good")], [403, 200]);
    done(
        api,
        "add rule frontend www before 4 http-request allow if { path /bad/but }",
        "Rule added.",
    );
    assert_eq!([status("/bad"), status("/bad/but")], [403, 200]);
    done(
        api,
        "set rule frontend www 5 http-request deny deny_status 429 if bad",
        "Rule changed.",
    );
    assert_eq!([status("/bad"), status("/bad/but")], [429, 200]);
    // A section is inserted after the last one of its kind, or at the end.
    done(
        api,
        "add rule backend app http-response set-header x-by %[srv_name]",
        "Rule added.",
    );
    let answer = Client::get_once(fixture.port, "/good");
    assert_eq!(answer.header("x-by"), Some("s1"));
    done(api, "del rule frontend www 5", "Rule deleted.");
    assert_eq!(status("/bad"), 200);
    // What is not allowed in a file is refused.
    let said = api.ask("del rule frontend www 3");
    assert_eq!(said, "Rule deleted.", "nobody asks for it any more");
    let said = api.ask("add rule frontend www http-request deny if bad");
    assert!(said.contains("no such ACL : 'bad'"), "{said}");
    let said = api.ask("add rule frontend www maxconn 5");
    assert!(said.contains("'maxconn' is no rule"), "{said}");
    let said = api.ask("del rule frontend www 1");
    assert!(said.contains("No rule stands on line 1"), "{said}");
    assert_eq!(status("/bad"), 200);
}

/// An error in a rule is shown in the words of the command, with the place that the rule would
/// have.
#[test]
fn a_refused_rule_is_cited_as_it_was_typed() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site(" acl good path /good\n", &server(&origin)));
    let api = &fixture.api;
    let lines = |name: &str| api.ask(&format!("show section {name}"));
    let before = [lines("frontend www"), lines("backend app")];
    for (section, rule, wrong) in [
        ("frontend www", "http-request deny if bad", "bad"),
        ("frontend www", "http-request denied", "denied"),
        ("frontend www", "http-request deny deny_status 999", "999"),
        (
            "frontend www",
            "http-request set-header x-a %[nothing] if good",
            "nothing",
        ),
        (
            "frontend www",
            "http-request set-path %[path,nothing]",
            "nothing",
        ),
        (
            "frontend www",
            "http-request deny if { path -m nothing /a }",
            "nothing",
        ),
        ("frontend www", "acl x nothing /a", "nothing"),
        ("frontend www", "use_backend nobody if good", "nobody"),
        ("backend app", "http-response set-status many", "many"),
    ] {
        let said = api.ask(&format!("add rule {section} {rule}"));
        let cited = said.lines().position(|line| {
            line.rsplit_once(" | ")
                .is_some_and(|(_, cited)| cited.trim() == rule)
        });
        let cited = cited.unwrap_or_else(|| panic!("{rule} is cited: {said}"));
        let [line, marks] = [cited, cited + 1].map(|at| said.lines().nth(at).unwrap_or_default());
        let marked = marks
            .find('^')
            .map(|at| &line[at..=marks.rfind('^').expect("one")]);
        assert_eq!(marked, Some(wrong), "{said}");
        assert!(
            said.ends_with("as if the command had been carried out."),
            "{said}"
        );
        assert_eq!(
            [lines("frontend www"), lines("backend app")],
            before,
            "{rule}"
        );
    }
}

#[test]
fn settings_and_whole_sections_are_others() {
    let origins = [Origin::saying("one"), Origin::saying("two")];
    let fixture = Fixture::start(&site(" maxconn 90\n", &server(&origins[0])));
    let api = &fixture.api;
    done(api, "set frontend www maxconn 70", "Section changed.");
    assert_eq!(api.stat_of("www/FRONTEND", "slim"), "70");
    done(api, "set backend app balance leastconn", "Section changed.");
    assert_eq!(api.stat_of("app/BACKEND", "algo"), "leastconn");
    let said = api.ask("set backend app server s2 127.0.0.1:1");
    assert!(
        said.contains("There may be several 'server' lines"),
        "{said}"
    );
    let said = api.ask("set frontend www maxconn many");
    assert!(said.contains("[ALERT]"), "{said}");
    let lines = server(&origins[1]);
    done(
        api,
        &format!("set backend app <<\n{lines}"),
        "Section changed.",
    );
    assert_eq!(Client::get_once(fixture.port, "/").text(), "two");
    let said = api.ask("set backend app <<\nfrontend other\n bind :1\n");
    assert!(said.contains("'frontend' begins another"), "{said}");
    // The former state is restored.
    let said = api.ask("rollback 1");
    assert!(said.contains("is in force."), "{said}");
    assert_eq!(Client::get_once(fixture.port, "/").text(), "one");
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    assert_eq!(api.ask("show overrides").lines().count(), 1);
}

/// A section by command is at the end of the files: everything they define is available in it.
#[test]
fn a_section_by_command_knows_what_the_file_says() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site("", &server(&origin)));
    let api = &fixture.api;
    let (asking, both) = (free_port(), free_port());
    let front = format!(
        " bind 127.0.0.1:{asking}\n http-request deny deny_status 429 if {{ srv_is_up(app/s1) }} \
         {{ nbsrv(app) 1 }} {{ path /busy }}\n default_backend app\n"
    );
    done(
        api,
        &format!("add frontend asking <<\n{front}"),
        "New frontend registered.",
    );
    assert_eq!(Client::get_once(asking, "/busy").status, 429);
    assert_eq!(Client::get_once(asking, "/").text(), "one");
    let lines = server(&origin);
    let listen = format!("add listen both <<\n bind 127.0.0.1:{both}\n{lines}");
    let said = api.ask(&format!("{listen} server s2 127.0.0.1:1 track app/s1\n"));
    assert!(said.contains("app/s1"), "it is not checked: {said}");
    done(api, &listen, "New listen section registered.");
    assert_eq!(Client::get_once(both, "/").text(), "one");
    let said = api.ask("del frontend both");
    assert!(said.contains("'del listen both' removes both"), "{said}");
    done(api, "del listen both", "Listen section deleted.");
    assert!(!is_listening(both));
    done(api, "del frontend asking", "Frontend deleted.");
    assert!(!is_listening(asking));
    assert_eq!(api.ask("show overrides").lines().count(), 1);
    let said = api.ask("del backend app");
    assert!(said.contains("a frontend leads to it"), "{said}");
}

#[test]
fn the_file_wins_where_its_section_changed() {
    let origin = Origin::saying("one");
    let other = free_port();
    let text = |www: &str, other_lines: &str| {
        format!(
            "{}frontend other\n bind 127.0.0.1:{other}\n default_backend app\n{other_lines}",
            site(www, &server(&origin))
        )
    };
    let fixture = Fixture::start(&text("", ""));
    let api = &fixture.api;
    done(api, "set frontend www maxconn 70", "Section changed.");
    done(api, "set frontend other maxconn 80", "Section changed.");
    let new = free_port();
    done(
        api,
        &format!("add frontend new <<\n bind 127.0.0.1:{new}\n default_backend app\n"),
        "New frontend registered.",
    );
    fixture.write(&text("", " # only said\n maxconn 60\n"));
    let said = api.ask("reload keep");
    assert!(
        said.contains("The file overrules what was set by command: frontend other"),
        "{said}"
    );
    let slim = |name: &str| api.stat_of(&format!("{name}/FRONTEND"), "slim");
    assert_eq!([slim("www"), slim("other")], ["70", "60"]);
    assert_eq!(Client::get_once(new, "/").text(), "one");
    // A comment does not make it a different section.
    fixture.write(&text(" # a comment\n", " maxconn 60\n"));
    let said = api.ask("reload keep");
    assert!(!said.contains("overrules"), "{said}");
    assert_eq!(slim("www"), "70");
    // A section that does not fit the files is refused completely.
    fixture.write("frontend www\n bind 127.0.0.1:PORT\n");
    let said = api.ask("reload keep");
    assert!(said.starts_with("Success=0"), "{said}");
    assert!(
        said.contains("'reload' without 'keep' drops these"),
        "{said}"
    );
    assert_eq!(slim("www"), "70");
    let said = api.ask("reload");
    assert!(said.starts_with("Success=1"), "{said}");
    assert!(!is_listening(new), "{said}");
    assert_eq!(api.ask("show overrides").lines().count(), 1);
}

/// A carefully written file, whose servers are this origin's.
fn shop(ports: &[u16], port: u16) -> String {
    format!(
        "global
    stats socket unix@ctl.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client  20s # long
    timeout server  20s

# The shop.
frontend www
    bind 127.0.0.1:{}   # in
    default_backend app

# Goes.
frontend old
    bind 127.0.0.1:{}
    default_backend app

# The end.
backend app
    server s1 127.0.0.1:{port}
    server s2 127.0.0.1:{port}
    server s3 127.0.0.1:{port}
",
        ports[0], ports[1]
    )
}

#[test]
fn sections_are_written_back_to_the_file() {
    let origin = Origin::saying("one");
    let ports = [free_port(), free_port(), free_port()];
    let text = shop(&ports, origin.port());
    let launch = Launch {
        ports: &ports[..2],
        ..Launch::default()
    };
    let proxy = Proxy::launch(&Program::ballast(), &text, &launch);
    let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
    let file = || fs::read_to_string(proxy.directory().join("haproxy.cfg")).unwrap();
    done(
        &api,
        "add rule frontend www http-request set-header x-a %[path] if { path /a }",
        "Rule added.",
    );
    done(&api, "set frontend www maxconn 70", "Section changed.");
    done(&api, "del frontend old", "Frontend deleted.");
    done(
        &api,
        &format!(
            "add frontend new <<\n    bind 127.0.0.1:{}\n    default_backend app\n",
            ports[2]
        ),
        "New frontend registered.",
    );
    done(
        &api,
        "disable server app/s2; del server app/s2",
        "\nServer deleted.",
    );
    done(
        &api,
        &format!("add server app/s4 127.0.0.1:{}", origin.port()),
        "New server registered.",
    );
    assert_eq!(api.ask("set maxconn frontend new 50"), "");
    let said = api.ask("persist now");
    assert_eq!(said, "Written: haproxy.cfg");
    let wanted = format!(
        "global
    stats socket unix@ctl.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client  20s # long
    timeout server  20s

# The shop.
frontend www
    maxconn 70
    bind 127.0.0.1:{}   # in
    default_backend app
    http-request set-header x-a %[path] if {{ path /a }}

# Goes.

# The end.
backend app
    server s1 127.0.0.1:{port}
    server s3 127.0.0.1:{port}
    server s4 127.0.0.1:{port} id 2 disabled

frontend new
    maxconn 50
    bind 127.0.0.1:{}
    default_backend app
",
        ports[0],
        ports[2],
        port = origin.port()
    );
    assert_eq!(file(), wanted);
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    assert_eq!(api.ask("show overrides").lines().count(), 1);
    assert_eq!(api.stat_of("new/FRONTEND", "slim"), "50");
    assert_eq!(Client::get_once(ports[2], "/").text(), "one");
    // From now on automatically, and the resulting file can be used for a start.
    done(&api, "persist on", "Nothing to write.");
    done(&api, "del frontend new", "Frontend deleted.");
    let gone = "disable server app/s1; del server app/s1";
    done(&api, gone, "\nServer deleted.");
    let said = api.ask("persist now");
    assert!(!said.contains("Not written"), "{said}");
    assert!(!file().contains("frontend new"), "{}", file());
    // Counted anew, it would have another number, and another place on a hash ring.
    let third = format!("server s3 127.0.0.1:{} id 3\n", origin.port());
    assert!(file().contains(&third), "{}", file());
    let checked = Program::ballast().check(&file());
    assert!(checked.status.success(), "{}", checked.stderr);
}

#[test]
fn what_was_before_is_before_again_patterns_and_all() {
    let origin = Origin::saying("one");
    let front = " acl bad path_beg /bad\n http-request deny if bad\n";
    let fixture = Fixture::start(&site(front, &server(&origin)));
    let api = &fixture.api;
    let status = |path: &str| Client::get_once(fixture.port, path).status;
    done(
        api,
        "set rule frontend www 3 acl bad path_beg /new",
        "Rule changed.",
    );
    assert_eq!([status("/bad"), status("/new")], [200, 403]);
    let said = api.ask("rollback 1");
    assert!(said.contains("is in force."), "{said}");
    assert_eq!([status("/bad"), status("/new")], [403, 200]);
    // Each time a rule with other patterns at the same place.
    for path in ["/one", "/two"] {
        let rule = format!("add rule frontend www http-request deny if {{ path {path} }}");
        done(api, &rule, "Rule added.");
        let last = fixture.generation();
        assert_eq!(status(path), 403);
        if path == "/one" {
            let said = api.ask("rollback 3");
            assert!(said.contains("is in force."), "{said}");
        } else {
            let said = api.ask("rollback 4");
            assert!(said.contains("is in force."), "{last}: {said}");
        }
    }
    assert_eq!([status("/one"), status("/two")], [403, 200]);
    let plan = api.ask("show plan");
    assert_eq!(
        plan, "~ frontend www: rules\nPlan: changes",
        "a reload drops it"
    );
}

/// A rule that is inserted before others must not give them its patterns, not for a single request.
#[test]
fn what_is_denied_is_denied_while_rules_come_and_go() {
    let origin = Origin::saying("one");
    let front = " http-request deny if { path /admin }\n http-request deny deny_status 429 if { path /slow }\n";
    let fixture = Fixture::start(&site(front, &server(&origin)));
    let api = &fixture.api;
    done(api, "add acl #0 /hand", "");
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = fixture.client();
                    let mut answers = std::collections::BTreeSet::new();
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        answers.insert(client.get("/admin").status);
                    }
                    answers
                })
            })
            .collect();
        for _ in 0..60 {
            done(
                api,
                "add rule frontend www before 3 http-request deny deny_status 503 if { path /new }",
                "Rule added.",
            );
            done(api, "del rule frontend www 3", "Rule deleted.");
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        for asked in asking {
            let answers = asked.join().expect("it asks to the end");
            assert_eq!(Vec::from_iter(answers), [403]);
        }
    });
    // What an override put into a list stays in that list.
    assert_eq!(Client::get_once(fixture.port, "/hand").status, 403);
}

#[test]
fn an_edit_stays_within_its_section() {
    let origin = Origin::saying("one");
    let (second, third) = (free_port(), free_port());
    let text = format!(
        "{}.if 1\nfrontend second\n bind 127.0.0.1:{second}\n.endif\n http-request deny\n \
         default_backend app\nfrontend third\n # caf\u{e9}\n bind 127.0.0.1:{third}\n default_backend app\n",
        site("", &server(&origin))
    );
    let fixture = Fixture::start(&text);
    let api = &fixture.api;
    for command in [
        "set backend app backend other",
        "set backend app userlist u",
        "set backend app <<\n.if 0\nbackend other\n.endif\n",
        "add frontend x <<\n.if defined(HOME)\nbackend hidden\n.endif\n",
    ] {
        let said = api.ask(command);
        assert!(said.contains("begins another"), "{command}: {said}");
    }
    let said = api.ask("del frontend second");
    assert!(
        said.contains("in a conditional block and after it"),
        "{said}"
    );
    assert_eq!(Client::get_once(fixture.port, "/").text(), "one");
    assert_eq!(Client::get_once(second, "/").status, 403);
    assert_eq!(api.ask("show overrides").lines().count(), 1);
    let shown = api.ask("show section listen app");
    assert!(shown.contains("No such listen."), "{shown}");
}

#[test]
fn bytes_that_are_no_text_stay_as_they_are() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site("", &server(&origin)));
    let file = fixture.proxy.directory().join("haproxy.cfg");
    let mut bytes = vec![b'#', b' '];
    bytes.extend([0xe9; 60]);
    bytes.push(b'\n');
    bytes.extend(fs::read(&file).unwrap());
    bytes.extend(b"frontend latin # \xe9\n mode tcp\n");
    fs::write(&file, &bytes).unwrap();
    let api = &fixture.api;
    let said = api.ask("reload");
    assert!(said.starts_with("Success=1"), "{said}");
    done(api, "set server app/s1 weight 7", "");
    let said = api.ask("set frontend latin maxconn 5");
    assert!(said.contains("not valid UTF-8"), "{said}");
    done(api, "persist now", "Written: haproxy.cfg");
    let written = fs::read(&file).unwrap();
    assert_eq!(written.len(), bytes.len() + " weight 7".len());
    assert!(written.starts_with(&bytes[..60]));
    assert!(written.ends_with(b"frontend latin # \xe9\n mode tcp\n"));
}

#[test]
fn a_rollback_is_written_back_too() {
    let origin = Origin::saying("one");
    let fixture = Fixture::start(&site("", &server(&origin)));
    let api = &fixture.api;
    let file = || fs::read_to_string(fixture.proxy.directory().join("haproxy.cfg")).unwrap();
    let before = file();
    done(api, "persist on", "Nothing to write.");
    done(
        api,
        "add rule frontend www http-request deny if { path /one }",
        "Rule added.",
    );
    let _ = api.ask("persist now");
    assert!(file().contains("path /one"));
    let said = api.ask("rollback 1");
    assert!(said.contains("is in force."), "{said}");
    let _ = api.ask("persist now");
    assert_eq!(file(), before);
    done(
        api,
        "add rule frontend www http-request deny if { path /two }",
        "Rule added.",
    );
    let _ = api.ask("persist now");
    assert!(file().contains("path /two"), "{}", file());
    assert_eq!(api.ask("show plan"), "Plan: nothing");
    // Stand-ins for the files are distinguished from files that were changed.
    fixture.apply_well(&site(" maxconn 9\n", &server(&origin)));
    let said = api.ask("persist now");
    assert!(said.contains("applied in place of the files"), "{said}");
}
