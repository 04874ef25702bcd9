//! `variable`: a variable of the process (`set var`).

use ballast_expr::VarName;

use crate::object::{NameOf, ObjectKind, Setting};

/// `variable NAME`.
pub static VARIABLE: ObjectKind = ObjectKind {
    word: "variable",
    name: NameOf::Rest,
    in_config: |_, _| true,
    in_force: |_, _| true,
    connections: |_, _| 0,
    settings: &[Setting {
        release: |scope, name| {
            let variables = &scope.generation.config.global.variables;
            if let Ok(name) = VarName::parse(name.text()) {
                let process = scope.host.registry().process();
                process.set_variable_as_written(&name.name, variables);
            }
        },
        ..Setting::UNKNOWN
    }],
};
