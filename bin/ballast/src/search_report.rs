//! Says in the log that searches for regular expressions were given up.

use ballast_expr::SearchLimit;
use ballast_log::Level;

use crate::instance::Instance;

/// What was said of searches that were given up.
#[derive(Debug, Default)]
pub(crate) struct SearchReporter {
    reported: u64,
}

impl SearchReporter {
    /// Writes a line to the log of the process if there were any since the last call.
    pub(crate) fn check(&mut self, instance: &Instance) {
        let total = SearchLimit::exhausted_total();
        let new = total - self.reported;
        if new == 0 {
            return;
        }
        self.reported = total;
        let last = SearchLimit::last_exhausted().unwrap_or_default();
        let steps = SearchLimit::steps_max();
        let line = format!(
            "{new} searches for regular expressions took more than {steps} steps and were given up \
             (tune.regex.max-steps): they count as not matching. The last was for '{last}'."
        );
        instance.log_of_process(Level::Warning, &line);
    }
}
