//! What a process passes to the next one: tables of numbers by name, and the messages between a
//! master and its worker.
//!
//! The two may have different versions. So everything is identified by name: a table that the
//! reader does not know is skipped, a column that it does not know is dropped, and one that is
//! missing keeps its value. A new kind of data is a new table.
//!
//! ```text
//!   snapshot := "BLST" 1 table*
//!   table    := name, key count (1 byte), column count (1 byte), column names, rows, 0
//!   row      := 1, keys, numbers          numbers := LEB128, one for each column
//!   name, key := length (LEB128), bytes
//! ```
//!
//! A message is a byte for its kind, and the content for that kind; descriptors are sent beside it.

use std::fmt;

/// The start of a snapshot: a magic number, and the format version.
const SNAPSHOT_MAGIC: &[u8] = b"BLST\x01";

/// The maximum length of a name or a key.
pub const NAME_BYTES_MAX: usize = 4096;

/// The maximum number of keys in a row.
pub const KEY_COUNT_MAX: usize = 4;

/// The maximum number of columns in a table.
pub const COLUMN_COUNT_MAX: usize = 255;

/// The maximum size of a message between master and worker.
pub const MESSAGE_BYTES_MAX: usize = 60_000;

/// Why bytes are not a snapshot, or not a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandoffError {
    /// The magic number or the format version is wrong.
    BadMagic,
    /// They are truncated.
    Truncated,
    /// A number, a name or a count is too large.
    TooLarge,
    /// A name is not UTF-8.
    NotUtf8,
    /// A message of an unknown kind.
    UnknownMessage(u8),
}

impl fmt::Display for HandoffError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic => out.write_str("it does not begin as a snapshot does"),
            Self::Truncated => out.write_str("it ends in the middle"),
            Self::TooLarge => out.write_str("something in it is beyond its bound"),
            Self::NotUtf8 => out.write_str("a name in it is not valid UTF-8"),
            Self::UnknownMessage(kind) => write!(out, "{kind} is no kind of message"),
        }
    }
}

impl std::error::Error for HandoffError {}

/// Writes a snapshot, table by table.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    columns: usize,
    keys: usize,
    open: bool,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            bytes: SNAPSHOT_MAGIC.to_vec(),
            columns: 0,
            keys: 0,
            open: false,
        }
    }
}

impl Writer {
    /// An empty snapshot.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a table. Columns beyond [`COLUMN_COUNT_MAX`] are left out.
    pub fn table(&mut self, name: &str, keys: usize, columns: &[&str]) {
        self.close();
        self.columns = columns.len().min(COLUMN_COUNT_MAX);
        self.keys = keys.min(KEY_COUNT_MAX);
        self.open = true;
        append_text(&mut self.bytes, name);
        self.bytes.push(u8::try_from(self.keys).unwrap_or(0));
        self.bytes
            .push(u8::try_from(self.columns).unwrap_or(u8::MAX));
        for column in &columns[..self.columns] {
            append_text(&mut self.bytes, column);
        }
    }

    /// Adds a row to the last table; missing values are empty or 0, surplus ones are left out.
    pub fn row(&mut self, keys: &[&str], numbers: &[u64]) {
        if !self.open {
            return;
        }
        self.bytes.push(1);
        for index in 0..self.keys {
            append_text(
                &mut self.bytes,
                keys.get(index).copied().unwrap_or_default(),
            );
        }
        for index in 0..self.columns {
            append_number(&mut self.bytes, numbers.get(index).copied().unwrap_or(0));
        }
    }

    /// The finished snapshot.
    pub fn finish(mut self) -> Vec<u8> {
        self.close();
        self.bytes
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.bytes.push(0);
        }
    }
}

/// Appends a text, cut if it is too long.
fn append_text(bytes: &mut Vec<u8>, text: &str) {
    let cut = text.floor_char_boundary(NAME_BYTES_MAX);
    append_number(bytes, cut as u64);
    bytes.extend_from_slice(&text.as_bytes()[..cut]);
}

fn append_number(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or(0);
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

/// A row, when reading.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SnapshotRow<'s> {
    /// The table.
    pub table: &'s str,
    /// Its keys: what the row is about.
    pub keys: Vec<&'s str>,
    /// The columns of the table.
    pub columns: &'s [&'s str],
    /// The numbers, one for each column.
    pub numbers: Vec<u64>,
}

impl SnapshotRow<'_> {
    /// The number in a column, if the writer knew the column.
    pub fn number(&self, column: &str) -> Option<u64> {
        let index = self.columns.iter().position(|&name| name == column)?;
        self.numbers.get(index).copied()
    }

    /// A key, empty if it is missing.
    pub fn key(&self, index: usize) -> &str {
        self.keys.get(index).copied().unwrap_or_default()
    }
}

/// Reads a snapshot row by row.
///
/// # Errors
/// [`HandoffError`]; the rows before the error were passed on.
pub fn read(snapshot: &[u8], mut each: impl FnMut(&SnapshotRow<'_>)) -> Result<(), HandoffError> {
    let rest = snapshot
        .strip_prefix(SNAPSHOT_MAGIC)
        .ok_or(HandoffError::BadMagic)?;
    let mut rest = UnreadBytes(rest);
    while !rest.0.is_empty() {
        let table = rest.text()?;
        let keys = usize::from(rest.byte()?);
        if keys > KEY_COUNT_MAX {
            return Err(HandoffError::TooLarge);
        }
        let columns = (0..rest.byte()?)
            .map(|_| rest.text())
            .collect::<Result<Vec<_>, _>>()?;
        loop {
            match rest.byte()? {
                0 => break,
                1 => {}
                _ => return Err(HandoffError::TooLarge),
            }
            let keys = (0..keys).map(|_| rest.text()).collect::<Result<_, _>>()?;
            let numbers = columns.iter().map(|_| rest.number());
            let numbers = numbers.collect::<Result<_, _>>()?;
            each(&SnapshotRow {
                table,
                keys,
                columns: &columns,
                numbers,
            });
        }
    }
    Ok(())
}

/// The bytes that were not read yet.
struct UnreadBytes<'s>(&'s [u8]);

impl<'s> UnreadBytes<'s> {
    fn byte(&mut self) -> Result<u8, HandoffError> {
        let (&byte, rest) = self.0.split_first().ok_or(HandoffError::Truncated)?;
        self.0 = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, HandoffError> {
        let mut value = 0_u64;
        for turn in 0..10 {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if turn == 9 && low > 1 {
                return Err(HandoffError::TooLarge);
            }
            value |= low << (7 * turn);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(HandoffError::TooLarge)
    }

    /// As many as announced, and no more than there are.
    fn bytes(&mut self) -> Result<&'s [u8], HandoffError> {
        let length = usize::try_from(self.number()?).map_err(|_| HandoffError::TooLarge)?;
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(HandoffError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'s str, HandoffError> {
        let length = usize::try_from(self.number()?).map_err(|_| HandoffError::TooLarge)?;
        if length > NAME_BYTES_MAX {
            return Err(HandoffError::TooLarge);
        }
        let (text, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(HandoffError::Truncated)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| HandoffError::NotUtf8)
    }
}

/// The start of a list of pairs: a magic number, and the format version.
const PAIRS_MAGIC: &[u8] = b"BLSP\x01";

/// Questions and their answers, arbitrary bytes, one after the other.
pub fn write_pairs<'p>(pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>) -> Vec<u8> {
    let mut bytes = PAIRS_MAGIC.to_vec();
    for (question, answer) in pairs {
        for part in [question, answer] {
            append_number(&mut bytes, part.len() as u64);
            bytes.extend_from_slice(part);
        }
    }
    bytes
}

/// Passes on each question with its answer.
///
/// # Errors
/// [`HandoffError`]; the pairs before the error were passed on.
pub fn read_pairs<'p>(
    pairs: &'p [u8],
    mut each: impl FnMut(&'p [u8], &'p [u8]),
) -> Result<(), HandoffError> {
    let rest = pairs
        .strip_prefix(PAIRS_MAGIC)
        .ok_or(HandoffError::BadMagic)?;
    let mut rest = UnreadBytes(rest);
    while !rest.0.is_empty() {
        let question = rest.bytes()?;
        each(question, rest.bytes()?);
    }
    Ok(())
}

/// A message between a master and its worker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// Listening sockets, with their records: from the worker for the master to hold, or from the
    /// master for a worker that starts. `begins` starts a new list, which replaces the previous one
    /// when it `ends`.
    Sockets {
        /// The first of a list.
        begins: bool,
        /// The last of a list.
        ends: bool,
        /// Records of `_getsocks`, one for each descriptor.
        records: Vec<u8>,
    },
    /// What the next worker needs and nobody may see, keys above all, in the descriptor beside it:
    /// from the worker for the master to hold, or from the master for a worker that starts
    /// ([`read_pairs`]).
    Secrets,
    /// The channel over which stick tables are asked for, in the descriptor beside it: from the worker
    /// for the master to hold, in front of the snapshot that answers [`Message::Handover`]; from the
    /// master for a worker that starts; or from a process that replaces this one.
    TableChannel,
    /// From the master: there is nothing more, start. A descriptor beside it holds the last
    /// snapshot.
    Start {
        /// The first worker of this master: the master has already printed all messages about the
        /// start.
        first: bool,
    },
    /// From the worker: it is ready. The text is what it printed while it started.
    Ready(String),
    /// From the worker: it cannot start, with the reason.
    Failed(String),
    /// From the worker: a snapshot, in the descriptor beside it.
    Snapshot {
        /// It answers [`Message::Handover`]: what is counted late is counted from it.
        is_handover: bool,
    },
    /// From the master: send a snapshot now, and count from it what comes after.
    Handover,
    /// From a worker that ends: what it counted since it received [`Message::Handover`]. From the
    /// master: what a previous worker counted after its snapshot.
    LateCounts,
    /// From the master: the descriptor beside it is a client of the worker's Runtime API.
    CliConnection,
    /// From the master: read the configuration again. A descriptor beside it holds the answers that
    /// the privileged helper got from the machine ([`read_pairs`]).
    Reload,
    /// From the privileged helper: the machine's answers, in the descriptor beside it.
    HelperDone,
    /// From the worker: the result of [`Message::Reload`].
    Reloaded(Outcome, String),
    /// From the master, which has no log of its own: a line for the worker's log, about something
    /// that was done or refused.
    Log {
        /// It was refused.
        is_refused: bool,
        /// The line.
        text: String,
    },
}

/// The result of reading the configuration again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It is in force.
    Applied,
    /// Nothing was changed.
    Refused,
    /// It needs a new process.
    NeedsProcess,
    /// It needs the privileged helper: the worker is not allowed to inspect the machine, or to open
    /// the new sockets.
    NeedsHelper,
}

impl Message {
    /// Encodes a message, at most [`MESSAGE_BYTES_MAX`]: a longer text is cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind()];
        let mut append = |text: &String| {
            let cut = text.floor_char_boundary(MESSAGE_BYTES_MAX - 2);
            bytes.extend_from_slice(&text.as_bytes()[..cut]);
        };
        match self {
            Self::Ready(text) | Self::Failed(text) => append(text),
            Self::Reloaded(outcome, text) => {
                append(text);
                bytes.insert(
                    1,
                    match outcome {
                        Outcome::Applied => 0,
                        Outcome::Refused => 1,
                        Outcome::NeedsProcess => 2,
                        Outcome::NeedsHelper => 3,
                    },
                );
            }
            Self::Sockets {
                begins,
                ends,
                records,
            } => {
                bytes.push(u8::from(*begins) | u8::from(*ends) << 1);
                bytes.extend_from_slice(records);
            }
            Self::Start { first } => bytes.push(u8::from(*first)),
            Self::Log { is_refused, text } => {
                append(text);
                bytes.insert(1, u8::from(*is_refused));
            }
            Self::Snapshot { is_handover } => bytes.extend(is_handover.then_some(1)),
            Self::Handover
            | Self::LateCounts
            | Self::CliConnection
            | Self::Reload
            | Self::HelperDone
            | Self::Secrets
            | Self::TableChannel => {}
        }
        bytes
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Sockets { .. } => b'h',
            Self::Start { .. } => b'b',
            Self::Ready(_) => b'r',
            Self::Failed(_) => b'f',
            Self::Snapshot { .. } => b's',
            Self::Handover => b'g',
            Self::LateCounts => b'l',
            Self::CliConnection => b'c',
            Self::Reload => b'a',
            Self::HelperDone => b'e',
            Self::Reloaded(..) => b'd',
            Self::Log { .. } => b'n',
            Self::Secrets => b'k',
            Self::TableChannel => b't',
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// [`HandoffError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, HandoffError> {
        let (&kind, body) = bytes.split_first().ok_or(HandoffError::Truncated)?;
        let to_text = |text: &[u8]| match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(HandoffError::NotUtf8),
        };
        let flags = || body.split_first().ok_or(HandoffError::Truncated);
        Ok(match kind {
            b'h' => {
                let (&flags, records) = flags()?;
                Self::Sockets {
                    begins: flags & 1 != 0,
                    ends: flags & 2 != 0,
                    records: records.to_vec(),
                }
            }
            b'b' => Self::Start {
                first: *flags()?.0 & 1 != 0,
            },
            b'r' => Self::Ready(to_text(body)?),
            b'f' => Self::Failed(to_text(body)?),
            b's' => Self::Snapshot {
                is_handover: body.first() == Some(&1),
            },
            b'g' => Self::Handover,
            b'l' => Self::LateCounts,
            b'c' => Self::CliConnection,
            b'a' => Self::Reload,
            b'e' => Self::HelperDone,
            b'k' => Self::Secrets,
            b't' => Self::TableChannel,
            b'd' => {
                let (&outcome, text) = flags()?;
                let outcome = match outcome {
                    0 => Outcome::Applied,
                    1 => Outcome::Refused,
                    2 => Outcome::NeedsProcess,
                    3 => Outcome::NeedsHelper,
                    _ => return Err(HandoffError::TooLarge),
                };
                Self::Reloaded(outcome, to_text(text)?)
            }
            b'n' => {
                let (&is_refused, text) = flags()?;
                Self::Log {
                    is_refused: is_refused & 1 != 0,
                    text: to_text(text)?,
                }
            }
            other => return Err(HandoffError::UnknownMessage(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(bytes: &[u8]) -> Vec<(String, Vec<String>, Vec<u64>)> {
        let mut rows = Vec::new();
        read(bytes, |row| {
            let keys = row.keys.iter().map(|&key| key.to_owned()).collect();
            rows.push((row.table.to_owned(), keys, row.numbers.clone()));
        })
        .unwrap();
        rows
    }

    #[test]
    fn tables_come_back_by_name() {
        let mut writer = Writer::new();
        writer.row(&["nobody"], &[1]);
        writer.table("servers", 2, &["stot", "bin"]);
        writer.row(&["app", "one"], &[300, u64::MAX]);
        writer.row(&["app"], &[7, 8, 9]);
        writer.table("nothing", 0, &[]);
        let bytes = writer.finish();
        let strings = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            rows(&bytes),
            [
                (
                    "servers".into(),
                    strings(&["app", "one"]),
                    vec![300, u64::MAX]
                ),
                ("servers".into(), strings(&["app", ""]), vec![7, 8])
            ]
        );
        read(&bytes, |row| {
            assert_eq!(row.number("stot"), Some(row.numbers[0]));
            assert_eq!(row.number("later"), None);
        })
        .unwrap();
    }

    #[test]
    fn what_is_cut_or_foreign_is_told() {
        let mut writer = Writer::new();
        writer.table("t", 1, &["a"]);
        writer.row(&["k"], &[1 << 40]);
        let bytes = writer.finish();
        for cut in SNAPSHOT_MAGIC.len() + 1..bytes.len() {
            assert_eq!(
                read(&bytes[..cut], |_| {}),
                Err(HandoffError::Truncated),
                "{cut}"
            );
        }
        assert_eq!(read(b"BLST\x02", |_| {}), Err(HandoffError::BadMagic));
        assert_eq!(
            read(b"BLST\x01\x01t\x09\x00", |_| {}),
            Err(HandoffError::TooLarge)
        );
        assert_eq!(Message::decode(b""), Err(HandoffError::Truncated));
        assert_eq!(
            Message::decode(b"?"),
            Err(HandoffError::UnknownMessage(b'?'))
        );
    }

    #[test]
    fn pairs_come_back() {
        let pairs: [(&[u8], &[u8]); 3] = [(b"rfile", b"\x00\xff"), (b"", b""), (b"x", b"")];
        let bytes = write_pairs(pairs);
        let mut read = Vec::new();
        read_pairs(&bytes, |question, answer| read.push((question, answer))).unwrap();
        assert_eq!(read, pairs);
        for cut in PAIRS_MAGIC.len() + 1..bytes.len() {
            let whole = cut == bytes.len() - 5 || cut == bytes.len() - 3;
            assert_eq!(read_pairs(&bytes[..cut], |_, _| {}).is_ok(), whole, "{cut}");
        }
        assert_eq!(
            read_pairs(b"BLST\x01", |_, _| {}),
            Err(HandoffError::BadMagic)
        );
    }

    #[test]
    fn messages_come_back() {
        let text = || "as it was said: ä".to_owned();
        for message in [
            Message::Sockets {
                begins: true,
                ends: false,
                records: b"\0\0\0\0\0\0".to_vec(),
            },
            Message::Start { first: true },
            Message::Ready(text()),
            Message::Failed(String::new()),
            Message::Snapshot { is_handover: false },
            Message::Snapshot { is_handover: true },
            Message::Handover,
            Message::LateCounts,
            Message::CliConnection,
            Message::Reload,
            Message::HelperDone,
            Message::Reloaded(Outcome::NeedsProcess, text()),
            Message::Reloaded(Outcome::NeedsHelper, text()),
        ] {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        let long = Message::Ready("ä".repeat(MESSAGE_BYTES_MAX));
        assert!(long.encode().len() <= MESSAGE_BYTES_MAX);
        assert!(Message::decode(&long.encode()).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn numbers_of_any_size_come_back(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let names: Vec<String> = (0..numbers.len()).map(|n| n.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut writer = Writer::new();
            writer.table("t", 0, &names);
            writer.row(&[], &numbers);
            prop_assert_eq!(&rows(&writer.finish())[0].2, &numbers);
        }
    }
}
