//! `variable`: a variable of the process (`set var`).

use ballast_expr::VarName;

use crate::object::{ObjectKind, Setting};

/// `variable NAME`.
pub static VARIABLE: ObjectKind = ObjectKind {
    word: "variable",
    settings: &[&VALUE],
    ..ObjectKind::BASE
};

/// `set var`: the expression, as the command has it.
pub static VALUE: Setting = Setting {
    release: |scope, name| {
        let variables = &scope.generation.config.global.variables;
        if let Ok(name) = VarName::parse(name.text()) {
            let process = scope.host.registry().process();
            process.set_variable_as_written(&name.name, variables);
        }
    },
    ..Setting::BASE
};
