//! One section, as the lines that commands name by number, name or kind.

use ballast_config::Machine;
use ballast_syntax::{LineKind, Section, SourceLine};

use crate::request::{Refusal, SectionOperation};
use crate::{NO_FILE, quoted_line};

/// Words of lines that a section may have several of, in an order that counts.
const RULES: &[&str] = &[
    "acl",
    "capture",
    "filter",
    "force-persist",
    "http-after-response",
    "http-check",
    "http-request",
    "http-response",
    "ignore-persist",
    "log",
    "monitor",
    "redirect",
    "stick",
    "tcp-check",
    "tcp-request",
    "tcp-response",
    "use-server",
    "use_backend",
];

/// Second words of `stats` that make it such a line.
const STATS_RULES: &[&str] = &["admin", "auth", "http-request", "scope"];

/// First words whose second says which setting it is.
const SETTINGS_OF_TWO_WORDS: &[&str] = &[
    "errorfile",
    "errorloc",
    "errorloc302",
    "errorloc303",
    "option",
    "stats",
    "timeout",
];

/// A section as commands see it.
pub(crate) struct SectionText {
    pub(crate) title: String,
    section: Section,
    /// Its lines with their ends, its opening line first.
    pub(crate) lines: Vec<String>,
}

impl SectionText {
    pub(crate) fn read(title: String, text: &str, machine: &dyn Machine) -> Option<Self> {
        let files = vec![(NO_FILE.to_owned(), text.as_bytes().to_vec())];
        let document = ballast_config::parse_document(files, machine);
        let mut sections = document.sections.into_iter();
        Some(Self {
            title,
            section: sections.find(|section| section.header.is_some())?,
            lines: text.split_inclusive('\n').map(str::to_owned).collect(),
        })
    }

    /// Lines that count, with their numbers: 0 is the opening line's.
    fn statements(&self) -> impl DoubleEndedIterator<Item = (usize, &SourceLine)> {
        let lines = self.section.lines.iter().filter(|line| line.is_statement());
        lines.map(|line| (line.number as usize - 1, line))
    }
}

/// A section of these lines.
pub(crate) fn with_lines(head: &str, lines: &str) -> String {
    let end = if lines.is_empty() || lines.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}\n{lines}{end}")
}

/// Refuses lines that would begin another section, in whatever branch of a condition.
pub(crate) fn is_one_section(text: &str, machine: &dyn Machine) -> Result<(), Refusal> {
    let files = vec![(NO_FILE.to_owned(), text.as_bytes().to_vec())];
    let document = ballast_config::parse_document(files, machine);
    let mut headers = document
        .lines()
        .filter(|line| line.kind == LineKind::Header);
    if let Some(other) = headers.nth(1) {
        return Err(Refusal(format!(
            "The lines are those of one section: '{}' begins another.",
            other.text(0)
        )));
    }
    Ok(())
}

impl SectionText {
    /// The text of the section once it is edited; `None` when it goes.
    pub(crate) fn edit(&mut self, edit: SectionOperation) -> Result<Option<String>, Refusal> {
        match edit {
            SectionOperation::Add(..) | SectionOperation::Remove => return Ok(None),
            SectionOperation::Write(lines) => {
                return Ok(Some(with_lines(self.lines[0].trim_end(), &lines)));
            }
            SectionOperation::Set(words) => self.set(&words)?,
            SectionOperation::AddBind(words) => {
                let after = self.last(|line| line.text(0) == "bind").unwrap_or(0);
                self.insert(after + 1, &format!("bind {}", quoted_line(&words)));
            }
            SectionOperation::SetBind(which, words) => {
                let at = self.bind(&which)?;
                self.replace(at, &format!("bind {}", quoted_line(&words)));
            }
            SectionOperation::RemoveBind(which) => {
                let at = self.bind(&which)?;
                self.lines.remove(at);
            }
            SectionOperation::RenameServer(server, name) => self.rename_server(&server, &name)?,
            SectionOperation::AddRule(before, words) => {
                self.check_rule(&words)?;
                let at = match before {
                    Some(number) => self.rule(number)?,
                    None => self.end_of_kind(&words),
                };
                self.insert(at, &quoted_line(&words));
            }
            SectionOperation::SetRule(number, words) => {
                self.check_rule(&words)?;
                let at = self.rule(number)?;
                self.replace(at, &quoted_line(&words));
            }
            SectionOperation::RemoveRule(number) => {
                let at = self.rule(number)?;
                self.lines.remove(at);
            }
        }
        Ok(Some(self.lines.concat()))
    }

    fn last(&self, is_it: impl Fn(&SourceLine) -> bool) -> Option<usize> {
        let mut statements = self.statements();
        statements.rfind(|(_, line)| is_it(line)).map(|(at, _)| at)
    }

    /// Where a rule comes that names no place: after the last of its kind. The first `acl` stands
    /// before everything that may ask for it, the first of another kind at the end.
    fn end_of_kind(&self, words: &[String]) -> usize {
        match self.last(|line| line.text(0) == words[0]) {
            Some(at) => at + 1,
            None if words[0] == "acl" => 1,
            None => self.lines.len(),
        }
    }

    fn insert(&mut self, at: usize, text: &str) {
        if let Some(last) = self.lines.last_mut()
            && !last.ends_with('\n')
        {
            last.push('\n');
        }
        let margin = self.margin();
        self.lines
            .insert(at.min(self.lines.len()), format!("{margin}{text}\n"));
    }

    fn replace(&mut self, at: usize, text: &str) {
        let old = &self.lines[at];
        let margin = &old[..old.len() - old.trim_start().len()];
        self.lines[at] = format!("{margin}{text}\n");
    }

    /// How far from the edge the section's lines stand.
    fn margin(&self) -> String {
        let margin = self.statements().next().and_then(|(at, _)| {
            let line = self.lines.get(at)?;
            Some(line[..line.len() - line.trim_start().len()].to_owned())
        });
        margin.unwrap_or_else(|| "    ".to_owned())
    }

    /// The number of the `bind` line that is called so.
    fn bind(&self, which: &str) -> Result<usize, Refusal> {
        let binds = || self.statements().filter(|(_, line)| line.text(0) == "bind");
        let named = |line: &SourceLine| {
            let words = || (2..line.words.len()).map(|at| line.text(at));
            words()
                .zip(words().skip(1))
                .any(|(word, value)| word == "name" && value == which)
        };
        let found = binds()
            .find(|(_, line)| named(line) || line.text(1) == which)
            .or_else(|| {
                let number: usize = which.parse().ok()?;
                binds().find(|(at, _)| *at == number)
            });
        let found = found.map(|(at, _)| at).filter(|&at| at < self.lines.len());
        found.ok_or_else(|| {
            Refusal(format!(
                "No bind line of {} is called '{which}': 'show section' lists them.",
                self.title
            ))
        })
    }

    fn rename_server(&mut self, server: &str, name: &str) -> Result<(), Refusal> {
        let found = self.statements().find_map(|(at, line)| {
            let is_it = line.text(0) == "server" && line.text(1) == server;
            let word = line.words.get(1).filter(|_| is_it)?.span().range();
            let start = line.span.range().start;
            Some((at, word.start - start..word.end - start))
        });
        let line = found.and_then(|(at, word)| Some((self.lines.get_mut(at)?, word)));
        let Some((line, word)) = line.filter(|(line, word)| line.get(word.clone()).is_some())
        else {
            return Err(Refusal(format!(
                "Server '{server}' has no line of its own in {}.",
                self.title
            )));
        };
        line.replace_range(word, &quoted_line(&[name.to_owned()]));
        Ok(())
    }

    /// The rule on a line.
    fn rule(&self, number: u32) -> Result<usize, Refusal> {
        let found = self.statements().find(|(at, line)| {
            *at == number as usize && is_rule(line.text(0), line.text(1)) && *at < self.lines.len()
        });
        found.map(|(at, _)| at).ok_or_else(|| {
            Refusal(format!(
                "No rule stands on line {number} of {}: 'show section' lists them.",
                self.title
            ))
        })
    }

    fn check_rule(&self, words: &[String]) -> Result<(), Refusal> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        if is_rule(word(0), word(1)) {
            return Ok(());
        }
        Err(Refusal(format!(
            "'{}' is no rule: 'add bind' and 'add server' add such lines, 'set {}' gives a setting \
             another value.",
            word(0),
            self.title
        )))
    }

    /// Gives a setting another value.
    fn set(&mut self, words: &[String]) -> Result<(), Refusal> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let first = usize::from(word(0) == "no");
        let lines_of_many = ["bind", "server", "server-template"];
        if is_rule(word(first), word(first + 1)) || lines_of_many.contains(&word(first)) {
            return Err(Refusal(format!(
                "There may be several '{0}' lines: 'add', 'set' and 'del' of a bind, a server or a \
                 rule change one of them.",
                word(first)
            )));
        }
        let target = setting(words.iter().map(String::as_str));
        let found = self.last(|line| {
            let words = (0..line.words.len()).map(|at| line.text(at));
            setting(words) == target
        });
        let text = quoted_line(words);
        match found.filter(|&at| at < self.lines.len()) {
            Some(at) => self.replace(at, &text),
            None => self.insert(1, &text),
        }
        Ok(())
    }
}

fn is_rule(first: &str, second: &str) -> bool {
    RULES.contains(&first) || (first == "stats" && STATS_RULES.contains(&second))
}

/// Which setting a line is about, whether it says it or takes it back.
fn setting<'w>(words: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
    let mut words = words.skip_while(|&word| word == "no");
    let mut setting: Vec<&str> = words.next().into_iter().collect();
    if setting
        .first()
        .is_some_and(|first| SETTINGS_OF_TWO_WORDS.contains(first))
    {
        setting.extend(words.next());
    }
    setting
}
