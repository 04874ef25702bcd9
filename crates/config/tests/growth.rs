//! A file with four times the lines is read in about four times the time, and the model keeps no more of
//! them than it needs.

use std::fmt::Write as _;
use std::fs;

use ballast_config::{EmptyMachine, Options, StandInMachine, load};
use ballast_model::{CopyOnWrite, ServerSettings};

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

/// The settings of the servers `s0`, `s1` ... of one backend, whose lines end in these words.
fn settings_of(words: &[&str], head: &str) -> Vec<CopyOnWrite<ServerSettings>> {
    let lines = words.iter().enumerate();
    let lines = lines.map(|(n, words)| format!(" server s{n} 192.0.2.{}:80 {words}\n", n + 1));
    let text = format!("{HEAD}backend b\n{head}{}", lines.collect::<String>());
    let files = vec![("t.cfg".to_owned(), text.into_bytes())];
    let loaded = load(files, &StandInMachine(EmptyMachine), Options::default());
    let backend = loaded.config.backend("b").expect("it was written");
    let servers = &backend.servers;
    assert_eq!(servers.len(), words.len());
    assert!(
        servers.capacity() <= words.len(),
        "it keeps memory of its text"
    );
    servers.iter().map(|one| one.settings.clone()).collect()
}

#[test]
fn servers_whose_lines_say_the_same_share_what_they_say() {
    let all_shared = |settings: &[CopyOnWrite<ServerSettings>]| {
        settings.iter().all(|one| one.is_shared_with(&settings[0]))
    };
    assert!(all_shared(&settings_of(
        &["", "weight 3", "backup cookie c"],
        ""
    )));
    let checks = ["check inter 7s", "check inter 7s id 9"];
    let checks = settings_of(&checks, " default-server rise 5\n");
    assert!(all_shared(&checks) && checks[0].checks.rise == 5);
    let different = settings_of(&["maxconn 1", "maxconn 2", "maxconn 2", ""], "");
    let limits: Vec<u32> = different
        .iter()
        .map(|one| one.connection_count_max)
        .collect();
    assert_eq!(limits, [1, 2, 2, 0]);
    assert!(all_shared(&different[1..3]) && !all_shared(&different));
}
