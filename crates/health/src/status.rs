//! Results of checks: words, codes and descriptions of `check_status`.
//!
//! Source: management manual, `show stat` fields 36 and 65, `show servers state`; numbers of
//! states read from HAProxy's own output.

/// The meaning of a check's status for the server (`srv_check_result`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u8)]
pub enum CheckResult {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// A valid check that does not say whether the server is up.
    Neutral = 1,
    /// Failed.
    Failed = 2,
    /// Passed.
    Passed = 3,
    /// Passed, but the server wants no new sessions.
    Conditional = 4,
}

/// Outcome of a finished check, as a probe reports it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CheckOutcome {
    /// Layer 7 code, when there is one (HTTP status).
    pub code: Option<u16>,
    /// Duration; `None` when there was no probe.
    pub duration_ms: Option<u64>,
    /// Contents or textual error (`last_chk`); empty for none.
    pub info: String,
    /// What was found.
    pub status: CheckStatus,
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal $word:literal $result:ident $text:literal;)*) => {
        /// Status of a check (`check_status`, `agent_status`).
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[repr(u8)]
        pub enum CheckStatus {
            $($(#[$doc])* $name = $number,)*
        }

        impl CheckStatus {
            /// All statuses, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word of `check_status`.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The text of `check_desc` and of log lines.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it means.
            #[must_use]
            pub const fn result(self) -> CheckResult {
                match self { $(Self::$name => CheckResult::$result,)* }
            }
        }
    };
}

statuses! {
    /// Nothing known.
    Unknown = 0 "UNK" Unknown "Unknown";
    /// Not checked yet.
    #[default]
    Init = 1 "INI" Unknown "Initializing";
    /// Started; has no word.
    Start = 2 "" Unknown "";
    /// A check without consequence (agents).
    Checked = 3 "CHECKED" Neutral "No status change";
    /// Seen in traffic.
    Observed = 4 "HANA" Failed "Health analyze";
    /// The probe could not be started.
    SocketError = 5 "SOCKERR" Failed "Socket error";
    /// Connected.
    L4Ok = 6 "L4OK" Passed "Layer4 check passed";
    /// Connecting took too long.
    L4Timeout = 7 "L4TOUT" Failed "Layer4 timeout";
    /// Connecting failed.
    L4Connection = 8 "L4CON" Failed "Layer4 connection problem";
    /// Handshake done.
    L6Ok = 9 "L6OK" Passed "Layer6 check passed";
    /// The handshake took too long.
    L6Timeout = 10 "L6TOUT" Failed "Layer6 timeout";
    /// The handshake failed.
    L6Response = 11 "L6RSP" Failed "Layer6 invalid response";
    /// The answer took too long.
    L7Timeout = 12 "L7TOUT" Failed "Layer7 timeout";
    /// The answer could not be read.
    L7Response = 13 "L7RSP" Failed "Layer7 invalid response";
    /// The answer is good.
    L7Ok = 15 "L7OK" Passed "Layer7 check passed";
    /// The answer says: no new sessions (404 with `disable-on-404`).
    L7Conditional = 16 "L7OKC" Conditional "Layer7 check conditionally passed";
    /// The answer is bad.
    L7Status = 17 "L7STS" Failed "Layer7 wrong status";
    /// An external check could not run.
    ProcessError = 18 "PROCERR" Failed "External check error";
    /// An external check took too long.
    ProcessTimeout = 19 "PROCTOUT" Failed "External check timeout";
    /// An external check passed.
    ProcessOk = 20 "PROCOK" Passed "External check passed";
}

impl CheckStatus {
    /// The number of `srv_check_status`.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// From the number of `srv_check_status`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|status| status.number() == number)
    }

    /// Whether it has a layer 7 code.
    #[must_use]
    pub const fn has_code(self) -> bool {
        self.number() >= Self::L7Ok.number()
    }
}

/// How much of a text is kept, in bytes.
const INFO_BYTES_MAX: usize = 127;

impl CheckOutcome {
    /// A verdict with only a status and a duration.
    #[must_use]
    pub const fn new(status: CheckStatus, duration_ms: u64) -> Self {
        Self {
            code: None,
            duration_ms: Some(duration_ms),
            info: String::new(),
            status,
        }
    }

    /// With a layer 7 code.
    #[must_use]
    pub const fn with_code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    /// With contents or an error text, of which the first bytes are kept, as HAProxy does.
    #[must_use]
    pub fn with_info(mut self, info: impl Into<String>) -> Self {
        self.info = info.into();
        let end = self.info.floor_char_boundary(INFO_BYTES_MAX);
        self.info.truncate(end);
        self
    }
}
