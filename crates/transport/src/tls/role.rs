//! The two roles of a connection, with one interface.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, ReadEarlyData, UnbufferedStatus,
};
use rustls::{CommonState, Error};

/// What a step led to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// There is more to be done with what is there.
    Again,
    /// The handshake needs more of the peer.
    Blocked,
    /// The handshake is done, and no whole record is left.
    Established,
    /// The peer sends nothing more.
    PeerClosed,
}

/// A client or a server.
pub(super) trait Role: Send + 'static {
    /// What rustls keeps for the role.
    type Data: 'static;

    /// rustls's function of that name.
    fn process<'c, 'i>(
        &'c mut self,
        received: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// What was agreed on.
    fn common(&self) -> &CommonState;

    /// Delivers early data; how many bytes more of what was received are done with.
    fn early_data(
        early: ReadEarlyData<'_, '_, Self::Data>,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Error>;

    /// Takes one step with what was received: how many of its bytes are done with, and what came
    /// of it. What is to be sent is appended to `out`; plaintext goes to `deliver`.
    fn step(
        &mut self,
        received: &mut [u8],
        out: &mut Vec<u8>,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> (usize, Result<Step, Error>) {
        let UnbufferedStatus { discard, state } = self.process(received);
        let mut more = 0;
        let step = match state {
            Err(error) => Err(error),
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                let mut step = Ok(Step::Again);
                while let Some(record) = traffic.next_record() {
                    match record {
                        Ok(record) => {
                            more += record.discard;
                            deliver(record.payload);
                        }
                        Err(error) => step = Err(error),
                    }
                }
                step
            }
            Ok(ConnectionState::ReadEarlyData(early)) => Self::early_data(early, deliver)
                .map(|discard| more = discard)
                .map(|()| Step::Again),
            Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out).map(|()| Step::Again),
            Ok(ConnectionState::TransmitTlsData(data)) => {
                // It is in `out`, which the caller sends.
                data.done();
                Ok(Step::Again)
            }
            Ok(ConnectionState::BlockedHandshake) => Ok(Step::Blocked),
            Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Established),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Ok(Step::PeerClosed),
            Ok(_) => Err(Error::General("an unknown state of rustls".into())),
        };
        // A side may send before the other has finished (RFC 8446, 2.3 and 4.4.4).
        let step = match step {
            Ok(Step::Established) if self.common().is_handshaking() => Ok(Step::Blocked),
            step => step,
        };
        (discard + more, step)
    }

    /// Encrypts `plaintext` to the front of `out`, which has room for it, behind what rustls itself
    /// wants to send. `received` holds no whole record.
    ///
    /// # Errors
    /// Why this connection cannot send any more.
    fn encrypt(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let mut length = 0;
        for _ in 0..STEPS_MAX {
            match self.process(received).state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return match traffic.encrypt(plaintext, &mut out[length..]) {
                        Ok(count) => Ok(length + count),
                        Err(error) => Err(refusal(&error)),
                    };
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    length += data
                        .encode(&mut out[length..])
                        .map_err(|_| Error::General("no room for a record".into()))?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                _ => break,
            }
        }
        Err(Error::General(
            "written to before or after the connection".into(),
        ))
    }

    /// Appends our `close_notify`. `received` holds no whole record.
    fn close(&mut self, received: &mut [u8], out: &mut Vec<u8>) {
        for _ in 0..STEPS_MAX {
            match self.process(received).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let mut notice = [0; NOTICE_BYTES_MAX];
                    if let Ok(count) = traffic.queue_close_notify(&mut notice) {
                        out.extend_from_slice(&notice[..count]);
                    }
                    return;
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    if encode(data, out).is_err() {
                        return;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => return,
            }
        }
    }

    /// Appends the alert that an error left behind. Nothing more is read: rustls remembers places in
    /// what was received, and would fail again.
    fn alert(&mut self, out: &mut Vec<u8>) {
        for _ in 0..STEPS_MAX {
            if !self.common().wants_write() || self.step(&mut [], out, &mut |_| {}).1.is_err() {
                return;
            }
        }
    }
}

/// How many records rustls may want to send before ours: tickets, an answer to a key update.
const STEPS_MAX: usize = 64;

/// The longest `close_notify`, bytes: an alert of two bytes in a record of any cipher.
const NOTICE_BYTES_MAX: usize = 256;

fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Vec<u8>) -> Result<(), Error> {
    let begin = out.len();
    let mut room = 0;
    loop {
        out.resize(begin + room, 0);
        match data.encode(&mut out[begin..]) {
            Ok(count) => {
                out.truncate(begin + count);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(need)) if room == 0 => room = need.required_size,
            Err(error) => {
                out.truncate(begin);
                return Err(Error::General(error.to_string()));
            }
        }
    }
}

fn refusal(error: &EncryptError) -> Error {
    match error {
        EncryptError::EncryptExhausted => Error::EncryptError,
        EncryptError::InsufficientSize(_) => Error::General(error.to_string()),
    }
}

impl Role for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        received: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(received)
    }

    fn common(&self) -> &CommonState {
        self
    }

    fn early_data(
        mut early: ReadEarlyData<'_, '_, Self::Data>,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Error> {
        let mut discard = 0;
        while let Some(record) = early.next_record() {
            let record = record?;
            discard += record.discard;
            deliver(record.payload);
        }
        Ok(discard)
    }
}

impl Role for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        received: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(received)
    }

    fn common(&self) -> &CommonState {
        self
    }

    fn early_data(
        _: ReadEarlyData<'_, '_, Self::Data>,
        _: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Error> {
        Err(Error::General("early data from a server".into()))
    }
}
