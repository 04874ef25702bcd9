//! `server`: its line, its limits, its state and how it is checked.
//!
//! The settings of a server live in its state and go to the next process with its health.

use std::net::SocketAddr;
use std::sync::Arc;

use ballast_engine::{CheckOverrides, Generation};
use ballast_health::{Effect, Health};
use ballast_model::{Address, Config, IsExplicit, Server};

use super::server_handover;
use crate::file_editor::{NO_WORD, ServerWords, WriteEffect, find_server};
use crate::object::{NameForm, ObjectKind, ObjectName, Setting, SettingScope, WriteBack};
use crate::override_value::{OverrideValue, ValueType};
use crate::overrides::OverrideKey;

/// `server BACKEND/NAME SETTING`.
pub static SERVER: ObjectKind = ObjectKind {
    word: "server",
    name_form: NameForm::Server,
    in_config: |config, name| line(config, name).is_some(),
    in_force: |generation, name| backend_and_server_index(generation, name).is_some(),
    connections: |generation, name| {
        let found = backend_and_server_index(generation, name);
        found.map_or(0, |(backend, server_index)| {
            backend.servers[server_index].state.sessions.current()
        })
    },
    settings: &[
        &ADDED,
        &ADDRESS,
        &AGENT,
        &AGENT_ADDRESS,
        &AGENT_PORT,
        &AGENT_SEND,
        &CHECK_ADDRESS,
        &CHECK_PORT,
        &HEALTH,
        &MAXCONN,
        &SSL,
        &STATE,
        &WEIGHT,
    ],
    handover: server_handover::TABLES,
};

/// The key of an override of a setting of a server.
pub fn override_key(backend: &str, server: &str, setting: &'static Setting) -> OverrideKey {
    OverrideKey::new(&SERVER, ObjectName::of_server(backend, server), setting)
}

/// Settings that no word of a `server` line has. The file wins where the line has other checks.
const OF_SERVER: Setting = Setting {
    differs: |was, is, name| {
        line(was, name).map(|one| &one.checks) != line(is, name).map(|one| &one.checks)
    },
    is_in_state: true,
    write_back: WriteBack::ServerLine(|_, _, _| Err(NO_WORD)),
    ..Setting::BASE
};

/// `add server`: the words of its line.
pub static ADDED: Setting = Setting {
    word: "added",
    is_object: true,
    has_plan_line: false,
    write_back: WriteBack::ServerLine(|words, _, _| match words {
        ServerWords::New(_) => Ok(WriteEffect::InFile),
        ServerWords::Line(..) => Err(NO_WORD),
    }),
    ..OF_SERVER
};

/// Its address and port.
pub static ADDRESS: Setting = Setting {
    word: "addr",
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| (&one.address, &one.port_mapping));
        of(was) != of(is)
    },
    release: |scope, name| {
        let Some((backend, server_index)) = backend_and_server_index(scope.generation, name) else {
            return;
        };
        let known = &backend.servers[server_index];
        // The address of a name comes from a lookup, not from the file.
        if !matches!(known.model.address, Address::Name { .. }) {
            known
                .state
                .set_current_address(Some(known.model.address.clone()), None);
            backend.address_changed(server_index);
            scope.host.server_moved(known);
        }
    },
    write_back: WriteBack::ServerLine(|words, server, value| {
        let inet: SocketAddr = value.text().parse().map_err(|_| NO_WORD)?;
        let done = words.set_address(value.text())?;
        server.address = Address::Inet(inet);
        server.host_name = None;
        Ok(done)
    }),
    ..OF_SERVER
};

/// Whether its agent is asked.
pub static AGENT: Setting = Setting {
    word: "agent",
    value: ValueType::SWITCH,
    release: |scope, name| {
        change_health(scope, name, |health, _| {
            health.enable_agent(true);
            Vec::new()
        });
    },
    write_back: WriteBack::ServerLine(|_, server, value| {
        // A server of a file begins like this.
        if value.is_on() && server.checks.agent_enabled {
            return Ok(WriteEffect::InFile);
        }
        Err(NO_WORD)
    }),
    ..OF_SERVER
};

/// Whether it is checked.
pub static HEALTH: Setting = Setting {
    word: "health",
    value: ValueType::SWITCH,
    release: |scope, name| {
        change_health(scope, name, |health, _| {
            health.enable_check(true);
            Vec::new()
        });
    },
    write_back: WriteBack::ServerLine(|_, server, value| {
        // A server of a file begins like this.
        if value.is_on() && server.checks.enabled {
            return Ok(WriteEffect::InFile);
        }
        Err(NO_WORD)
    }),
    ..OF_SERVER
};

/// Where its agent is asked.
pub static AGENT_ADDRESS: Setting = Setting {
    word: "agent-addr",
    release: |scope, name| {
        change_checks(scope, name, |checks| {
            (checks.agent_address, checks.agent_port) = (None, None);
        });
    },
    ..OF_SERVER
};

/// The port on which its agent is asked.
pub static AGENT_PORT: Setting = Setting {
    word: "agent-port",
    release: |scope, name| change_checks(scope, name, |checks| checks.agent_port = None),
    ..OF_SERVER
};

/// The text that its agent is sent.
pub static AGENT_SEND: Setting = Setting {
    word: "agent-send",
    release: |scope, name| change_checks(scope, name, |checks| checks.agent_send = None),
    ..OF_SERVER
};

/// Where it is checked.
pub static CHECK_ADDRESS: Setting = Setting {
    word: "check-addr",
    release: |scope, name| {
        change_checks(scope, name, |checks| {
            (checks.check_address, checks.check_port) = (None, None);
        });
    },
    ..OF_SERVER
};

/// The port on which it is checked.
pub static CHECK_PORT: Setting = Setting {
    word: "check-port",
    release: |scope, name| change_checks(scope, name, |checks| checks.check_port = None),
    ..OF_SERVER
};

/// How many exchanges it may carry.
pub static MAXCONN: Setting = Setting {
    word: "maxconn",
    value: ValueType::Number,
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.connection_count_max);
        of(was) != of(is)
    },
    release: |scope, name| {
        if let Some((backend, server_index)) = backend_and_server_index(scope.generation, name) {
            backend.servers[server_index].state.limit_connections(None);
        }
    },
    write_back: WriteBack::ServerLine(|words, server, value| {
        let done = words.set("maxconn", &value.to_string())?;
        server.connection_count_max = value.number().unwrap_or(server.connection_count_max);
        Ok(done)
    }),
    ..OF_SERVER
};

/// Whether its traffic goes over TLS: `on` or `off`. Its checks stay as they are.
pub static SSL: Setting = Setting {
    word: "ssl",
    value: ValueType::Word(&["on", "off"]),
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.tls.as_ref().map(|tls| tls.traffic));
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| use_tls(scope, name, Some(value.text() == "on"))),
    is_in_state: false,
    release: |scope, name| use_tls(scope, name, None),
    ..OF_SERVER
};

/// It is in use.
pub const READY: OverrideValue = OverrideValue::Word("ready");

/// It is in maintenance.
pub const MAINT: OverrideValue = OverrideValue::Word("maint");

/// It gets no new clients.
pub const DRAIN: OverrideValue = OverrideValue::Word("drain");

/// Its administrative state: [`READY`], [`MAINT`] or [`DRAIN`].
pub static STATE: Setting = Setting {
    word: "state",
    value: ValueType::Word(&["ready", "maint", "drain"]),
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.disabled);
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        change_health(scope, name, |health, now_ms| match value.text() {
            "ready" => health.set_ready(now_ms),
            "maint" => health.set_maint(now_ms),
            "drain" => health.set_drain(now_ms),
            _ => Vec::new(),
        });
    }),
    release: |scope, name| {
        let Some((backend, server_index)) = backend_and_server_index(scope.generation, name) else {
            return;
        };
        let disabled = backend.servers[server_index].model.disabled;
        change_health(scope, name, |health, now_ms| {
            if disabled {
                health.set_maint(now_ms)
            } else {
                health.set_ready(now_ms)
            }
        });
    },
    write_back: WriteBack::ServerLine(|words, server, value| {
        if *value == DRAIN {
            return Err(NO_WORD);
        }
        let disabled = *value == MAINT;
        let done = words.switch("disabled", disabled)?;
        server.disabled = disabled;
        server.says_disabled = IsExplicit(disabled);
        Ok(done)
    }),
    ..OF_SERVER
};

/// Its weight.
pub static WEIGHT: Setting = Setting {
    word: "weight",
    value: ValueType::Number,
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.weight);
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        if let Some(weight) = value.number() {
            change_health(scope, name, |health, now_ms| {
                health.set_weight(now_ms, weight)
            });
        }
    }),
    release: |scope, name| {
        let Some((backend, server_index)) = backend_and_server_index(scope.generation, name) else {
            return;
        };
        let weight = backend.servers[server_index].model.weight.into();
        change_health(scope, name, |health, now_ms| {
            health.set_weight(now_ms, weight)
        });
    },
    write_back: WriteBack::ServerLine(|words, server, value| {
        let done = words.set("weight", &value.to_string())?;
        let weight = value.number().and_then(|weight| u16::try_from(weight).ok());
        server.weight = weight.unwrap_or(server.weight);
        Ok(done)
    }),
    ..OF_SERVER
};

/// The server's line in a configuration.
pub(crate) fn line<'c>(config: &'c Config, name: &ObjectName) -> Option<&'c Arc<Server>> {
    let (backend, server) = name.server()?;
    find_server(config, backend, server)
}

/// The server's backend, and its index there.
fn backend_and_server_index<'g>(
    generation: &'g Generation,
    name: &ObjectName,
) -> Option<(&'g Arc<ballast_engine::Backend>, usize)> {
    let (backend, server) = name.server()?;
    let backend = generation.backend(backend)?;
    Some((backend, backend.server_named(server)?))
}

fn use_tls(scope: &SettingScope<'_>, name: &ObjectName, uses: Option<bool>) {
    if let Some((backend, server_index)) = backend_and_server_index(scope.generation, name) {
        backend.servers[server_index].state.use_tls(uses);
    }
}

fn change_health(
    scope: &SettingScope<'_>,
    name: &ObjectName,
    mut change: impl FnMut(&mut Health, u64) -> Vec<Effect>,
) {
    if let Some((backend, server)) = name.server() {
        scope.host.change_health(backend, server, &mut change);
    }
}

fn change_checks(
    scope: &SettingScope<'_>,
    name: &ObjectName,
    change: impl FnOnce(&mut CheckOverrides),
) {
    if let Some((backend, server_index)) = backend_and_server_index(scope.generation, name) {
        backend.servers[server_index].state.change_checks(change);
    }
}
