//! A file with four times the lines is read in about four times the time.

use std::fmt::Write as _;
use std::fs;

use ballast_config::{EmptyMachine, Options, StandInMachine, load};

/// The start of each text.
const HEAD: &str =
    "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n";

/// Linear is 4, quadratic 16. The limit leaves room for a busy machine.
const RATIO_MAX: f64 = 10.0;

const LINES: usize = 1500;

/// Processor time of this thread, in nanoseconds.
fn spent() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let spent = text.split(' ').next().map(str::parse);
    spent.expect("a word").expect("a number")
}

fn cost(text: &str) -> f64 {
    let before = spent();
    let files = vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
    let loaded = load(files, &StandInMachine(EmptyMachine), Options::default());
    drop(loaded);
    spent() - before
}

fn grows_linearly(name: &str, text: impl Fn(usize) -> String) {
    let (small, large) = (text(LINES), text(4 * LINES));
    let mut ratio = f64::MAX;
    for _ in 0..5 {
        ratio = ratio.min(cost(&large) / cost(&small));
        if ratio < RATIO_MAX {
            return;
        }
    }
    assert!(
        ratio < RATIO_MAX,
        "{name}: four times the lines cost {ratio:.1} times as much"
    );
}

/// One part of the text for each number.
fn each(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = write!(text, "{}", piece(n));
        text
    })
}

#[test]
fn what_a_file_costs_grows_with_its_lines() {
    let backend = |n| format!("backend b{n}\n server s 192.0.2.1:80\n");
    grows_linearly("backends", |count| {
        format!("{HEAD}{}", each(count, backend))
    });
    grows_linearly("routes", |count| {
        let routes = each(count, |n| format!(" use_backend b{n} if {{ path /{n} }}\n"));
        let backends = each(count, backend);
        format!("{HEAD}frontend f\n bind :80\n{routes}{backends}")
    });
    grows_linearly("defaults", |count| {
        let pair = |n| format!("defaults d{n}\n mode http\nbackend b{n} from d{n}\n");
        format!("{HEAD}{}", each(count, pair))
    });
    grows_linearly("numbers", |count| {
        let numbered = |n| format!(" server s{n} 192.0.2.1:80 id {}\n", count - n);
        format!("{HEAD}backend b\n{}", each(count, numbered))
    });
    grows_linearly("chosen servers", |count| {
        let server = |n| format!(" server s{n} 192.0.2.1:80\n use-server s{n} if FALSE\n");
        format!("{HEAD}backend b\n{}", each(count, server))
    });
    grows_linearly("a chain of servers that follow", |count| {
        let next = |n| format!(" server s{n} 192.0.2.1:80 track s{}\n", n + 1);
        let servers = each(count, next);
        format!("{HEAD}backend b\n{servers} server s{count} 192.0.2.1:80 check\n")
    });
    grows_linearly("a circle of servers that follow", |count| {
        let next = |n| format!(" server s{n} 192.0.2.1:80 track b/s{}\n", (n + 1) % count);
        format!("{HEAD}backend b\n{}", each(count, next))
    });
    grows_linearly("errors", |count| {
        format!(
            "{HEAD}backend b\n{}",
            each(count, |n| format!(" timeout x{n}\n"))
        )
    });
    grows_linearly("warnings", |count| {
        let proxy = |n| format!("backend b{n}\n mode tcp\n http-request deny\n");
        format!("{HEAD}{}", each(count, proxy))
    });
    grows_linearly("expressions", |count| {
        let asks = |n| format!(" acl a{n} nbsrv(b{n}) gt 1\n http-request deny if a{n}\n");
        let backends = each(count, backend);
        format!(
            "{HEAD}frontend f\n bind :80\n{}{backends}",
            each(count, asks)
        )
    });
}
