//! What the program says while it starts and stops, in HAProxy's form.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ballast_reconcile::{Severity, console_line};

use crate::version::VERSION;

/// A line on standard output. An error of the output ends nothing.
macro_rules! line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($text)*);
    }};
}

/// As [`line!`], on standard error output.
macro_rules! error_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

pub(crate) use {error_line, line};

static QUIET: AtomicBool = AtomicBool::new(false);
static INTRODUCED: AtomicBool = AtomicBool::new(false);
static WARNINGS: AtomicU32 = AtomicU32::new(0);
static STARTUP: Mutex<Option<String>> = Mutex::new(Some(String::new()));

/// Bytes of the start's messages that are kept for `show startup-logs`.
const STARTUP_BYTES_MAX: usize = 64 * 1024;

/// Prints no more warnings and notices from now on (`-q`, `quiet`), only alerts.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether it keeps them to itself.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Says a line; before the first that matters, who is speaking.
pub(crate) fn say(grade: Severity, text: &str) {
    if grade != Severity::Notice {
        introduce();
    }
    if grade == Severity::Warning {
        WARNINGS.fetch_add(1, Ordering::Relaxed);
    }
    raw(&console_line(grade, text), grade == Severity::Alert);
}

/// An alert.
pub(crate) fn alert(text: &str) {
    say(Severity::Alert, text);
}

/// A warning.
pub(crate) fn warn(text: &str) {
    say(Severity::Warning, text);
}

/// A notice.
pub(crate) fn notice(text: &str) {
    say(Severity::Notice, text);
}

/// Lines that are in the form already, such as rendered diagnostics; `warnings` of them warn.
pub(crate) fn lines(text: &str, warnings: usize, grave: bool) {
    if text.is_empty() {
        return;
    }
    if warnings > 0 || grave {
        introduce();
    }
    WARNINGS.fetch_add(
        u32::try_from(warnings).unwrap_or(u32::MAX),
        Ordering::Relaxed,
    );
    raw(text, grave);
}

/// How many warnings there were, printed or not.
pub(crate) fn warning_count() -> u32 {
    WARNINGS.load(Ordering::Relaxed)
}

/// The messages so far (`show startup-logs`). From now on none are kept.
pub(crate) fn take_startup_log() -> String {
    startup().take().unwrap_or_default()
}

/// The two lines that tell which program speaks, once.
fn introduce() {
    if INTRODUCED.swap(true, Ordering::Relaxed) {
        return;
    }
    raw(
        &console_line(Severity::Notice, &format!("haproxy version is {VERSION}")),
        false,
    );
    if let Ok(path) = std::env::current_exe() {
        raw(
            &console_line(
                Severity::Notice,
                &format!("path to executable is {}", path.display()),
            ),
            false,
        );
    }
}

fn raw(text: &str, always: bool) {
    if let Some(kept) = startup().as_mut()
        && kept.len() + text.len() <= STARTUP_BYTES_MAX
    {
        kept.push_str(text);
    }
    if always || !is_quiet() {
        // The pipe may be closed or the disk full: that ends nothing.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

fn startup() -> std::sync::MutexGuard<'static, Option<String>> {
    STARTUP
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
