//! What a report changes: counters, states, effects.

use super::{Effect, ForcedState, Health, STEP_MAX, WEIGHT_MAX};
use crate::admin::Admin;
use crate::agent::{AgentAdmin, AgentAnswer, AgentState, share};
use crate::operational::Operational;
use crate::report::{CheckReport, HealthTransition, StateChange, TransitionCause};
use crate::settings::{CheckSettings, HealthSettings};
use crate::status::{CheckOutcome, CheckResult, CheckStatus};

impl Health {
    /// Every public change goes through here, so that the balancer is told first and once.
    pub(super) fn step_and_collect(
        &mut self,
        now_ms: u64,
        change: impl FnOnce(&mut Self, &mut Vec<Effect>),
    ) -> Vec<Effect> {
        let before = self.balance();
        let served_own = self.serves_own();
        let mut effects = Vec::new();
        change(self, &mut effects);
        self.warm_up(now_ms, &mut effects);
        let after = self.balance();
        if before != after {
            effects.insert(0, Effect::Balance(after));
        }
        if before.usable && !after.usable || served_own && !self.serves_own() {
            effects.push(Effect::RequeuePending);
        }
        effects
    }

    pub(super) fn apply_outcome(
        &mut self,
        now_ms: u64,
        verdict: CheckOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let news = verdict.status != self.check.last.status;
        let moved = match verdict.status.result() {
            CheckResult::Failed => {
                let moved = self.check.count_failure();
                self.counters.failed_checks += u64::from(moved);
                moved
            }
            CheckResult::Conditional | CheckResult::Passed => {
                self.errors_in_row = 0;
                self.check.count_success()
            }
            CheckResult::Neutral | CheckResult::Unknown => false,
        };
        self.check.last = verdict.clone();
        if news || moved {
            let weightless = self.weight_user == 0;
            let report = CheckReport::new(false, &self.check, &verdict, weightless);
            effects.push(Effect::CheckReport(report));
        }
        if self.admin.is_maint() {
            return;
        }
        match verdict.status.result() {
            CheckResult::Failed if !self.check.is_up() => {
                self.stop(now_ms, TransitionCause::Check(verdict), effects);
            }
            CheckResult::Passed if self.may_run() => {
                self.run(now_ms, TransitionCause::Check(verdict), effects);
            }
            CheckResult::Conditional if self.may_run() => {
                self.wind_down(now_ms, TransitionCause::Check(verdict), effects);
            }
            _ => {}
        }
    }

    /// Whether there is a health check, and it is on.
    const fn is_checked(&self) -> bool {
        self.settings.check.is_some() && self.check.enabled
    }

    /// Whether all enabled checks and the tracked server agree that the server is up.
    pub(super) fn may_run(&self) -> bool {
        let agented = self.settings.agent.is_some() && self.agent.enabled;
        (!self.is_checked() || self.check.is_up())
            && (!agented || self.agent.is_up())
            && self.tracked != Some(Operational::Stopped)
    }

    /// Takes the operating state of the tracked server.
    pub(super) fn follow(&mut self, now_ms: u64, to: Operational, effects: &mut Vec<Effect>) {
        match to {
            Operational::Stopped => self.stop(now_ms, TransitionCause::Tracked, effects),
            Operational::Stopping => self.wind_down(now_ms, TransitionCause::Tracked, effects),
            Operational::Running | Operational::Starting => {
                self.run(now_ms, TransitionCause::Tracked, effects);
            }
        }
    }

    pub(super) fn apply_agent_reply(
        &mut self,
        now_ms: u64,
        answer: &AgentAnswer,
        duration_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        match answer.admin {
            Some(AgentAdmin::Drain) => self.drain_by_force(now_ms, effects),
            Some(AgentAdmin::Maint) => self.maint_by_force(now_ms, effects),
            Some(AgentAdmin::Ready) => self.ready_by_force(now_ms, effects),
            None => {}
        }
        if let Some(percent) = answer.weight_percent {
            self.weigh(share(self.settings.weight, percent));
        }
        if let Some(maxconn) = answer.maxconn {
            effects.push(Effect::Maxconn(maxconn));
        }
        let status = match answer.state {
            Some(AgentState::Up) => CheckStatus::L7Ok,
            Some(_) => CheckStatus::L7Status,
            None => CheckStatus::Checked,
        };
        let code = status.has_code().then_some(0);
        let verdict = CheckOutcome {
            code,
            duration_ms: Some(duration_ms),
            info: answer.info(),
            status,
        };
        self.apply_agent_outcome(now_ms, verdict, effects);
    }

    pub(super) fn apply_agent_outcome(
        &mut self,
        now_ms: u64,
        verdict: CheckOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let news = verdict.status != self.agent.last.status;
        let result = verdict.status.result();
        let moved = match result {
            CheckResult::Failed => self.agent.count_failure(),
            CheckResult::Passed => self.agent.count_success(),
            _ => false,
        };
        self.agent.last = verdict.clone();
        let speaks = matches!(result, CheckResult::Failed | CheckResult::Passed);
        if speaks && (news || moved) {
            let weightless = self.weight_user == 0;
            let report = CheckReport::new(true, &self.agent, &verdict, weightless);
            effects.push(Effect::CheckReport(report));
        }
        if self.admin.is_maint() {
            return;
        }
        // The lines of a server that tracks another name that one, as HAProxy's do.
        let cause = match self.settings.tracks {
            true => TransitionCause::Tracked,
            false => TransitionCause::Check(verdict),
        };
        // Only a check can end what a check began: an agent does not know of it.
        let is_stopping = self.operational == Operational::Stopping;
        if result == CheckResult::Failed && !self.agent.is_up() {
            self.stop(now_ms, cause, effects);
        } else if result == CheckResult::Passed && self.may_run() && !is_stopping {
            self.run(now_ms, cause, effects);
        }
    }

    pub(super) fn force(&mut self, now_ms: u64, forced: ForcedState, agent: bool) -> Vec<Effect> {
        if self.admin.is_maint() {
            // As in HAProxy, it is shown. When the maintenance ends a check's is forgotten, an agent's holds.
            let check = if agent {
                &mut self.agent
            } else {
                &mut self.check
            };
            check.health = health_of(&check.settings, forced);
            return Vec::new();
        }
        self.step_and_collect(now_ms, |health, effects| {
            let check = if agent {
                &mut health.agent
            } else {
                &mut health.check
            };
            check.health = health_of(&check.settings, forced);
            check.forced = true;
            match forced {
                ForcedState::Down => health.stop(now_ms, TransitionCause::Cli, effects),
                ForcedState::Stopping => health.wind_down(now_ms, TransitionCause::Cli, effects),
                ForcedState::Up => health.run(now_ms, TransitionCause::Cli, effects),
            }
        })
    }

    pub(super) fn weigh(&mut self, weight_user: u32) {
        self.weight_user = weight_user.min(WEIGHT_MAX);
    }

    pub(super) fn stop(&mut self, now_ms: u64, cause: TransitionCause, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() || self.operational == Operational::Stopped {
            return;
        }
        let was_stopping = self.operational == Operational::Stopping;
        self.set_operational(now_ms, Operational::Stopped);
        if self.settings.on_marked_down_shutdown {
            effects.push(Effect::ShutdownSessions);
        }
        self.log_transition(StateChange::Down, cause, effects);
        note_stopping(was_stopping, effects);
    }

    pub(super) fn wind_down(
        &mut self,
        now_ms: u64,
        cause: TransitionCause,
        effects: &mut Vec<Effect>,
    ) {
        if self.admin.is_maint() || self.operational == Operational::Stopping {
            return;
        }
        self.set_operational(now_ms, Operational::Stopping);
        self.log_transition(StateChange::Stopping, cause, effects);
    }

    pub(super) fn run(&mut self, now_ms: u64, cause: TransitionCause, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() || self.operational.is_up() {
            return;
        }
        let slow = self.settings.slowstart_ms > 0;
        self.set_operational(
            now_ms,
            if slow {
                Operational::Starting
            } else {
                Operational::Running
            },
        );
        if self.settings.on_marked_up_shutdown_backups
            && self.weight_user > 0
            && !self.admin.is_drain()
        {
            effects.push(Effect::ShutdownBackupSessions);
        }
        self.log_transition(StateChange::Up, cause, effects);
    }

    pub(super) fn enter_maint(&mut self, now_ms: u64, reason: Admin, effects: &mut Vec<Effect>) {
        if self.admin.has(reason) {
            return;
        }
        let was_maint = self.admin.is_maint();
        let was_down = self.operational == Operational::Stopped;
        let was_stopping = self.operational == Operational::Stopping;
        self.admin = self.admin.with(reason);
        if was_maint {
            return;
        }
        // Without a check, a server that was down keeps its number, as in HAProxy.
        if self.is_checked() || !was_down {
            self.check.health = 0;
        }
        self.check.running = false;
        if !was_down {
            self.set_operational(now_ms, Operational::Stopped);
            if self.settings.on_marked_down_shutdown {
                effects.push(Effect::ShutdownSessions);
            }
        }
        effects.push(Effect::PauseChecks);
        let cause = match reason {
            Admin::INHERITED_MAINT => TransitionCause::Tracked,
            _ => TransitionCause::None,
        };
        self.log_transition(StateChange::EntersMaint { was_down }, cause, effects);
        note_stopping(was_stopping, effects);
    }

    pub(super) fn leave_maint(&mut self, now_ms: u64, reason: Admin, effects: &mut Vec<Effect>) {
        if !self.admin.has(reason) {
            return;
        }
        self.admin = self.admin.without(reason);
        if self.admin.is_maint() {
            return;
        }
        // As at the start: one failure away from down, unless `init-state` says otherwise. Without a check
        // health stays 0 after maintenance, as in HAProxy. The agent was asked all the time.
        if self.is_checked() {
            self.check.start_as(self.settings.init_state);
        }
        self.errors_in_row = 0;
        if self.may_run() {
            self.set_operational(now_ms, self.state_after_maint());
        }
        effects.push(Effect::ResumeChecks);
        let forced = reason != Admin::INHERITED_MAINT;
        let cause = if forced {
            TransitionCause::None
        } else {
            TransitionCause::Tracked
        };
        self.log_transition(StateChange::LeavesMaint { forced }, cause, effects);
        self.log_remaining_drain(effects);
    }

    /// The operating state of a server that leaves maintenance, and may run.
    const fn state_after_maint(&self) -> Operational {
        match self.tracked {
            Some(Operational::Stopping) => Operational::Stopping,
            _ if self.settings.slowstart_ms > 0 => Operational::Starting,
            _ => Operational::Running,
        }
    }

    pub(super) fn enter_drain(&mut self, reason: Admin, effects: &mut Vec<Effect>) {
        if self.admin.has(reason) {
            return;
        }
        let was_drain = self.admin.is_drain();
        self.admin = self.admin.with(reason);
        if self.admin.is_maint() {
            return;
        }
        if was_drain {
            self.log_remaining_drain(effects);
            return;
        }
        let was_down = self.operational == Operational::Stopped;
        let cause = if reason == Admin::INHERITED_DRAIN {
            TransitionCause::Tracked
        } else {
            TransitionCause::None
        };
        self.log_transition(StateChange::EntersDrain { was_down }, cause, effects);
    }

    pub(super) fn leave_drain(&mut self, reason: Admin, effects: &mut Vec<Effect>) {
        if !self.admin.has(reason) {
            return;
        }
        self.admin = self.admin.without(reason);
        if self.admin.is_maint() {
            return;
        }
        if self.admin.is_drain() {
            self.log_remaining_drain(effects);
            return;
        }
        let forced = reason != Admin::INHERITED_DRAIN;
        let cause = if forced {
            TransitionCause::None
        } else {
            TransitionCause::Tracked
        };
        self.log_transition(StateChange::LeavesDrain { forced }, cause, effects);
    }

    /// Maintenance replaces a forced drain.
    pub(super) fn maint_by_force(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.enter_maint(now_ms, Admin::FORCED_MAINT, effects);
        self.admin = self.admin.without(Admin::FORCED_DRAIN);
    }

    pub(super) fn drain_by_force(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() {
            // One log line tells both: leaving maintenance, and draining.
            self.admin = self.admin.with(Admin::FORCED_DRAIN);
            self.leave_maint(now_ms, Admin::FORCED_MAINT, effects);
        } else {
            self.enter_drain(Admin::FORCED_DRAIN, effects);
        }
    }

    pub(super) fn ready_by_force(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.admin.has(Admin::FORCED_MAINT) {
            self.admin = self.admin.without(Admin::FORCED_DRAIN);
            self.leave_maint(now_ms, Admin::FORCED_MAINT, effects);
        } else {
            self.leave_drain(Admin::FORCED_DRAIN, effects);
        }
    }

    pub(super) fn set_operational(&mut self, now_ms: u64, to: Operational) {
        let from = self.operational;
        if from == to {
            return;
        }
        if to == Operational::Stopped {
            self.counters.down_transitions += 1;
        }
        if from == Operational::Stopped {
            self.counters.down_ms += now_ms.saturating_sub(self.changed_ms);
        }
        self.operational = to;
        self.changed_ms = now_ms;
        self.before_s = 0;
        self.step = STEP_MAX as u32;
    }

    /// Sets the slow-start step from the elapsed time, in whole seconds and sixteenths of the
    /// whole.
    pub(super) fn warm_up(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.operational != Operational::Starting {
            return;
        }
        let (passed, whole) = (self.seconds_since_change(now_ms), self.slowstart_s());
        if passed >= whole {
            let (changed_ms, before_s) = (self.changed_ms, self.before_s);
            self.set_operational(now_ms, Operational::Running);
            // The end of a slow start does not change `lastchg`.
            self.changed_ms = changed_ms;
            self.before_s = before_s;
            self.log_transition(StateChange::Up, TransitionCause::None, effects);
            return;
        }
        // Below 16: passed < whole.
        self.step = ((STEP_MAX * passed + whole) / whole) as u32;
    }

    pub(super) fn slowstart_s(&self) -> u64 {
        self.settings.slowstart_ms.div_ceil(1000).max(1)
    }

    pub(super) fn log_transition(
        &self,
        change: StateChange,
        cause: TransitionCause,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::Transition(HealthTransition {
            via_tracked: cause == TransitionCause::Tracked,
            cause,
            change,
            drains: self.admin.is_drain(),
            operational: self.operational,
            was_stopping: self.admin.is_drain(),
        }));
    }

    /// Logs that a server still drains, when a command for it, or for the server it tracks, removed
    /// one reason to drain and left another.
    pub(super) fn log_remaining_drain(&self, effects: &mut Vec<Effect>) {
        if self.admin.is_drain() && !self.admin.is_maint() {
            let forced = self.admin.has(Admin::FORCED_DRAIN);
            self.log_transition(
                StateChange::RemainsDrain { forced },
                TransitionCause::None,
                effects,
            );
        }
    }

    /// Applies a changed `server` line. The state is kept, within the new limits; a changed weight
    /// replaces the present one. There are no effects: read [`Health::balance`] afterwards.
    pub fn reconfigure(&mut self, now_ms: u64, settings: HealthSettings) {
        if settings.weight != self.settings.weight {
            self.weight_user = settings.weight.min(WEIGHT_MAX);
        }
        let check = settings.check.unwrap_or(CheckSettings::HEALTH);
        let agent = settings.agent.unwrap_or(CheckSettings::AGENT);
        self.check.change_settings(check);
        self.agent.change_settings(agent);
        let was_asked = self.settings.check.is_some() || self.settings.agent.is_some();
        let could_stop = self.settings.check.is_some() || self.settings.tracks;
        self.settings = settings;
        if !settings.tracks {
            self.tracked = None;
        }
        if settings.check.is_none() {
            self.check.running = false;
        }
        let is_asked = settings.check.is_some() || settings.agent.is_some() || settings.tracks;
        let nobody_left = (was_asked && !is_asked)
            && self.operational == Operational::Stopped
            && !self.admin.is_maint();
        let can_stop = settings.check.is_some() || settings.tracks;
        let stays_stopping = could_stop && !can_stop && self.operational == Operational::Stopping;
        let cold = self.operational == Operational::Starting && settings.slowstart_ms == 0;
        if nobody_left || stays_stopping || cold {
            // No check is left that could find the server up, or end its slow start.
            self.set_operational(now_ms, Operational::Running);
        }
    }

    pub(crate) fn take_over(
        &mut self,
        admin: Admin,
        operational: Option<Operational>,
        (changed_ms, before_s): (u64, u64),
        weight_user: u32,
    ) {
        self.admin = admin;
        self.changed_ms = changed_ms;
        self.before_s = before_s;
        self.weight_user = weight_user.min(WEIGHT_MAX);
        self.step = STEP_MAX as u32;
        self.operational = match operational {
            _ if admin.is_maint() => Operational::Stopped,
            Some(Operational::Starting) if self.settings.slowstart_ms == 0 => Operational::Running,
            Some(state) => state,
            None => self.operational,
        };
        if self.operational == Operational::Starting {
            self.step = 1;
        }
    }

    pub(crate) fn take_over_checks(
        &mut self,
        (check_health, check_on, status): (u32, bool, CheckStatus),
        (agent_health, agent_on): (u32, bool),
    ) {
        if self.settings.check.is_some() {
            self.check.health = check_health.min(self.check.settings.health_max());
            self.check.enabled = check_on;
            self.check.last.status = status;
        }
        if self.settings.agent.is_some() {
            self.agent.health = agent_health.min(self.agent.settings.health_max());
            self.agent.enabled = agent_on;
        }
    }
}

/// Adds to the transition just reported that the server had been stopping before it.
fn note_stopping(was_stopping: bool, effects: &mut [Effect]) {
    if let Some(Effect::Transition(transition)) = effects.last_mut() {
        transition.was_stopping |= was_stopping;
    }
}

/// The health counter of a server whose state is forced.
const fn health_of(settings: &CheckSettings, forced: ForcedState) -> u32 {
    match forced {
        ForcedState::Down => 0,
        ForcedState::Up | ForcedState::Stopping => settings.health_max(),
    }
}
