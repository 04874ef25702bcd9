//! Records of changes, for the log.

use std::time::Duration;

/// Which part of the process a command changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChangeScope {
    /// The configuration: whole, a section or a rule. HAProxy has no such commands.
    Configuration,
    /// The state: of servers, weights, limits, entries of lists, counters.
    State,
}

/// The maximum length of a command in a log line, in bytes.
const COMMAND_BYTES_MAX: usize = 200;

/// A change that was requested, for the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChangeRecord<'t> {
    /// Which part of the process it changes.
    pub changes: ChangeScope,
    /// The command, as it was given.
    pub what: &'t str,
    /// The caller: a socket and a process, a signal or the master.
    pub who: &'t str,
    /// How long it took.
    pub took: Duration,
    /// Why it was refused.
    pub refused: Option<&'t str>,
    /// What of it is not in the files (`persist on`).
    pub unwritten: Option<&'t str>,
}

impl ChangeRecord<'_> {
    /// The line of the log: the change, who requested it, its outcome and its duration.
    pub fn line(&self) -> String {
        let cut = self.what.floor_char_boundary(COMMAND_BYTES_MAX);
        let dots = if cut < self.what.len() { "..." } else { "" };
        let what = in_one_line(&self.what[..cut]) + dots;
        let (who, took) = (self.who, self.took.as_millis());
        let change = format!("Change '{what}' by {who}");
        match (self.refused, self.unwritten) {
            (None, None) => format!("{change}: done in {took} ms."),
            (None, Some(why)) => format!("{change}: done in {took} ms. {}", in_one_line(why)),
            (Some(why), _) => format!("{change}: refused in {took} ms: {}", in_one_line(why)),
        }
    }
}

/// Line ends become ` / `, other control characters become question marks.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" / ");
    line.replace(char::is_control, "?")
}
