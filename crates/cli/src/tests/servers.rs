//! Servers, frontends and limits, changed by command.

use std::collections::HashSet;

use super::{limits, worker};

#[test]
fn weights_states_and_addresses_are_set_and_shown() {
    let server = worker("set-server", limits(), 2);
    let done = "\n";
    for (command, answer) in [
        ("set server be/s1 weight 50%", done),
        ("get weight #2/#1", "5 (initial 10)\n\n"),
        ("get weight #2/#9", "No such server.\n\n"),
        ("get weight #x/s1", "No such backend.\n\n"),
        ("get weight be/s1", "5 (initial 10)\n\n"),
        (
            "set weight be/s1 300",
            "Absolute weight can only be between 0 and 256 inclusive.\n\n",
        ),
        ("set server be/s1 weight 1 now", done),
        ("set server be/s1 state maint", done),
        ("set server be/s1 state drain", done),
        ("enable server be/s1", done),
        ("disable server be/", "Require 'backend/server'.\n\n"),
        (
            "set server be/s1 addr 127.0.0.2 port 80",
            "IP changed from '127.0.0.1' to '127.0.0.2', port changed from '9' to '80' by 'stats \
             socket command'\n\n",
        ),
        (
            "set server be/s1 addr 127.0.0.2 port 70000",
            "problem converting port '70000' to an int\n\n",
        ),
        (
            "set server be/s1 addr 127.0.0.3",
            "IP changed from '127.0.0.2' to '127.0.0.3' by 'stats socket command'\n\n",
        ),
        ("set maxconn server be/s1 -4", done),
        (
            "set dynamic-cookie-key backend be",
            "String value expected.\n\n",
        ),
        ("shutdown sessions server be/s2", done),
    ] {
        assert_eq!(server.ask(&format!("{command}\n")), answer, "{command}");
    }
    let state = server.ask("show servers state be\n");
    assert!(state.contains("\n2 be 1 s1 127.0.0.3 2 0 1 10 "), "{state}");
    let connections = server.ask("show servers conn be\n");
    assert!(connections.contains("\nbe/s1 2/1 127.0.0.3 80 - 5000 0 0 0 0 0 -1 0"));
}

#[test]
fn what_changes_asks_for_the_highest_level() {
    let server = worker("set-levels", limits(), 1);
    let denied = "\nPermission denied\n\n";
    for command in [
        "set server be/s1 weight 1",
        "set weight be/s1 1",
        "enable server be/s1",
        "disable health be/s1",
        "enable agent be/s1",
        "disable frontend fe",
        "shutdown frontend fe",
        "enable dynamic-cookie backend be",
        "set dynamic-cookie-key backend be k",
        "set maxconn server be/s1 1",
        "set maxconn frontend fe 1",
        "set maxconn global 1",
        "set rate-limit connections global 1",
        "shutdown sessions server be/s1",
        "clear counters all",
    ] {
        let answer = server.ask(&format!("operator; {command}\n"));
        assert_eq!(answer, denied, "{command}");
    }
    assert_eq!(server.ask("operator; clear counters\n"), "\n\n");
    assert_eq!(server.ask("user; clear counters\n"), denied);
    assert_eq!(
        server.ask("user; get weight be/s1\n"),
        "\n10 (initial 10)\n\n"
    );
}

#[test]
fn severities_are_those_of_the_oracle() {
    let server = worker("set-severity", limits(), 1);
    let mut seen = HashSet::new();
    for (command, mark) in [
        ("set server be/s1 weight x", "[3]: "),
        ("set server be/s1 addr x", "[4]: "),
        ("set server be/s1 check-port 1", "[4]: "),
        ("set server be/s1 agent up", "[3]: "),
        ("disable frontend none", "[3]: "),
    ] {
        let answer = server.ask(&format!("set severity-output number; {command}\n"));
        assert!(answer.starts_with(&format!("\n{mark}")), "{answer}");
        seen.insert(mark);
    }
    assert_eq!(seen.len(), 2);
}
