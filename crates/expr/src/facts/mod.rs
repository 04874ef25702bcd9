//! What expressions may ask of the world: the one door between the language and the traffic.
//!
//! [`Facts`] gives objects, a file per family of them, and an object answers questions. What is
//! at hand is a struct of borrowed data; what takes work or may grow is a trait, whose methods do
//! the work of one question only. Nothing is allocated to give an object.

mod connection;
mod exchange;
mod process;
mod proxy;
mod record;

pub use connection::{ConnectionFacts, Ends, ListenerFacts};
pub use exchange::{CaptureFacts, ExchangeFacts};
pub use process::ProcessFacts;
pub use proxy::{BackendFacts, FrontendFacts, ServerFacts};
pub use record::Record;

use ballast_message::{Request, Response};

use crate::value::Value;
use crate::vars::VarName;

/// A point in time: seconds and microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time {
    /// Whole seconds.
    pub secs: i64,
    /// Microseconds within the second, below 1,000,000.
    pub micros: u32,
}

/// One of the two sides between which an exchange goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The client, who sends the request.
    Client,
    /// The server, which sends the response.
    Server,
}

/// What an expression may ask. Every object is unknown by default, so that an implementation
/// gives what it has.
pub trait Facts {
    /// Now.
    fn now(&self) -> Time;

    /// A random number.
    fn random(&self) -> u64;

    /// Our process and its machine.
    fn process(&self) -> &dyn ProcessFacts {
        &Unknown
    }

    /// A variable.
    fn var(&self, _name: &VarName) -> Option<Value<'_>> {
        None
    }

    /// Whose message words without a direction of their own mean (`hdr`, `cookie`): the server's
    /// in rules about the response.
    fn side(&self) -> Side {
        Side::Client
    }

    /// The request's head, while it is known.
    fn request(&self) -> Option<&Request> {
        None
    }

    /// The response's head, while it is known.
    fn response(&self) -> Option<&Response> {
        None
    }

    /// What is buffered of what that side sends: all of it in TCP mode, the body in HTTP mode.
    fn data(&self, _sent_by: Side) -> Option<&[u8]> {
        None
    }

    /// The client's address and the one it connected to, as `set-src`, `set-dst` and their
    /// siblings left them.
    fn ends(&self) -> Ends<'_> {
        Ends::default()
    }

    /// The connection to that side.
    fn connection(&self, _to: Side) -> Option<&dyn ConnectionFacts> {
        None
    }

    /// The bind line the client came through.
    fn listener(&self) -> Option<&dyn ListenerFacts> {
        None
    }

    /// The frontend the client came to.
    fn frontend(&self) -> Option<&dyn FrontendFacts> {
        None
    }

    /// The frontend of that name.
    fn frontend_named(&self, _name: &str) -> Option<&dyn FrontendFacts> {
        None
    }

    /// The backend, once it is chosen.
    fn backend(&self) -> Option<&dyn BackendFacts> {
        None
    }

    /// The backend of that name.
    fn backend_named(&self, _name: &str) -> Option<&dyn BackendFacts> {
        None
    }

    /// The server, once it is chosen.
    fn server(&self) -> Option<&dyn ServerFacts> {
        None
    }

    /// The exchange.
    fn exchange(&self) -> &dyn ExchangeFacts {
        &Unknown
    }

    /// What was captured of what that side sent.
    fn captures(&self, _sent_by: Side) -> CaptureFacts<'_> {
        CaptureFacts::default()
    }

    /// The numbers of the exchange; `None` outside of one.
    fn record(&self) -> Option<&Record> {
        None
    }
}

/// The object of which nothing is known.
struct Unknown;

impl ExchangeFacts for Unknown {}
impl ProcessFacts for Unknown {}
