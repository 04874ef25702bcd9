//! `global`: limits of the process, and whether overrides are written to files.

use std::sync::atomic::Ordering;

use ballast_engine::RateLimits;
use ballast_engine::counters::ProcessSums;

use crate::file_editor::WriteEffect;
use crate::handover::{HandoverRows, HandoverTable, add_counts};
use crate::object::{NameForm, ObjectKind, ObjectName, Setting, SettingScope, WriteBack};
use crate::override_value::ValueType;
use crate::overrides::OverrideKey;

/// Why `persist` does not write an override that no file can have.
pub(crate) const NOT_WRITABLE: &str = "it stays with this process";

/// `global SETTING`.
pub static PROCESS: ObjectKind = ObjectKind {
    word: "global",
    name_form: NameForm::None,
    settings: &[
        &MAXCONN,
        &PERSIST,
        &RATE_CONNECTIONS,
        &RATE_COMPRESSION,
        &RATE_SESSIONS,
        &RATE_SSL_SESSIONS,
    ],
    handover: &[HandoverTable {
        name: "process",
        key_count: 0,
        columns: ProcessSums::NAMES,
        is_count: true,
        rows: HandoverRows::State {
            write: |process, writer| {
                writer.row(&[], &process.process.counters.sums().values());
            },
            read: |process, row| {
                let counters = process.process.counters.of(0);
                add_counts(row, |name| counters.find(name));
            },
        },
    }],
    ..ObjectKind::BASE
};

/// The key of an override of a setting of the process.
pub fn override_key(setting: &'static Setting) -> OverrideKey {
    OverrideKey::new(&PROCESS, ObjectName::None, setting)
}

/// Connections per second.
pub static RATE_CONNECTIONS: Setting = Setting {
    word: "rate-limit connections",
    apply: Some(|scope, _, value| rates(scope).connections.set(value.number())),
    release: |scope, _| rates(scope).connections.set(None),
    ..RATE
};

/// Bytes per second that are compressed.
pub static RATE_COMPRESSION: Setting = Setting {
    word: "rate-limit http-compression",
    apply: Some(|scope, _, value| rates(scope).compression_bytes.set(value.number())),
    release: |scope, _| rates(scope).compression_bytes.set(None),
    ..RATE
};

/// Sessions per second.
pub static RATE_SESSIONS: Setting = Setting {
    word: "rate-limit sessions",
    apply: Some(|scope, _, value| rates(scope).sessions.set(value.number())),
    release: |scope, _| rates(scope).sessions.set(None),
    ..RATE
};

/// TLS sessions per second.
pub static RATE_SSL_SESSIONS: Setting = Setting {
    word: "rate-limit ssl-sessions",
    apply: Some(|scope, _, value| rates(scope).ssl_sessions.set(value.number())),
    release: |scope, _| rates(scope).ssl_sessions.set(None),
    ..RATE
};

const RATE: Setting = Setting {
    value: ValueType::Number,
    ..Setting::BASE
};

fn rates<'s>(scope: &SettingScope<'s>) -> &'s RateLimits {
    &scope.host.registry().process().rates
}

/// How many connections the process accepts.
pub static MAXCONN: Setting = Setting {
    word: "maxconn",
    value: ValueType::Number,
    differs: |before, after, _| {
        before.global.connection_count_max != after.global.connection_count_max
    },
    apply: Some(|scope, _, value| {
        let process = scope.host.registry().process();
        process.override_connection_limit(value.number());
    }),
    release: |scope, _| {
        scope
            .host
            .registry()
            .process()
            .override_connection_limit(None)
    },
    ..Setting::BASE
};

/// `persist on`: overrides are written to the files as they come. It holds in the next process and
/// after a reload.
pub static PERSIST: Setting = Setting {
    word: "persist",
    outlives_reload: true,
    apply: Some(|scope, _, _| scope.persists.store(true, Ordering::Relaxed)),
    release: |scope, _| scope.persists.store(false, Ordering::Relaxed),
    write_back: WriteBack::Section(|_, _, _| Ok(WriteEffect::NotNeeded)),
    ..Setting::BASE
};
