//! Log profiles and steps over changes: what the new text says is in force from the next request
//! on, also on connections that were open before, and no line is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ballast_tests::fixture::Fixture;
use ballast_tests::{Client, LogSink, Origin};

/// A site that logs to `sink`, with a profile of these lines.
fn site(sink: &LogSink, front: &str, profile: &str, origin: &Origin) -> String {
    format!(
        "frontend www
    bind 127.0.0.1:PORT
    log 127.0.0.1:{} format raw profile short local0
    log-format \"own %[capture.req.uri] %U\"
    {front}
    default_backend app
backend app
    server one 127.0.0.1:{}
log-profile short
    {profile}
",
        sink.port(),
        origin.port()
    )
}

/// The next line, without its end.
fn line(sink: &LogSink) -> String {
    sink.line().trim_end().to_owned()
}

fn ask(client: &mut Client, path: &str) {
    assert_eq!(client.get(path).status, 200, "{path}");
}

#[test]
fn a_changed_profile_is_in_force_from_the_next_request_on() {
    let (origin, sink) = (Origin::saying("one"), LogSink::start());
    let text = |front: &str, profile: &str| site(&sink, front, profile, &origin);
    let fixture = Fixture::start(&text("", "on close format \"A %[capture.req.uri]\""));
    let mut client = fixture.client();
    ask(&mut client, "/1");
    assert_eq!(line(&sink), "A /1");

    fixture.apply_well(&text("", "on close format \"B %[capture.req.uri]\""));
    ask(&mut client, "/2");
    assert_eq!(line(&sink), "B /2");

    // Steps of the frontend: three lines of the profile, in order.
    let steps = "log-steps request,response,close";
    fixture.apply_well(&text(steps, "on any format \"%OG %[capture.req.uri]\""));
    ask(&mut client, "/3");
    for step in ["txn_request", "txn_response", "txn_close"] {
        assert_eq!(line(&sink), format!("{step} /3"));
    }

    // A profile that says nothing of the step leaves the line to the frontend.
    fixture.apply_well(&text("", "on request drop"));
    ask(&mut client, "/4");
    assert!(line(&sink).starts_with("own /4 "));

    // A rule that a command adds may name a profile of the file.
    let rule = "http-request do-log profile short if { path /5 }";
    let said = fixture.api.ask(&format!("add rule frontend www {rule}"));
    assert!(said.contains("Rule added."), "{said}");
    ask(&mut client, "/5");
    assert_eq!(line(&sink), "own /5 0");
    assert!(line(&sink).starts_with("own /5 "));
}

#[test]
fn no_line_is_lost_while_profiles_change() {
    const ROUND_COUNT: usize = 20;
    let (origin, sink) = (Origin::saying("one"), LogSink::start());
    let text = |round: usize| {
        let profile = format!("on close format \"{round} %[capture.req.uri]\"");
        site(&sink, "", &profile, &origin)
    };
    let fixture = Fixture::start(&text(0));
    let is_over = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut client, mut count) = (fixture.client(), 0_usize);
            let mut rounds = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                ask(&mut client, &format!("/{count}"));
                let line = line(&sink);
                let (round, path) = line.split_once(' ').expect("two words");
                assert_eq!(path, format!("/{count}"));
                rounds.push(round.parse::<usize>().expect("the round of a profile"));
                count += 1;
            }
            rounds
        });
        for round in 1..=ROUND_COUNT {
            fixture.apply_well(&text(round));
        }
        is_over.store(true, Ordering::Relaxed);
        asking.join().expect("every request has its line")
    });
    assert!(asked.is_sorted(), "no former profile comes back: {asked:?}");
    let mut client = fixture.client();
    ask(&mut client, "/last");
    assert_eq!(line(&sink), format!("{ROUND_COUNT} /last"));
}
