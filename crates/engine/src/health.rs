//! Converts a `server` line to the settings of its health machine, and the machine's state to what
//! the balancer uses.

use ballast_health::{
    CheckSettings, Health, HealthSettings, InitState, Observe, OnError, Operational,
};
use ballast_model as model;

/// What the balancer and the queues use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BalancingState {
    /// It takes exchanges: up, and not in maintenance.
    pub usable: bool,
    /// It takes only exchanges that belong to it by persistence: it drains, or asked for no new
    /// ones.
    pub draining: bool,
    /// The user weight.
    pub weight: u32,
    /// The share of weight and limit that slow start allows, in percent.
    pub throttle_percent: u32,
}

impl BalancingState {
    /// What the balancer should use, given a machine's state.
    pub fn of(health: &Health) -> Self {
        let operational = health.operational();
        Self {
            usable: operational != Operational::Stopped && !health.admin().is_maint(),
            draining: operational == Operational::Stopping || health.admin().is_drain(),
            weight: health.weight_user(),
            throttle_percent: health.throttle_percent().unwrap_or(100),
        }
    }
}

/// The settings that a `server` line gives the machine.
pub fn health_settings(server: &model::Server) -> HealthSettings {
    let checks = &server.checks;
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let tracks = server.track.is_some();
    HealthSettings {
        agent: checks.agent_enabled.then(|| CheckSettings {
            inter_ms: ms(checks.agent_interval.unwrap_or(checks.interval)),
            ..CheckSettings::AGENT
        }),
        check: (checks.enabled && !tracks).then(|| CheckSettings {
            downinter_ms: checks.down_interval.map(ms),
            fall: checks.fall,
            fastinter_ms: checks.fast_interval.map(ms),
            inter_ms: ms(checks.interval),
            rise: checks.rise,
        }),
        error_limit: checks.error_limit,
        init_state: match server.init_state {
            model::InitState::Down => InitState::Down,
            model::InitState::FullyDown => InitState::FullyDown,
            model::InitState::FullyUp => InitState::FullyUp,
            model::InitState::Up => InitState::Up,
        },
        observe: checks.observe.map(|observe| match observe {
            model::Observe::Layer4 => Observe::Layer4,
            model::Observe::Layer7 => Observe::Layer7,
        }),
        on_error: match checks.on_error {
            model::OnError::FailCheck => OnError::FailCheck,
            model::OnError::FastInter => OnError::Fastinter,
            model::OnError::MarkDown => OnError::MarkDown,
            model::OnError::SuddenDeath => OnError::SuddenDeath,
        },
        on_marked_down_shutdown: server.on_marked_down == model::OnMarkedDown::ShutdownSessions,
        on_marked_up_shutdown_backups: server.on_marked_up
            == model::OnMarkedUp::ShutdownBackupSessions,
        slowstart_ms: ms(server.slow_start),
        tracks,
        weight: u32::from(server.weight),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_health::{CheckOutcome, CheckStatus};

    fn server() -> model::Server {
        let mut server = model::Server::new("s".into(), model::Address::Unix("/s".into()));
        server.checks.enabled = true;
        server
    }

    #[test]
    fn a_conditional_pass_drains_and_a_failure_ends_use() {
        let mut health = Health::new(health_settings(&server()), false, 0);
        let belief = BalancingState::of(&health);
        assert!(belief.usable && !belief.draining && belief.throttle_percent == 100);
        health.check_done(1, CheckOutcome::new(CheckStatus::L7Conditional, 0));
        let belief = BalancingState::of(&health);
        assert!(belief.usable && belief.draining);
        for _ in 0..3 {
            health.check_done(2, CheckOutcome::new(CheckStatus::L7Status, 0));
        }
        assert!(!BalancingState::of(&health).usable);
    }

    #[test]
    fn a_server_that_tracks_is_not_checked_itself() {
        let mut server = server();
        server.track = Some(("b".into(), "other".into()));
        let settings = health_settings(&server);
        assert!(settings.tracks && settings.check.is_none());
    }
}
