//! Variables of the process that are set where there is no traffic: by lines of the global section
//! and by commands.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_expr::{Facts, ProcessFacts, Scratch, Time, Value, VarName, VarScope, eval};
use ballast_model::{ProcessVariable, VariableSource};

use crate::{Process, SetVariableError, VariablesNow};

impl Process {
    /// Evaluates `source` outside of any traffic, and sets `proc.<name>` to the result.
    ///
    /// # Errors
    /// [`SetVariableError`]; the variable is unchanged.
    pub fn set_variable(
        &self,
        name: &VarName,
        source: &VariableSource,
    ) -> Result<(), SetVariableError> {
        let facts = NoTrafficFacts::of(self);
        let mut scratch = Scratch::new();
        match source {
            VariableSource::Expr(expr) => {
                let value = eval(expr, &facts, &mut scratch).ok_or(SetVariableError::NoValue)?;
                self.variables.set(&name.name, Some(value))
            }
            VariableSource::Format(format) => {
                let mut text = Vec::new();
                format.render(&facts, &mut scratch, &mut text);
                self.variables.set(&name.name, Some(Value::Str(&text)))
            }
        }
    }

    /// Sets `proc.<name>` to the value of the last line about it, or removes it.
    pub fn set_variable_as_written(&self, name: &Arc<str>, lines: &[ProcessVariable]) {
        let _ = self.variables.set(name, None);
        for line in lines.iter().filter(|line| line.name.name == *name) {
            // As with rules: a value that is absent or too large is not set.
            let _ = self.set_variable(&line.name, &line.source);
        }
    }

    /// Applies the lines of the global section that are new, and removes variables of which no line is
    /// left.
    pub(crate) fn apply_variable_lines(
        &self,
        lines: &[ProcessVariable],
        former: &[ProcessVariable],
    ) {
        for gone in former.iter().filter(|line| !lines.contains(line)) {
            if !lines.iter().any(|line| line.name == gone.name) {
                let _ = self.variables.set(&gone.name.name, None);
            }
        }
        for new in lines.iter().filter(|line| !former.contains(line)) {
            // As with rules: a value that is absent or too large is not set.
            let _ = self.set_variable(&new.name, &new.source);
        }
    }
}

/// The facts that can be asked where there is no traffic.
struct NoTrafficFacts<'p> {
    process: &'p Process,
    variables: VariablesNow,
}

impl<'p> NoTrafficFacts<'p> {
    fn of(process: &'p Process) -> Self {
        Self {
            process,
            variables: process.variables.now(),
        }
    }
}

impl Facts for NoTrafficFacts<'_> {
    fn now(&self) -> Time {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time {
            secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            micros: since.subsec_micros(),
        }
    }

    fn random(&self) -> u64 {
        RandomState::new().hash_one(self.process.age_ms())
    }

    fn var(&self, name: &VarName) -> Option<Value<'_>> {
        match name.scope {
            VarScope::Proc => self.variables.value(&name.name),
            _ => None,
        }
    }

    fn assign(&self, name: &VarName, value: Option<Value<'_>>) {
        if name.scope == VarScope::Proc {
            // A variable that does not fit is not set.
            let _ = self.process.variables.set(&name.name, value);
        }
    }

    fn process(&self) -> &dyn ProcessFacts {
        self
    }
}

impl ProcessFacts for NoTrafficFacts<'_> {
    fn pid(&self) -> i64 {
        i64::from(std::process::id())
    }

    fn env(&self, name: &str) -> Option<Arc<[u8]>> {
        self.process.environment_variable(name)
    }

    fn is_stopping(&self) -> bool {
        self.process.stopping()
    }

    fn uptime_secs(&self) -> i64 {
        i64::try_from(self.process.started.elapsed().as_secs()).unwrap_or(i64::MAX)
    }

    fn add_event(&self, sink: &str, text: &[u8]) {
        self.process.add_event(sink, text);
    }

    fn connections(&self) -> i64 {
        i64::from(self.process.connections.current())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::BYTES_MAX;
    use ballast_expr::{Expr, LogFormat, Usage};

    fn line(name: &str, expr: &str) -> ProcessVariable {
        ProcessVariable {
            name: VarName::parse(name).unwrap(),
            source: VariableSource::Expr(Expr::parse(expr).unwrap()),
        }
    }

    fn value(process: &Process, name: &str) -> Option<i64> {
        process
            .variables
            .now()
            .value(name)
            .and_then(|value| value.to_int())
    }

    #[test]
    fn lines_follow_one_another_and_overrides_stay() {
        let process = Process::new(1, 10);
        let first = [
            line("proc.a", "int(5)"),
            line("proc.b", "var(proc.a),add(1)"),
        ];
        process.apply_variable_lines(&first, &[]);
        assert_eq!(value(&process, "a"), Some(5));
        assert_eq!(value(&process, "b"), Some(6));
        process
            .variables
            .set(&"a".into(), Some(Value::Int(9)))
            .unwrap();
        let next = [line("proc.a", "int(5)"), line("proc.c", "var(proc.a)")];
        process.apply_variable_lines(&next, &first);
        assert_eq!(value(&process, "a"), Some(9), "its line is as it was");
        assert_eq!(value(&process, "b"), None, "its line is gone");
        assert_eq!(value(&process, "c"), Some(9));
    }

    #[test]
    fn what_has_no_value_or_no_room_is_not_set() {
        let process = Process::new(1, 10);
        let name = VarName::parse("proc.x").unwrap();
        let source = VariableSource::Expr(Expr::parse("var(proc.none)").unwrap());
        assert_eq!(
            process.set_variable(&name, &source),
            Err(SetVariableError::NoValue)
        );
        let format = LogFormat::parse("x%[int(3)]", Usage::Text).unwrap();
        let source = VariableSource::Format(format);
        assert_eq!(process.set_variable(&name, &source), Ok(()));
        let large = vec![b'x'; BYTES_MAX];
        let set = process.variables.set(&name.name, Some(Value::Bin(&large)));
        assert_eq!(set, Err(SetVariableError::TooLarge));
        let now = process.variables.now();
        assert_eq!(now.value("x"), Some(Value::Str(b"x3")));
    }
}
