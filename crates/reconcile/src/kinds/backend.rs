//! `backend`: whether rules lead to it, and its dynamic cookies.

use crate::object::{NameOf, ObjectKind, Setting, ValueOf, WriteBack};
use crate::pen::InFile;

/// `backend NAME SETTING`.
pub static BACKEND: ObjectKind = ObjectKind {
    word: "backend",
    name: NameOf::Word,
    in_config: |config, name| config.backend(name.text()).is_some(),
    in_force: |generation, name| generation.backend(name.text()).is_some(),
    connections: |generation, name| {
        let known = generation.backend(name);
        known.map_or(0, |one| one.state.sessions.now())
    },
    settings: &[DYNAMIC_COOKIE, DYNAMIC_COOKIE_KEY, PUBLISHED],
};

const SWITCH: ValueOf = ValueOf::Word(&["enable", "disable"]);

const DYNAMIC_COOKIE: Setting = Setting {
    word: "dynamic-cookie",
    value: SWITCH,
    differs: |was, is, name| {
        let of = |config: &ballast_model::Config| {
            config.backend(name.text()).map(|one| one.cookie.clone())
        };
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.change_dynamic_cookies(|cookies| cookies.on = Some(value.text() == "enable"));
        }
    }),
    release: |scope, name| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.change_dynamic_cookies(|cookies| cookies.on = None);
        }
    },
    ..Setting::UNKNOWN
};

const DYNAMIC_COOKIE_KEY: Setting = Setting {
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
    ..Setting::UNKNOWN
};

/// `publish backend`: a backend that a command added is published by one. A reload publishes what
/// the file has.
pub const PUBLISHED: Setting = Setting {
    word: "published",
    value: ValueOf::Word(&["yes", "no"]),
    apply: Some(|scope, name, value| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.state.publish(value.text() != "no");
        }
    }),
    release: |scope, name| {
        if let Some(backend) = scope.generation.backend(name.text()) {
            backend.state.publish(true);
        }
    },
    write_back: WriteBack::Section(|_, _, value| match value.text() {
        "no" => Err(super::process::STAYS),
        _ => Ok(InFile::NothingToSay),
    }),
    ..Setting::UNKNOWN
};
