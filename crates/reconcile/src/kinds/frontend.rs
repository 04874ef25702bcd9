//! `frontend`: its limit, and whether it listens.

use std::sync::Arc;

use ballast_engine::counters::{FrontendSums, H2Sums};

use crate::file_editor::{FileEditor, WriteEffect, WriteResult};
use crate::handover::{HandoverRows, HandoverTable, add_counts};
use crate::object::{NameForm, ObjectKind, ObjectName, Setting, WriteBack};
use crate::override_value::{OverrideValue, ValueType};
use crate::overrides::OverrideKey;

/// `frontend NAME SETTING`.
pub static FRONTEND: ObjectKind = ObjectKind {
    word: "frontend",
    name_form: NameForm::Word,
    in_config: |config, name| config.frontend(name.text()).is_some(),
    in_force: |generation, name| generation.frontend(name.text()).is_some(),
    connections: |generation, name| {
        let known = generation.frontend(name.text());
        known.map_or(0, |one| one.state.sessions.current())
    },
    settings: &[&MAXCONN, &STATE],
    handover: &[
        HandoverTable {
            name: "frontends",
            key_count: 1,
            columns: FrontendSums::NAMES,
            is_count: true,
            rows: HandoverRows::State {
                write: |process, writer| {
                    for frontend in &process.generation.frontends {
                        let sums = frontend.state.counters.sums();
                        writer.row(&[frontend.name()], &sums.values());
                    }
                },
                read: |process, row| {
                    if let Some(frontend) = process.generation.frontend(row.key(0)) {
                        let counters = frontend.state.counters.of(0);
                        add_counts(row, |name| counters.find(name));
                    }
                },
            },
        },
        H2_COUNTS,
    ],
};

/// What connections of HTTP/2 have carried.
const H2_COUNTS: HandoverTable = HandoverTable {
    name: "frontends_h2",
    key_count: 1,
    columns: H2Sums::NAMES,
    is_count: true,
    rows: HandoverRows::State {
        write: |process, writer| {
            for frontend in &process.generation.frontends {
                writer.row(&[frontend.name()], &frontend.state.h2.sums().values());
            }
        },
        read: |process, row| {
            if let Some(frontend) = process.generation.frontend(row.key(0)) {
                let counters = frontend.state.h2.counters.of(0);
                add_counts(row, |name| counters.find(name));
            }
        },
    },
};

/// The key of an override of a setting of a frontend.
pub fn override_key(frontend: &str, setting: &'static Setting) -> OverrideKey {
    OverrideKey::new(&FRONTEND, ObjectName::of(frontend), setting)
}

/// How many connections it accepts.
pub static MAXCONN: Setting = Setting {
    word: "maxconn",
    value: ValueType::Number,
    differs: |was, is, name| {
        let of = |config: &ballast_model::Config| {
            let known = config.frontend(name.text());
            known.map(|one| one.connection_count_max)
        };
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        if let Some(frontend) = scope.generation.frontend(name.text()) {
            frontend.state.override_connection_limit(value.number());
        }
    }),
    release: |scope, name| {
        if let Some(frontend) = scope.generation.frontend(name.text()) {
            frontend.state.override_connection_limit(None);
        }
    },
    write_back: WriteBack::Section(write_maxconn),
    ..Setting::BASE
};

fn write_maxconn(editor: &mut FileEditor, name: &ObjectName, value: &OverrideValue) -> WriteResult {
    let Some(known) = editor.target.frontend(name.text()) else {
        return Ok(WriteEffect::NotNeeded);
    };
    let origin = known.common.origin.clone();
    let done = editor
        .text(&origin)
        .is_some_and(|text| text.set_line(origin.line, "maxconn", &value.to_string()));
    if !done {
        return Err("its section was not found");
    }
    let mut frontends = editor.target.frontends.iter_mut();
    if let Some(known) = frontends.find(|one| one.common.name == name.text()) {
        Arc::make_mut(known).connection_count_max = value.number();
    }
    Ok(WriteEffect::InFile)
}

/// It accepts connections.
pub const ENABLED: OverrideValue = OverrideValue::Word("enabled");

/// Its sockets are paused.
pub const DISABLED: OverrideValue = OverrideValue::Word("disabled");

/// Its sockets are closed.
pub const SHUT_DOWN: OverrideValue = OverrideValue::Word("shut down");

/// Whether it listens: [`ENABLED`], [`DISABLED`] or [`SHUT_DOWN`].
pub static STATE: Setting = Setting {
    word: "state",
    value: ValueType::Word(&["enabled", "disabled", "shut down"]),
    apply: Some(|scope, name, value| {
        if *value == DISABLED {
            // The log says why a frontend could not be paused.
            let _ = scope.host.pause_frontend(name.text());
        } else if *value == SHUT_DOWN {
            scope.host.shut_frontend(name.text());
        }
    }),
    release: |scope, name| {
        // A frontend that listens or was shut down stays as it is.
        let _ = scope.host.resume_frontend(name.text());
    },
    ..Setting::BASE
};
