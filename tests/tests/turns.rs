//! A connection that always has more to do does not starve others on its worker.

use std::thread;

use ballast_tests::{Client, Program, Proxy, free_port};
use rustix::process::Signal;

/// The amount of work that each busy client sends at once.
const MANY: usize = 1_500;
/// The most of it that may be done before the single request of the other client.
const BEFORE_MAX: u64 = 700;

fn configuration(port: u16) -> String {
    format!(
        "global\n    nbthread 1\ndefaults\n    mode http\n    timeout client 20s\n    \
         timeout connect 5s\n    timeout server 20s\nfrontend www\n    bind 127.0.0.1:{port}\n    \
         http-request return status 200 hdr x-count \"%rt\"\n"
    )
}

/// How many requests the process had served before the one that was answered next.
fn count(client: &mut Client) -> u64 {
    let response = client.response();
    let count = response.header("x-count").and_then(|it| it.parse().ok());
    count.expect("each answer is counted")
}

/// The proxy is stopped while the busy clients and then the other one send, so that it finds all of
/// it when it continues, and the load of the machine makes no difference.
#[test]
fn clients_that_pipeline_leave_others_their_turn() {
    let request = "GET / HTTP/1.1\r\nHost: t\r\n\r\n";
    for program in Program::both() {
        let port = free_port();
        let proxy = Proxy::start(&program, &configuration(port), &[port]);
        let mut busy = [Client::connect(port), Client::connect(port)];
        let mut modest = Client::connect(port);
        for client in busy.iter_mut().chain([&mut modest]) {
            client.send(request);
            count(client);
        }

        proxy.signal(Signal::STOP);
        let answered = busy.map(|mut client| {
            client.send(request.repeat(MANY));
            // Somebody has to read the responses, or the proxy waits for that.
            thread::spawn(move || {
                (0..MANY).for_each(|_| assert_eq!(client.response().status, 200));
            })
        });
        modest.send(request);
        proxy.signal(Signal::CONT);
        let came_first = count(&mut modest);
        assert!(
            came_first <= BEFORE_MAX,
            "{}: {came_first} requests came first",
            program.name()
        );
        for client in answered {
            client.join().expect("all were answered");
        }
    }
}
