//! `backend`: whether rules lead to it, and its dynamic cookies.

use ballast_engine::counters::{BackendSums, H2Sums};

use crate::file_editor::WriteEffect;
use crate::handover::{HandoverRows, HandoverTable, add_counts};
use crate::object::{NameForm, ObjectKind, ObjectName, Setting, WriteBack};
use crate::override_value::{OverrideValue, ValueType};
use crate::overrides::OverrideKey;

/// `backend NAME SETTING`.
pub static BACKEND: ObjectKind = ObjectKind {
    word: "backend",
    name_form: NameForm::Word,
    in_config: |config, name| config.backend(name.text()).is_some(),
    in_force: |generation, name| generation.backend(name.text()).is_some(),
    connections: |generation, name| {
        let known = generation.backend(name.text());
        known.map_or(0, |one| one.state.sessions.current())
    },
    settings: &[&DYNAMIC_COOKIE, &DYNAMIC_COOKIE_KEY, &PUBLISHED],
    handover: &[
        HandoverTable {
            name: "backends",
            key_count: 1,
            columns: BackendSums::NAMES,
            is_count: true,
            rows: HandoverRows::State {
                write: |process, writer| {
                    for backend in &process.generation.backends {
                        let sums = backend.state.counters.sums();
                        writer.row(&[backend.name()], &sums.values());
                    }
                },
                read: |process, row| {
                    if let Some(backend) = process.generation.backend(row.key(0)) {
                        let counters = backend.state.counters.of(0);
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
    name: "backends_h2",
    key_count: 1,
    columns: H2Sums::NAMES,
    is_count: true,
    rows: HandoverRows::State {
        write: |process, writer| {
            for backend in &process.generation.backends {
                writer.row(&[backend.name()], &backend.state.h2.sums().values());
            }
        },
        read: |process, row| {
            if let Some(backend) = process.generation.backend(row.key(0)) {
                let counters = backend.state.h2.counters.of(0);
                add_counts(row, |name| counters.find(name));
            }
        },
    },
};

/// The key of an override of a setting of a backend.
pub fn override_key(backend: &str, setting: &'static Setting) -> OverrideKey {
    OverrideKey::new(&BACKEND, ObjectName::of(backend), setting)
}

/// Whether dynamic cookies are computed.
pub static DYNAMIC_COOKIE: Setting = Setting {
    word: "dynamic-cookie",
    value: ValueType::SWITCH,
    differs: |was, is, name| {
        let of = |config: &ballast_model::Config| {
            config.backend(name.text()).map(|one| one.cookie.clone())
        };
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.change_dynamic_cookies(|cookies| cookies.on = Some(value.is_on()));
        }
    }),
    release: |scope, name| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.change_dynamic_cookies(|cookies| cookies.on = None);
        }
    },
    ..Setting::BASE
};

/// The key that dynamic cookies are computed of.
pub static DYNAMIC_COOKIE_KEY: Setting = Setting {
    word: "dynamic-cookie-key",
    differs: |was, is, name| {
        let of = |config: &ballast_model::Config| {
            let known = config.backend(name.text());
            known.map(|one| one.dynamic_cookie_key.clone())
        };
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            let key = Some(value.to_string());
            backend.change_dynamic_cookies(|cookies| cookies.key = key);
        }
    }),
    release: |scope, name| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.change_dynamic_cookies(|cookies| cookies.key = None);
        }
    },
    ..Setting::BASE
};

/// Whether rules lead to the backend. A command that adds a backend leaves it unpublished; a reload
/// publishes the backends of the file.
pub static PUBLISHED: Setting = Setting {
    word: "published",
    value: ValueType::Word(&["yes", "no"]),
    apply: Some(|scope, name, value| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.state.publish(is_published(value));
        }
    }),
    release: |scope, name| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.state.publish(true);
        }
    },
    write_back: WriteBack::Section(|_, _, value| {
        if is_published(value) {
            Ok(WriteEffect::NotNeeded)
        } else {
            Err(super::process::NOT_WRITABLE)
        }
    }),
    ..Setting::BASE
};

/// The value of [`PUBLISHED`].
pub fn published(is_published: bool) -> OverrideValue {
    OverrideValue::Word(if is_published { "yes" } else { "no" })
}

/// Whether a value of [`PUBLISHED`] publishes the backend.
pub(crate) fn is_published(value: &OverrideValue) -> bool {
    value.text() != "no"
}
