//! Commands about stick tables.
//!
//! Source: management manual, section 9.3; the messages, as seen of HAProxy 3.2.

use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ballast_expr::{address_key, bytes_of_text};
use ballast_model::CliLevel;
use ballast_stick::{
    DataKind, DataType, Entry, Key, KeyType, Removal, ScanCursor, Table, TrackedEntry,
};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["clear", "table"],
        "clear table <table> [<filter>]*",
        "remove entries of a stick table",
        |call| answer(call, TableAction::Clear),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["set", "table"],
        "set table <table> { key <k> | ptr <p> } [data.* <v>]*",
        "write an entry of a stick table",
        |call| answer(call, TableAction::Set),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["show", "table"],
        "show table [<table> [<filter>]*]",
        "list the stick tables, or the entries of one",
        |call| answer(call, TableAction::Show),
    ),
];

/// What a command does with entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TableAction {
    /// `clear table`.
    Clear,
    /// `set table`.
    Set,
    /// `show table`.
    Show,
}

/// Conditions of one command.
const FILTER_COUNT_MAX: usize = 4;
/// Slots that are looked at under one lock.
const SLOTS_PER_PIECE: usize = 32;
/// Words before the first condition: `show table NAME`.
const WORDS_BEFORE: usize = 3;

fn answer(call: &mut CommandCall<'_>, action: TableAction) -> CommandAnswer {
    let ProcessRole::Worker(control) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let name = call.arg(0);
    let tables = Arc::clone(&control.generation().tables);
    if name.is_empty() {
        return match action {
            TableAction::Show => list(tables.all().to_vec()),
            _ => CommandAnswer::error(action.usage()),
        };
    }
    let Some(table) = tables.find(name) else {
        return CommandAnswer::error("No such table");
    };
    let now_ms = control.registry().process().now_ms();
    let level = call.session.level;
    table_answer(level, action, table, &call.args[1..], now_ms)
}

/// Carries out a command on a table; `args` are the words after its name. Entries hold addresses and
/// names of clients, and decide who is served: below [`CliLevel::Operator`] a caller may neither see
/// nor change any.
pub fn table_answer(
    level: CliLevel,
    action: TableAction,
    table: &Arc<Table>,
    args: &[String],
    now_ms: u32,
) -> CommandAnswer {
    let may_see_entries = level >= CliLevel::Operator;
    if !may_see_entries && action != TableAction::Show {
        return CommandAnswer::denied();
    }
    let arg = |entry_number: usize| args.get(entry_number).map_or("", String::as_str);
    let selected = match arg(0) {
        "" if action == TableAction::Set => return CommandAnswer::Done,
        "" => Ok(Selected::Entries(Vec::new())),
        "key" => key(action, table, arg(1)).map(Selected::Key),
        "ptr" => match pointer(arg(1)) {
            Ok(address) => Ok(Selected::Address(address)),
            Err(message) => Err(message.to_owned()),
        },
        word if word.starts_with("data.") => match action {
            TableAction::Set => Err(
                "content-based lookup is only supported with the \"show\" and \"clear\" actions"
                    .to_owned(),
            ),
            _ => filters(table, args).map(Selected::Entries),
        },
        _ => Err(action.usage().to_owned()),
    };
    let rest = args.get(2..).unwrap_or_default();
    match selected {
        Err(message) => CommandAnswer::error(message),
        Ok(Selected::Entries(_)) if !may_see_entries => CommandAnswer::Report(format!(
            "{}# contents not dumped due to insufficient privileges\n",
            head(table)
        )),
        Ok(_) if !may_see_entries => CommandAnswer::denied(),
        Ok(Selected::Entries(filters)) => match action {
            TableAction::Clear => clear(table, filters, now_ms),
            _ => show(table, filters, now_ms),
        },
        Ok(Selected::Key(key)) => one(action, table, (&key).into(), rest, now_ms),
        Ok(Selected::Address(address)) => {
            one(action, table, EntrySelector::Address(address), rest, now_ms)
        }
    }
}

/// Which entries a command is about.
enum Selected {
    Address(u64),
    /// Those that fit all conditions.
    Entries(Vec<Filter>),
    Key(OwnedKey),
}

/// A key that was written.
enum OwnedKey {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Integer(u32),
    Text(Vec<u8>),
}

/// One entry.
enum EntrySelector<'k> {
    Address(u64),
    Key(Key<'k>),
}

impl<'k> From<&'k OwnedKey> for EntrySelector<'k> {
    fn from(key: &'k OwnedKey) -> Self {
        EntrySelector::Key(match key {
            OwnedKey::Ipv4(address) => Key::Ipv4(*address),
            OwnedKey::Ipv6(address) => Key::Ipv6(*address),
            OwnedKey::Integer(number) => Key::Integer(*number),
            OwnedKey::Text(bytes) => Key::Bytes(bytes),
        })
    }
}

impl TableAction {
    fn usage(self) -> &'static str {
        match self {
            TableAction::Clear => {
                "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or \
                 <table> key <key> or <table> ptr <ptr>"
            }
            TableAction::Set => {
                "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or \
                 <table> ptr <ptr> [data.<store_data_type> <value>]*"
            }
            TableAction::Show => {
                "Optional argument only supports \"data.<store_data_type>\" <operator> <value> or \
                 key <key> or ptr <ptr>"
            }
        }
    }

    fn of_keys(self) -> &'static str {
        match self {
            TableAction::Clear => "Removing",
            TableAction::Set => "Inserting",
            TableAction::Show => "Showing",
        }
    }
}

fn key(action: TableAction, table: &Table, text: &str) -> Result<OwnedKey, String> {
    if text.is_empty() {
        return Err("Key value expected".to_owned());
    }
    Ok(match table.key_type() {
        kind @ (KeyType::Ipv4 | KeyType::Ipv6) => match address_key(text, kind) {
            Some(Key::Ipv4(address)) => OwnedKey::Ipv4(address),
            Some(Key::Ipv6(address)) => OwnedKey::Ipv6(address),
            _ => return Err("Invalid key".to_owned()),
        },
        KeyType::Integer => OwnedKey::Integer(integer(text)),
        KeyType::String { .. } => OwnedKey::Text(bytes_of_text(text).into_owned()),
        KeyType::Binary { .. } => {
            return Err(format!(
                "{} keys from tables of type other than ip, ipv6, string and integer is not \
                 supported",
                action.of_keys()
            )
            .replace("Inserting keys from", "Inserting keys into"));
        }
    })
}

/// A number as HAProxy reads it: the digits in front, of which the low 32 bits count.
fn integer(text: &str) -> u32 {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    let number = digits.fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    let number = low(number);
    if is_negative {
        number.wrapping_neg()
    } else {
        number
    }
}

fn pointer(text: &str) -> Result<u64, &'static str> {
    let digits = text.strip_prefix("0x");
    let digits = digits.ok_or("Pointer expected (0xffff notation)")?;
    u64::from_str_radix(digits, 16).map_err(|_| "Malformed ptr.")
}

/// A condition on a data type.
#[derive(Clone, Copy, Debug)]
struct Filter {
    data_type: DataType,
    element: u16,
    operator: fn(&i64, &i64) -> bool,
    value: i64,
}

impl Filter {
    fn fits(&self, entry: &Entry<'_>) -> bool {
        let value = entry.get(self.data_type, self.element);
        value.is_some_and(|value| (self.operator)(&signed(self.data_type, value), &self.value))
    }
}

fn filters(table: &Table, args: &[String]) -> Result<Vec<Filter>, String> {
    let mut all = Vec::new();
    for (entry_number, words) in (1..).zip(args.chunks(3)) {
        let word = words[0].as_str();
        if word.is_empty() {
            break;
        }
        if all.len() == FILTER_COUNT_MAX {
            let before = args
                .get(FILTER_COUNT_MAX * 3 - 1)
                .map_or("", String::as_str);
            return Err(format!(
                "Detected extra data in filter, {}th word of input, after '{before}'",
                WORDS_BEFORE + FILTER_COUNT_MAX * 3 + 1
            ));
        }
        let wrong = |what: &str| format!("Filter entry #{entry_number}: {what}");
        let (data_type, element) = data_type(word).ok_or_else(|| wrong("Unknown data type"))?;
        if !is_stored(table, data_type) {
            return Err(wrong("Data type not stored in this table"));
        }
        let operator = words.get(1).and_then(|word| operator(word));
        let operator = operator.ok_or_else(|| {
            wrong("Require and operator among \"eq\", \"ne\", \"le\", \"ge\", \"lt\", \"gt\"")
        })?;
        let value = words.get(2).and_then(|word| number(word));
        let value =
            value.ok_or_else(|| wrong("Require a valid integer value to compare against"))?;
        all.push(Filter {
            data_type,
            element,
            operator,
            value,
        });
    }
    Ok(all)
}

fn operator(word: &str) -> Option<fn(&i64, &i64) -> bool> {
    Some(match word {
        "eq" => i64::eq,
        "ne" => i64::ne,
        "le" => i64::le,
        "ge" => i64::ge,
        "lt" => i64::lt,
        "gt" => i64::gt,
        _ => return None,
    })
}

/// `data.TYPE`, or `data.TYPE[element]` of an array.
fn data_type(word: &str) -> Option<(DataType, u16)> {
    let word = word.strip_prefix("data.")?;
    match word.strip_suffix(']').and_then(|word| word.split_once('[')) {
        Some((name, element)) => {
            let data_type = DataType::by_word(name).filter(|one| one.is_array())?;
            // HAProxy reads a number of any size, of which the low 32 bits count.
            let element = low(element.parse::<i64>().ok()?.cast_unsigned());
            Some((data_type, u16::try_from(element).unwrap_or(u16::MAX)))
        }
        None => Some((DataType::by_word(word)?, 0)),
    }
}

fn is_stored(table: &Table, data_type: DataType) -> bool {
    table.settings().stored(data_type).is_some()
}

/// A number with all its digits; a sign alone is 0, as HAProxy reads it.
fn number(text: &str) -> Option<i64> {
    match text {
        "" => None,
        "-" => Some(0),
        text if text.starts_with('+') => None,
        text => text.parse().ok(),
    }
}

fn one(
    action: TableAction,
    table: &Arc<Table>,
    selector: EntrySelector<'_>,
    rest: &[String],
    now_ms: u32,
) -> CommandAnswer {
    let no_pointer = || CommandAnswer::error("No entry can be found matching ptr.");
    match action {
        TableAction::Show => {
            let mut text = head(table);
            let write = |entry: Entry<'_>| write_entry(&entry, &mut text);
            let found = match selector {
                EntrySelector::Address(address) => table.at_address(address, now_ms, write),
                EntrySelector::Key(key) => table.lookup(key, now_ms, write),
            };
            match (found, selector) {
                (Some(()), _) => CommandAnswer::Report(text),
                (None, EntrySelector::Address(_)) => no_pointer(),
                (None, EntrySelector::Key(_)) => CommandAnswer::Done,
            }
        }
        TableAction::Clear => {
            let removal = match selector {
                EntrySelector::Address(address) => table.remove_at_address(address),
                EntrySelector::Key(key) => table.remove(key, now_ms),
            };
            match (removal, selector) {
                (Removal::InUse, _) => {
                    CommandAnswer::error("Entry currently in use, cannot remove")
                }
                (Removal::NotFound, EntrySelector::Address(_)) => no_pointer(),
                _ => CommandAnswer::Done,
            }
        }
        TableAction::Set => {
            let entry = match selector {
                EntrySelector::Address(address) => table.track_at_address(address),
                EntrySelector::Key(key) => table.track(key, now_ms),
            };
            match (entry, selector) {
                (Some(entry), _) => match set(table, &entry, rest, now_ms) {
                    Ok(()) => CommandAnswer::Done,
                    Err(message) => CommandAnswer::error(message),
                },
                (None, EntrySelector::Address(_)) => no_pointer(),
                (None, EntrySelector::Key(key)) if !table.accepts(key) => CommandAnswer::Done,
                (None, EntrySelector::Key(_)) => {
                    CommandAnswer::error("Unable to allocate a new entry")
                }
            }
        }
    }
}

fn set(
    table: &Table,
    entry: &TrackedEntry,
    words: &[String],
    now_ms: u32,
) -> Result<(), &'static str> {
    for pair in words.chunks(2) {
        let word = pair[0].as_str();
        if word.is_empty() {
            break;
        }
        if !word.starts_with("data.") {
            return Err("\"data.<type>\" followed by a value expected");
        }
        let (data_type, element) = data_type(word).ok_or("Unknown data type")?;
        let settings = table.settings();
        let stored = settings
            .stored(data_type)
            .ok_or("Data type not stored in this table")?;
        if element >= stored.elements {
            return Err("index out of range in this data array");
        }
        let value = pair.get(1).and_then(|word| number(word));
        let value = value.ok_or("Require a valid integer value to store")?;
        let value = match data_type.kind() {
            DataKind::LargeNumber => value.cast_unsigned(),
            _ => u64::from(low(value.cast_unsigned())),
        };
        entry.update(now_ms, |entry| entry.set(data_type, element, value));
    }
    Ok(())
}

/// The low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
fn low(value: u64) -> u32 {
    value as u32
}

/// A value as HAProxy compares and prints it: numbers of servers have a sign.
fn signed(data_type: DataType, value: u64) -> i64 {
    match data_type {
        DataType::ServerId => i64::from(low(value).cast_signed()),
        _ => value.cast_signed(),
    }
}

/// Removes entries, a piece at a time.
fn clear(table: &Arc<Table>, filters: Vec<Filter>, now_ms: u32) -> CommandAnswer {
    let (table, mut cursor) = (Arc::clone(table), ScanCursor::default());
    CommandAnswer::Pieces(Box::new(move |_| {
        table.remove_where(&mut cursor, SLOTS_PER_PIECE, now_ms, |entry| {
            filters.iter().all(|filter| filter.fits(entry))
        })
    }))
}

/// Lists entries, a piece at a time.
fn show(table: &Arc<Table>, filters: Vec<Filter>, now_ms: u32) -> CommandAnswer {
    let (table, mut cursor) = (Arc::clone(table), ScanCursor::default());
    let mut has_head = false;
    CommandAnswer::Pieces(Box::new(move |into| {
        if !has_head {
            has_head = true;
            into.push_str(&head(&table));
        }
        table.scan(&mut cursor, SLOTS_PER_PIECE, now_ms, |entry| {
            if filters.iter().all(|filter| filter.fits(&entry)) {
                write_entry(&entry, into);
            }
        })
    }))
}

/// The tables, the last of the file first, as in HAProxy.
fn list(tables: Vec<Arc<Table>>) -> CommandAnswer {
    let mut tables = tables.into_iter().rev();
    CommandAnswer::Pieces(Box::new(move |into| match tables.next() {
        Some(table) => {
            into.push_str(&head(&table));
            true
        }
        None => false,
    }))
}

fn head(table: &Table) -> String {
    let settings = table.settings();
    format!(
        "# table: {}, type: {}, size:{}, used:{}\n",
        table.name(),
        settings.key.word(),
        settings.size,
        table.used()
    )
}

/// A line of `show table`. Writing to a string does not fail.
fn write_entry(entry: &Entry<'_>, into: &mut String) {
    let _ = write!(into, "{:#x}: key=", entry.address());
    let mut scratch = Vec::new();
    let _ = match entry.key(&mut scratch) {
        Key::Ipv4(address) => write!(into, "{address}"),
        Key::Ipv6(address) => write!(into, "{}", Ipv6Text(address)),
        Key::Integer(number) => write!(into, "{number}"),
        Key::Bytes(bytes) => {
            if entry.has_text_key() {
                bytes.iter().for_each(|byte| write_text_byte(*byte, into));
            } else {
                bytes.iter().for_each(|byte| {
                    let _ = write!(into, "{byte:02X}");
                });
            }
            Ok(())
        }
    };
    let (trackers, expires) = (entry.trackers(), entry.expires_in_ms().unwrap_or(0));
    let _ = write!(into, " use={trackers} exp={expires} shard=0");
    for stored in entry.stored() {
        for element in 0..stored.elements {
            write_data(entry, stored.data_type, element, stored.period_ms, into);
        }
    }
    into.push('\n');
}

fn write_data(
    entry: &Entry<'_>,
    data_type: DataType,
    element: u16,
    period_ms: u32,
    into: &mut String,
) {
    into.push(' ');
    let _ = match data_type {
        DataType::Gpt => write!(into, "gpt{element}"),
        DataType::Gpc => write!(into, "gpc{element}"),
        DataType::GpcRate => write!(into, "gpc{element}_rate"),
        _ => write!(into, "{}", data_type.word()),
    };
    if data_type.kind() == DataKind::Rate {
        let _ = write!(into, "({period_ms})");
    }
    if data_type == DataType::ServerKey {
        let text = entry.server_key();
        let _ = write!(into, "={}", text.as_deref().unwrap_or("-"));
        return;
    }
    let value = entry.get(data_type, element).unwrap_or(0);
    let _ = match data_type {
        DataType::ServerId => write!(into, "={}", signed(data_type, value)),
        _ => write!(into, "={value}"),
    };
}

/// An address as `inet_ntop(3)` writes it, which shows IPv4 ones within zeros as such.
struct Ipv6Text(Ipv6Addr);

impl fmt::Display for Ipv6Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.segments();
        let is_within_zeros = words[..6].iter().all(|word| *word == 0) && words[6] != 0;
        match self.0.to_ipv4().filter(|_| is_within_zeros) {
            Some(address) => write!(out, "::{address}"),
            None => write!(out, "{}", self.0),
        }
    }
}

/// A byte of a text, so that a line can be divided at blanks and equal signs.
fn write_text_byte(byte: u8, into: &mut String) {
    match byte {
        b' ' | b'=' | b'\\' => {
            into.push('\\');
            into.push(char::from(byte));
        }
        b'\n' => into.push_str("\\n"),
        b'\r' => into.push_str("\\r"),
        b'\t' => into.push_str("\\t"),
        0x1b => into.push_str("\\e"),
        0x21..=0x7e => into.push(char::from(byte)),
        _ => {
            let _ = write!(into, "\\x{byte:02X}");
        }
    }
}
