//! Actions of the statistics page on servers.

use ballast_health::ForcedState;
use ballast_stats::ServerAction;

use crate::control::Control;

/// Carries out an action of the statistics page on a server; returns whether it changed anything. An
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
    let Some(server_index) = known.server_named(server) else {
        return false;
    };
    let found = &known.servers[server_index];
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
        ServerAction::SetAgentCheck(_) | ServerAction::ForceAgentState(_) => has_agent,
        ServerAction::SetHealthCheck(_) => is_checked,
        ServerAction::ForceHealthDown
        | ServerAction::ForceHealthNolb
        | ServerAction::ForceHealthUp => !tracks,
        ServerAction::SetDrain | ServerAction::SetMaint | ServerAction::SetReady => true,
        ServerAction::ShutdownSessions => {
            control.shutdown_sessions(&found.state);
            return true;
        }
    };
    applies
        && control.change_health(backend, server, &mut |health, now_ms| match action {
            ServerAction::SetAgentCheck(on) => {
                health.enable_agent(on);
                Vec::new()
            }
            ServerAction::SetHealthCheck(on) => {
                health.enable_check(on);
                Vec::new()
            }
            ServerAction::SetDrain => health.set_drain(now_ms),
            ServerAction::ForceAgentState(up) => health.force_agent(now_ms, up),
            ServerAction::ForceHealthDown => health.force_health(now_ms, ForcedState::Down),
            ServerAction::ForceHealthNolb => health.force_health(now_ms, ForcedState::Stopping),
            ServerAction::ForceHealthUp => health.force_health(now_ms, ForcedState::Up),
            ServerAction::SetMaint => health.set_maint(now_ms),
            ServerAction::SetReady => health.set_ready(now_ms),
            ServerAction::ShutdownSessions => Vec::new(),
        })
}
