//! `stick-table` of a proxy and `table` of a `peers` section.
//!
//! Source: HAProxy configuration manual, section 11.1; the messages, as seen of HAProxy 3.2.

use ballast_model::{StickTable, TableSettings};
use ballast_stick::{DataKind, DataType, KeyType, ServerKeyKind, StoredType};
use ballast_syntax::{
    Diagnostic, SectionKind, Span, TimeUnit, ValueError, ValueErrorKind, parse_size,
};

use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[R::new(
    "stick-table",
    Sections::NAMED,
    "type { ip | ipv4 | ipv6 | integer | string [len <n>] | binary [len <n>] } size <size> \
     [ expire <time> ] [ nopurge ] [ recv-only ] [ peers <name> ] [ srvkey { name | addr } ] \
     [ write-to <table> ] [ brates-factor <n> ] [ store <type>[,...] ]*",
    "a table of what is remembered of clients",
    stick_table,
)
.examples(
    "stick-table type ip size 1m expire 30m store gpc0,conn_rate(10s)",
    "stick-table type ip size 1m store nosuch",
)];

/// The longest key, in bytes: HAProxy has no bound, but entries take the space of the longest.
const KEY_BYTES_MAX: u32 = 1 << 20;
/// The factor of byte rates.
const FACTOR_MAX: u32 = 1024;

fn stick_table(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let name = draft.name.clone();
    declare(&name, &draft.title(), args.span(), context)?;
    let settings = settings("stick-table", &name, args, context)?;
    let tables = &mut context.declarations.stick_tables;
    tables.push(StickTable { name, settings });
    Ok(())
}

/// Notes that a section declares a table; names are unique among all sections.
pub(crate) fn declare(
    name: &str,
    title: &str,
    span: Span,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let known = context.declarations.tables.get(name);
    if let Some((other, first)) = known {
        let message = format!(
            "stick-table name '{}' conflicts with table declared in {other} at {}.",
            name.rsplit('/').next().unwrap_or(name),
            context.file_and_line(*first)
        );
        return Err(Diagnostic::alert("duplicate-name", message).at(span));
    }
    let tables = &mut context.declarations.tables;
    tables.insert(name.to_owned(), (title.to_owned(), span));
    Ok(())
}

/// The settings after `stick-table`, or after `table` and its name. `word` begins the messages;
/// `name` is that of the table.
pub(crate) fn settings(
    word: &'static str,
    name: &str,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<TableSettings, Diagnostic> {
    let has_peers = word == "stick-table";
    let (mut key, mut size) = (None, 0);
    let mut all = TableSettings::new(KeyType::Ipv4, 0);
    while let Some(option) = args.next() {
        let line = Line { word, option };
        match option {
            "type" => key = Some(key_type(&line, args)?),
            "size" => size = line.size(args)?,
            "expire" => all.expire_ms = Some(line.time(args)?).filter(|expire| *expire != 0),
            "nopurge" => all.nopurge = true,
            "recv-only" => all.recv_only = true,
            "peers" if has_peers => {
                line.text(args)?;
                all.peers = Some(refer_to_peers(args, context));
            }
            "srvkey" => all.server_key = server_key(&line, args)?,
            "write-to" => {
                let target = args.next().filter(|target| !target.is_empty());
                let target = target
                    .ok_or_else(|| args.wrong(format!("{word} : write-to requires table name.")))?;
                all.write_to = Some(target.to_owned());
                let span = args.wrong("").span.unwrap_or(args.span());
                context.declarations.write_tos.push((name.to_owned(), span));
            }
            "brates-factor" => all.brates_factor = line.factor(args)?,
            "store" => {
                // HAProxy reads nothing after it as no data type.
                let list = args.next().unwrap_or_default();
                stored(&line, list, args, context, &mut all)?;
            }
            other => return Err(line.unknown(other, has_peers, args)),
        }
    }
    let missing = match (key, size) {
        (_, 0) => "size",
        (None, _) => "type",
        (Some(key), size) => {
            (all.key, all.size) = (key, size);
            return Ok(all);
        }
    };
    let message = format!("{word}: missing {missing}.");
    Err(Diagnostic::alert("missing-argument", message).at(args.span()))
}

/// The word that was just taken, as a section.
fn refer_to_peers(args: &Args<'_>, context: &mut Context<'_>) -> String {
    let taken = args.line().words.get(args.position().saturating_sub(1));
    let (name, span) = match taken {
        Some(word) => (word.text(), word.span()),
        None => ("", args.span()),
    };
    let kind = SectionKind::Peers;
    context
        .declarations
        .add_reference(kind, name, "stick-table", span);
    name.to_owned()
}

/// The words that messages begin with.
struct Line<'l> {
    word: &'static str,
    option: &'l str,
}

impl Line<'_> {
    fn text<'a>(&self, args: &mut Args<'a>) -> Result<&'a str, Diagnostic> {
        args.next().filter(|text| !text.is_empty()).ok_or_else(|| {
            let message = format!("{}: missing argument after '{}'.", self.word, self.option);
            args.wrong(message)
        })
    }

    fn value_error(&self, text: &str, error: &ValueError, args: &Args<'_>) -> Diagnostic {
        let (word, option) = (self.word, self.option);
        args.wrong(match error.kind {
            ValueErrorKind::Unexpected(found) => {
                format!("{word}: unexpected character '{found}' in argument of '{option}'.")
            }
            ValueErrorKind::Overflow { max, .. } => format!(
                "{word}: timer overflow in argument <{text}> to <{option}>, maximum value is \
                 {max} ms (~24.8 days)."
            ),
            ValueErrorKind::Empty => format!("{word}: missing argument after '{option}'."),
        })
    }

    fn time(&self, args: &mut Args<'_>) -> Result<u32, Diagnostic> {
        let text = self.text(args)?;
        args.read_time(text, TimeUnit::Millisecond)
            .map_err(|error| self.value_error(text, &error, args))
    }

    fn size(&self, args: &mut Args<'_>) -> Result<u32, Diagnostic> {
        let text = self.text(args)?;
        let size = parse_size(text, u64::from(u32::MAX)).map_err(|error| match error.kind {
            // HAProxy stops at the suffix that makes it too much.
            ValueErrorKind::Overflow { .. } => {
                let last = text.chars().last().unwrap_or_default();
                let kind = ValueErrorKind::Unexpected(last);
                self.value_error(text, &ValueError { kind, ..error }, args)
            }
            _ => self.value_error(text, &error, args),
        })?;
        Ok(u32::try_from(size).unwrap_or(u32::MAX))
    }

    fn factor(&self, args: &mut Args<'_>) -> Result<u32, Diagnostic> {
        let factor = self.size(args)?;
        if (1..=FACTOR_MAX).contains(&factor) {
            return Ok(factor);
        }
        Err(args.wrong(format!(
            "{}: argument 'brates-factor' must be greater than 0 and lower or equal than \
             {FACTOR_MAX}.",
            self.word
        )))
    }

    fn unknown(&self, other: &str, has_peers: bool, args: &Args<'_>) -> Diagnostic {
        let known = [
            "type",
            "size",
            "expire",
            "nopurge",
            "recv-only",
            "srvkey",
            "write-to",
            "brates-factor",
            "store",
            "peers",
        ];
        let known = &known[..known.len() - usize::from(!has_peers)];
        let message = format!("{}: unknown argument '{other}'.", self.word);
        suggestion(args.wrong(message), other, known.iter().copied())
    }
}

fn server_key(line: &Line<'_>, args: &mut Args<'_>) -> Result<ServerKeyKind, Diagnostic> {
    match args.next().unwrap_or_default() {
        "name" => Ok(ServerKeyKind::Name),
        "addr" => Ok(ServerKeyKind::Address),
        other => {
            let message = format!("{} : unknown server key type '{other}'.", line.word);
            Err(suggestion(args.wrong(message), other, ["name", "addr"]))
        }
    }
}

fn key_type(line: &Line<'_>, args: &mut Args<'_>) -> Result<KeyType, Diagnostic> {
    let word = args.next().unwrap_or_default();
    let key = match word {
        "ip" | "ipv4" => return Ok(KeyType::Ipv4),
        "ipv6" => return Ok(KeyType::Ipv6),
        "integer" => return Ok(KeyType::Integer),
        "string" | "binary" => word,
        other => {
            let message = format!("{}: unknown type '{other}'.", line.word);
            let known = ["ip", "ipv4", "ipv6", "integer", "string", "binary"];
            return Err(suggestion(args.wrong(message), other, known));
        }
    };
    let mut len = match word {
        "string" => KeyType::STRING_LEN_DEFAULT,
        _ => KeyType::LEN_DEFAULT,
    };
    if args.take("len") {
        let given = args.next().and_then(|text| text.parse().ok());
        len = given
            .filter(|len| *len > 0)
            .ok_or_else(|| args.wrong("'len' expects a positive integer argument."))?;
        if len > KEY_BYTES_MAX {
            let message = format!("{}: keys have {KEY_BYTES_MAX} bytes at most.", line.word);
            return Err(args.wrong(message));
        }
    }
    Ok(match key {
        "string" => KeyType::String { len },
        _ => KeyType::Binary { len },
    })
}

/// `type[(number)][(period)][(number,period)],...`.
fn stored(
    line: &Line<'_>,
    list: &str,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    all: &mut TableSettings,
) -> Result<(), Diagnostic> {
    let mut rest = Some(list).filter(|list| !list.is_empty());
    while let Some(text) = rest {
        let end = text.find([',', '(']).unwrap_or(text.len());
        let (name, mut after) = text.split_at(end);
        let mut argument = None;
        if let Some(inner) = after.strip_prefix('(') {
            let Some((inner, behind)) = inner.split_once(')') else {
                let message = format!(
                    "{}: missing closing parenthesis after store option '{name}'.",
                    line.word
                );
                return Err(args.wrong(message));
            };
            argument = Some(inner);
            // What stands between the parenthesis and the next comma is not read.
            after = &behind[behind.find(',').unwrap_or(behind.len())..];
        }
        let one = stored_type(line, name, argument, args)?;
        refuse_mixture(line, one.data_type, all, args)?;
        if !all.store(one) {
            let message = format!(
                "{}: store option '{name}' already enabled, ignored.",
                line.word
            );
            context.warn("duplicate-word", message, args.span());
        }
        rest = after.strip_prefix(',');
    }
    Ok(())
}

fn stored_type(
    line: &Line<'_>,
    name: &str,
    argument: Option<&str>,
    args: &mut Args<'_>,
) -> Result<StoredType, Diagnostic> {
    let Some(data_type) = DataType::by_word(name) else {
        let message = format!("{}: unknown store option '{name}'.", line.word);
        let known = DataType::ALL.iter().map(|one| one.word());
        return Err(suggestion(args.wrong(message), name, known));
    };
    let wrong = |args: &Args<'_>, what: &str| {
        args.wrong(format!("{}: {what} store option '{name}'.", line.word))
    };
    let mut one = StoredType::plain(data_type);
    let is_rate = data_type.kind() == DataKind::Rate;
    let mut rest = argument;
    if data_type.is_array() {
        let text = rest.ok_or_else(|| wrong(args, "missing argument to"))?;
        let (count, period) = match text.split_once(',') {
            Some((count, period)) => (count, Some(period)),
            None => (text, None),
        };
        // What follows the digits is not read.
        let end = count.find(|letter: char| !letter.is_ascii_digit());
        one.elements = count[..end.unwrap_or(count.len())]
            .parse()
            .ok()
            .filter(|count| (1..=DataType::ELEMENTS_MAX).contains(count))
            .ok_or_else(|| wrong(args, "array size is out of allowed range (1-100) for"))?;
        rest = period;
    }
    if is_rate {
        let text = rest.ok_or_else(|| wrong(args, "missing argument to"))?;
        let period = text.split(',').next().unwrap_or_default();
        one.period_ms = args
            .read_time(period, TimeUnit::Millisecond)
            .map_err(|_| wrong(args, "error when processing"))?;
    } else if rest.is_some() {
        return Err(wrong(args, "unexpected argument to"));
    }
    Ok(one)
}

/// An array and the counters that are its first elements exclude each other.
fn refuse_mixture(
    line: &Line<'_>,
    new: DataType,
    all: &TableSettings,
    args: &Args<'_>,
) -> Result<(), Diagnostic> {
    for one in &all.stored {
        let pairs = [(new, one.data_type), (one.data_type, new)];
        let mixed = pairs.into_iter().find(|(single, array)| {
            single
                .element_of()
                .is_some_and(|(known, _)| known == *array)
        });
        let Some((_, array)) = mixed else {
            continue;
        };
        let (array, singles) = match array {
            DataType::Gpt => ("gpt", "gpt0"),
            DataType::GpcRate => ("gpc_rate", "gpc[0/1]_rate"),
            _ => ("gpc", "gpc[0/1]"),
        };
        return Err(args.wrong(format!(
            "{}: simultaneous usage of '{array}' and '{singles}' in a same table is not permitted \
             as '{array}' overrides '{singles}'.",
            line.word
        )));
    }
    Ok(())
}
