//! The configuration of a server's checks.

/// Rise, fall and intervals of a check or an agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CheckSettings {
    /// `downinter`; `inter` when unset.
    pub downinter_ms: Option<u64>,
    /// `fall`: failures in a row until down, at least 1.
    pub fall: u32,
    /// `fastinter`; `inter` when unset.
    pub fastinter_ms: Option<u64>,
    /// `inter`.
    pub inter_ms: u64,
    /// `rise`: successes in a row until up, at least 1.
    pub rise: u32,
}

impl CheckSettings {
    /// A health check without settings: 2000 ms, rise 2, fall 3.
    pub const HEALTH: Self = Self {
        downinter_ms: None,
        fall: 3,
        fastinter_ms: None,
        inter_ms: 2000,
        rise: 2,
    };
    /// An agent without settings: 2000 ms, rise 1, fall 1.
    pub const AGENT: Self = Self {
        fall: 1,
        rise: 1,
        ..Self::HEALTH
    };

    /// The largest value of the health counter.
    #[must_use]
    pub const fn health_max(&self) -> u32 {
        self.rise + self.fall - 1
    }

    pub(crate) const fn with_limits_from_1(mut self) -> Self {
        if self.rise == 0 {
            self.rise = 1;
        }
        if self.fall == 0 {
            self.fall = 1;
        }
        self
    }
}

/// `init-state` (HAProxy 3.1): the state before the first check and after maintenance.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum InitState {
    /// Down, up after one success.
    Down,
    /// Down, up after `rise` successes.
    FullyDown,
    /// Up, down after `fall` failures.
    FullyUp,
    /// Up, down after one failure (the default, and what HAProxy 2.6 always does).
    #[default]
    Up,
}

/// `observe <mode>`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Observe {
    /// Connections only.
    Layer4,
    /// Connections and HTTP responses.
    Layer7,
}

/// What traffic showed of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Observation {
    /// Connection refused, reset or timed out.
    ConnectError,
    /// Connected.
    Connected,
    /// Something else than a response, or a part of its head.
    InvalidHeaders,
    /// The server closed or reset its connection before it answered anything.
    ReadError,
    /// `timeout server` struck before the response.
    ReadTimeout,
    /// A response whose status is good (100 to 499, 501, 505).
    Response,
    /// A response whose status is not good.
    WrongStatus,
}

impl Observation {
    /// The observation that a response status means.
    #[must_use]
    pub const fn from_status(status: u16) -> Self {
        match status {
            100..=499 | 501 | 505 => Self::Response,
            _ => Self::WrongStatus,
        }
    }

    /// Whether it counts against the server.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Connected | Self::Response)
    }

    /// Whether `observe layer4` includes it.
    #[must_use]
    pub const fn is_layer4(self) -> bool {
        matches!(self, Self::ConnectError | Self::Connected)
    }

    /// Its text in log lines.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::ConnectError => "L4 unsuccessful connection",
            Self::Connected => "Layer4 successful connection",
            Self::InvalidHeaders => "Invalid http response (headers)",
            Self::ReadError => "Read error (http)",
            Self::ReadTimeout => "Read timeout (http)",
            Self::Response => "Correct http response",
            Self::WrongStatus => "Wrong http response",
        }
    }
}

/// `on-error <mode>`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnError {
    /// It counts as a failed check (default).
    #[default]
    FailCheck,
    /// The next check comes sooner, nothing else.
    Fastinter,
    /// The server goes down at once.
    MarkDown,
    /// The next failed check will take it down.
    SuddenDeath,
}

/// The configuration of one server's health.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HealthSettings {
    /// `agent-check`.
    pub agent: Option<CheckSettings>,
    /// `check`.
    pub check: Option<CheckSettings>,
    /// `error-limit`: errors in a row until `on-error`.
    pub error_limit: u32,
    /// `init-state`.
    pub init_state: InitState,
    /// `observe`.
    pub observe: Option<Observe>,
    /// `on-error`.
    pub on_error: OnError,
    /// `on-marked-down shutdown-sessions`.
    pub on_marked_down_shutdown: bool,
    /// `on-marked-up shutdown-backup-sessions`.
    pub on_marked_up_shutdown_backups: bool,
    /// `slowstart`; 0 for none. HAProxy counts it in whole seconds, rounded up.
    pub slowstart_ms: u64,
    /// `track`: the machine follows another one (see [`crate::Health::copy_tracked`]).
    pub tracks: bool,
    /// `weight`.
    pub weight: u32,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            agent: None,
            check: None,
            error_limit: 10,
            init_state: InitState::Up,
            observe: None,
            on_error: OnError::FailCheck,
            on_marked_down_shutdown: false,
            on_marked_up_shutdown_backups: false,
            slowstart_ms: 0,
            tracks: false,
            weight: 1,
        }
    }
}

/// Applies `spread-checks <percent>` to an interval: a random amount up to that percentage is
/// added or taken. `random` is uniform over all values.
#[must_use]
pub fn spread_interval_ms(interval_ms: u64, percent: u32, random: u64) -> u64 {
    let deviation_max = u128::from(interval_ms) * u128::from(percent.min(50)) / 100;
    // 0 to 2 x deviation_max, inclusive.
    let offset = ((2 * deviation_max + 1) * u128::from(random)) >> 64;
    let spread = u128::from(interval_ms) - deviation_max + offset;
    u64::try_from(spread).unwrap_or(u64::MAX)
}

/// When the first check of server number `position` of `count` is due within its interval, so that servers on
/// one machine are not checked at once. As in HAProxy the interval is that of its state (`fastinter` where it
/// has one, for nobody has seen it up), or the shortest of all where that is longer.
#[must_use]
pub fn first_check_delay_ms(interval_ms: u64, position: u64, count: u64) -> u64 {
    let share = u128::from(interval_ms) * u128::from(position) / u128::from(count.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
