//! Actions of the statistics page on servers.

use ballast_health::ForcedState;
use ballast_stats::ServerAction;

use crate::control::Control;

/// Carries out an action of the statistics page on a server; answers whether it changed anything. An
/// action on checks needs a server that is checked, one on the agent a server with an agent.
pub fn act_on_server(
    control: &dyn Control,
    backend: &str,
    server: &str,
    action: ServerAction,
) -> bool {
    let generation = control.generation();
    let Some(known) = generation.backend(backend) else {
        return false;
    };
    let Some(place) = known.server_named(server) else {
        return false;
    };
    let found = &known.servers[place];
    let (is_checked, has_agent, tracks) = {
        let health = found.state.health();
        let settings = health.settings();
        (
            settings.check.is_some(),
            settings.agent.is_some(),
            settings.tracks,
        )
    };
    let applies = match action {
        ServerAction::Agent(_) | ServerAction::ForceAgent(_) => has_agent,
        ServerAction::Check(_) => is_checked,
        ServerAction::ForceDown | ServerAction::ForceNoBalancing | ServerAction::ForceUp => !tracks,
        ServerAction::Drain | ServerAction::Maint | ServerAction::Ready => true,
        ServerAction::Shutdown => {
            control.shutdown_sessions(&found.state);
            return true;
        }
    };
    applies
        && control.change_health(backend, server, &mut |health, now_ms| match action {
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
            ServerAction::ForceDown => health.force_health(now_ms, ForcedState::Down),
            ServerAction::ForceNoBalancing => health.force_health(now_ms, ForcedState::Stopping),
            ServerAction::ForceUp => health.force_health(now_ms, ForcedState::Up),
            ServerAction::Maint => health.set_maint(now_ms),
            ServerAction::Ready => health.set_ready(now_ms),
            ServerAction::Shutdown => Vec::new(),
        })
}
