//! What can go wrong with a request, and by which name it is counted.
//!
//! "12 errors" proves nothing: a refused connection accuses the listener, a truncated answer the
//! forwarding, a timeout anybody. Every failure has exactly one class and says in words what was
//! seen.

use std::io;

use serde::Serialize;

/// The kind of a failure. The order is that of reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    /// Nobody accepts connections there.
    Refused,
    /// The connection broke: RST, or an error of the network.
    Reset,
    /// No whole answer within the timeout of a request.
    Timeout,
    /// The connection ended in order, but within the answer.
    Truncated,
    /// The connection ended in order before the first byte of the answer, and the request could
    /// not be sent again.
    Closed,
    /// A whole answer with a status that was not expected.
    WrongStatus,
    /// A whole answer with the expected status and a body that was not expected.
    WrongBody,
    /// Bytes that are not one HTTP answer, or not one WebSocket frame.
    Malformed,
    /// This machine could not even try: out of ports, of descriptors, of memory.
    Local,
}

impl Class {
    /// All, in order.
    pub(crate) const ALL: [Self; 9] = [
        Self::Refused,
        Self::Reset,
        Self::Timeout,
        Self::Truncated,
        Self::Closed,
        Self::WrongStatus,
        Self::WrongBody,
        Self::Malformed,
        Self::Local,
    ];

    /// The name in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Truncated => "truncated",
            Self::Closed => "closed",
            Self::WrongStatus => "wrong_status",
            Self::WrongBody => "wrong_body",
            Self::Malformed => "malformed",
            Self::Local => "local",
        }
    }
}

/// One failure: its class, and what was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    pub(crate) class: Class,
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(class: Class, reason: impl Into<String>) -> Self {
        Self {
            class,
            reason: reason.into(),
        }
    }

    /// A connection that could not be opened.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let class = match error.kind() {
            // Of a unix socket: nobody made it, or its queue is full.
            Kind::NotFound | Kind::WouldBlock => Class::Refused,
            Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable => {
                Class::Refused
            }
            Kind::TimedOut => Class::Timeout,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => Class::Reset,
            _ => Class::Local,
        };
        Self::new(class, format!("connecting: {error}"))
    }

    /// An error of an open connection while it was `doing` something.
    pub(crate) fn of_connection(error: &io::Error, doing: &str) -> Self {
        let class = match error.kind() {
            io::ErrorKind::TimedOut => Class::Timeout,
            io::ErrorKind::OutOfMemory => Class::Local,
            _ => Class::Reset,
        };
        Self::new(class, format!("{doing}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_their_class() {
        let connecting = [
            (io::ErrorKind::ConnectionRefused, Class::Refused),
            (io::ErrorKind::NotFound, Class::Refused),
            (io::ErrorKind::ConnectionReset, Class::Reset),
            (io::ErrorKind::TimedOut, Class::Timeout),
            (io::ErrorKind::AddrNotAvailable, Class::Local),
        ];
        for (kind, class) in connecting {
            assert_eq!(Fault::of_connect(&kind.into()).class, class, "{kind}");
        }
        // EMFILE has no kind of its own.
        let too_many = io::Error::from_raw_os_error(24);
        assert_eq!(Fault::of_connect(&too_many).class, Class::Local);
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            assert_eq!(
                Fault::of_connection(&kind.into(), "reading").class,
                Class::Reset
            );
        }
    }

    #[test]
    fn words_are_those_of_the_json() {
        for class in Class::ALL {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("{:?}", class.word()));
        }
        assert!(
            Class::ALL
                .iter()
                .enumerate()
                .all(|(at, class)| *class as usize == at)
        );
    }
}
