//! The services that answer in place of servers: the statistics page, the metrics exporter.

use std::sync::Arc;

use ballast_cli::Control as _;
use ballast_health::Forced;
use ballast_message::Method;
use ballast_stats::{PageAsked, ServerAction, Surroundings, WebAnswer};
use ballast_stream::{Reply, ReplyBody, ServiceKind, ServiceRequest, Services};

use crate::instance::Instance;

/// What a worker asks.
#[derive(Debug)]
pub(crate) struct Desk(pub(crate) Arc<Instance>);

impl Services for Desk {
    fn answer(&self, asked: &ServiceRequest<'_>) -> Reply {
        let surroundings: Arc<dyn Surroundings> = Arc::clone(&self.0) as _;
        let answer = match asked.of {
            ServiceKind::Metrics => {
                ballast_stats::metrics(surroundings, asked.target, asked.accept)
            }
            ServiceKind::Statistics {
                page,
                proxy,
                may_admin,
            } => ballast_stats::page(
                surroundings,
                &PageAsked {
                    page,
                    proxy,
                    may_admin,
                    target: asked.target,
                    form: (asked.method == Method::Post).then_some(asked.body),
                    form_is_whole: asked.body_is_whole,
                },
            ),
        };
        reply(answer)
    }
}

fn reply(answer: WebAnswer) -> Reply {
    let body = match answer.pieces {
        Some(pieces) => ReplyBody::Pieces(pieces),
        None if answer.status >= 400 => ReplyBody::Page,
        None => ReplyBody::Empty,
    };
    Reply {
        status: answer.status,
        fields: answer.fields,
        body,
    }
}

/// Does to a server what the statistics page asks; whether that changed anything.
pub(crate) fn act(instance: &Instance, backend: &str, server: &str, action: ServerAction) -> bool {
    let generation = instance.generation();
    let backend_at = generation.backend_named(backend);
    let Some(known) = backend_at.map(|place| &generation.backends[place]) else {
        return false;
    };
    let Some(place) = known.server_named(server) else {
        return false;
    };
    let found = &known.servers[place];
    let (checked, agented, tracks) = {
        let health = found.state.health();
        let settings = health.settings();
        (
            settings.check.is_some(),
            settings.agent.is_some(),
            settings.tracks,
        )
    };
    let applies = match action {
        ServerAction::Agent(_) | ServerAction::ForceAgent(_) => agented,
        ServerAction::Check(_) => checked,
        ServerAction::ForceDown | ServerAction::ForceNoBalancing | ServerAction::ForceUp => !tracks,
        ServerAction::Drain | ServerAction::Maint | ServerAction::Ready => true,
        ServerAction::Shutdown => {
            instance.shutdown_sessions(&found.state);
            return true;
        }
    };
    if applies {
        return instance.tell(backend, server, &mut |health, now_ms| match action {
            ServerAction::Agent(on) => {
                health.enable_agent(on);
                Vec::new()
            }
            ServerAction::Check(on) => {
                health.enable_check(on);
                Vec::new()
            }
            ServerAction::Drain => health.set_drain(now_ms),
            ServerAction::ForceAgent(up) => health.force_agent(now_ms, up),
            ServerAction::ForceDown => health.force_health(now_ms, Forced::Down),
            ServerAction::ForceNoBalancing => health.force_health(now_ms, Forced::Stopping),
            ServerAction::ForceUp => health.force_health(now_ms, Forced::Up),
            ServerAction::Maint => health.set_maint(now_ms),
            ServerAction::Ready => health.set_ready(now_ms),
            ServerAction::Shutdown => Vec::new(),
        });
    }
    false
}
