//! Tests that need a process of their own: inherited descriptors, forking, changing the user,
//! another root directory.

use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::process::{Command, exit};

use ballast_net::{
    Address, ErrorClass, ForkResult, ListenOptions, become_user, change_root, child_end,
    detach_session, fork, inherit, is_root, listen, set_dumpable, user_by_name,
};

fn main() {
    // The process is started again below, with a listener at descriptor 9.
    inherit::collect();
    if std::env::args().any(|argument| argument == "inherits") {
        return inherited();
    }
    in_child(session_and_dumpable);
    in_child(leave_root);
    pass_a_listener_on();
    println!("process: ok");
}

/// Runs `work` in a copy of this process and returns its exit status.
fn in_child(work: fn()) {
    match fork().expect("fork") {
        ForkResult::Child => {
            let ended = std::panic::catch_unwind(work);
            exit(if ended.is_ok() { 7 } else { 1 });
        }
        ForkResult::Parent(pid) => {
            let end = child_end(Some(pid), true)
                .expect("waitpid")
                .expect("an end");
            assert_eq!((end.pid, end.status, end.signal), (pid, Some(7), None));
        }
    }
    assert_eq!(child_end(None, false).expect("no child is no error"), None);
}

fn session_and_dumpable() {
    detach_session().expect("a forked child leads no group");
    assert!(detach_session().is_err(), "it leads one now");
    set_dumpable(false).expect("prctl");
    set_dumpable(true).expect("prctl");
}

fn leave_root() {
    if !is_root() {
        eprintln!("SKIPPED: leaving root needs root");
        return;
    }
    let Some(nobody) = user_by_name("nobody").expect("a look-up") else {
        eprintln!("SKIPPED: no user `nobody` here");
        return;
    };
    let empty = std::env::temp_dir();
    change_root(&empty).expect("chroot");
    assert!(!std::path::Path::new("/etc/passwd").exists());
    become_user(Some(nobody.uid), Some(nobody.gid), None).expect("setuid");
    assert!(!is_root());
    let error = become_user(Some(0), None, None).expect_err("there is no way back");
    assert_eq!((error.call(), error.kind()), ("setuid", ErrorClass::Denied));
}

fn pass_a_listener_on() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    // The shell moves the listener from standard input to descriptor 9.
    let program = std::env::current_exe().expect("our own name");
    let status = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!(
            "exec 9<&0 0</dev/null; exec '{}' inherits",
            program.display()
        ))
        .stdin(std::process::Stdio::from(std::os::fd::OwnedFd::from(
            listener,
        )))
        .env("EXPECTED_PORT", port.to_string())
        .status()
        .expect("a shell");
    assert!(status.success());
}

fn inherited() {
    assert_eq!(inherit::numbers(), [9]);
    // Neither a number that is not open nor one that we opened ourselves is accepted.
    let own = File::open("/dev/null").expect("open");
    for number in [200, own.as_raw_fd()] {
        assert_eq!(
            inherit::take(number).expect_err("not inherited").os_code(),
            libc::EBADF
        );
    }
    let copy = inherit::duplicate(9).expect("a copy");
    let bound = listen(&Address::Inherited(9), &ListenOptions::default()).expect("adopted");
    let port = bound.address.ip().expect("ip").port();
    assert_eq!(Ok(port.to_string()), std::env::var("EXPECTED_PORT"));
    let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connect");
    let (server, _) = ballast_net::accept(&copy).expect("a copy of the listener accepts too");
    drop(server);
    assert_eq!(client.read(&mut [0; 1]).expect("the end"), 0);
}
