//! The list of commands: all of them, or those most similar to some words.

use crate::command::{Command, CommandFamilies};
use crate::session::CliSession;

/// The maximum number of rows that are shown when no word fits.
const NEAR_COUNT_MAX: usize = 5;

/// The maximum number of wrong letters in a word that is taken for a misspelling.
const DISTANCE_MAX: usize = 2;

/// The part of a word that is compared.
const WORD_BYTES_MAX: usize = 64;

/// The answer to `help`, with the rows that fit the words.
pub(crate) fn help(commands: CommandFamilies, session: &CliSession, words: &[String]) -> String {
    let near = matching(commands, session, words);
    let rows = if near.is_empty() {
        all(commands, session)
    } else {
        near
    };
    list(
        "The following commands are valid at this level:",
        commands,
        &rows,
    )
}

/// The answer to words that select nothing.
pub(crate) fn unknown(commands: CommandFamilies, session: &CliSession, words: &[String]) -> String {
    let Some(first) = words.first() else {
        let head = "Unknown command. Please enter one of the following commands only:";
        return list(head, commands, &all(commands, session));
    };
    let mut near = matching(commands, session, words);
    if near.is_empty() {
        near = all(commands, session);
    }
    if !near.iter().any(|row| begins(row, words)) {
        near = closest(near, words);
    }
    // Words come back in an answer: shown so that they cannot be taken for more lines.
    let first = without_controls(first);
    let head = format!(
        "Unknown command: '{first}', but maybe one of the following ones is a better match:"
    );
    list(&head, commands, &near)
}

fn rows_of(commands: CommandFamilies) -> impl Iterator<Item = &'static Command> {
    commands.iter().flat_map(|family| family.iter())
}

fn list(head: &str, commands: CommandFamilies, rows: &[&'static Command]) -> String {
    let mut text = format!("{head}\n");
    let always = rows_of(commands).filter(|row| row.always_shown);
    for row in rows.iter().copied().chain(always) {
        let gap = if row.usage.len() > 40 { " " } else { "" };
        text.push_str(&format!("  {:<40}{gap}: {}\n", row.usage, row.help));
    }
    text
}

/// The rows that the modes of the session allow (`expert-mode`, `experimental-mode`).
fn all(commands: CommandFamilies, session: &CliSession) -> Vec<&'static Command> {
    let mut rows: Vec<_> = rows_of(commands)
        .filter(|row| !row.always_shown && session.allows(row.restriction))
        .collect();
    rows.sort_by_key(|row| row.usage);
    rows
}

/// The rows that begin with these words (the last may be incomplete). If there is none, the rows
/// that begin with fewer of them; if not even the first word fits, the rows with similar words.
fn matching(
    commands: CommandFamilies,
    session: &CliSession,
    words: &[String],
) -> Vec<&'static Command> {
    let rows = all(commands, session);
    for count in (1..=words.len()).rev() {
        let fitting: Vec<_> = rows
            .iter()
            .copied()
            .filter(|row| begins(row, &words[..count]))
            .collect();
        // Where only some words fit, rows whose other words are similar are better.
        if !fitting.is_empty() {
            let nearer = nearest(&fitting, words);
            return if nearer.is_empty() { fitting } else { nearer };
        }
    }
    nearest(&rows, words)
}

fn begins(row: &Command, words: &[String]) -> bool {
    let last = words.len().saturating_sub(1);
    words.iter().enumerate().all(|(index, given)| {
        row.words.get(index).is_some_and(|of_row| {
            given == of_row || (index == last && of_row.starts_with(given.as_str()))
        })
    })
}

fn nearest(rows: &[&'static Command], words: &[String]) -> Vec<&'static Command> {
    let mut near: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((distance(row, words)?, *row)))
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.retain(|(distance, _)| *distance == best);
    near.truncate(NEAR_COUNT_MAX);
    near.into_iter().map(|(_, row)| row).collect()
}

/// The rows whose words are most similar to the given ones, if there are many.
fn closest(mut rows: Vec<&'static Command>, words: &[String]) -> Vec<&'static Command> {
    let apart = |row: &&'static Command| -> usize {
        let given = |index| words.get(index).map_or("", String::as_str);
        let pairs = row.words.iter().enumerate();
        pairs
            .map(|(index, of_row)| edit_distance(of_row, given(index)))
            .sum()
    };
    if rows.len() > NEAR_COUNT_MAX {
        rows.sort_by_cached_key(apart);
        rows.truncate(NEAR_COUNT_MAX);
        rows.sort_by_key(|row| row.usage);
    }
    rows
}

/// The number of wrong letters in all words of a row; `None` when one of them is a different word.
fn distance(row: &Command, words: &[String]) -> Option<usize> {
    let mut sum = 0;
    for (index, of_row) in row.words.iter().enumerate() {
        let wrong = bounded_edit_distance(of_row, words.get(index)?);
        if wrong > DISTANCE_MAX || wrong >= of_row.len() {
            return None;
        }
        sum += wrong;
    }
    Some(sum)
}

/// [`edit_distance`], but more than [`DISTANCE_MAX`] at once if the lengths differ by more.
fn bounded_edit_distance(one: &str, other: &str) -> usize {
    if one.len().abs_diff(other.len()) > DISTANCE_MAX {
        return DISTANCE_MAX + 1;
    }
    edit_distance(one, other)
}

/// The number of letters to insert, delete or replace (Levenshtein), in the first
/// [`WORD_BYTES_MAX`] bytes.
fn edit_distance(one: &str, other: &str) -> usize {
    let other = &other.as_bytes()[..other.len().min(WORD_BYTES_MAX)];
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// A word whose control characters are written out.
fn without_controls(word: &str) -> String {
    let mut shown = String::with_capacity(word.len());
    for letter in word.chars() {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}
