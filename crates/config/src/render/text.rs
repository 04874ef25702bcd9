//! Diagnostics in HAProxy's line format, each with the source line.

use std::fmt::Write;

use ballast_syntax::{Diagnostic, Severity, SourceMap, Span};

use crate::LoadedConfig;
use crate::context::THREADS_CODE;

/// The longest part of a source line that is shown, in characters.
const EXCERPT_CHARS_MAX: usize = 160;

/// How diagnostics are printed.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// The process number between parentheses.
    pub pid: u32,
    /// Whether the source line with the word underlined, the cause and advice are printed below.
    pub excerpts: bool,
    /// The lowest severity that is printed: usually [`Severity::Notice`], [`Severity::Diag`] with
    /// `-dD`.
    pub least: Severity,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            pid: 0,
            excerpts: true,
            least: Severity::Notice,
        }
    }
}

/// All diagnostics of a configuration.
#[must_use]
pub fn diagnostics_text(loaded: &LoadedConfig, options: TextOptions) -> String {
    let shown = loaded.diagnostics.iter();
    let mut out = String::new();
    for diagnostic in shown.filter(|diagnostic| diagnostic.severity >= options.least) {
        out.push_str(&diagnostic_text(diagnostic, &loaded.sources, options));
    }
    out
}

/// One diagnostic, final newline included.
#[must_use]
pub fn diagnostic_text(
    diagnostic: &Diagnostic,
    sources: &SourceMap,
    options: TextOptions,
) -> String {
    let mut out = head(diagnostic.severity, options.pid, is_of_threads(diagnostic));
    match diagnostic.span {
        Some(span) => {
            let at = sources.locate(span);
            let _ = writeln!(
                out,
                "parsing [{}:{}] : {}",
                at.file, at.line, diagnostic.message
            );
            if options.excerpts {
                excerpt(&mut out, sources, span);
            }
        }
        None => {
            let _ = writeln!(out, "{}", diagnostic.message);
        }
    }
    if options.excerpts {
        for note in &diagnostic.notes {
            let _ = writeln!(out, "   | note: {note}");
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(out, "   | help: {help}");
        }
    }
    out
}

/// The lines at the end of a refusal, one for each file with alerts and one for all; empty when the
/// configuration was not refused.
#[must_use]
pub fn closing_lines(loaded: &LoadedConfig, pid: u32) -> String {
    let mut out = String::new();
    if !loaded.has_alerts() {
        return out;
    }
    let mut names: Vec<&str> = Vec::new();
    for diagnostic in &loaded.diagnostics {
        if let (Severity::Alert, Some(span)) = (diagnostic.severity, diagnostic.span) {
            let name = loaded.sources.name(span.file);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    for name in names {
        out.push_str(&head(Severity::Alert, pid, false));
        let _ = writeln!(out, "Error(s) found in configuration file : {name}");
    }
    out.push_str(&head(Severity::Alert, pid, alerts_are_of_threads(loaded)));
    out.push_str("Fatal errors found in configuration.\n");
    out
}

/// Whether all alerts of a configuration, if it has some, are about threads and processors: every line was
/// read, and threads have their places.
#[must_use]
pub fn alerts_are_of_threads(loaded: &LoadedConfig) -> bool {
    let mut all = loaded.diagnostics.iter();
    all.all(|one| one.severity < Severity::Alert || is_of_threads(one))
}

/// Whether a message is about threads and processors, which HAProxy counts once it has read all lines.
fn is_of_threads(diagnostic: &Diagnostic) -> bool {
    diagnostic.code == THREADS_CODE && diagnostic.span.is_none()
}

/// `[ALERT]    (123) : config : `, aligned as HAProxy's; messages `of_threads` have no `config`
/// there.
fn head(severity: Severity, pid: u32, of_threads: bool) -> String {
    let level = format!("[{}]", severity.word());
    let part = if of_threads { "" } else { "config : " };
    format!("{level:<11}({pid}) : {part}")
}

/// The source line, and carets below the span.
fn excerpt(out: &mut String, sources: &SourceMap, span: Span) {
    let at = sources.locate(span);
    let Some(line) = sources.line_span(span.file, at.line) else {
        return;
    };
    let bytes = sources.slice(line);
    let start = ((span.start - line.start) as usize).min(bytes.len());
    let end = ((span.end.max(span.start) - line.start) as usize).clamp(start, bytes.len());
    let before: Vec<char> = printable(&bytes[..start]);
    let marked: Vec<char> = printable(&bytes[start..end]);
    let after: Vec<char> = printable(&bytes[end..]);

    // Of a long line, only the part around the span is shown.
    let room = EXCERPT_CHARS_MAX.saturating_sub(marked.len().min(EXCERPT_CHARS_MAX));
    let skipped = before.len().saturating_sub(room / 2);
    let marked = &marked[..marked.len().min(EXCERPT_CHARS_MAX)];
    let rest = &after[..after.len().min(room / 2)];
    let number = at.line.to_string();
    let lead = if skipped > 0 { "..." } else { "" };
    let before = &before[skipped..];
    let shown: String = before.iter().chain(marked).chain(rest).collect();
    let tail = if rest.len() < after.len() { "..." } else { "" };
    let _ = writeln!(out, "   | {number} | {lead}{}{tail}", shown.trim_end());
    let margin = " ".repeat(number.len());
    let space: String = before
        .iter()
        .map(|c| if *c == '\t' { '\t' } else { ' ' })
        .collect();
    let lead = " ".repeat(lead.len());
    let carets = "^".repeat(marked.len().max(1));
    let _ = writeln!(out, "   | {margin} | {lead}{space}{carets}");
}

/// Text without characters that move the cursor.
fn printable(bytes: &[u8]) -> Vec<char> {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::load_with_stand_ins;

    #[test]
    fn a_diagnostic_shows_its_line_and_word() {
        let loaded = load_with_stand_ins("global\n\tmaxcon 5\n");
        let shown = diagnostics_text(
            &loaded,
            TextOptions {
                pid: 7,
                ..TextOptions::default()
            },
        );
        assert_eq!(
            shown,
            "[ALERT]    (7) : config : parsing [t.cfg:2] : unknown keyword 'maxcon' in 'global' \
             section; did you mean 'maxconn' maybe ?\n   | 2 | \tmaxcon 5\n   |   | \t^^^^^^\n"
        );
        assert_eq!(
            closing_lines(&loaded, 7),
            "[ALERT]    (7) : config : Error(s) found in configuration file : t.cfg\n\
             [ALERT]    (7) : config : Fatal errors found in configuration.\n"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_word() {
        let text_of_file = format!("global\n {} x\n", "a".repeat(3000));
        let loaded = load_with_stand_ins(&text_of_file);
        let shown = diagnostics_text(&loaded, TextOptions::default());
        assert!(shown.lines().skip(1).all(|line| line.chars().count() < 200));
    }
}
