//! The two lists of the VTC scripts, parsed by a complete TOML parser. The scripts themselves are
//! run by `tests/conformance/run`, which `make test` calls.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use ballast_tests::repository;

#[test]
fn the_lists_of_deviations_and_gaps_are_toml() {
    for list in ["deviations.toml", "gaps.toml"] {
        let path = repository().join("tests/conformance").join(list);
        let text = fs::read_to_string(&path).expect("the list is there");
        let rows: BTreeMap<String, String> =
            toml::from_str(&text).expect("each row is `script = \"reason\"`");
        let count = format!("({} today)", rows.len());
        let readme = fs::read_to_string(repository().join("README.md")).expect("it is there");
        let mut named = readme
            .lines()
            .filter(|line| line.contains(&format!("/{list})")));
        assert!(
            named.any(|line| line.contains(&count)),
            "README.md tells how many rows {list} has: {count}"
        );
        for (script, reason) in rows {
            let file = repository().join(format!("tests/conformance/{script}.vtc"));
            assert!(file.is_file(), "{list} names {script}: no such script");
            assert!(reason.len() >= 8, "{list}: {script} needs a reason");
        }
    }
}

/// Without it only the last command of a block is judged: a script that asks first and tidies up last
/// could not fail.
#[test]
fn a_shell_block_ends_with_the_first_command_that_fails() {
    let scripts = repository().join("tests/conformance");
    let mut offenders = Vec::new();
    for entry in fs::read_dir(scripts).expect("the scripts are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "vtc") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a script is text");
        let mut lines = (1..).zip(text.lines()).peekable();
        while let Some((number, line)) = lines.next() {
            let opens = line.trim_start().starts_with("shell") && line.ends_with('{');
            let is_strict = lines
                .peek()
                .is_some_and(|(_, next)| next.trim() == "set -e");
            if opens && !is_strict {
                offenders.push(format!("{}:{number}", path.display()));
            }
        }
    }
    assert!(
        offenders.is_empty(),
        "the first line of a shell block is `set -e`:\n{}",
        offenders.join("\n")
    );
}

/// A program that a script leaves running would answer, and log to, the next script that uses its
/// ports.
#[test]
fn what_a_script_leaves_running_ends_with_it_and_its_network_is_its_own() {
    let tools = std::env::temp_dir().join(format!("ballast-runner-{}", std::process::id()));
    fs::create_dir_all(&tools).expect("a directory");
    let varnishtest = tools.join("varnishtest");
    let left = tools.join("left");
    // It stands for a script whose program continues in a session of its own, as daemons do.
    let text = format!(
        "#!/bin/sh\nsetsid sleep 600 &\necho $! $(readlink /proc/self/ns/net) > {}\n",
        left.display()
    );
    fs::write(&varnishtest, text).expect("a file");
    fs::set_permissions(&varnishtest, fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = std::env::var("PATH").expect("there is a PATH");
    let run = Command::new(repository().join("tests/conformance/run"))
        .args(["--program", "/bin/true", "log_sampling"])
        .env("PATH", format!("{}:{path}", tools.display()))
        .output()
        .expect("the runner runs");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let left = fs::read_to_string(left).expect("the script ran");
    fs::remove_dir_all(&tools).expect("it is ours");
    assert!(run.status.success(), "{said}");
    let (process, network) = left.trim().split_once(' ').expect("two words");
    // A zombie has no command line.
    let words = fs::read(Path::new("/proc").join(process).join("cmdline")).unwrap_or_default();
    assert!(words.is_empty(), "it still runs");
    let ours = fs::read_link("/proc/self/ns/net").expect("a link");
    assert!(
        ours != Path::new(network) || said.contains("one script at a time"),
        "{said}"
    );
}

/// What an older HAProxy does by chance is no error there, whichever way it went; where a mark
/// says that it must fail, passing is one.
#[test]
fn a_mark_that_turns_out_wrong_is_an_error_unless_it_speaks_of_chance() {
    let tools = std::env::temp_dir().join(format!("ballast-marks-{}", std::process::id()));
    fs::create_dir_all(&tools).expect("a directory");
    // An old HAProxy, and a varnishtest with which every script passes.
    let programs = [
        ("haproxy", "echo HAProxy version 2.6.1"),
        ("varnishtest", "true"),
    ];
    for (name, says) in programs {
        fs::write(tools.join(name), format!("#!/bin/sh\n{says}\n")).expect("a file");
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).expect("its mode");
    }
    let path = std::env::var("PATH").expect("there is a PATH");
    let run = |script: &str| {
        let run = Command::new(repository().join("tests/conformance/run"))
            .arg("--program")
            .arg(tools.join("haproxy"))
            .arg(script)
            .env("PATH", format!("{}:{path}", tools.display()))
            .output()
            .expect("the runner runs");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        (run.status.code(), said)
    };
    let (status, said) = run("tcp_timeout_both");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("0 passed, 0 failed, 1 skipped"), "{said}");
    let (status, said) = run("tcp_switch_mode");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the mark 'since' is wrong"), "{said}");
    fs::remove_dir_all(&tools).expect("it is ours");
}

/// SIGINT ends the programs of a script, and a daemon that has ended is gone, whoever calls.
#[test]
fn a_script_is_not_told_to_ignore_signals_and_its_daemons_are_collected() {
    let alone = repository().join("tests/conformance/alone");
    let path = std::env::temp_dir().join(format!("ballast-alone-{}", std::process::id()));
    // The second shell ends at once; the third waits for that and writes down its parent.
    let daemon = "while kill -0 $0; do sleep 0.01; done; grep PPid /proc/$$/status > $PLACE";
    let script = "grep SigIgn /proc/self/status; sh -c 'sh -c \"$DAEMON\" $$ & true'; \
                  until [ -s $PLACE ]; do sleep 0.01; done";
    let run = Command::new("sh")
        .args(["-c", "trap '' INT; echo $$; exec \"$0\" sh -c \"$1\""])
        .arg(alone)
        .arg(script)
        .env("DAEMON", daemon)
        .env("PLACE", &path)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let parent = fs::read_to_string(&path).expect("the daemon has written its parent");
    fs::remove_file(&path).expect("it is ours");
    let (first, ignored) = said.split_once("\nSigIgn:").expect("two lines");
    assert_eq!(parent.trim(), format!("PPid:\t{first}"));
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    assert_eq!(ignored & 2, 0, "SIGINT, the second signal");
}
