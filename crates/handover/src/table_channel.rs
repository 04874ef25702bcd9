//! The channel over which a process that starts asks the one before it for its stick tables.
//!
//! The process that starts asks three times: for everything, while it prepares; for what changed
//! meanwhile, before it serves; and, once the other one accepts no connections any more, for what
//! changed until then. The other one serves all the while.
//!
//! An answer is a row of dumps (`ballast_stick`), which this room does not read. Neither side has more than one in
//! memory. A request is its kind and a token of eight bytes. An answer begins with a byte that says
//! whether it has all entries or changes; each dump stands behind its length, of four bytes, and when
//! it was written, by the machine's monotonic clock in microseconds, of eight; a length of 0 and a
//! token end it. Numbers are little-endian.
//!
//! The two processes may be of different programs. The first byte of a request and that of an answer
//! have the version of all this in their high four bits ([`VERSION`]). A process that is asked in another
//! version answers with one byte in its own, and closes the channel: no tables are taken over then, and
//! nobody waits.
//!
//! A process finds the channel of another one by its process number ([`crate::table_channel_of`]), at its
//! command socket ([`crate::fetch_table_channel`]), or is given one by its master
//! ([`crate::Message::TableChannel`]).

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ballast_net::monotonic_us;

/// The version of the protocol, from 0 to 15: any change of what is sent, that of dumps not
/// (`ballast_stick` has its own), makes it another one.
const VERSION: u8 = 1;

/// The kinds of requests: the low four bits of the first byte.
const ALL: u8 = 0;
const CHANGES: u8 = 1;
const LAST_CHANGES: u8 = 2;

/// The kinds of answers, beside [`ALL`] and [`CHANGES`]: there is none to a request in another version.
const NO_ANSWER: u8 = 15;

/// A dump has at most so many bytes.
const DUMP_BYTES_MAX: u32 = 64 << 20;

/// How long the side that answers waits for the other one to read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the side that answers waits for the next request: the other one prepares meanwhile.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// A dump that seems to have been under way for longer comes from another time namespace.
const UNDER_WAY_MAX_MS: u32 = 60_000;

/// What is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TableRequest {
    /// All entries.
    All,
    /// What changed since the answer with this token.
    Changes(u64),
    /// The same, when the process accepts no connections any more.
    LastChanges(u64),
}

/// One end of a channel.
#[derive(Debug)]
pub struct TableChannel(UnixStream);

impl TableChannel {
    /// Both ends of a new channel.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (here, there) = UnixStream::pair()?;
        Ok((Self(here), Self(there)))
    }

    /// The end behind a descriptor.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd.into())
    }

    /// The descriptor, to be given on.
    pub fn into_fd(self) -> OwnedFd {
        self.0.into()
    }

    /// Asks.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn ask(&self, request: TableRequest) -> io::Result<()> {
        let (kind, token) = match request {
            TableRequest::All => (ALL, 0),
            TableRequest::Changes(token) => (CHANGES, token),
            TableRequest::LastChanges(token) => (LAST_CHANGES, token),
        };
        let mut bytes = vec![first_byte(kind)];
        bytes.extend_from_slice(&token.to_le_bytes());
        self.0.set_write_timeout(Some(WRITE_TIMEOUT))?;
        (&self.0).write_all(&bytes)
    }

    /// Receives the answer, which must begin before `until`. `begin` is told whether it has all entries,
    /// and says when it must have ended. `read` is told each dump, and how many milliseconds ago it was
    /// written. Returns the token to ask for later changes with.
    ///
    /// # Errors
    /// The other side is gone, too slow, or says what makes no sense; dumps before are read. It is
    /// [`io::ErrorKind::Unsupported`] where it has another version, and nothing is read then.
    pub fn receive(
        &self,
        until: Instant,
        begin: impl FnOnce(bool) -> Instant,
        mut read: impl FnMut(&[u8], u32),
    ) -> io::Result<u64> {
        let [first] = self.array(until)?;
        let is_all = match kind_of(first)? {
            ALL => true,
            CHANGES => false,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let until = begin(is_all);
        let mut dump = Vec::new();
        loop {
            let length = self.array(until).map(u32::from_le_bytes)?;
            if length == 0 {
                return self.array(until).map(u64::from_le_bytes);
            }
            if length > DUMP_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let written_us = self.array(until).map(u64::from_le_bytes)?;
            dump.resize(length as usize, 0);
            self.fill(&mut dump, until)?;
            let under_way_ms = monotonic_us().saturating_sub(written_us) / 1000;
            let under_way_ms = u32::try_from(under_way_ms).unwrap_or(u32::MAX);
            read(
                &dump,
                Some(under_way_ms)
                    .filter(|ms| *ms <= UNDER_WAY_MAX_MS)
                    .unwrap_or(0),
            );
        }
    }

    /// Waits for a request, for two minutes at most; `None` when the other side is gone.
    ///
    /// # Errors
    /// The system's refusal; what is no request; no request within that time; one in another version,
    /// to which this answers that there is no answer.
    pub fn next_request(&self) -> io::Result<Option<TableRequest>> {
        let mut bytes = [0; 9];
        self.0.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        match (&self.0).read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let [kind, token @ ..] = bytes;
        let token = u64::from_le_bytes(token);
        let kind = kind_of(kind).inspect_err(|_| {
            // The other side sees the end of the channel if this does not arrive.
            let _ = self.send_first_byte(NO_ANSWER);
        })?;
        match kind {
            ALL => Ok(Some(TableRequest::All)),
            CHANGES => Ok(Some(TableRequest::Changes(token))),
            LAST_CHANGES => Ok(Some(TableRequest::LastChanges(token))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Begins an answer.
    ///
    /// # Errors
    /// The other side is gone or too slow.
    pub fn begin_answer(&self, is_all: bool) -> io::Result<()> {
        self.send_first_byte(if is_all { ALL } else { CHANGES })
    }

    fn send_first_byte(&self, kind: u8) -> io::Result<()> {
        self.0.set_write_timeout(Some(WRITE_TIMEOUT))?;
        (&self.0).write_all(&[first_byte(kind)])
    }

    /// Sends a dump, which is not empty, and was written at this time ([`monotonic_us`]).
    ///
    /// # Errors
    /// The other side is gone or too slow; the dump is too long.
    pub fn send_dump(&self, dump: &[u8], written_us: u64) -> io::Result<()> {
        let length = u32::try_from(dump.len()).unwrap_or(u32::MAX);
        if length > DUMP_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut head = length.to_le_bytes().to_vec();
        head.extend_from_slice(&written_us.to_le_bytes());
        (&self.0).write_all(&head)?;
        (&self.0).write_all(dump)
    }

    /// Ends an answer.
    ///
    /// # Errors
    /// As [`Self::begin_answer`].
    pub fn end_answer(&self, token: u64) -> io::Result<()> {
        (&self.0).write_all(&[0; 4])?;
        (&self.0).write_all(&token.to_le_bytes())
    }

    fn array<const N: usize>(&self, until: Instant) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, until)?;
        Ok(bytes)
    }

    fn fill(&self, bytes: &mut [u8], until: Instant) -> io::Result<()> {
        let mut had = 0;
        while had < bytes.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.0.set_read_timeout(Some(left))?;
            match (&self.0).read(&mut bytes[had..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => had += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The first byte of a request or of an answer.
fn first_byte(kind: u8) -> u8 {
    VERSION << 4 | kind
}

/// The kind that the first byte tells.
fn kind_of(first: u8) -> io::Result<u8> {
    let version = first >> 4;
    if version != VERSION {
        let text = format!("it gives them in version {version}, this process takes {VERSION}");
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    Ok(first & 0x0f)
}

impl AsFd for TableChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn an_answer_comes_dump_by_dump() {
        let (asks, answers) = TableChannel::pair().unwrap();
        let answering = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while let Some(request) = answers.next_request().unwrap() {
                seen.push(request);
                answers.begin_answer(request == TableRequest::All).unwrap();
                for byte in 1..4 {
                    let written_us = monotonic_us() - u64::from(byte) * 10_000_000;
                    answers.send_dump(&[byte; 300_000], written_us).unwrap();
                }
                answers.end_answer(77).unwrap();
            }
            seen
        });
        for request in [
            TableRequest::All,
            TableRequest::Changes(5),
            TableRequest::LastChanges(u64::MAX),
        ] {
            asks.ask(request).unwrap();
            let (mut is_all, mut dumps) = (None, Vec::new());
            let token = asks.receive(
                soon(),
                |all| {
                    is_all = Some(all);
                    soon()
                },
                |dump, ms| dumps.push((dump.len(), dump[299_999], ms / 10_000)),
            );
            assert_eq!(token.unwrap(), 77);
            assert_eq!(is_all, Some(request == TableRequest::All));
            assert_eq!(dumps, [(300_000, 1, 1), (300_000, 2, 2), (300_000, 3, 3)]);
        }
        drop(asks);
        let seen = answering.join().unwrap();
        assert_eq!(
            seen[1..],
            [
                TableRequest::Changes(5),
                TableRequest::LastChanges(u64::MAX)
            ]
        );
    }

    #[test]
    fn what_is_cut_off_slow_or_nonsense_is_an_error() {
        let (asks, answers) = TableChannel::pair().unwrap();
        answers.begin_answer(true).unwrap();
        answers.send_dump(b"one", u64::MAX).unwrap();
        let mut dumps = 0;
        let begin = |_| Instant::now() + Duration::from_millis(20);
        let slow = asks.receive(soon(), begin, |_, ms| dumps += 1 + ms);
        assert_eq!(slow.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(dumps, 1);
        answers.begin_answer(true).unwrap();
        (&answers.0).write_all(&[255; 4]).unwrap();
        let nonsense = asks.receive(soon(), |_| soon(), |_, _| ());
        assert_eq!(nonsense.unwrap_err().kind(), io::ErrorKind::InvalidData);
        (&asks.0).write_all(&[first_byte(9); 9]).unwrap();
        let nonsense = answers.next_request().unwrap_err();
        assert_eq!(nonsense.kind(), io::ErrorKind::InvalidData);
        drop(answers);
        assert!(asks.receive(soon(), |_| soon(), |_, _| ()).is_err());
    }

    #[test]
    fn another_version_means_no_tables_at_once() {
        for version in (0..16).filter(|version| *version != VERSION) {
            // The other program asks in its version: it reads in the first byte that it gets nothing.
            let (asks, answers) = TableChannel::pair().unwrap();
            (&asks.0).write_all(&[version << 4; 9]).unwrap();
            let refused = answers.next_request().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
            drop(answers);
            let mut answer = Vec::new();
            (&asks.0).read_to_end(&mut answer).unwrap();
            assert_eq!(answer, [VERSION << 4 | NO_ANSWER]);
            // It answers in its version: what follows is not looked at.
            let (asks, answers) = TableChannel::pair().unwrap();
            asks.ask(TableRequest::All).unwrap();
            (&answers.0).write_all(&[version << 4]).unwrap();
            let begun = std::cell::Cell::new(false);
            let begin = |_| {
                begun.set(true);
                soon()
            };
            let refused = asks.receive(soon(), begin, |_, _| begun.set(true));
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::Unsupported);
            assert!(!begun.get());
        }
        // An answer that is none, in this version.
        let (asks, answers) = TableChannel::pair().unwrap();
        answers.send_first_byte(NO_ANSWER).unwrap();
        let none = asks.receive(soon(), |_| soon(), |_, _| ());
        assert_eq!(none.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn what_an_answer_has_says_when_it_must_end() {
        let (asks, answers) = TableChannel::pair().unwrap();
        answers.begin_answer(true).unwrap();
        answers.send_dump(b"one", 0).unwrap();
        answers.end_answer(5).unwrap();
        let until = Instant::now() + Duration::from_secs(1);
        let begin = |is_all: bool| {
            assert!(is_all);
            // The time of changes passes.
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            soon()
        };
        assert_eq!(asks.receive(until, begin, |_, _| ()).unwrap(), 5);
    }
}
