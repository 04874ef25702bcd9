//! `server`: its line, its limits, its state and how it is checked.
//!
//! What is set of a server lives in its state and goes to the next process with its health.

use std::net::SocketAddr;
use std::sync::Arc;

use ballast_engine::{CheckOverrides, Generation};
use ballast_health::{Effect, Health};
use ballast_model::{Address, Config, Server};

use crate::object::{NameOf, ObjectKind, ObjectName, Scope, Setting, ValueOf, WriteBack};
use crate::pen::{InFile, NO_WORD};

/// `server BACKEND/NAME SETTING`.
pub static SERVER: ObjectKind = ObjectKind {
    word: "server",
    name: NameOf::Server,
    in_config: |config, name| line(config, name).is_some(),
    in_force: |generation, name| place(generation, name).is_some(),
    connections: |generation, name| {
        let at = name.split_once('/').and_then(|(backend, server)| {
            let backend = generation.backend(backend)?;
            let place = backend.server_named(server)?;
            Some(backend.servers[place].state.sessions.now())
        });
        at.unwrap_or(0)
    },
    settings: &[
        ADDED,
        ADDRESS,
        AGENT,
        AGENT_ADDRESS,
        AGENT_PORT,
        AGENT_SEND,
        CHECK_ADDRESS,
        CHECK_PORT,
        HEALTH,
        MAXCONN,
        STATE,
        WEIGHT,
    ],
};

/// What no word of a line says; the file wins where it has other checks.
const OF_SERVER: Setting = Setting {
    differs: |was, is, name| {
        line(was, name).map(|one| &one.checks) != line(is, name).map(|one| &one.checks)
    },
    is_in_state: true,
    write_back: WriteBack::ServerLine(|_, _, _| Err(NO_WORD)),
    ..Setting::UNKNOWN
};

const SWITCH: ValueOf = ValueOf::Word(&["enable", "disable"]);

/// `add server`: the words of its line.
pub const ADDED: Setting = Setting {
    word: "added",
    is_object: true,
    has_plan_line: false,
    write_back: WriteBack::ServerLine(|words, _, _| match words {
        crate::pen::ServerWords::New(_) => Ok(InFile::Yes),
        crate::pen::ServerWords::Line(..) => Err(NO_WORD),
    }),
    ..OF_SERVER
};

const ADDRESS: Setting = Setting {
    word: "addr",
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| (&one.address, &one.port));
        of(was) != of(is)
    },
    release: |scope, name| {
        let Some((backend, place)) = place(scope.generation, name) else {
            return;
        };
        let known = &backend.servers[place];
        // A name is looked up by whoever watches it.
        if !matches!(known.model.address, Address::Name { .. }) {
            known
                .state
                .set_reach(Some(known.model.address.clone()), None);
            backend.address_changed(place);
            scope.host.moved(known);
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

const AGENT: Setting = Setting {
    word: "agent",
    value: SWITCH,
    release: |scope, name| {
        tell(scope, name, |health, _| {
            health.enable_agent(true);
            Vec::new()
        });
    },
    write_back: WriteBack::ServerLine(|words, _, value| {
        // It begins so in a file.
        if value.text() == "enable" && words.is_new_with("agent-check") {
            return Ok(InFile::Yes);
        }
        Err(NO_WORD)
    }),
    ..OF_SERVER
};

const HEALTH: Setting = Setting {
    word: "health",
    value: SWITCH,
    release: |scope, name| {
        tell(scope, name, |health, _| {
            health.enable_check(true);
            Vec::new()
        });
    },
    write_back: WriteBack::ServerLine(|words, _, value| {
        // It begins so in a file.
        if value.text() == "enable" && words.is_new_with("check") {
            return Ok(InFile::Yes);
        }
        Err(NO_WORD)
    }),
    ..OF_SERVER
};

const AGENT_ADDRESS: Setting = Setting {
    word: "agent-addr",
    release: |scope, name| {
        change_checks(scope, name, |checks| {
            (checks.agent_address, checks.agent_port) = (None, None);
        });
    },
    ..OF_SERVER
};

const AGENT_PORT: Setting = Setting {
    word: "agent-port",
    release: |scope, name| change_checks(scope, name, |checks| checks.agent_port = None),
    ..OF_SERVER
};

const AGENT_SEND: Setting = Setting {
    word: "agent-send",
    release: |scope, name| change_checks(scope, name, |checks| checks.agent_send = None),
    ..OF_SERVER
};

const CHECK_ADDRESS: Setting = Setting {
    word: "check-addr",
    release: |scope, name| {
        change_checks(scope, name, |checks| {
            (checks.check_address, checks.check_port) = (None, None);
        });
    },
    ..OF_SERVER
};

const CHECK_PORT: Setting = Setting {
    word: "check-port",
    release: |scope, name| change_checks(scope, name, |checks| checks.check_port = None),
    ..OF_SERVER
};

const MAXCONN: Setting = Setting {
    word: "maxconn",
    value: ValueOf::Number,
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.connection_count_max);
        of(was) != of(is)
    },
    release: |scope, name| {
        if let Some((backend, place)) = place(scope.generation, name) {
            backend.servers[place].state.limit_connections(None);
        }
    },
    write_back: WriteBack::ServerLine(|words, server, value| {
        let done = words.set("maxconn", &value.to_string())?;
        server.connection_count_max = value.number().unwrap_or(server.connection_count_max);
        Ok(done)
    }),
    ..OF_SERVER
};

const STATE: Setting = Setting {
    word: "state",
    value: ValueOf::Word(&["ready", "maint", "drain"]),
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.disabled);
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        tell(scope, name, |health, now_ms| match value.text() {
            "ready" => health.set_ready(now_ms),
            "maint" => health.set_maint(now_ms),
            "drain" => health.set_drain(now_ms),
            _ => Vec::new(),
        });
    }),
    release: |scope, name| {
        let Some((backend, place)) = place(scope.generation, name) else {
            return;
        };
        let disabled = backend.servers[place].model.disabled;
        tell(scope, name, |health, now_ms| {
            if disabled {
                health.set_maint(now_ms)
            } else {
                health.set_ready(now_ms)
            }
        });
    },
    write_back: WriteBack::ServerLine(|words, server, value| {
        if value.text() == "drain" {
            return Err(NO_WORD);
        }
        let disabled = value.text() == "maint";
        let done = words.switch("disabled", disabled)?;
        server.disabled = disabled;
        Ok(done)
    }),
    ..OF_SERVER
};

const WEIGHT: Setting = Setting {
    word: "weight",
    value: ValueOf::Number,
    differs: |was, is, name| {
        let of = |config| line(config, name).map(|one| one.weight);
        of(was) != of(is)
    },
    apply: Some(|scope, name, value| {
        if let Some(weight) = value.number() {
            tell(scope, name, |health, now_ms| {
                health.set_weight(now_ms, weight)
            });
        }
    }),
    release: |scope, name| {
        let Some((backend, place)) = place(scope.generation, name) else {
            return;
        };
        let weight = backend.servers[place].model.weight.into();
        tell(scope, name, |health, now_ms| {
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
    let mut servers = config.backend(backend)?.servers.iter();
    servers.find(|one| one.name == server)
}

/// The server's backend, and its place there.
fn place<'g>(
    generation: &'g Generation,
    name: &ObjectName,
) -> Option<(&'g Arc<ballast_engine::Backend>, usize)> {
    let (backend, server) = name.server()?;
    let backend = generation.backend(backend)?;
    Some((backend, backend.server_named(server)?))
}

fn tell(
    scope: &Scope<'_>,
    name: &ObjectName,
    mut say: impl FnMut(&mut Health, u64) -> Vec<Effect>,
) {
    if let Some((backend, server)) = name.server() {
        scope.host.tell(backend, server, &mut say);
    }
}

fn change_checks(scope: &Scope<'_>, name: &ObjectName, change: impl FnOnce(&mut CheckOverrides)) {
    if let Some((backend, place)) = place(scope.generation, name) {
        backend.servers[place].state.change_checks(change);
    }
}
