//! `frontend`: its limit, and whether it listens.

use std::sync::Arc;

use crate::object::{NameOf, ObjectKind, ObjectName, OverrideValue, Setting, ValueOf, WriteBack};
use crate::pen::{InFile, Pen, Written};

/// `frontend NAME SETTING`.
pub static FRONTEND: ObjectKind = ObjectKind {
    word: "frontend",
    name: NameOf::Word,
    in_config: |config, name| config.frontend(name.text()).is_some(),
    in_force: |generation, name| generation.frontend(name.text()).is_some(),
    connections: |generation, name| {
        let known = generation.frontend(name);
        known.map_or(0, |one| one.state.sessions.now())
    },
    settings: &[MAXCONN, STATE],
};

const MAXCONN: Setting = Setting {
    word: "maxconn",
    value: ValueOf::Number,
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
    ..Setting::UNKNOWN
};

fn write_maxconn(pen: &mut Pen, name: &ObjectName, value: &OverrideValue) -> Written {
    let Some(known) = pen.target.frontend(name.text()) else {
        return Ok(InFile::NothingToSay);
    };
    let origin = known.common.origin.clone();
    let done = pen
        .text(&origin)
        .is_some_and(|text| text.set_line(origin.line, "maxconn", &value.to_string()));
    if !done {
        return Err("its section was not found");
    }
    let mut frontends = pen.target.frontends.iter_mut();
    if let Some(known) = frontends.find(|one| one.common.name == name.text()) {
        Arc::make_mut(known).connection_count_max = value.number();
    }
    Ok(InFile::Yes)
}

const STATE: Setting = Setting {
    word: "state",
    value: ValueOf::Word(&["enabled", "disabled", "shut down"]),
    apply: Some(|scope, name, value| match value.text() {
        // Why one cannot be paused was logged.
        "disabled" => drop(scope.host.pause_frontend(name.text())),
        "shut down" => scope.host.shut_frontend(name.text()),
        _ => {}
    }),
    release: |scope, name| {
        // One that listens, or was shut down for good, stays so.
        let _ = scope.host.resume_frontend(name.text());
    },
    ..Setting::UNKNOWN
};
