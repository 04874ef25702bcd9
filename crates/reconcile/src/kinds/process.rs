//! `global`: limits of the process, and whether overrides are written to files.

use std::sync::atomic::Ordering;

use ballast_engine::RateLimits;

use crate::object::{NameOf, ObjectKind, Scope, Setting, ValueOf, WriteBack};
use crate::pen::InFile;

/// Why what was set is in no file.
pub(crate) const STAYS: &str = "it stays with this process";

/// `global SETTING`.
pub static PROCESS: ObjectKind = ObjectKind {
    word: "global",
    name: NameOf::One,
    in_config: |_, _| true,
    in_force: |_, _| true,
    connections: |_, _| 0,
    settings: &[
        MAXCONN,
        PERSIST,
        Setting {
            word: "rate-limit connections",
            apply: Some(|scope, _, value| rates(scope).connections.set(value.number())),
            release: |scope, _| rates(scope).connections.set(None),
            ..RATE
        },
        Setting {
            word: "rate-limit http-compression",
            apply: Some(|scope, _, value| rates(scope).compression_bytes.set(value.number())),
            release: |scope, _| rates(scope).compression_bytes.set(None),
            ..RATE
        },
        Setting {
            word: "rate-limit sessions",
            apply: Some(|scope, _, value| rates(scope).sessions.set(value.number())),
            release: |scope, _| rates(scope).sessions.set(None),
            ..RATE
        },
        Setting {
            word: "rate-limit ssl-sessions",
            apply: Some(|scope, _, value| rates(scope).ssl_sessions.set(value.number())),
            release: |scope, _| rates(scope).ssl_sessions.set(None),
            ..RATE
        },
    ],
};

const RATE: Setting = Setting {
    value: ValueOf::Number,
    ..Setting::UNKNOWN
};

fn rates<'s>(scope: &Scope<'s>) -> &'s RateLimits {
    &scope.host.registry().process().rates
}

const MAXCONN: Setting = Setting {
    word: "maxconn",
    value: ValueOf::Number,
    differs: |was, is, _| was.global.connection_count_max != is.global.connection_count_max,
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
    ..Setting::UNKNOWN
};

/// `persist on`: the process that follows goes on with it, and a reload leaves it.
pub const PERSIST: Setting = Setting {
    word: "persist",
    outlives_reload: true,
    apply: Some(|scope, _, _| scope.persists.store(true, Ordering::Relaxed)),
    release: |scope, _| scope.persists.store(false, Ordering::Relaxed),
    // That it is done.
    write_back: WriteBack::Section(|_, _, _| Ok(InFile::NothingToSay)),
    ..Setting::UNKNOWN
};
