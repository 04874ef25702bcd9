//! What a hand set is given back to the file, where the file has the say again.
//!
//! Settings by hand that are no configuration (a weight, a state, an address) live in the states
//! of servers and proxies, and outlive every generation. Their keys are the commands' (see
//! [`Control::note_hand`]).

use ballast_cli::Control;
use ballast_engine::{ChecksByHand, Generation};
use ballast_model::Address;

use crate::desk::House;

impl House {
    /// Undoes what was set under these keys: from now on what `generation`, which is in force,
    /// says holds. Keys of what is there no more are passed over.
    pub(crate) fn let_go_of(&self, keys: &[String], generation: &Generation) {
        for key in keys {
            let words: Vec<&str> = key.splitn(3, ' ').collect();
            match words[..] {
                ["server", at, word] => {
                    if let Some((backend, server)) = at.split_once('/') {
                        self.let_go_of_server((backend, server), word, generation);
                    }
                }
                ["frontend", name, "maxconn"] => {
                    if let Some(frontend) = generation.frontend(name) {
                        frontend.state.limit_connections_by_hand(None);
                    }
                }
                ["frontend", name, "state"] => {
                    // One that listens, or was shut down for good, stays so.
                    let _ = self.resume_frontend(name);
                }
                ["backend", name, word] => {
                    if let Some(backend) = generation.backend(name) {
                        backend.change_dynamic_cookies(|cookies| match word {
                            "dynamic-cookie" => cookies.on = None,
                            "dynamic-cookie-key" => cookies.key = None,
                            _ => {}
                        });
                    }
                }
                ["global", "maxconn"] => self.registry.process().limit_connections_by_hand(None),
                ["global", "rate-limit", what] => {
                    let rates = &self.registry.process().rates;
                    match what {
                        "connections" => rates.connections.set(None),
                        "sessions" => rates.sessions.set(None),
                        "ssl-sessions" => rates.ssl_sessions.set(None),
                        "http-compression" => rates.compression_bytes.set(None),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        if !keys.is_empty() {
            self.limits_changed();
        }
    }

    fn let_go_of_server(
        &self,
        (backend, server): (&str, &str),
        word: &str,
        generation: &Generation,
    ) {
        let Some(keeper) = self.keeper() else {
            return;
        };
        let Some((place, backend)) = generation
            .backend(backend)
            .and_then(|backend| Some((backend.server_named(server)?, backend)))
        else {
            return;
        };
        let known = &backend.servers[place];
        let model = &known.model;
        match word {
            "weight" => {
                keeper.tell(backend.name(), server, |health, now_ms| {
                    health.set_weight(now_ms, model.weight.into())
                });
            }
            "state" => {
                keeper.tell(backend.name(), server, |health, now_ms| {
                    if model.disabled {
                        health.set_maint(now_ms)
                    } else {
                        health.set_ready(now_ms)
                    }
                });
            }
            "health" | "agent" => {
                keeper.tell(backend.name(), server, |health, _| {
                    match word {
                        "health" => health.enable_check(true),
                        _ => health.enable_agent(true),
                    }
                    Vec::new()
                });
            }
            "maxconn" => known.state.limit_connections(None),
            "addr" if !matches!(model.address, Address::Name { .. }) => {
                known.state.set_reach(Some(model.address.clone()), None);
                backend.address_changed(place);
                keeper.moved(known);
            }
            "check-addr" | "check-port" | "agent-addr" | "agent-port" | "agent-send" => {
                known.state.change_checks(|checks| give_back(checks, word));
            }
            _ => {}
        }
    }
}

fn give_back(checks: &mut ChecksByHand, word: &str) {
    match word {
        "check-addr" => (checks.check_address, checks.check_port) = (None, None),
        "check-port" => checks.check_port = None,
        "agent-addr" => (checks.agent_address, checks.agent_port) = (None, None),
        "agent-port" => checks.agent_port = None,
        _ => checks.agent_send = None,
    }
}
