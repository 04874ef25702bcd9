//! The state machine: takes reports, returns effects.

mod consequences;
mod inputs;

use crate::admin::Admin;
use crate::check::CheckState;
use crate::operational::Operational;
use crate::report::{CheckReport, HealthTransition};
use crate::settings::{CheckSettings, HealthSettings};

/// Steps of a slow start; a server that is fully up has this step.
const STEP_MAX: u64 = 16;
/// The largest weight.
const WEIGHT_MAX: u32 = 256;

/// The state that `set server ... health|agent` forces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForcedState {
    /// `down`.
    Down,
    /// `stopping`.
    Stopping,
    /// `up`.
    Up,
}

/// What the balancer needs; the arguments of its `set_usable` and `set_weight`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BalancerUpdate {
    /// Slow-start step, 1 to 16 (16: fully up).
    pub step: u32,
    /// Whether it may get new traffic (regardless of a weight of zero).
    pub usable: bool,
    /// User weight, 0 to 256.
    pub weight_user: u32,
}

/// What the caller must carry out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Tell the balancer. Comes before the transition that caused it, whose log line counts the
    /// result.
    Balance(BalancerUpdate),
    /// Log it (with `option log-health-checks`).
    CheckReport(CheckReport),
    /// Do the next check after `fastinter`, if it is not due sooner.
    Fastinter,
    /// The agent sets the server's `maxconn`.
    Maxconn(u32),
    /// Stop checking (maintenance).
    PauseChecks,
    /// Move the requests that wait for this server to others.
    RequeuePending,
    /// Check again at once.
    ResumeChecks,
    /// End all sessions of the backend's backup servers (termination flag `U`).
    ShutdownBackupSessions,
    /// End all sessions of this server (termination flag `D`).
    ShutdownSessions,
    /// Log it, and let the servers that track this one follow.
    Transition(HealthTransition),
}

/// Counters of `show stat`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HealthCounters {
    /// `chkdown`: how often it went down.
    pub down_transitions: u64,
    /// Milliseconds it was down, without the present time down.
    pub down_ms: u64,
    /// `chkfail`: checks that failed while it was up.
    pub failed_checks: u64,
    /// `hanafail`: failures seen in traffic.
    pub failed_observations: u64,
}

/// The health of one server. Times are milliseconds of any monotonic clock.
#[derive(Clone, Debug)]
pub struct Health {
    admin: Admin,
    agent: CheckState,
    /// How many seconds the operating state had lasted when it was taken over from another process.
    before_s: u64,
    changed_ms: u64,
    check: CheckState,
    counters: HealthCounters,
    errors_in_row: u32,
    operational: Operational,
    settings: HealthSettings,
    step: u32,
    /// The operating state of the server it tracks, as it was copied last.
    tracked: Option<Operational>,
    weight_user: u32,
}

impl Health {
    /// A server as configured: up unless `init-state` says otherwise, not in a slow start;
    /// `disabled` puts it in maintenance.
    #[must_use]
    pub fn new(settings: HealthSettings, disabled: bool, now_ms: u64) -> Self {
        let mut health = Self {
            admin: Admin::default(),
            agent: CheckState::new(settings.agent.unwrap_or(CheckSettings::AGENT)),
            before_s: 0,
            changed_ms: now_ms,
            check: CheckState::new(settings.check.unwrap_or(CheckSettings::HEALTH)),
            counters: HealthCounters::default(),
            errors_in_row: 0,
            operational: Operational::Running,
            settings,
            step: STEP_MAX as u32,
            tracked: None,
            weight_user: settings.weight.min(WEIGHT_MAX),
        };
        if health.settings.check.is_some() {
            health.check.start_as(settings.init_state);
            if !health.check.is_up() {
                health.operational = Operational::Stopped;
            }
        }
        if disabled {
            health.admin = Admin::FORCED_MAINT.with(Admin::CONFIGURED_MAINT);
            health.operational = Operational::Stopped;
            health.check.health = 0;
        }
        health
    }

    // === what it says of itself ===

    /// Administrative state.
    #[must_use]
    pub const fn admin(&self) -> Admin {
        self.admin
    }

    /// The agent.
    #[must_use]
    pub const fn agent(&self) -> &CheckState {
        &self.agent
    }

    /// Whether it serves who belongs to it by a cookie or a rule: a drained server does.
    pub(crate) const fn serves_own(&self) -> bool {
        self.operational.is_up() && !self.admin.is_maint()
    }

    /// What the balancer needs.
    #[must_use]
    pub const fn balance(&self) -> BalancerUpdate {
        let usable = self.serves_own() && !self.admin.is_drain();
        BalancerUpdate {
            step: self.step,
            usable,
            weight_user: self.weight_user,
        }
    }

    /// The health check.
    #[must_use]
    pub const fn check(&self) -> &CheckState {
        &self.check
    }

    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> HealthCounters {
        self.counters
    }

    /// Operating state.
    #[must_use]
    pub const fn operational(&self) -> Operational {
        self.operational
    }

    /// Whole seconds since the operating state last changed (`lastchg`).
    #[must_use]
    pub const fn seconds_since_change(&self, now_ms: u64) -> u64 {
        (now_ms / 1000)
            .saturating_sub(self.changed_ms / 1000)
            .saturating_add(self.before_s)
    }

    /// Settings.
    #[must_use]
    pub const fn settings(&self) -> &HealthSettings {
        &self.settings
    }

    /// User weight.
    #[must_use]
    pub const fn weight_user(&self) -> u32 {
        self.weight_user
    }

    /// `throttle` of the statistics, in percent, while in a slow start.
    #[must_use]
    pub const fn throttle_percent(&self) -> Option<u32> {
        match self.operational {
            Operational::Starting if !self.admin.is_drain() => {
                Some(self.step * 100 / STEP_MAX as u32)
            }
            _ => None,
        }
    }

    /// The part of a connection limit that a slow start allows: `limit` scaled by the time passed,
    /// at least 1. `limit` is computed from `maxconn`, `minconn` and `fullconn`; 0 means no limit.
    #[must_use]
    pub fn throttled_maxconn(&self, limit: u32, now_ms: u64) -> u32 {
        if limit == 0 || self.operational != Operational::Starting {
            return limit;
        }
        let percent = (100 * self.seconds_since_change(now_ms) / self.slowstart_s()).min(100);
        u32::try_from(u64::from(limit) * percent / 100)
            .unwrap_or(limit)
            .max(1)
    }

    /// The delay until [`Health::tick`] must be called; `None` when no slow start is running.
    #[must_use]
    pub fn tick_delay_ms(&self) -> Option<u64> {
        (self.operational == Operational::Starting)
            .then(|| (self.settings.slowstart_ms / 20).max(1000))
    }

    /// `status` of the statistics. `judged` is the machine whose checks count: this one, or the one
    /// at the end of its chain of `track`; `tracked` is the name of the server it tracks.
    #[must_use]
    pub fn status_text(&self, judged: &Self, tracked: Option<&str>) -> String {
        if self.admin.has(Admin::RESOLUTION_MAINT) {
            return "MAINT (resolution)".to_owned();
        }
        if self.admin.has(Admin::INHERITED_MAINT) {
            return tracked.map_or("MAINT".to_owned(), |name| format!("MAINT (via {name})"));
        }
        if self.admin.is_maint() {
            return "MAINT".to_owned();
        }
        let checked = judged.settings.check.is_some() && judged.check.enabled;
        let agented = judged.settings.agent.is_some() && judged.agent.enabled;
        let CheckSettings { rise, fall, .. } = judged.check.settings;
        let health = judged.check.health;
        let falling = checked && health < judged.check.settings.health_max();
        // A forced state can leave the counter below `rise` for a moment.
        let left = (health + 1).saturating_sub(rise);
        match self.operational {
            Operational::Running | Operational::Starting if self.admin.is_drain() => {
                if agented {
                    "DRAIN (agent)".to_owned()
                } else {
                    "DRAIN".to_owned()
                }
            }
            Operational::Running | Operational::Starting if falling => format!("UP {left}/{fall}"),
            Operational::Running | Operational::Starting if !checked => "no check".to_owned(),
            Operational::Running | Operational::Starting => "UP".to_owned(),
            Operational::Stopping if falling => format!("NOLB {left}/{fall}"),
            Operational::Stopping => "NOLB".to_owned(),
            Operational::Stopped if agented && judged.agent.health == 0 => {
                "DOWN (agent)".to_owned()
            }
            // The agent of a server that tracks another took it down, and the other is up.
            Operational::Stopped if checked && judged.operational != Operational::Stopped => {
                format!("DOWN {left}/{fall}")
            }
            Operational::Stopped if checked && health > 0 => format!("DOWN {health}/{rise}"),
            Operational::Stopped => "DOWN".to_owned(),
        }
    }

    /// Panics when a counter or state is out of its bounds (tests and simulation).
    pub fn check_invariants(&self) {
        assert!(
            self.check.health <= self.check.settings.health_max(),
            "check counter"
        );
        assert!(
            self.agent.health <= self.agent.settings.health_max(),
            "agent counter"
        );
        assert!(
            (1..=STEP_MAX as u32).contains(&self.step),
            "slow-start step"
        );
        assert!(self.weight_user <= WEIGHT_MAX, "weight");
        if self.admin.is_maint() {
            assert_eq!(self.operational, Operational::Stopped, "maintenance stops");
        }
        if self.operational == Operational::Starting {
            assert!(
                self.settings.slowstart_ms > 0,
                "only a slow start starts slowly"
            );
        } else {
            assert_eq!(self.step, STEP_MAX as u32, "only a slow start throttles");
        }
    }
}
