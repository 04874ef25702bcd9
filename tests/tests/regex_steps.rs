//! A search for a regular expression that takes more steps than `tune.regex.max-steps`: it does not
//! match, it is counted and logged, and the worker goes on.

use ballast_tests::{Client, LogSink, Program, Proxy, free_port};

#[test]
fn a_search_that_takes_too_long_is_given_up_counted_and_logged() {
    let sink = LogSink::start();
    let port = free_port();
    let text = format!(
        "global\n    nbthread 1\n    log 127.0.0.1:{} local0\n    tune.regex.max-steps 100000\n\
         defaults\n    mode http\n    timeout connect 5s\n    timeout client 5s\n    timeout server 5s\n\
         frontend web\n    bind 127.0.0.1:{port}\n    http-request use-service prometheus-exporter if {{ path /metrics }}\n    \
         http-request return status 403 if {{ req.fhdr(x-a) -m reg (?<!b)(a+)+b }}\n    \
         http-request return status 200\n",
        sink.port()
    );
    let proxy = Proxy::start(&Program::ballast(), &text, &[port]);
    let status_of_values = |values: &[&str]| {
        let fields: String = (values.iter())
            .map(|value| format!("x-a: {value}\r\n"))
            .collect();
        let mut client = Client::connect(port);
        client.send(format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n"));
        client.response().status
    };
    let status = |value: &str| status_of_values(&[value]);
    assert_eq!(status("xaab"), 403);
    assert_eq!(status(&format!("{}cb", "a".repeat(10_000))), 200);
    assert_eq!(status("xaab"), 403);
    // A client says how many values there are: those behind the first share the steps of one search.
    let hard = format!("{}cb", "a".repeat(3_000));
    assert_eq!(status_of_values(&[&hard, "xaab"]), 403);
    assert_eq!(status_of_values(&[&hard, &hard, "xaab"]), 200);
    let metrics = Client::get_once(port, "/metrics?scope=global").text();
    assert!(
        metrics.contains("\nballast_process_regex_exhausted_total 5\n"),
        "{metrics}"
    );
    let line = sink.line_with("tune.regex.max-steps");
    assert!(
        line.contains("searches for regular expressions") && line.contains("'(?<!b)(a+)+b'"),
        "{line}"
    );
    drop(proxy);
}
