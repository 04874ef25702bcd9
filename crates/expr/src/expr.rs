//! Sample expressions: a fetch and the converters applied to it (manual 7.3).

use std::fmt;

use crate::args::{self, Arg, ArgValue};
use crate::argument_check::{check_converter, check_fetch, ignore_case};
use crate::cast_help::missing_cast;
use crate::conv::internal::when_needs_acl;
use crate::conv::{self, Converter};
use crate::effects::SideEffects;
use crate::error::ExpressionError;
use crate::fetch::{self, Fetch};
use crate::files::PatternFileReader;
use crate::links::{LinkedAcl, Links};
use crate::needs::Needs;
use crate::pattern::{MapKind, MatchMethod, Store};
use crate::phase::{Phase, Phases};
use crate::public_key::JwtAlgorithm;
use crate::value::SampleKind;
use crate::vars::VarName;

/// Converters one expression may chain.
const CONVERTERS_MAX: usize = 256;

/// A sample expression: `fetch(args),conv(args),...`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The row of the fetch.
    pub fetch: &'static Fetch,
    /// What follows the row's word in the name of what a script registers (`lua.`); `None` for others.
    script_name: Option<Box<str>>,
    /// Its arguments, one per position of the row.
    pub args: Vec<Arg>,
    /// The converters in order.
    pub converters: Vec<ConverterStep>,
    /// The type of the result.
    pub kind: SampleKind,
}

/// One converter of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct ConverterStep {
    /// The row of the converter.
    pub converter: &'static Converter,
    /// What follows the row's word in the name of what a script registers (`lua.`); `None` for others.
    script_name: Option<Box<str>>,
    /// Its arguments, one per position of the row.
    pub args: Vec<Arg>,
}

/// Something an expression names that must exist elsewhere in the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ExpressionReference {
    /// An ACL of the same proxy.
    Acl(String),
    /// Groups of a user list that an ACL compares with; none where it compares with something else.
    Groups {
        /// The name of the list.
        list: String,
        /// The names of the groups.
        groups: Vec<String>,
    },
    /// A backend, or the current one when empty.
    Backend(String),
    /// A frontend, or the current one when empty.
    Frontend(String),
    /// A map file.
    MapFile(String),
    /// A pattern file.
    PatternFile(String),
    /// A server; no backend means the current one.
    Server {
        /// The backend's name, when given.
        backend: Option<String>,
        /// The server's name.
        server: String,
    },
    /// A stick table (of the proxy of that name), or the current one when empty.
    Table(String),
    /// A user list.
    Userlist(String),
    /// A variable.
    Variable(VarName),
}

impl Expr {
    /// Parses one whole word.
    ///
    /// # Errors
    /// With the byte range at fault in `text`.
    pub fn parse(text: &str) -> Result<Expr, ExpressionError> {
        let (expr, end) = Expr::parse_prefix(text, 0)?;
        if end < text.len() {
            return Err(trailing(text, end));
        }
        Ok(expr)
    }

    /// Parses an expression given as words: converters may follow as words of their own
    /// (`stick on src ipmask(24)`). Stops at the first word that is no converter; gives how
    /// many words were used.
    ///
    /// # Errors
    /// With the word and the byte range at fault.
    pub fn parse_words(words: &[&str]) -> Result<(Expr, usize), ExpressionError> {
        let first = words
            .first()
            .ok_or_else(|| ExpressionError::new("missing sample expression", 0..0))?;
        // A comma at the end of a word announces a converter, and need not be followed by one.
        let first = first.trim_end_matches(',');
        let (mut expr, end) = Expr::parse_prefix(first, 0)?;
        if end < first.len() {
            return Err(trailing(first, end));
        }
        let mut used = 1;
        while let Some(word) = words.get(used) {
            let name = &word[..name_end(word, 0)];
            if conv::converter(name).is_none() || name.is_empty() {
                break;
            }
            let word = word.trim_end_matches(',');
            let end = expr
                .parse_converters(word, 0)
                .map_err(|error| error.in_word(used))?;
            if end < word.len() {
                return Err(trailing(word, end).in_word(used));
            }
            used += 1;
        }
        Ok((expr, used))
    }

    /// Parses the expression that starts at `at` in `text`; gives where it ends.
    ///
    /// # Errors
    /// With the byte range at fault in `text`.
    pub fn parse_prefix(text: &str, at: usize) -> Result<(Expr, usize), ExpressionError> {
        let end = fetch_name_end(text, at);
        let word = &text[at..end];
        if word.is_empty() {
            return Err(ExpressionError::new(
                "missing fetch method",
                at..text.len().min(at + 1),
            ));
        }
        let Some(row) = fetch::fetch(word) else {
            let known = fetch::fetches().map(|row| row.word);
            return Err(ExpressionError::unknown(
                "fetch method",
                word,
                at..end,
                known,
            ));
        };
        Expr::parse_from(row, text, at, end)
    }

    /// Parses arguments and converters of `row`, whose word stood at `at..end`.
    pub(crate) fn parse_from(
        row: &'static Fetch,
        text: &str,
        at: usize,
        end: usize,
    ) -> Result<(Expr, usize), ExpressionError> {
        let script_name = script_name(row.word, &text[at..end]);
        let (args, end) = parse_args(row.word, row.args, text, at, end)?;
        check_fetch(row, &args).map_err(|error| ExpressionError {
            range: at..end,
            ..error
        })?;
        let mut expr = Expr {
            fetch: row,
            script_name,
            args,
            converters: Vec::new(),
            kind: row.out,
        };
        if text.as_bytes().get(end) != Some(&b',') {
            return Ok((expr, end));
        }
        let end = expr.parse_converters(text, end + 1)?;
        Ok((expr, end))
    }

    /// Parses converters separated by commas from `at` on; gives where they end.
    fn parse_converters(&mut self, text: &str, mut at: usize) -> Result<usize, ExpressionError> {
        loop {
            while text.as_bytes().get(at) == Some(&b',') {
                at += 1;
            }
            let end = name_end(text, at);
            let word = &text[at..end];
            if word.is_empty() {
                let range = at.saturating_sub(1)..at;
                return Err(ExpressionError::new(
                    "missing converter name after the comma",
                    range,
                ));
            }
            let Some(row) = conv::converter(word) else {
                let known = conv::converters().map(|row| row.word);
                return Err(ExpressionError::unknown("converter", word, at..end, known));
            };
            if !self.kind.casts_to(row.takes) {
                return Err(ExpressionError::new(
                    format!(
                        "converter '{word}' cannot be applied: it takes {} and the sample is {}{}",
                        row.takes,
                        self.kind,
                        missing_cast(self.kind, row.takes)
                    ),
                    at..end,
                ));
            }
            if self.converters.len() >= CONVERTERS_MAX {
                return Err(ExpressionError::new(
                    "too many converters in one expression",
                    at..end,
                ));
            }
            let (mut args, end) = parse_args(word, row.args, text, at, end)?;
            if word == "regsub" {
                ignore_case(&mut args)?;
            }
            check_converter(row, &args).map_err(|error| ExpressionError {
                range: at..end,
                ..error
            })?;
            if row.out != SampleKind::Same {
                self.kind = row.out;
            }
            self.converters.push(ConverterStep {
                converter: row,
                script_name: script_name(row.word, word),
                args,
            });
            if text.as_bytes().get(end) != Some(&b',') {
                return Ok(end);
            }
            at = end + 1;
        }
    }

    /// Where the expression may be evaluated.
    pub fn phases(&self) -> Phases {
        self.fetch.phases
    }

    /// What must be there for the expression to have a value.
    pub fn needs(&self) -> Needs {
        let convs = self.converters.iter();
        let own = convs.fold(self.fetch.needs, |sum, step| sum | step.converter.needs);
        self.acls().fold(own, |sum, acl| sum | acl.needs())
    }

    /// What evaluating it does beside giving a value, once it is linked.
    pub fn effects(&self) -> SideEffects {
        let steps = self.converters.iter();
        let own = steps.fold(self.fetch.effects, |sum, step| sum | step.converter.effects);
        self.acls().fold(own, |sum, acl| sum | acl.effects())
    }

    /// The text of `str(<text>)` without converters; `None` for anything that may depend on the
    /// moment of its evaluation.
    pub fn constant(&self) -> Option<&str> {
        match self.args.as_slice() {
            [text] if self.fetch.word == "str" && self.converters.is_empty() => Some(&text.text),
            _ => None,
        }
    }

    /// Whether the expression may be evaluated at `phase`.
    ///
    /// # Errors
    /// A sentence that names the fetch and the phase.
    pub fn available(&self, phase: Phase) -> Result<(), ExpressionError> {
        if self.fetch.phases.has(phase) {
            return Ok(());
        }
        Err(ExpressionError::new(
            format!(
                "fetch method '{}' is not available here ({}); it may be used in: {}",
                self.fetch.word,
                phase.text(),
                self.fetch.phases
            ),
            0..self.fetch.word.len(),
        ))
    }

    /// The words parsed but not evaluated yet.
    pub fn unimplemented(&self) -> Vec<&'static str> {
        let fetch = (!self.fetch.is_implemented()).then_some(self.fetch.word);
        let convs = self
            .converters
            .iter()
            .filter(|step| !step.converter.is_implemented());
        fetch
            .into_iter()
            .chain(convs.map(|step| step.converter.word))
            .chain(self.acls().flat_map(LinkedAcl::unimplemented))
            .collect()
    }

    /// What the expression names elsewhere in the configuration, in order.
    pub fn references(&self) -> Vec<ExpressionReference> {
        let mut all = Vec::new();
        self.each_arg(|arg| {
            let reference = match &arg.value {
                ArgValue::Backend => ExpressionReference::Backend(arg.text.clone()),
                ArgValue::Frontend => ExpressionReference::Frontend(arg.text.clone()),
                ArgValue::Table(_) => ExpressionReference::Table(arg.text.clone()),
                ArgValue::Userlist => ExpressionReference::Userlist(arg.text.clone()),
                ArgValue::Map(_) => ExpressionReference::MapFile(arg.text.clone()),
                ArgValue::Var(name) => ExpressionReference::Variable(name.clone()),
                ArgValue::Server { backend, server } => ExpressionReference::Server {
                    backend: backend.clone(),
                    server: server.clone(),
                },
                ArgValue::Acl(_) => ExpressionReference::Acl(
                    arg.text.strip_prefix('!').unwrap_or(&arg.text).to_owned(),
                ),
                _ => return,
            };
            all.push(reference);
        });
        all
    }

    fn each_arg(&self, visit: impl FnMut(&Arg)) {
        let steps = self.converters.iter().flat_map(|step| &step.args);
        self.args.iter().chain(steps).for_each(visit);
    }

    /// The ACLs that it names, once it is linked.
    fn acls(&self) -> impl Iterator<Item = &dyn LinkedAcl> {
        let steps = self.converters.iter().flat_map(|step| &step.args);
        self.args
            .iter()
            .chain(steps)
            .filter_map(|arg| match &arg.value {
                ArgValue::Acl(slot) => slot.filled().map(|acl| &**acl),
                _ => None,
            })
    }

    /// Joins the expression to the ACLs and map files it names, and to the table of its proxy.
    ///
    /// # Errors
    /// When an ACL does not exist, or a file cannot be read or holds what its map cannot take.
    pub fn link(&mut self, links: &mut dyn Links) -> Result<(), ExpressionError> {
        let mut steps: Vec<&mut ConverterStep> = self.converters.iter_mut().collect();
        steps.retain(|step| step.converter.word != "when" || names_acl(&step.args));
        let of_steps = steps.into_iter().flat_map(|step| &mut step.args);
        for arg in self.args.iter_mut().chain(of_steps) {
            let ArgValue::Acl(slot) = &mut arg.value else {
                continue;
            };
            let name = arg.text.strip_prefix('!').unwrap_or(&arg.text);
            let acl = links.acl(name);
            slot.fill(acl.ok_or_else(|| refuse(&format!("ACL '{name}' not found")))?);
        }
        let (store, files) = links.lists();
        link_own_table(&mut self.args, store);
        for step in &mut self.converters {
            link_own_table(&mut step.args, store);
            link_key(step, store, files);
            let Some((method, kind)) = map_word(step.converter.word) else {
                continue;
            };
            let Some(Arg {
                text,
                value: ArgValue::Map(slot),
            }) = step.args.first_mut()
            else {
                continue;
            };
            let map = store.map(text, method, kind, files);
            slot.fill(map.map_err(|error| store.on_noted_line(error))?);
        }
        Ok(())
    }
}

/// Whether the second argument of `when` is the name of an ACL.
fn names_acl(args: &[Arg]) -> bool {
    let condition = args.first();
    condition.is_some_and(|arg| when_needs_acl(&arg.text) == Some(true))
}

/// Joins `jwt_verify` to the public keys, and reads the one it names. A file that cannot be read is
/// no error: the converter says that the key is unknown.
fn link_key(step: &mut ConverterStep, store: &Store, files: &mut dyn PatternFileReader) {
    let [algorithm, key] = step.args.as_mut_slice() else {
        return;
    };
    let ArgValue::JwtKey { variable, keys } = &mut key.value else {
        return;
    };
    let has_secret = matches!(
        algorithm.value,
        ArgValue::JwtAlgorithm(JwtAlgorithm::None | JwtAlgorithm::Secret(_))
    );
    if variable.is_none() && !has_secret {
        store.public_keys().load(&key.text, files);
    }
    keys.link(store.public_keys());
}

/// What a name has beyond the word of a row that stands for many (`lua.`).
fn script_name(word: &str, name: &str) -> Option<Box<str>> {
    let rest = name.strip_prefix(word).filter(|_| word.ends_with('.'))?;
    Some(rest.into())
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fetch.word)?;
        f.write_str(self.script_name.as_deref().unwrap_or_default())?;
        args::write(f, &self.args)?;
        for step in &self.converters {
            write!(f, ",{}", step.converter.word)?;
            f.write_str(step.script_name.as_deref().unwrap_or_default())?;
            args::write(f, &step.args)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Expr {
    type Err = ExpressionError;
    fn from_str(text: &str) -> Result<Expr, ExpressionError> {
        Expr::parse(text)
    }
}

/// Fills in the name of the proxy's own table where an argument names none.
fn link_own_table(args: &mut [Arg], store: &Store) {
    for arg in args {
        if let ArgValue::Table(own) = &mut arg.value
            && arg.text.is_empty()
        {
            own.fill(store.own_table());
        }
    }
}

/// How a `map...` converter looks up and what it gives; `None` for other words.
pub(crate) fn map_word(word: &str) -> Option<(MatchMethod, MapKind)> {
    let rest = word.strip_prefix("map")?;
    let mut parts = rest.split('_').skip(1);
    let method = match parts.next() {
        None => MatchMethod::Str,
        Some("regm") => MatchMethod::Reg,
        Some(name) => MatchMethod::parse(name)?,
    };
    let kind = match parts.next() {
        None => MapKind::Str,
        Some("int") => MapKind::Int,
        Some("ip") => MapKind::Ip,
        Some("key") => MapKind::Key,
        Some(_) => return None,
    };
    Some((method, kind))
}

fn parse_args(
    word: &str,
    spec: args::ArgSpec,
    text: &str,
    at: usize,
    end: usize,
) -> Result<(Vec<Arg>, usize), ExpressionError> {
    let (raw, end) = match text.as_bytes().get(end) {
        Some(b'(') => {
            let (mut raw, close) = args::cut(text, end + 1)?;
            // Without parentheses no table is meant, with empty ones that of the proxy; and no text, with
            // empty ones an empty text.
            let first = spec.kinds.first();
            if raw.is_empty() && matches!(first, Some(args::ArgKind::Table | args::ArgKind::Text)) {
                raw.push(args::RawArg::empty(close));
            }
            (raw, close + 1)
        }
        _ => (Vec::new(), end),
    };
    Ok((args::resolve(word, spec, raw, at..end)?, end))
}

fn trailing(text: &str, end: usize) -> ExpressionError {
    let rest = &text[end..];
    ExpressionError::new(
        format!("missing comma or unexpected '{rest}' after expression"),
        end..text.len(),
    )
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b':')
}

/// Where the word that starts at `at` ends.
pub(crate) fn name_end(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    at + rest
        .iter()
        .position(|byte| !is_name_byte(*byte))
        .unwrap_or(rest.len())
}

/// The same for fetches, whose names may hold a plus sign (`base32+src`).
pub(crate) fn fetch_name_end(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    let stop = rest
        .iter()
        .enumerate()
        .position(|(i, byte)| !(is_name_byte(*byte) || (i > 0 && *byte == b'+')))
        .unwrap_or(rest.len());
    at + stop
}

fn refuse(message: &str) -> ExpressionError {
    ExpressionError::new(message, 0..0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_scripts_register_are_printed_whole() {
        for text in [
            "lua.of_mine(a),lua.other,lower",
            "lua.x",
            "str(a),lua.y(1,b)",
        ] {
            let expr = Expr::parse(text).expect("a script may register any name");
            assert_eq!(expr.to_string(), text);
            assert_eq!(Expr::parse(&expr.to_string()), Ok(expr));
        }
        assert_ne!(Expr::parse("lua.x"), Expr::parse("lua.y"));
    }
}
