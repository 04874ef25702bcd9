//! `set-log-level`, `do-log`: the log line of the exchange.

use ballast_expr::Error;

use super::{Action, Unserved};
use crate::args::Args;
use crate::reference::Reference;
use crate::row::Row;
use crate::transaction::LogLevel;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "set-log-level",
        "...XXXXX",
        "{ emerg | alert | crit | err | warning | notice | info | debug | silent }",
        "set the level of the log line",
        level,
    )
    .examples(
        &["set-log-level silent", "set-log-level err if TRUE"],
        &["set-log-level", "set-log-level loud", "set-log-level ERR"],
    ),
    Row::new(
        "do-log",
        "XXXXXXXX",
        "[ profile <name> ]",
        "write a log line now",
        |args| {
            let mut unserved = Unserved::of("do-log");
            if args.take("profile") {
                let name = args.text("'profile' expects a log-profile name")?;
                unserved = unserved.names(Reference::LogProfile(name.to_owned()));
            }
            unserved.done()
        },
    )
    .examples(
        &["do-log", "do-log profile p if TRUE"],
        &["do-log profile", "do-log now"],
    ),
];

/// Severities by their number.
const SEVERITIES: [&str; 8] = [
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];

fn level(args: &mut Args<'_, '_, '_>) -> Result<Action, Error> {
    const USAGE: &str = "expects exactly 1 argument (log level name or 'silent')";
    let word = args.text(USAGE)?;
    if word == "silent" {
        return Ok(Action::LogLevel(LogLevel::Silent));
    }
    let number = SEVERITIES.iter().position(|known| *known == word);
    match number.and_then(|number| u8::try_from(number).ok()) {
        Some(number) => Ok(Action::LogLevel(LogLevel::Severity(number))),
        None => {
            let hint = ballast_expr::nearest(word, SEVERITIES.into_iter().chain(["silent"]));
            Err(args.error_before(USAGE).with_hint(hint))
        }
    }
}
