//! Clients of HTTP/2 hear by GOAWAY of every change that ends the listener that they came through, and
//! what they asked for is answered.
//!
//! Only Ballast is tested here: HAProxy takes no such changes. Soft stops and `shutdown frontend` are
//! scripts that both pass (`h2_soft_stop`, `h2_shutdown_frontend`).

use ballast_tests::frame_client::{END_STREAM, kind};
use ballast_tests::ports::is_listening;
use ballast_tests::{FrameClient, Program, Proxy, RuntimeApi, ShapedOrigin, eventually, free_port};
use tempfile::TempDir;

/// The type of the frame.
const GOAWAY: u8 = 7;

/// How a listener ends, by a command or by another configuration.
#[derive(Clone, Copy, Debug)]
enum Change {
    BindIsGone,
    FrontendIsGone,
    FrontendIsDeleted,
    Other,
}

const ALL: [Change; 4] = [
    Change::BindIsGone,
    Change::FrontendIsGone,
    Change::FrontendIsDeleted,
    Change::Other,
];

/// Two frontends; the first of them has two binds.
struct Ports {
    kept: u16,
    changed: u16,
    other: u16,
    server: u16,
}

impl Ports {
    fn configuration(&self, change: Option<Change>) -> String {
        let head = "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n";
        let timeout = if matches!(change, Some(Change::Other)) {
            19
        } else {
            20
        };
        let defaults = format!(
            "defaults\n mode http\n timeout connect 20s\n timeout client {timeout}s\n timeout server 20s\n"
        );
        let bind = match change {
            Some(Change::BindIsGone) => String::new(),
            _ => format!(" bind 127.0.0.1:{}\n", self.changed),
        };
        let first = match change {
            Some(Change::FrontendIsGone) => String::new(),
            _ => format!(
                "frontend first\n bind 127.0.0.1:{}\n{bind} default_backend app\n",
                self.kept
            ),
        };
        format!(
            "{head}{defaults}{first}frontend second\n bind 127.0.0.1:{}\n default_backend app\n\
             backend app\n server s 127.0.0.1:{}\n",
            self.other, self.server
        )
    }
}

#[test]
fn who_came_through_a_listener_that_ends_is_told_and_served() {
    let [_, program] = Program::both();
    let directory = TempDir::new().expect("a temporary directory");
    for change in ALL {
        let [kept, changed, other, server] = [(); 4].map(|()| free_port());
        let words = ["--listen".to_owned(), format!("127.0.0.1:{server}")];
        let _origin = ShapedOrigin::start(&words, &[server], directory.path());
        let ports = Ports {
            kept,
            changed,
            other,
            server,
        };
        let text = ports.configuration(None);
        let proxy = Proxy::start(&program, &text, &[kept, changed, other]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let mut client = FrameClient::connect(changed, &[]);
        client.get(1, "/x?delay=1000");
        eventually("the server is asked", || {
            api.ask("show sess").contains("srv=s ")
        });
        let said = match change {
            Change::FrontendIsDeleted => api.ask("shutdown frontend first; del frontend first"),
            _ => api.apply(&ports.configuration(Some(change))),
        };
        let ends = !matches!(change, Change::Other);
        let (mut is_told, mut is_served) = (false, false);
        while !is_served || ends && !is_told {
            let frame = client.receive();
            is_told |= frame.kind == GOAWAY;
            let carries = matches!(frame.kind, kind::HEADERS | kind::DATA);
            is_served |= carries && frame.flags & END_STREAM != 0;
        }
        assert_eq!(is_told, ends, "{change:?}: {said}");
        assert_eq!(is_listening(changed), !ends, "{change:?}: {said}");
    }
}
