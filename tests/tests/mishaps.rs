//! Changes at bad moments: nobody listens, the queue is long, a limit is lower than before.

use std::fs;
use std::process::{Command, Stdio};

use ballast_tests::fixture::{Fixture, ask_slowly, one_waits, patient, site};
use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Origin, Program, eventually, free_port};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_process_whose_messages_nobody_reads_goes_on() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("haproxy.cfg");
    let text = |extra: &str| {
        format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
             frontend www\n bind 127.0.0.1:{port}\n default_backend app\n{extra}\
             backend app\n server s1 127.0.0.1:{}\n",
            origin.port()
        )
    };
    fs::write(&file, text("")).expect("the file is written");
    let mut child = Command::new(Program::ballast().path())
        .args(["-db", "-f"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    eventually("it listens", || is_listening(port));
    // The reader is gone.
    drop(child.stderr.take());
    fs::write(&file, text(" http-response set-header X-New yes\n")).expect("the file is written");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("not 0");
    kill_process(pid, Signal::USR2).expect("it is told");
    eventually("the change is in force", || {
        Client::get_once(port, "/").header("x-new") == Some("yes")
    });
    assert!(child.try_wait().expect("it can be asked").is_none());
    kill_process(pid, Signal::TERM).expect("it is told");
    let _ = child.wait();
}

#[test]
fn a_check_whose_verdict_does_not_fit_ends_as_it_should() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let text = "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
                listen l\n bind 127.0.0.1:1\n";
    fs::write(file.path(), text).expect("the file is written");
    for program in Program::both() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let status = Command::new(program.path())
            .args(["-c", "-f"])
            .arg(file.path())
            .stdout(full.expect("the system has it"))
            .stderr(Stdio::null())
            .status()
            .expect("it runs");
        assert_eq!(status.code(), Some(0), "{}", program.name());
    }
}

#[test]
fn who_waits_in_a_backend_that_goes_is_served_by_it() {
    let (origin, go_on) = patient("one");
    let back = format!(" server s1 127.0.0.1:{} maxconn 1\n", origin.port());
    let fixture = Fixture::start(&site("", &back));
    let (mut first, mut second) = one_waits(&fixture, &origin);
    let renamed = site("", &back).replace("app", "other");
    fixture.apply_well(&renamed);
    go_on.send(()).expect("the origin waits");
    assert_eq!(first.response().text(), "one");
    assert_eq!(second.response().text(), "one");
    assert_eq!(fixture.client().get("/third").text(), "one");
}

#[test]
fn the_limit_of_the_process_follows_the_file() {
    let origin = Origin::saying("hello");
    let back = format!(" server s1 127.0.0.1:{}\n", origin.port());
    let fixture = Fixture::start(&site("", &back));
    let shown = |fixture: &Fixture| {
        let info = fixture.api.ask("show info");
        let mut lines = info.lines();
        let line = lines.find(|line| line.starts_with("Maxconn: "));
        line.expect("it is shown").to_owned()
    };
    assert_ne!(shown(&fixture), "Maxconn: 40");
    fixture.apply_well(&format!("global\n maxconn 40\n{}", site("", &back)));
    assert_eq!(shown(&fixture), "Maxconn: 40");
    assert_eq!(fixture.api.stat_of("www/FRONTEND", "slim"), "40");
}

#[test]
fn what_is_removed_ends_when_its_time_is_over() {
    let (origin, _never) = patient("one");
    let back = |more: &str| format!(" server s1 127.0.0.1:{}\n{more}", origin.port());
    let old = format!(
        " server s0 127.0.0.1:{}\n use-server s0 if TRUE\n",
        origin.port()
    );
    let global = "global\n hard-stop-after 1s\n";
    let fixture = Fixture::start(&format!("{global}{}", site("", &back(&old))));
    let mut slow = ask_slowly(&fixture, &origin);
    let plan = fixture.api.ask("show plan");
    assert!(plan.contains("Plan: nothing"), "{plan}");
    fixture.apply_well(&format!("{global}{}", site("", &back(""))));
    // It may finish for a second; the origin takes longer. Then it is closed without a response.
    assert!(slow.rest().is_empty());
}

#[test]
fn proxies_that_commands_add_have_numbers_of_their_own() {
    let origin = Origin::saying("hello");
    let fixture = Fixture::start(&site(
        "",
        &format!(" server s1 127.0.0.1:{}\n", origin.port()),
    ));
    for name in ["b1", "b2"] {
        let said = fixture.api.ask(&format!("add backend {name} mode http"));
        assert!(said.contains("registered"), "{said}");
    }
    let rows = ["www/FRONTEND", "app/BACKEND", "b1/BACKEND", "b2/BACKEND"];
    let mut ids = rows.map(|row| fixture.api.stat_of(row, "iid"));
    ids.sort();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    let said = fixture
        .api
        .ask("add backend b3 <<\n mode http\nfrontend other\n bind :1\n\n");
    assert!(said.contains("begins another"), "{said}");
}

#[test]
fn a_backend_that_commands_add_takes_nothing_before_it_is_published() {
    let (origin, other) = (Origin::saying("old"), Origin::saying("new"));
    let back = format!(" server s1 127.0.0.1:{}\n", origin.port());
    let fixture = Fixture::start(&site(" use_backend %[req.hdr(x-to)]\n", &back));
    let ask = || {
        let mut client = fixture.client();
        client.send("GET / HTTP/1.1\r\nHost: test\r\nX-To: fresh\r\n\r\n");
        client.response().text()
    };
    let lines = format!(" mode http\n server n1 127.0.0.1:{}\n", other.port());
    let said = fixture
        .api
        .ask(&format!("add backend fresh from web <<\n{lines}\n"));
    assert!(said.contains("registered"), "{said}");
    assert_eq!(ask(), "old");
    assert!(
        fixture
            .api
            .ask("publish backend fresh")
            .contains("published")
    );
    assert_eq!(ask(), "new");
    assert!(
        fixture
            .api
            .ask("unpublish backend fresh")
            .contains("unpublished")
    );
    assert_eq!(ask(), "old");
}

#[test]
fn a_reload_publishes_what_the_file_has() {
    let (origin, other) = (Origin::saying("old"), Origin::saying("new"));
    let back = format!(
        " server s1 127.0.0.1:{}\nbackend fresh\n server n1 127.0.0.1:{}\n",
        origin.port(),
        other.port()
    );
    let fixture = Fixture::start(&site(" use_backend fresh\n", &back));
    assert_eq!(fixture.client().get("/").text(), "new");
    let said = fixture.api.ask("unpublish backend fresh");
    assert!(said.contains("unpublished"), "{said}");
    assert_eq!(fixture.client().get("/").text(), "old");
    let said = fixture.api.ask("reload");
    assert!(
        said.contains("- override backend fresh published"),
        "{said}"
    );
    assert_eq!(fixture.client().get("/").text(), "new");
}

#[test]
fn a_log_target_that_cannot_be_opened_is_named_to_who_asked() {
    let origin = Origin::saying("hello");
    let back = format!(" server s1 127.0.0.1:{}\n", origin.port());
    let fixture = Fixture::start(&site("", &back));
    let answer = fixture.apply(&site(" log fd@999 local0", &back));
    assert!(answer.contains("cannot log to 'fd@999': "), "{answer}");
    assert_eq!(fixture.client().get("/").text(), "hello");
    // At a start it is reported too.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("haproxy.cfg");
    let text = format!(
        "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
         frontend www\n bind 127.0.0.1:{}\n log fd@999 local0\n default_backend app\n\
         backend app\n{back}",
        free_port()
    );
    fs::write(&file, text).expect("the file is written");
    let output = Command::new(Program::ballast().path())
        .args(["-db", "-f"])
        .arg(&file)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("[haproxy.main()] cannot log to 'fd@999': "),
        "{said}"
    );
}
