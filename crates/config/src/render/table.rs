//! The keyword table: as text, as JSON, as the document `docs/keywords.md`.

use std::fmt::Write;

use serde_json::json;

use crate::keyword::{Keyword, KeywordState};

/// One line per row: state, places, keyword with its arguments, and the text of the state.
#[must_use]
pub fn keyword_text(keywords: &[Keyword]) -> String {
    let mut out = String::new();
    for row in keywords {
        let form = form(row);
        let _ = write!(out, "{:<9} {:<28} {form}", row.state.word(), place(row));
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
        let places: Vec<_> = row.sections.words().collect();
        let instead = match row.state {
            KeywordState::Refused { instead, .. } if !instead.is_empty() => Some(instead),
            _ => None,
        };
        let object = json!({
            "keyword": row.word,
            "sections": places,
            "state": row.state.word(),
            "reason": match row.state {
                KeywordState::Honoured => None,
                KeywordState::Ignored(reason) | KeywordState::Refused { reason, .. } => Some(reason),
                KeywordState::Unimplemented("") => None,
                KeywordState::Unimplemented(feature) => Some(feature),
            },
            "instead": instead,
            "args": row.args,
            "help": row.help,
            "good": row.good,
            "bad": row.bad,
        });
        let _ = writeln!(out, "{object}");
    }
    out
}

/// The document: a summary, then a table for each place.
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
         | state | keywords |\n|---|---|\n",
    );
    for word in ["honoured", "noted", "later", "refused"] {
        let count = keywords
            .iter()
            .filter(|row| row.state.word() == word)
            .count();
        let _ = writeln!(out, "| {word} | {count} |");
    }
    let mut places: Vec<String> = Vec::new();
    for row in keywords {
        let place = place(row);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place_word in places {
        let _ = write!(
            out,
            "\n## {place_word}\n\n| keyword | state | what it does |\n|---|---|---|\n"
        );
        let mut rows: Vec<_> = keywords
            .iter()
            .filter(|row| place(row) == place_word)
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

fn form(row: &Keyword) -> String {
    if row.args.is_empty() {
        row.word.to_owned()
    } else {
        format!("{} {}", row.word, row.args)
    }
}

fn place(row: &Keyword) -> String {
    row.sections.to_string()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
