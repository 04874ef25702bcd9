//! Operating state of a server.

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

    /// Whether it is up, in its slow start or after it.
    pub(crate) const fn is_up(self) -> bool {
        matches!(self, Self::Running | Self::Starting)
    }
}
