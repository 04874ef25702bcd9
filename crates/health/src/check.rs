//! A health check or an agent check: its counter, and its last result.

use crate::settings::{CheckSettings, InitState};
use crate::status::{CheckOutcome, CheckStatus};

/// A health check or an agent check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CheckState {
    /// Enabled by command; without meaning when it is not configured.
    pub enabled: bool,
    /// 0 to `rise + fall - 1`; up from `rise` on.
    pub health: u32,
    /// The last result.
    pub last: CheckOutcome,
    /// The counter was set by an operator, and no check has confirmed or replaced that since.
    pub forced: bool,
    /// A check is running (`* ` in the statistics).
    pub running: bool,
    /// Limits and intervals.
    pub settings: CheckSettings,
}

impl CheckState {
    /// A check that counts as up; one failure ends that.
    pub(crate) fn new(settings: CheckSettings) -> Self {
        let settings = settings.with_limits_from_1();
        let last = CheckOutcome {
            code: None,
            duration_ms: None,
            info: String::new(),
            status: CheckStatus::Init,
        };
        Self {
            enabled: true,
            health: settings.rise,
            last,
            forced: false,
            running: false,
            settings,
        }
    }

    /// Whether its counter means up.
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

    /// Counts a success; false when the counter is full.
    pub(crate) fn count_success(&mut self) -> bool {
        let most = self.settings.health_max();
        if self.health >= most {
            return false;
        }
        self.health += 1;
        if self.is_up() {
            self.health = most;
            self.forced = false;
        }
        true
    }

    /// Counts a failure; false when the counter is 0.
    pub(crate) fn count_failure(&mut self) -> bool {
        self.forced = false;
        if self.health == 0 {
            return false;
        }
        self.health -= 1;
        if !self.is_up() {
            self.health = 0;
        }
        true
    }

    /// Changes the limits; a full counter stays full, and up stays up.
    pub(crate) fn change_settings(&mut self, settings: CheckSettings) {
        let (full, up) = (self.health >= self.settings.health_max(), self.is_up());
        self.settings = settings.with_limits_from_1();
        let (rise, most) = (self.settings.rise, self.settings.health_max());
        self.health = match (full, up) {
            (true, _) => most,
            (false, true) => self.health.clamp(rise, most),
            (false, false) => self.health.min(rise - 1),
        };
    }

    /// Sets the counter as `init-state` says.
    pub(crate) fn start_as(&mut self, init: InitState) {
        self.health = match init {
            InitState::Down => self.settings.rise - 1,
            InitState::FullyDown => 0,
            InitState::FullyUp => self.settings.health_max(),
            InitState::Up => self.settings.rise,
        };
    }
}
