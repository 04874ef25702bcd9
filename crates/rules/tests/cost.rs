//! What rules cost, in nanoseconds each. It measures, and is not part of `make test`:
//!
//! ```text
//! cargo test --release -p ballast-rules --test cost -- --ignored --nocapture
//! ```

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing, and `common` is shared with other files of tests"
)]

mod common;

use ballast_expr::{Facts, Value, VarName};
use ballast_message::{Request, Response};
use ballast_rules::{LogLevel, RuleSetKind, Transaction, Workspace, run};
use common::{Fake, rules};

/// Rules of one kind in the list.
const COPIES: u32 = 50;
const ROUNDS: u32 = 20_000;

/// Lines of `http-request`.
const LINES: [&str; 9] = [
    "set-header X-A fixed",
    "set-header X-A %[src]",
    "set-var(txn.a) req.hdr(host),lower",
    "set-var(txn.a) path,regsub(^/some,/other)",
    "deny if { path_beg /admin /private }",
    "deny if { hdr(host) -i bad.example }",
    "deny if { src 10.0.0.0/8 172.16.0.0/12 }",
    "deny if METH_GET { path_end .php .cgi }",
    "deny unless { hdr(host) -m found }",
];

/// A transaction with one variable.
struct Exchange {
    fake: Fake,
    value: Vec<u8>,
}

impl Transaction for Exchange {
    fn with_facts(&self, question: &mut dyn FnMut(&dyn Facts)) {
        question(&self.fake);
    }
    fn request_mut(&mut self) -> Option<&mut Request> {
        self.fake.request.as_mut()
    }
    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
        (&mut self.fake.answer, &mut self.fake.body)
    }
    fn set_var(&mut self, _: &VarName, value: Option<Value<'_>>) {
        self.value.clear();
        if let Some(value) = value {
            value.append_to(&mut self.value);
        }
    }
    fn capture_request(&mut self, _: usize, _: &[u8]) {}
    fn capture_response(&mut self, _: usize, _: &[u8]) {}
    fn set_log_level(&mut self, _: LogLevel) {}
    fn rewrite_failed(&mut self) {
        self.fake.failures += 1;
    }
}

/// Nanoseconds that this thread was on a processor.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(0)
}

#[test]
#[ignore = "it measures: the numbers are those of the machine"]
fn what_a_rule_costs() {
    for line in LINES {
        let list = rules(RuleSetKind::HttpRequest, &vec![line; COPIES as usize]);
        let headers = [("Host", "www.example.com"), ("X-Ip", "192.0.2.1")];
        let mut exchange = Exchange {
            fake: Fake::asking("GET", "/some/path?a=1", &headers),
            value: Vec::new(),
        };
        let mut workspace = Workspace::new();
        run(&list, &mut exchange, &mut workspace);
        let began = processor_ns();
        for _ in 0..ROUNDS {
            run(&list, &mut exchange, &mut workspace);
        }
        let each = processor_ns().saturating_sub(began) / u64::from(ROUNDS * COPIES);
        println!("{line:<50} {each:>5} ns");
    }
}
