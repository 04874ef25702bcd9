//! TLS towards the server under test.

mod alert;
mod error;
mod handshake;
mod options;
mod report;
mod sessions;
mod stream;
mod suites;
mod tally;
mod verifier;

use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use crate::failure::{Failure, FailureClass};
pub(crate) use crate::tls::error::TlsError;
pub(crate) use crate::tls::handshake::Handshake;
pub(crate) use crate::tls::options::TlsOptions;
pub(crate) use crate::tls::report::TlsReport;
use crate::tls::sessions::Sessions;
pub(crate) use crate::tls::stream::TlsStream;
pub(crate) use crate::tls::tally::TlsTally;

/// Which sessions are resumed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Resume {
    /// None: every handshake is a full one.
    Never,
    /// One with every connection: names without a session get one before they are measured.
    Always,
    /// Those that earlier connections happened to bring, as in a browser.
    Tickets,
    /// As `Tickets`, but TLS 1.2 without tickets: the server keeps the sessions.
    Ids,
}

/// The order in which the names are asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SniOrder {
    RoundRobin,
    Random,
}

/// One set of options: all connections of a run share it.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    /// The names to ask for; when there are none, each target's own.
    names: Arc<[ServerName<'static>]>,
    order: SniOrder,
    resume: Resume,
}

impl TlsClient {
    /// The name that a connection asks for. `number` counts connections over the whole run;
    /// `host` is the target's own name.
    pub(crate) fn name(&self, number: usize, host: &ServerName<'static>) -> ServerName<'static> {
        let number = match self.order {
            SniOrder::RoundRobin => number,
            SniOrder::Random => pseudo_random(number),
        };
        let count = self.names.len().max(1);
        self.names.get(number % count).unwrap_or(host).clone()
    }

    /// The names that client `number` of `clients` gets a session for before the start: together
    /// they get one for each name, and each client has one for its first connection.
    pub(crate) fn names_to_warm(
        &self,
        number: usize,
        clients: usize,
        host: &ServerName<'static>,
    ) -> Vec<ServerName<'static>> {
        if self.resume != Resume::Always {
            return Vec::new();
        }
        let count = self.names.len().max(number + 1);
        let numbers = (number..count).step_by(clients);
        let name = |number: usize| self.names.get(number % self.names.len().max(1));
        numbers
            .map(|number| name(number).unwrap_or(host).clone())
            .collect()
    }

    /// Makes the ClientHello of a new connection, which takes a session of this name if there is
    /// one.
    ///
    /// # Errors
    ///
    /// When there are no random numbers.
    pub(crate) fn hello(&self, name: ServerName<'static>) -> Result<ClientHello, Failure> {
        let taken = Sessions::taken_by_this_thread();
        let connection =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(|error| {
                let reason = format!("beginning a TLS handshake: {error}");
                Failure::new(FailureClass::Local, reason)
            })?;
        let has_session = Sessions::taken_by_this_thread() > taken;
        Ok(ClientHello {
            connection,
            has_session,
            lacks_session: self.resume == Resume::Always && !has_session,
        })
    }
}

/// The first message of a connection, ready to be sent.
pub(crate) struct ClientHello {
    connection: ClientConnection,
    /// It offers a session.
    has_session: bool,
    /// It offers none, and should.
    pub(crate) lacks_session: bool,
}

/// A number that follows from this one and looks random (splitmix64).
fn pseudo_random(number: usize) -> usize {
    let mut mixed = (number as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn client(words: &str, connections: usize) -> TlsClient {
        let mut options = TlsOptions::default();
        let mut words = words.split(' ').map(str::to_owned);
        while let Some(word) = words.next() {
            let is_known = options.take(&word, || Ok(words.next().unwrap()));
            assert_eq!(is_known, Ok(true), "{word}");
        }
        options.client(connections).unwrap()
    }

    fn host() -> ServerName<'static> {
        ServerName::try_from("host.example").unwrap()
    }

    #[test]
    fn names_are_asked_for_in_turn_or_at_random() {
        let asked = |words: &str| -> Vec<String> {
            let client = client(&format!("--insecure {words}"), 1);
            let names = (0..60).map(|number| client.name(number, &host()));
            names.map(|name| name.to_str().into_owned()).collect()
        };
        assert!(asked("--tls").iter().all(|name| name == "host.example"));
        let names = "--sni a.example --sni b.example --sni c.example";
        let expected = ["a.example", "b.example", "c.example"].map(str::to_owned);
        let in_turn = asked(names);
        assert!(in_turn.chunks(3).all(|three| three == expected));
        let random = asked(&format!("{names} --sni-random"));
        assert_ne!(random, in_turn);
        let all: BTreeSet<String> = random.into_iter().collect();
        assert_eq!(all, expected.into());
    }

    #[test]
    fn every_name_and_every_client_is_warmed_once() {
        let names = "--sni a.example --sni b.example --sni c.example";
        for (clients, expected) in [
            (1, [1, 1, 1]),
            (2, [1, 1, 1]),
            (3, [1, 1, 1]),
            (5, [2, 2, 1]),
        ] {
            let client = client(&format!("--insecure --resume always {names}"), clients);
            let mut warmed = Vec::new();
            for number in 0..clients {
                let names = client.names_to_warm(number, clients, &host());
                assert!(!names.is_empty());
                warmed.extend(names.iter().map(|name| name.to_str().into_owned()));
            }
            let count = |name: &str| warmed.iter().filter(|warm| *warm == name).count();
            assert_eq!(["a.example", "b.example", "c.example"].map(count), expected);
        }
        let never = client(&format!("--insecure {names}"), 1);
        assert!(never.names_to_warm(0, 1, &host()).is_empty());
    }
}
