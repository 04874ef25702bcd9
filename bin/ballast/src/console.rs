//! Messages on the console, in HAProxy's form.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ballast_reconcile::console_line;
use ballast_syntax::Severity;

use crate::version::VERSION;

/// Prints a line on standard output. Errors are ignored.
macro_rules! print_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($text)*);
    }};
}

/// As [`print_line!`], on standard error.
macro_rules! print_error_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

pub(crate) use {print_error_line, print_line};

static QUIET: AtomicBool = AtomicBool::new(false);
static PROGRAM_PRINTED: AtomicBool = AtomicBool::new(false);
static WARNINGS: AtomicU32 = AtomicU32::new(0);
static STARTUP_LOG: Mutex<Option<String>> = Mutex::new(Some(String::new()));

/// Bytes of messages that are stored for `show startup-logs`.
const STARTUP_BYTES_MAX: usize = 64 * 1024;

/// Prints no more warnings and notices from now on (`-q`, `quiet`), only alerts.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether warnings and notices are not printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line. The first alert or warning is preceded by the name of the program.
pub(crate) fn message(severity: Severity, text: &str) {
    if severity != Severity::Notice {
        print_program_once();
    }
    if severity == Severity::Warning {
        WARNINGS.fetch_add(1, Ordering::Relaxed);
    }
    write(&console_line(severity, text), severity == Severity::Alert);
}

/// Prints an alert.
pub(crate) fn alert(text: &str) {
    message(Severity::Alert, text);
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    message(Severity::Warning, text);
}

/// Prints a notice.
pub(crate) fn notice(text: &str) {
    message(Severity::Notice, text);
}

/// Prints rendered diagnostics, `warnings` of which are warnings.
pub(crate) fn diagnostics(text: &str, warnings: usize, has_alerts: bool) {
    if text.is_empty() {
        return;
    }
    if warnings > 0 || has_alerts {
        print_program_once();
    }
    WARNINGS.fetch_add(
        u32::try_from(warnings).unwrap_or(u32::MAX),
        Ordering::Relaxed,
    );
    write(text, has_alerts);
}

/// How many warnings there were, printed or not.
pub(crate) fn warning_count() -> u32 {
    WARNINGS.load(Ordering::Relaxed)
}

/// The messages so far (`show startup-logs`). From now on none are stored.
pub(crate) fn take_startup_log() -> String {
    startup_log().take().unwrap_or_default()
}

/// Prints the version and the path of the program, once.
fn print_program_once() {
    if PROGRAM_PRINTED.swap(true, Ordering::Relaxed) {
        return;
    }
    write(
        &console_line(Severity::Notice, &format!("haproxy version is {VERSION}")),
        false,
    );
    if let Ok(path) = std::env::current_exe() {
        write(
            &console_line(
                Severity::Notice,
                &format!("path to executable is {}", path.display()),
            ),
            false,
        );
    }
}

fn write(text: &str, always: bool) {
    if let Some(log) = startup_log().as_mut()
        && log.len() + text.len() <= STARTUP_BYTES_MAX
    {
        log.push_str(text);
    }
    if always || !is_quiet() {
        // The pipe may be closed or the disk full: the program goes on.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

fn startup_log() -> std::sync::MutexGuard<'static, Option<String>> {
    STARTUP_LOG
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
