//! The commands that tools rely on are all there.

use std::path::Path;

use ballast_model::CliLevel;
use ballast_stick::{Key, KeyType, Table, TableSettings};

use super::{limits, worker};
use crate::{TableAction, commands_of_master, commands_of_worker, table_answer};

#[test]
fn every_command_that_must_be_known_is() {
    let table =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/keyword-usage.md");
    let Ok(text) = std::fs::read_to_string(&table) else {
        eprintln!("SKIPPED: no table of commands at {}", table.display());
        return;
    };
    let section = text
        .split("\n### ")
        .find(|section| section.starts_with("A.8 "))
        .expect("the table has the section of commands");
    let mut seen = 0;
    let mut missing = Vec::new();
    for line in section.lines() {
        let Some((command, rest)) = line
            .strip_prefix("- `")
            .and_then(|line| line.split_once('`'))
        else {
            continue;
        };
        if !rest.ends_with("must") {
            continue;
        }
        seen += 1;
        let known = |families: &[&[crate::Command]]| {
            let mut rows = families.iter().flat_map(|family| family.iter());
            rows.any(|row| row.words.join(" ") == command || row.words == [command])
        };
        let has = |mark: &str| rest.contains(mark);
        // Answered before rows are looked for, in a form of its own.
        let here = command == "_getsocks"
            || (!has("WORKER") || known(commands_of_worker()))
                && (!has("MASTER") || known(commands_of_master()));
        if !here {
            missing.push(command);
        }
    }
    assert!(seen > 80, "only {seen} commands were read from the table");
    assert!(missing.is_empty(), "not known: {missing:?}");
}

#[test]
fn modes_open_commands_and_their_help() {
    let server = worker("modes", limits(), 1);
    assert_eq!(
        server.ask("set var proc.a int(1); experimental-mode; expert-mode\n"),
        "This command is restricted to experimental mode only.\n\n\
         experimental-mode is OFF\n\nexpert-mode is OFF\n\n"
    );
    assert_eq!(
        server.ask(
            "experimental-mode on; set var proc.a int(1); get var proc.a; experimental-mode\n"
        ),
        "\n\nproc.a: type=sint value=<1>\n\nexperimental-mode is ON\n\n"
    );
    assert!(!server.ask("help set\n").contains("set var"));
    assert!(
        server
            .ask("experimental-mode on; help set\n")
            .contains("\n  set var <name>")
    );
    assert_eq!(
        server.ask("operator; experimental-mode on; expert-mode on\n"),
        "\nPermission denied\n\nPermission denied\n\n"
    );
    assert_eq!(
        server.ask("debug dev exit\n"),
        "This command is restricted to expert mode only.\n\n"
    );
    assert!(
        server
            .ask("expert-mode on; debug dev exit\n")
            .contains("nothing was done")
    );
}

#[test]
fn variables_are_set_by_expressions_and_formats() {
    let server = worker("vars", limits(), 1);
    let ask =
        |commands: &str| server.ask(&format!("experimental-mode on; {commands}\n"))[1..].to_owned();
    for (commands, expected) in [
        ("get var", "Missing process-wide variable identifier.\n\n"),
        ("get var proc.no", "Variable not found.\n\n"),
        ("get var txn.a", "Variable not found.\n\n"),
        (
            "set var proc.x",
            "Missing either 'expr', 'fmt' or expression.\n\n",
        ),
        (
            "set var sess.x int(1)",
            "'set var': cannot set variable 'sess.x', only scope 'proc' is permitted here.\n\n",
        ),
        (
            "set var proc.x int(1) y",
            "'set var': arg type must be either 'expr' or 'fmt' but got 'int(1)'.\n\n",
        ),
        (
            "set var proc.x expr str(ab),length; get var proc.x",
            "\nproc.x: type=sint value=<2>\n\n",
        ),
        (
            "set var proc.x fmt a%%b%[int(4)]; get var proc.x",
            "\nproc.x: type=str value=<a%b4>\n\n",
        ),
        (
            "set var proc.y bool(true); get var proc.y",
            "\nproc.y: type=bool value=<1>\n\n",
        ),
        (
            "set var proc.z bin(410a42); show vars",
            "\nproc.x: type=str value=<a%b4>\n\
          proc.y: type=bool value=<1>\nproc.z: type=bin value=<A\\nB>\n\n",
        ),
    ] {
        assert_eq!(ask(commands), expected, "{commands}");
    }
    for wrong in [
        "foo(1)",
        "src",
        "hdr(x)",
        "int(1),map(a)",
        "var(proc.nothing)",
    ] {
        let answer = ask(&format!("set var proc.w {wrong}; get var proc.w"));
        assert!(
            answer.ends_with("Variable not found.\n\n"),
            "{wrong}: {answer}"
        );
        assert!(answer.len() > 30, "{wrong}: {answer}");
    }
}

#[test]
fn answers_are_objects_when_asked_for() {
    let server = worker("json", limits(), 1);
    let answer = server.ask(
        "set output json; show version; get weight be/x; no such; show stat; get weight be/s1; \
         prompt n; set output text; show version\n",
    );
    let lines: Vec<&str> = answer.split("\n\n").collect();
    assert_eq!(
        lines[..4],
        [
            r#"{"status":"ok","severity":"info","command":"set output json","message":""}"#,
            r#"{"status":"ok","severity":"info","command":"show version","message":"9.9"}"#,
            r#"{"status":"error","severity":"err","command":"get weight be/x","message":"No such server."}"#,
            r#"{"status":"error","severity":"err","command":"no such","message":"Unknown command."}"#,
        ]
    );
    let stat = lines[4];
    let head = r##"{"status":"ok","severity":"info","command":"show stat","report":"# pxname,"##;
    assert!(
        stat.starts_with(head) && stat.ends_with(r#"\n"}"#),
        "{stat}"
    );
    assert!(
        lines[5].ends_with(r#""report":"10 (initial 10)"}"#),
        "{}",
        lines[5]
    );
    assert_eq!(lines[7..], ["\n9.9", ""]);
    assert_eq!(
        server.ask("set output x\n"),
        "one of 'json', 'text' is a required argument\n\n"
    );
}

#[test]
fn counters_of_one_server_are_cleared() {
    let server = worker("clear", limits(), 1);
    for (command, expected) in [
        ("clear counters server be/s1", "\n"),
        ("clear counters server be/s1 force", "\n"),
        ("clear counters server be/none", "No such server.\n\n"),
        ("clear counters server", "Require 'backend/server'.\n\n"),
        (
            "clear counters server be/s1 x",
            "Expects '<backend>/<server>' and 'force' at most.\n\n",
        ),
        (
            "operator; clear counters server be/s1",
            "\nPermission denied\n\n",
        ),
    ] {
        assert_eq!(server.ask(&format!("{command}\n")), expected, "{command}");
    }
}

#[test]
fn activity_is_told_by_worker() {
    let server = worker("activity", limits(), 1);
    assert!(server.ask("show activity 0\n").contains("\ntasks: "));
    assert!(!server.ask("show activity 0\n").contains('['));
    assert!(server.ask("show activity -1\n").contains(" ]\n"));
    assert_eq!(server.ask("show activity 2\n"), "There are 1 threads.\n\n");
    assert_eq!(
        server.ask("show activity x\n"),
        "Expects a thread number, 0 or -1.\n\n"
    );
}

#[test]
fn names_are_hidden_from_who_asks_for_it() {
    let server = worker("anon", limits(), 1);
    assert_eq!(
        server
            .ask("show anon; set anon on 7; show anon; user; show anon; set anon off; show anon\n"),
        "Anonymized mode disabled\n\n\nAnonymized mode enabled\nKey : 7\n\n\n\
         Anonymized mode enabled\n\n\nAnonymized mode disabled\n\n"
    );
    let hidden = |key: &str| server.ask(&format!("set anon on {key}; show servers state\n"));
    let plain = server.ask("show servers state\n");
    assert!(plain.contains("\n2 be 1 s1 127.0.0.1 "), "{plain}");
    let seven = hidden("7");
    for secret in [" be ", " s1 ", "127.0.0.1"] {
        assert!(!seven.contains(secret), "{secret} in {seven}");
    }
    assert_eq!(seven, hidden("7"));
    assert_ne!(seven, hidden("8"));
    // A key for all who choose none; another session sees it.
    assert_eq!(server.ask("set anon global-key 7\n"), "\n");
    assert_eq!(hidden(""), seven);
    for command in ["set anon on x", "set anon on 0"] {
        let answer = server.ask(&format!("{command}\n"));
        assert!(
            answer.contains("expects a key between"),
            "{command}: {answer}"
        );
    }
    let denied = server.ask("user; set anon global-key 1\n");
    assert_eq!(denied, "\nPermission denied\n\n");
}

#[test]
fn what_looks_at_the_program_is_for_operators() {
    let server = worker("look", limits(), 1);
    let libraries = server.ask("show libs\n");
    let own = std::env::current_exe().unwrap();
    assert!(libraries.contains(&*own.to_string_lossy()), "{libraries}");
    let told = server.ask("show dev\n");
    assert!(
        told.contains("\n  version: 9.9\n") && told.contains("Process info\n"),
        "{told}"
    );
    for command in [
        "show libs",
        "show quic",
        "show ssl cert",
        "show events buf0",
        "show trace h1",
    ] {
        let answer = server.ask(&format!("user; {command}\n"));
        assert_eq!(answer, "\nPermission denied\n\n", "{command}");
    }
    for command in [
        "new ssl cert x",
        "set ssl cert x",
        "show ssl crt-list",
        "del ssl ca-file x",
    ] {
        let answer = server.ask(&format!("operator; {command}\n"));
        assert_eq!(answer, "\nPermission denied\n\n", "{command}");
    }
    assert_eq!(
        server.ask("new ssl cert x\n"),
        "New empty certificate store 'x'!\n\n"
    );
    assert_eq!(
        server.ask("set ssl cert a <<\npem\n\n"),
        "Can't replace a certificate which is not referenced by the configuration!\n\
         Can't update a!\n\n"
    );
}

#[test]
fn entries_of_tables_are_for_operators() {
    let settings = TableSettings::new(KeyType::String { len: 8 }, 4);
    let table = Table::new("t", settings, 1);
    drop(table.track(Key::Bytes(b"bad"), 0));
    let answer = |level, action, words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        format!("{:?}", table_answer(level, action, &table, &words, 0))
    };
    for action in [TableAction::Clear, TableAction::Set, TableAction::Show] {
        assert_eq!(
            answer(CliLevel::User, action, &["key", "bad"]),
            "Message(Error, \"Permission denied\")"
        );
    }
    assert_eq!(
        answer(CliLevel::User, TableAction::Show, &[]),
        "Report(\"# table: t, type: string, size:4, used:1\\n\
         # contents not dumped due to insufficient privileges\\n\")"
    );
    let one = answer(CliLevel::Operator, TableAction::Show, &["key", "bad"]);
    assert!(one.contains("key=bad "), "{one}");
}
