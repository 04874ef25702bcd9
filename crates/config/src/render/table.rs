//! The keyword table: as text, as JSON, as the document `docs/keywords.md`.

use std::fmt::Write;

use serde_json::json;

use crate::keyword::{Keyword, KeywordState};

/// One line per row: state, sections, keyword with its arguments, and the text of the state.
#[must_use]
pub fn keyword_text(keywords: &[Keyword]) -> String {
    let mut out = String::new();
    for row in keywords {
        let form = form(row);
        let _ = write!(
            out,
            "{:<9} {:<28} {form}",
            row.state.word(),
            section_of(row)
        );
        let text = row.state.text();
        if !text.is_empty() {
            let _ = write!(out, "  ({text})");
        }
        out.push('\n');
    }
    out
}

/// One JSON object a line.
#[must_use]
pub fn keyword_json(keywords: &[Keyword]) -> String {
    let mut out = String::new();
    for row in keywords {
        let sections: Vec<_> = row.sections.words().collect();
        let instead = match row.state {
            KeywordState::Refused { instead, .. } if !instead.is_empty() => Some(instead),
            _ => None,
        };
        let object = json!({
            "keyword": row.word,
            "sections": sections,
            "state": row.state.word(),
            "reason": match row.state {
                KeywordState::Honoured => None,
                KeywordState::Ignored(reason) | KeywordState::Refused { reason, .. } => Some(reason),
                KeywordState::Unimplemented("") => None,
                KeywordState::Unimplemented(feature) => Some(feature),
            },
            "instead": instead,
            "newer": row.is_newer(),
            "args": row.args,
            "help": row.help,
            "good": row.good,
            "bad": row.bad,
        });
        let _ = writeln!(out, "{object}");
    }
    out
}

/// The document: a summary, then a table for each section.
#[must_use]
pub fn keyword_markdown(keywords: &[Keyword]) -> String {
    let mut out = String::from(
        "# Keywords\n\n\
         Every keyword of the configuration language and what becomes of it. This file is printed \
         from the rows of `crates/config` (`ballast keywords` prints the same); a test keeps both \
         equal. States:\n\n\
         - **honoured**: it does what HAProxy's manual says\n\
         - **noted**: it is accepted and changes nothing, for the reason given\n\
         - **later**: it is checked, and a configuration that holds it is not started yet\n\
         - **refused**: it is an error, with the reason and the replacement\n\n\
         The last column counts the words that HAProxy 3.2 does not have and later versions \
         do; they are counted in the others too.\n\n\
",
    );
    out.push_str(&summary(keywords));
    for section_word in sections(keywords) {
        let _ = write!(
            out,
            "\n## {section_word}\n\n| keyword | state | what it does |\n|---|---|---|\n"
        );
        let mut rows: Vec<_> = keywords
            .iter()
            .filter(|row| section_of(row) == section_word)
            .collect();
        rows.sort_by_key(|row| row.word);
        for row in rows {
            let form = cell(&form(row));
            let mut help = cell(row.help);
            let text = row.state.text();
            if !text.is_empty() {
                let _ = write!(help, " ({})", cell(&text));
            }
            let _ = writeln!(out, "| `{form}` | {} | {help} |", row.state.word());
        }
    }
    out
}

/// How many words of each section are in each state.
fn summary(keywords: &[Keyword]) -> String {
    let states = ["honoured", "noted", "later", "refused"];
    let mut out = String::from(
        "| where | honoured | noted | later | refused | newer than 3.2 |\n|---|---|---|---|---|---|\n",
    );
    let mut line = |name: &str, is_there: &dyn Fn(&Keyword) -> bool| {
        let rows: Vec<_> = keywords.iter().filter(|row| is_there(row)).collect();
        let _ = write!(out, "| {name} |");
        for state in states {
            let count = rows.iter().filter(|row| row.state.word() == state).count();
            let _ = write!(out, " {count} |");
        }
        let newer = rows.iter().filter(|row| row.is_newer()).count();
        let _ = write!(out, " {newer} |");
        out.push('\n');
    };
    for name in sections(keywords) {
        line(&name, &|row| section_of(row) == name);
    }
    line("all", &|_| true);
    out
}

/// The sections, in the order of the rows.
fn sections(keywords: &[Keyword]) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    for row in keywords {
        let section = section_of(row);
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    sections
}

fn form(row: &Keyword) -> String {
    if row.args.is_empty() || row.args.starts_with('(') {
        format!("{}{}", row.word, row.args)
    } else {
        format!("{} {}", row.word, row.args)
    }
}

fn section_of(row: &Keyword) -> String {
    row.sections.to_string()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
