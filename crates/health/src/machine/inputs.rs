//! The public methods that report something about a server.

use super::{Effect, ForcedState, Health, HealthCounters};
use crate::admin::Admin;
use crate::agent::AgentAnswer;
use crate::operational::Operational;
use crate::report::{CheckReport, TransitionCause};
use crate::settings::{Observation, Observe, OnError};
use crate::status::{CheckOutcome, CheckStatus};

impl Health {
    /// A health check begins; shown in the statistics.
    pub const fn check_started(&mut self) {
        self.check.running = true;
    }

    /// An agent check begins.
    pub const fn agent_started(&mut self) {
        self.agent.running = true;
    }

    /// A health check ended. A conditional pass counts as a failure when the server is down.
    pub fn check_done(&mut self, now_ms: u64, mut verdict: CheckOutcome) -> Vec<Effect> {
        self.check.running = false;
        if verdict.status == CheckStatus::L7Conditional && self.operational == Operational::Stopped
        {
            verdict.status = CheckStatus::L7Status;
        }
        self.step_and_collect(now_ms, |health, effects| {
            health.apply_outcome(now_ms, verdict, effects)
        })
    }

    /// An agent answered. Do not report a failed connection to the agent here: it says nothing
    /// about the server.
    pub fn agent_done(
        &mut self,
        now_ms: u64,
        answer: &AgentAnswer,
        duration_ms: u64,
    ) -> Vec<Effect> {
        self.agent.running = false;
        self.step_and_collect(now_ms, |health, effects| {
            health.apply_agent_reply(now_ms, answer, duration_ms, effects);
        })
    }

    /// The agent could not be reached, or its answer was incomplete. Shown in the statistics,
    /// without an effect on the server.
    pub fn agent_unreachable(&mut self, verdict: CheckOutcome) -> Vec<Effect> {
        self.agent.running = false;
        let news = verdict.status != self.agent.last.status;
        self.agent.last = verdict.clone();
        if !news {
            return Vec::new();
        }
        let weightless = self.weight_user == 0;
        let report = CheckReport::new(true, &self.agent, &verdict, weightless);
        vec![Effect::CheckReport(report)]
    }

    /// Traffic showed something (`observe`). Cheap when it has no consequence: may be called for
    /// every request.
    pub fn note_observation(&mut self, now_ms: u64, observed: Observation) -> Vec<Effect> {
        let sees = match self.settings.observe {
            None => false,
            Some(Observe::Layer4) => observed.is_layer4(),
            // A connection is not a response: a successful one neither resets nor counts.
            Some(Observe::Layer7) => observed != Observation::Connected,
        };
        let checked = self.settings.check.is_some() && self.check.enabled;
        if !sees || !checked || self.admin.is_maint() {
            return Vec::new();
        }
        if !observed.is_error() {
            self.errors_in_row = 0;
            return Vec::new();
        }
        self.errors_in_row += 1;
        if self.errors_in_row < self.settings.error_limit {
            return Vec::new();
        }
        let count = std::mem::take(&mut self.errors_in_row);
        let what = observed.description();
        let verdict = CheckOutcome {
            code: None,
            duration_ms: None,
            info: format!("Detected {count} consecutive errors, last one was: {what}"),
            status: CheckStatus::Observed,
        };
        self.counters.failed_observations += 1;
        self.step_and_collect(now_ms, |health, effects| {
            let rise = health.check.settings.rise;
            match health.settings.on_error {
                OnError::Fastinter => {}
                OnError::FailCheck => health.apply_outcome(now_ms, verdict, effects),
                OnError::SuddenDeath => {
                    health.check.health = health.check.health.min(rise + 1);
                    health.apply_outcome(now_ms, verdict, effects);
                }
                OnError::MarkDown => {
                    health.check.health = health.check.health.min(rise);
                    health.apply_outcome(now_ms, verdict, effects);
                }
            }
            effects.push(Effect::Fastinter);
        })
    }

    /// The tracked server changed (or tracking began): takes its state.
    pub fn copy_tracked(&mut self, now_ms: u64, tracked: &Self) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            health.tracked = Some(tracked.operational);
            if tracked.admin.is_maint() {
                health.enter_maint(now_ms, Admin::INHERITED_MAINT, effects);
                if !tracked.admin.is_drain() {
                    health.admin = health.admin.without(Admin::INHERITED_DRAIN);
                }
                return;
            }
            if health.admin.has(Admin::INHERITED_MAINT) {
                // One log line tells both: leaving maintenance, and draining.
                if tracked.admin.is_drain() {
                    health.admin = health.admin.with(Admin::INHERITED_DRAIN);
                }
                health.leave_maint(now_ms, Admin::INHERITED_MAINT, effects);
            } else {
                health.follow(now_ms, tracked.operational, effects);
            }
            if tracked.admin.is_drain() {
                health.enter_drain(Admin::INHERITED_DRAIN, effects);
            } else {
                health.leave_drain(Admin::INHERITED_DRAIN, effects);
            }
        })
    }

    /// `disable server`, `set server ... state maint`.
    pub fn set_maint(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            health.maint_by_force(now_ms, effects)
        })
    }

    /// Its line says `disabled` now, or does not any more: enters or leaves maintenance.
    pub fn set_configured_maint(&mut self, now_ms: u64, disabled: bool) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            if disabled {
                health.admin = health.admin.with(Admin::CONFIGURED_MAINT);
                health.maint_by_force(now_ms, effects);
            } else {
                health.admin = health.admin.without(Admin::CONFIGURED_MAINT);
                health.ready_by_force(now_ms, effects);
            }
        })
    }

    /// `set server ... state drain`: leaves forced maintenance if necessary.
    pub fn set_drain(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            health.drain_by_force(now_ms, effects);
        })
    }

    /// `enable server`, `set server ... state ready`: leaves forced maintenance and drain.
    pub fn set_ready(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            health.ready_by_force(now_ms, effects)
        })
    }

    /// The server's name resolves, or does not any more (`resolvers`).
    pub fn set_resolved(&mut self, now_ms: u64, resolved: bool) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            if resolved {
                health.leave_maint(now_ms, Admin::RESOLUTION_MAINT, effects);
            } else {
                health.enter_maint(now_ms, Admin::RESOLUTION_MAINT, effects);
            }
        })
    }

    /// `set server ... health`. Without effect in maintenance.
    pub fn force_health(&mut self, now_ms: u64, forced: ForcedState) -> Vec<Effect> {
        self.force(now_ms, forced, false)
    }

    /// `set server ... agent up|down`. Without effect in maintenance.
    pub fn force_agent(&mut self, now_ms: u64, up: bool) -> Vec<Effect> {
        self.force(
            now_ms,
            if up {
                ForcedState::Up
            } else {
                ForcedState::Down
            },
            true,
        )
    }

    /// Forgets what `set server ... health|agent` forced and no check has confirmed or replaced
    /// since: as at a start, the server is up then, and goes down with the first failed check.
    pub fn forget_forced(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            for check in [&mut health.check, &mut health.agent] {
                if std::mem::take(&mut check.forced) {
                    check.health = check.settings.rise;
                }
            }
            if health.may_run() {
                health.run(now_ms, TransitionCause::Cli, effects);
            }
        })
    }

    /// `set server ... weight` and agents: sets the user weight.
    pub fn set_weight(&mut self, now_ms: u64, weight_user: u32) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, _| health.weigh(weight_user))
    }

    /// `enable|disable health`.
    pub const fn enable_check(&mut self, on: bool) {
        self.check.enabled = on;
    }

    /// `enable|disable agent`.
    pub const fn enable_agent(&mut self, on: bool) {
        self.agent.enabled = on;
    }

    /// `clear counters all`: resets the counters; the total time down stays.
    pub const fn clear_counters(&mut self) {
        self.counters.down_transitions = 0;
        self.counters.failed_checks = 0;
        self.counters.failed_observations = 0;
    }

    /// Adds what another process counted (`stats-file`).
    pub const fn add_counts(&mut self, counts: &HealthCounters) {
        self.counters.down_transitions = self
            .counters
            .down_transitions
            .saturating_add(counts.down_transitions);
        self.counters.failed_checks = self
            .counters
            .failed_checks
            .saturating_add(counts.failed_checks);
        self.counters.failed_observations = self
            .counters
            .failed_observations
            .saturating_add(counts.failed_observations);
    }

    /// Advances or ends a slow start.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step_and_collect(now_ms, |_, _| {})
    }
}
