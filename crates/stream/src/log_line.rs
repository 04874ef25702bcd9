//! A line about an exchange: built for each log target as its profile says, and handed to the log.

use ballast_expr::LogFormat;
use ballast_log::{Level, LineText, LogSet, Targets};
use ballast_rules::{LogOrigin, LogProfile};

use crate::context::Context;
use crate::local::EvaluationMemory;
use crate::view::View;

/// A line to be written.
pub(crate) struct LogLine<'a> {
    /// The log targets of the frontend.
    pub(crate) set: &'a LogSet,
    /// Its severity.
    pub(crate) level: Level,
    /// Why it is written.
    pub(crate) origin: LogOrigin,
    /// The format that the frontend has for it; without one it is written for those targets only
    /// whose profile has one.
    pub(crate) format: Option<&'a LogFormat>,
    /// `log-format-sd` of the frontend.
    pub(crate) structured_data: Option<&'a LogFormat>,
    /// A profile in place of those of the targets (`do-log profile`).
    pub(crate) profile: Option<&'a LogProfile>,
}

impl LogLine<'_> {
    /// Writes it to the targets.
    pub(crate) fn write(&self, context: &Context<'_>, view: &View<'_>) {
        self.write_or(context, view, None);
    }

    /// Writes it to the targets, with a text for those that have no format for it.
    pub(crate) fn write_or(&self, context: &Context<'_>, view: &View<'_>, text: Option<&str>) {
        context.local.with_memory(|memory| {
            if self.profile.is_some() || !self.set.has_profiles() {
                return self.write_to((Targets::All, self.profile), context, memory, (view, text));
            }
            for (index, profile) in self.set.profiles().enumerate() {
                let target = (Targets::One(index), profile);
                self.write_to(target, context, memory, (view, text));
            }
        });
    }

    /// Writes it to some targets, as a profile says.
    fn write_to(
        &self,
        (targets, profile): (Targets, Option<&LogProfile>),
        context: &Context<'_>,
        memory: &mut EvaluationMemory,
        (view, fixed): (&View<'_>, Option<&str>),
    ) {
        let (mut format, mut structured_data) = (self.format, self.structured_data);
        if let Some(step) = profile.and_then(|profile| profile.line(self.origin)) {
            if step.is_dropped {
                return self.set.pass_over(targets, self.level);
            }
            format = step.format.as_ref().or(format);
            structured_data = step.structured_data.as_ref().or(structured_data);
        }
        let EvaluationMemory {
            scratch,
            text,
            structured,
            ..
        } = memory;
        text.clear();
        match (format, fixed) {
            (Some(format), _) => format.render(view, scratch, text),
            (None, Some(fixed)) => text.extend_from_slice(fixed.as_bytes()),
            (None, None) => return,
        }
        structured.clear();
        if let Some(format) = structured_data {
            format.render(view, scratch, structured);
        }
        let line = LineText {
            // That of a target's own profile is in its header already.
            tag: self
                .profile
                .map(|own| own.tag.as_deref().unwrap_or(self.set.tag())),
            structured_data: structured,
            message: text,
        };
        let mut log = context.local.log.borrow_mut();
        log.emit_to(self.set, targets, self.level, line);
    }
}
