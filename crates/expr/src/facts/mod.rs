//! The facts that expressions read of an exchange: the interface between the language and the
//! traffic.
//!
//! [`Facts`] gives objects, and each family of objects has a file. An object with data at hand is a
//! struct that borrows them. An object that must compute its answers is a trait, so that only what
//! is asked is computed. Nothing is allocated to give an object.

mod body;
mod connection;
mod exchange;
mod exchange_numbers;
mod process;
mod proxy;
mod tls;
mod users;

pub use body::BodyFacts;
pub use connection::{
    AddressPair, ConnectionError, ConnectionFacts, ListenerFacts, StreamFacts, TcpFacts,
};
pub use exchange::{CaptureFacts, ExchangeFacts};
pub use exchange_numbers::ExchangeNumbers;
pub use process::ProcessFacts;
pub use proxy::{BackendFacts, FrontendFacts, ServerFacts};
pub use tls::{
    CertificateFacts, CertificateOwner, HelloFacts, NamePart, PeerVerification, TlsError,
    TlsSessionFacts,
};

pub use users::{PasswordCheck, UserFacts};

use ballast_message::{Request, Response};
use ballast_stick::{Table, TrackedEntry};

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

/// One of the two peers of an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The client, who sends the request.
    Client,
    /// The server, which sends the response.
    Server,
}

/// The facts of an exchange. By default every object is unknown: an implementation gives those that
/// it has.
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

    /// Sets a variable in the middle of an evaluation, or unsets it: without a value, or where it
    /// would not fit. What was given of its former value stays readable.
    fn assign(&self, _name: &VarName, _value: Option<Value<'_>>) {}

    /// Puts `value`, cut to the length of the slot, into a slot of captures from the messages of a
    /// side; gives whether there is such a slot.
    fn capture(&self, _sent_by: Side, _slot: usize, _value: &[u8]) -> bool {
        false
    }

    /// The sender of the message that words without a direction refer to (`hdr`, `cookie`): the
    /// server in rules about the response, else the client.
    fn side(&self) -> Side {
        Side::Client
    }

    /// The request's head, while it may be read. As in HAProxy that ends with the response: the head was
    /// sent to the server then.
    fn request(&self) -> Option<&Request> {
        None
    }

    /// The same for what is kept of the request to the end: its method and its line.
    fn kept_request(&self) -> Option<&Request> {
        self.request()
    }

    /// The response's head, while it is known.
    fn response(&self) -> Option<&Response> {
        None
    }

    /// The buffered bytes that this side has sent, in TCP mode.
    fn data(&self, _sent_by: Side) -> Option<&[u8]> {
        None
    }

    /// How many bytes this side has sent that are not forwarded yet: in TCP mode those of
    /// [`Facts::data`], in HTTP mode the size of the message as logs count it.
    fn waiting_bytes(&self, sent_by: Side) -> Option<u64> {
        self.data(sent_by).map(|bytes| bytes.len() as u64)
    }

    /// What was received of the body that this side sends; `None` without an HTTP message.
    fn body(&self, _sent_by: Side) -> Option<BodyFacts<'_>> {
        None
    }

    /// How many bytes a buffer holds: there are never more in [`Facts::data`].
    fn data_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// The client's address and the address it connected to, after `set-src`, `set-dst` and the
    /// like.
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair::default()
    }

    /// The connection to that side.
    fn connection(&self, _to: Side) -> Option<&dyn ConnectionFacts> {
        None
    }

    /// The exchange as a part of its connection to that side; `None` where there is no connection.
    fn stream(&self, _to: Side) -> Option<StreamFacts> {
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

    /// The stick table of the proxy of that name. Its time is that of
    /// [`ProcessFacts::rate_clock_ms`].
    fn table(&self, _name: &str) -> Option<&Table> {
        None
    }

    /// The entry that sticky counter `number` tracks: for the exchange, or else for its connection.
    fn tracked(&self, _number: u32) -> Option<&TrackedEntry> {
        None
    }

    /// The exchange.
    fn exchange(&self) -> &dyn ExchangeFacts {
        &Unknown
    }

    /// The captures from the messages of this side.
    fn captures(&self, _sent_by: Side) -> CaptureFacts<'_> {
        CaptureFacts::default()
    }

    /// The lists of users.
    fn users(&self) -> &dyn UserFacts {
        &Unknown
    }

    /// Whether there is an exchange: rules of connections have none, nor has the log line of what was no
    /// request.
    fn is_in_exchange(&self) -> bool {
        true
    }

    /// The numbers of the exchange; `None` outside of one.
    fn numbers(&self) -> Option<&ExchangeNumbers> {
        None
    }

    /// The numbers that a log line shows, which may be about what is no exchange.
    fn line_numbers(&self) -> Option<&ExchangeNumbers> {
        self.numbers()
    }
}

/// The object that stands for each unknown one.
struct Unknown;

impl ExchangeFacts for Unknown {}
impl ProcessFacts for Unknown {}
impl UserFacts for Unknown {}
