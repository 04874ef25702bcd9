//! The machine: opinions in, effects out.

use crate::admin::Admin;
use crate::agent::{AgentAdmin, AgentAnswer, AgentState};
use crate::report::{Cause, Change, CheckReport, Transition};
use crate::settings::{CheckSettings, InitState, Observe, Observed, OnError, Settings};
use crate::status::{CheckResult, CheckStatus, Verdict};

/// Steps of a slow start; a server fully up is at the last.
const STEP_MAX: u64 = 16;
/// Weights end here.
const WEIGHT_MAX: u32 = 256;

/// Operating state (`srv_op_state`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Operational {
    /// Down.
    Stopped,
    /// Up, in its slow start.
    Starting,
    /// Up.
    #[default]
    Running,
    /// Up, wants no new sessions.
    Stopping,
}

impl Operational {
    /// The number of `srv_op_state`.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// From the number of `srv_op_state`.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Stopped),
            1 => Some(Self::Starting),
            2 => Some(Self::Running),
            3 => Some(Self::Stopping),
            _ => None,
        }
    }

    const fn is_up(self) -> bool {
        matches!(self, Self::Running | Self::Starting)
    }
}

/// What `set server ... health|agent` forces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Forced {
    /// `down`.
    Down,
    /// `stopping`.
    Stopping,
    /// `up`.
    Up,
}

/// What the balancer must know; the same fields as its `set_usable` and `set_weight` take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Balance {
    /// Slow-start step, 1 to 16 (16: fully up).
    pub step: u32,
    /// Whether new traffic may come (a weight of zero apart).
    pub usable: bool,
    /// User weight, 0 to 256.
    pub weight_user: u32,
}

/// What the hands must do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Tell the balancer. Comes before the transition that caused it, whose line shows its result.
    Balance(Balance),
    /// Log it (with `option log-health-checks`).
    CheckReport(CheckReport),
    /// Do the next check after `fastinter`, if it is not due sooner.
    Fastinter,
    /// The agent sets the server's `maxconn`.
    Maxconn(u32),
    /// Stop checking (maintenance).
    PauseChecks,
    /// Give the requests waiting for this server to others.
    RequeuePending,
    /// Check again, now.
    ResumeChecks,
    /// End all sessions of the backend's backup servers (termination flag `U`).
    ShutdownBackupSessions,
    /// End all sessions of this server (termination flag `D`).
    ShutdownSessions,
    /// Log it, and let the servers that track this one follow.
    Transition(Transition),
}

/// Counters of `show stat`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// `chkdown`: how often it went down.
    pub down_transitions: u64,
    /// Milliseconds it was down, without the current time down.
    pub down_ms: u64,
    /// `chkfail`: checks that failed while it was up.
    pub failed_checks: u64,
    /// `hanafail`: times that traffic spoke against it.
    pub failed_observations: u64,
}

/// One way of checking: the health check or the agent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Check {
    /// Administratively on; meaningless where none is configured.
    pub enabled: bool,
    /// 0 to `rise + fall - 1`; up from `rise` on.
    pub health: u32,
    /// What it found last.
    pub last: Verdict,
    /// A probe is on its way (`* ` in the statistics).
    pub running: bool,
    /// Limits and intervals.
    pub settings: CheckSettings,
}

impl Check {
    fn new(settings: CheckSettings) -> Self {
        let settings = settings.sane();
        let last = Verdict {
            code: None,
            duration_ms: None,
            info: String::new(),
            status: CheckStatus::Init,
        };
        Self {
            enabled: true,
            health: settings.rise,
            last,
            running: false,
            settings,
        }
    }

    /// Whether its counter stands for up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.health >= self.settings.rise
    }

    /// Interval until the next check, before `spread-checks`.
    #[must_use]
    pub fn interval_ms(&self) -> u64 {
        let CheckSettings {
            downinter_ms,
            fastinter_ms,
            inter_ms,
            ..
        } = self.settings;
        if self.health >= self.settings.health_max() {
            inter_ms
        } else if self.health == 0 {
            downinter_ms.unwrap_or(inter_ms)
        } else {
            fastinter_ms.unwrap_or(inter_ms)
        }
    }

    fn rise_one(&mut self) -> bool {
        let most = self.settings.health_max();
        if self.health >= most {
            return false;
        }
        self.health += 1;
        if self.is_up() {
            self.health = most;
        }
        true
    }

    fn fall_one(&mut self) -> bool {
        if self.health == 0 {
            return false;
        }
        self.health -= 1;
        if !self.is_up() {
            self.health = 0;
        }
        true
    }

    fn start_as(&mut self, init: InitState) {
        self.health = match init {
            InitState::Down => self.settings.rise - 1,
            InitState::FullyDown => 0,
            InitState::FullyUp => self.settings.health_max(),
            InitState::Up => self.settings.rise,
        };
    }
}

/// What is believed of one server. Times are milliseconds of any clock that does not go back.
#[derive(Clone, Debug)]
pub struct Health {
    admin: Admin,
    agent: Check,
    changed_ms: u64,
    check: Check,
    counters: Counters,
    errors_in_row: u32,
    operational: Operational,
    settings: Settings,
    step: u32,
    weight_user: u32,
}

impl Health {
    /// A server as the configuration leaves it: up unless `init-state` says otherwise, never in a
    /// slow start; `disabled` puts it in maintenance.
    #[must_use]
    pub fn new(settings: Settings, disabled: bool, now_ms: u64) -> Self {
        let mut health = Self {
            admin: Admin::default(),
            agent: Check::new(settings.agent.unwrap_or(CheckSettings::AGENT)),
            changed_ms: now_ms,
            check: Check::new(settings.check.unwrap_or(CheckSettings::HEALTH)),
            counters: Counters::default(),
            errors_in_row: 0,
            operational: Operational::Running,
            settings,
            step: STEP_MAX as u32,
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
    pub const fn agent(&self) -> &Check {
        &self.agent
    }

    /// What the balancer must know.
    #[must_use]
    pub const fn balance(&self) -> Balance {
        let usable = self.operational.is_up() && !self.admin.is_maint() && !self.admin.is_drain();
        Balance {
            step: self.step,
            usable,
            weight_user: self.weight_user,
        }
    }

    /// The health check.
    #[must_use]
    pub const fn check(&self) -> &Check {
        &self.check
    }

    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
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
        (now_ms / 1000).saturating_sub(self.changed_ms / 1000)
    }

    /// Settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
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

    /// The dynamic part of `maxconn` in a slow start: `limit` scaled by the time passed, at
    /// least 1. `limit` is what `maxconn`, `minconn` and `fullconn` make of it; 0 is no limit.
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

    /// When [`Health::tick`] is wanted next, as a delay; `None` when nothing warms up.
    #[must_use]
    pub fn tick_delay_ms(&self) -> Option<u64> {
        (self.operational == Operational::Starting)
            .then(|| (self.settings.slowstart_ms / 20).max(1000))
    }

    /// `status` of the statistics. `judged` is whose checks count: itself, or the machine at the
    /// end of its chain of `track`; `tracked` is the name of the server it tracks.
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
        // A forced state may leave the counter below rise for a moment.
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

// === opinions ===

impl Health {
    /// A health check begins; the statistics show it.
    pub const fn check_started(&mut self) {
        self.check.running = true;
    }

    /// An agent check begins.
    pub const fn agent_started(&mut self) {
        self.agent.running = true;
    }

    /// A health check ended. A conditional pass counts as a failure for a server that is down.
    pub fn check_done(&mut self, now_ms: u64, mut verdict: Verdict) -> Vec<Effect> {
        self.check.running = false;
        if verdict.status == CheckStatus::L7Conditional && self.operational == Operational::Stopped
        {
            verdict.status = CheckStatus::L7Status;
        }
        self.step_and_collect(now_ms, |health, effects| {
            health.judge(now_ms, verdict, effects)
        })
    }

    /// An agent answered. A failed connection to the agent is no opinion: do not report it here.
    pub fn agent_done(
        &mut self,
        now_ms: u64,
        answer: &AgentAnswer,
        duration_ms: u64,
    ) -> Vec<Effect> {
        self.agent.running = false;
        self.step_and_collect(now_ms, |health, effects| {
            health.hear_agent(now_ms, answer, duration_ms, effects);
        })
    }

    /// Traffic showed something (`observe`). Cheap when there is nothing to conclude: the caller
    /// may call it for every request.
    pub fn observed(&mut self, now_ms: u64, observed: Observed) -> Vec<Effect> {
        let sees = match self.settings.observe {
            None => false,
            Some(Observe::Layer4) => observed.is_layer4(),
            // A connection is no response: it neither clears nor counts, unless it fails.
            Some(Observe::Layer7) => observed != Observed::Connected,
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
        let verdict = Verdict {
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
                OnError::FailCheck => health.judge(now_ms, verdict, effects),
                OnError::SuddenDeath => {
                    health.check.health = health.check.health.min(rise + 1);
                    health.judge(now_ms, verdict, effects);
                }
                OnError::MarkDown => {
                    health.check.health = health.check.health.min(rise);
                    health.judge(now_ms, verdict, effects);
                }
            }
            effects.push(Effect::Fastinter);
        })
    }

    /// The tracked server changed (or was just bound): take its state.
    pub fn follow(&mut self, now_ms: u64, leader: &Self) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| {
            if leader.admin.is_maint() {
                health.enter_maint(now_ms, Admin::INHERITED_MAINT, effects);
                if !leader.admin.is_drain() {
                    health.admin = health.admin.without(Admin::INHERITED_DRAIN);
                }
                return;
            }
            if health.admin.has(Admin::INHERITED_MAINT) {
                // It is told in one line: leaving maintenance, into drain.
                if leader.admin.is_drain() {
                    health.admin = health.admin.with(Admin::INHERITED_DRAIN);
                }
                health.leave_maint(now_ms, Admin::INHERITED_MAINT, effects);
            }
            match leader.operational {
                Operational::Stopped => health.stop(now_ms, Cause::Tracked, effects),
                Operational::Stopping => health.wind_down(now_ms, Cause::Tracked, effects),
                Operational::Running | Operational::Starting => {
                    health.run(now_ms, Cause::Tracked, effects);
                }
            }
            if leader.admin.is_drain() {
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

    /// `set server ... state drain`: leaves forced maintenance if need be.
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

    /// The server's name resolves, or no longer does (`resolvers`).
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
    pub fn force_health(&mut self, now_ms: u64, forced: Forced) -> Vec<Effect> {
        self.force(now_ms, forced, false)
    }

    /// `set server ... agent up|down`. Without effect in maintenance.
    pub fn force_agent(&mut self, now_ms: u64, up: bool) -> Vec<Effect> {
        self.force(now_ms, if up { Forced::Up } else { Forced::Down }, true)
    }

    /// `set server ... weight` and agents: the user weight.
    pub fn set_weight(&mut self, now_ms: u64, weight_user: u32) -> Vec<Effect> {
        self.step_and_collect(now_ms, |health, effects| health.weigh(weight_user, effects))
    }

    /// `enable|disable health`.
    pub const fn enable_check(&mut self, on: bool) {
        self.check.enabled = on;
    }

    /// `enable|disable agent`.
    pub const fn enable_agent(&mut self, on: bool) {
        self.agent.enabled = on;
    }

    /// Time passes: a slow start goes on, or ends.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Effect> {
        self.step_and_collect(now_ms, |_, _| {})
    }
}

// === what follows ===

impl Health {
    /// Every public change runs here, so that the balancer hears of it once and first.
    fn step_and_collect(
        &mut self,
        now_ms: u64,
        change: impl FnOnce(&mut Self, &mut Vec<Effect>),
    ) -> Vec<Effect> {
        let before = self.balance();
        let mut effects = Vec::new();
        change(self, &mut effects);
        self.warm_up(now_ms, &mut effects);
        let after = self.balance();
        if before != after {
            effects.insert(0, Effect::Balance(after));
        }
        if before.usable && !after.usable {
            effects.push(Effect::RequeuePending);
        }
        effects
    }

    fn judge(&mut self, now_ms: u64, verdict: Verdict, effects: &mut Vec<Effect>) {
        let news = verdict.status != self.check.last.status;
        let moved = match verdict.status.result() {
            CheckResult::Failed => {
                let moved = self.check.fall_one();
                self.counters.failed_checks += u64::from(moved);
                moved
            }
            CheckResult::Conditional | CheckResult::Passed => {
                self.errors_in_row = 0;
                self.check.rise_one()
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
                self.stop(now_ms, Cause::Check(verdict), effects);
            }
            CheckResult::Passed if self.may_run() => {
                self.run(now_ms, Cause::Check(verdict), effects);
            }
            CheckResult::Conditional if self.may_run() => {
                self.wind_down(now_ms, Cause::Check(verdict), effects);
            }
            _ => {}
        }
    }

    /// Whether all who are asked agree that the server is up.
    fn may_run(&self) -> bool {
        let checked = self.settings.check.is_some() && self.check.enabled;
        let agented = self.settings.agent.is_some() && self.agent.enabled;
        (!checked || self.check.is_up()) && (!agented || self.agent.is_up())
    }

    fn hear_agent(
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
            let weight = u64::from(self.settings.weight) * u64::from(percent) / 100;
            let weight = u32::try_from(weight).unwrap_or(WEIGHT_MAX);
            self.weigh(weight, effects);
        }
        if let Some(maxconn) = answer.maxconn {
            effects.push(Effect::Maxconn(maxconn));
        }
        let (status, info) = match (answer.state, &answer.unknown) {
            (Some(state), _) => {
                let status = match state {
                    AgentState::Up => CheckStatus::L7Ok,
                    _ => CheckStatus::L7Status,
                };
                let info = if answer.note.is_empty() {
                    format!("via agent : {}", state.word())
                } else {
                    format!("via agent : {} ({})", state.word(), answer.note)
                };
                (status, info)
            }
            (None, Some(word)) => (
                CheckStatus::Checked,
                format!("agent reports an error : {word}"),
            ),
            (None, None) => (CheckStatus::Checked, String::new()),
        };
        let code = status.has_code().then_some(0);
        let verdict = Verdict {
            code,
            duration_ms: Some(duration_ms),
            info,
            status,
        };
        self.judge_by_agent(now_ms, verdict, effects);
    }

    fn judge_by_agent(&mut self, now_ms: u64, verdict: Verdict, effects: &mut Vec<Effect>) {
        let news = verdict.status != self.agent.last.status;
        let result = verdict.status.result();
        let moved = match result {
            CheckResult::Failed => self.agent.fall_one(),
            CheckResult::Passed => self.agent.rise_one(),
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
        if result == CheckResult::Failed && !self.agent.is_up() {
            self.stop(now_ms, Cause::Check(verdict), effects);
        } else if result == CheckResult::Passed && self.may_run() {
            self.run(now_ms, Cause::Check(verdict), effects);
        }
    }

    fn force(&mut self, now_ms: u64, forced: Forced, agent: bool) -> Vec<Effect> {
        if self.admin.is_maint() {
            return Vec::new();
        }
        self.step_and_collect(now_ms, |health, effects| {
            let check = if agent {
                &mut health.agent
            } else {
                &mut health.check
            };
            let most = check.settings.health_max();
            check.health = if forced == Forced::Down { 0 } else { most };
            match forced {
                Forced::Down => health.stop(now_ms, Cause::Cli, effects),
                Forced::Stopping => health.wind_down(now_ms, Cause::Cli, effects),
                Forced::Up => health.run(now_ms, Cause::Cli, effects),
            }
        })
    }

    fn weigh(&mut self, weight_user: u32, effects: &mut Vec<Effect>) {
        self.weight_user = weight_user.min(WEIGHT_MAX);
        self.say_remains(effects);
    }

    fn stop(&mut self, now_ms: u64, cause: Cause, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() || self.operational == Operational::Stopped {
            return;
        }
        let was_stopping = self.operational == Operational::Stopping;
        self.go(now_ms, Operational::Stopped);
        if self.settings.on_marked_down_shutdown {
            effects.push(Effect::ShutdownSessions);
        }
        self.say(Change::Down, cause, effects);
        note_stopping(was_stopping, effects);
        self.say_remains(effects);
    }

    fn wind_down(&mut self, now_ms: u64, cause: Cause, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() || self.operational == Operational::Stopping {
            return;
        }
        self.go(now_ms, Operational::Stopping);
        self.say(Change::Stopping, cause, effects);
        self.say_remains(effects);
    }

    fn run(&mut self, now_ms: u64, cause: Cause, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() || self.operational.is_up() {
            return;
        }
        let slow = self.operational == Operational::Stopped && self.settings.slowstart_ms > 0;
        self.go(
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
        self.say(Change::Up, cause, effects);
        self.say_remains(effects);
    }

    fn enter_maint(&mut self, now_ms: u64, reason: Admin, effects: &mut Vec<Effect>) {
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
        self.check.health = 0;
        self.check.running = false;
        if !was_down {
            self.go(now_ms, Operational::Stopped);
            if self.settings.on_marked_down_shutdown {
                effects.push(Effect::ShutdownSessions);
            }
        }
        effects.push(Effect::PauseChecks);
        let cause = match reason {
            Admin::INHERITED_MAINT => Cause::Tracked,
            _ => Cause::None,
        };
        self.say(Change::EntersMaint { was_down }, cause, effects);
        note_stopping(was_stopping, effects);
    }

    fn leave_maint(&mut self, now_ms: u64, reason: Admin, effects: &mut Vec<Effect>) {
        if !self.admin.has(reason) {
            return;
        }
        self.admin = self.admin.without(reason);
        if reason == Admin::FORCED_MAINT {
            self.admin = self.admin.without(Admin::CONFIGURED_MAINT);
        }
        if self.admin.is_maint() {
            return;
        }
        // Believed as at the start: one failure away from down unless told otherwise.
        self.check.start_as(self.settings.init_state);
        self.agent.health = self.agent.settings.rise;
        self.errors_in_row = 0;
        let checked = self.settings.check.is_some() && self.check.enabled;
        if !checked || self.check.is_up() {
            let slow = self.settings.slowstart_ms > 0;
            self.go(
                now_ms,
                if slow {
                    Operational::Starting
                } else {
                    Operational::Running
                },
            );
        }
        effects.push(Effect::ResumeChecks);
        let forced = reason != Admin::INHERITED_MAINT;
        let cause = if forced { Cause::None } else { Cause::Tracked };
        self.say(Change::LeavesMaint { forced }, cause, effects);
        self.say_remains(effects);
    }

    fn enter_drain(&mut self, reason: Admin, effects: &mut Vec<Effect>) {
        if self.admin.has(reason) {
            return;
        }
        let was_drain = self.admin.is_drain();
        self.admin = self.admin.with(reason);
        if was_drain || self.admin.is_maint() {
            return;
        }
        let was_down = self.operational == Operational::Stopped;
        let cause = if reason == Admin::INHERITED_DRAIN {
            Cause::Tracked
        } else {
            Cause::None
        };
        self.say(Change::EntersDrain { was_down }, cause, effects);
    }

    fn leave_drain(&mut self, reason: Admin, effects: &mut Vec<Effect>) {
        if !self.admin.has(reason) {
            return;
        }
        self.admin = self.admin.without(reason);
        if !self.admin.is_drain() && !self.admin.is_maint() {
            self.say(Change::LeavesDrain, Cause::None, effects);
        }
    }

    /// Maintenance takes the place of a forced drain.
    fn maint_by_force(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.enter_maint(now_ms, Admin::FORCED_MAINT, effects);
        self.admin = self.admin.without(Admin::FORCED_DRAIN);
    }

    fn drain_by_force(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.admin.is_maint() {
            // It is told in one line: leaving maintenance, into drain.
            self.admin = self.admin.with(Admin::FORCED_DRAIN);
            self.leave_maint(now_ms, Admin::FORCED_MAINT, effects);
        } else {
            self.enter_drain(Admin::FORCED_DRAIN, effects);
        }
    }

    fn ready_by_force(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.admin.has(Admin::FORCED_MAINT) {
            self.admin = self.admin.without(Admin::FORCED_DRAIN);
            self.leave_maint(now_ms, Admin::FORCED_MAINT, effects);
        } else {
            self.leave_drain(Admin::FORCED_DRAIN, effects);
        }
    }

    fn go(&mut self, now_ms: u64, to: Operational) {
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
        self.step = STEP_MAX as u32;
    }

    /// Sets the slow-start step: the whole seconds passed, of those it takes, in sixteenths.
    fn warm_up(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if self.operational != Operational::Starting {
            return;
        }
        let (passed, whole) = (self.seconds_since_change(now_ms), self.slowstart_s());
        if passed >= whole {
            let changed_ms = self.changed_ms;
            self.go(now_ms, Operational::Running);
            // A server that got warm did not change in the eyes of `lastchg`.
            self.changed_ms = changed_ms;
            self.say(Change::Up, Cause::None, effects);
            return;
        }
        // Below 16: passed < whole.
        self.step = ((STEP_MAX * passed + whole) / whole) as u32;
    }

    fn slowstart_s(&self) -> u64 {
        self.settings.slowstart_ms.div_ceil(1000).max(1)
    }

    fn say(&self, change: Change, cause: Cause, effects: &mut Vec<Effect>) {
        effects.push(Effect::Transition(Transition {
            via_tracked: cause == Cause::Tracked,
            cause,
            change,
            drains: self.admin.is_drain(),
            operational: self.operational,
            was_stopping: self.admin.is_drain(),
        }));
    }

    /// A server that drains is said to remain so whenever something else of it changes.
    fn say_remains(&self, effects: &mut Vec<Effect>) {
        if self.admin.is_drain() && !self.admin.is_maint() {
            let forced = self.admin.has(Admin::FORCED_DRAIN);
            self.say(Change::RemainsDrain { forced }, Cause::None, effects);
        }
    }

    pub(crate) fn take_over(
        &mut self,
        admin: Admin,
        operational: Option<Operational>,
        changed_ms: u64,
        weight_user: u32,
    ) {
        self.admin = admin;
        self.changed_ms = changed_ms;
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

/// Adds to the transition just told that the server had been stopping before it.
fn note_stopping(was_stopping: bool, effects: &mut [Effect]) {
    if let Some(Effect::Transition(transition)) = effects.last_mut() {
        transition.was_stopping |= was_stopping;
    }
}
