//! At which steps a frontend writes lines.

use ballast_model::{Frontend, LogLines, Mode};
use ballast_rules::{LogStep, LogSteps};

/// At which steps a frontend writes lines. Made once for a configuration: an exchange compares bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogPlan {
    /// The steps; one of them where [`Self::is_single`].
    pub(crate) steps: LogSteps,
    /// Whether an exchange has one line: at the step, or at its end if it does not get so far.
    pub(crate) is_single: bool,
    /// Whether numbers that are known at the end only are marked with a plus sign.
    pub(crate) marks_unfinished: bool,
    /// Whether the line is the short one of frontends without a format.
    pub(crate) is_default_line: bool,
}

impl LogPlan {
    /// What the words of a frontend say. `option logasap` goes before `log-steps`.
    pub(crate) fn of(frontend: &Frontend) -> Self {
        let log = &frontend.log;
        if let (Some(steps), false) = (log.steps, log.as_soon_as_possible) {
            return Self {
                steps,
                ..Self::default()
            };
        }
        let waits = tells_of_the_end(log) && !log.as_soon_as_possible;
        let step = match frontend.common.mode {
            _ if log.format.is_none() => LogStep::Accept,
            _ if waits => LogStep::Close,
            Mode::Http => LogStep::Response,
            _ => LogStep::Connect,
        };
        let mut steps = LogSteps::default();
        steps.insert(step);
        Self {
            steps,
            is_single: true,
            marks_unfinished: !waits,
            is_default_line: log.format.is_none(),
        }
    }
}

/// Whether a format of the frontend has something that is known at the end of an exchange only.
/// Those of profiles do not count.
fn tells_of_the_end(log: &LogLines) -> bool {
    let formats = [&log.format, &log.error_format, &log.structured_data];
    let mut formats = formats.into_iter().flatten();
    formats.any(|format| format.tells_of_the_end())
}

#[cfg(test)]
mod tests {
    use ballast_expr::{LogFormat, Usage};

    use super::*;

    fn frontend(format: Option<&str>) -> Frontend {
        let mut frontend = Frontend::default();
        frontend.common.mode = Mode::Http;
        frontend.log.format = format.map(|text| LogFormat::parse(text, Usage::Log).unwrap());
        frontend
    }

    fn step(frontend: &Frontend) -> Option<LogStep> {
        let plan = LogPlan::of(frontend);
        let mut steps = LogStep::ALL
            .into_iter()
            .filter(|step| plan.steps.has(*step));
        steps
            .next()
            .filter(|_| steps.next().is_none() && plan.is_single)
    }

    #[test]
    fn a_line_is_written_when_all_it_shows_is_known() {
        assert_eq!(step(&frontend(None)), Some(LogStep::Accept));
        let mut early = frontend(Some("%ST %[res.ver] %tsc"));
        assert_eq!(step(&early), Some(LogStep::Response));
        early.common.mode = Mode::Tcp;
        assert_eq!(step(&early), Some(LogStep::Connect));
        let mut late = frontend(Some("%ST %B"));
        assert_eq!(step(&late), Some(LogStep::Close));
        assert_eq!(step(&frontend(Some("%[bytes_out]"))), Some(LogStep::Close));
        late.log.as_soon_as_possible = true;
        assert_eq!(step(&late), Some(LogStep::Response));
        late.log.steps = Some(LogSteps::ALL);
        assert_eq!(step(&late), Some(LogStep::Response));
        assert!(LogPlan::of(&late).marks_unfinished);
        late.log.as_soon_as_possible = false;
        let plan = LogPlan::of(&late);
        assert!(!plan.is_single && !plan.marks_unfinished && plan.steps == LogSteps::ALL);
    }
}
