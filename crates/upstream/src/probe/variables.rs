//! The variables that a run of a probe reads and sets: its own, which end with it, and those of the
//! process.

use std::cell::OnceCell;

use ballast_engine::{VariableBounds, Variables, VariablesNow};
use ballast_expr::{Value, VarName, VarScope};

use super::controller::HealthController;

/// The variables of one run.
#[derive(Debug)]
pub(super) struct ProbeVariables<'a> {
    controller: &'a HealthController,
    /// Those of `check.` and `sess.`, and what was set of the process in the present step.
    own: Variables,
    /// Those of the process, since they were first read in the present step.
    process: OnceCell<VariablesNow>,
}

impl<'a> ProbeVariables<'a> {
    pub(super) fn new(controller: &'a HealthController) -> Self {
        Self {
            controller,
            own: Variables::default(),
            process: OnceCell::new(),
        }
    }

    /// The value of a variable. Those of exchanges are unknown here.
    pub(super) fn value(&self, name: &VarName) -> Option<Value<'_>> {
        let own = self.own.value(name);
        match name.scope {
            VarScope::Check | VarScope::Sess => own,
            VarScope::Proc => own.or_else(|| {
                let process = &self.controller.process().variables;
                self.process.get_or_init(|| process.now()).value(&name.name)
            }),
            _ => None,
        }
    }

    /// Sets a variable, or unsets it. What was given of its former value stays readable.
    pub(super) fn assign(&self, name: &VarName, value: Option<Value<'_>>) {
        let process = &self.controller.process().variables;
        match name.scope {
            VarScope::Check | VarScope::Sess => {
                let generation = self.controller.generation();
                let limits = &generation.config.global.tune.variables;
                let bounds = VariableBounds::new(limits, || 0, process);
                self.own.assign(name, value, bounds);
            }
            VarScope::Proc
                // A variable that does not fit is not set, as in the other scopes.
                if process.set(&name.name, value).is_ok() => {
                    self.own.assign(name, value, VariableBounds::default());
                }
            _ => {}
        }
    }

    /// Ends a step: what is set of the process is read from there again.
    pub(super) fn end_step(&mut self) {
        self.own.store_assigned();
        self.own.forget(VarScope::Proc);
        self.process.take();
    }
}
