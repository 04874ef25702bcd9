//! The administrative state of a server, set by operators, configuration and name resolution.

/// Administrative state: a set of reasons for maintenance or drain (`srv_admin_state` in
/// `show servers state`, same bits).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Admin(u8);

impl Admin {
    /// Forced into maintenance by an operator or an agent.
    pub const FORCED_MAINT: Self = Self(0x01);
    /// In maintenance because the tracked server is.
    pub const INHERITED_MAINT: Self = Self(0x02);
    /// `disabled` in the configuration, together with `FORCED_MAINT`. It stays set after an
    /// operator ended the maintenance (by itself it is no maintenance): a process that takes over
    /// the state can tell that it was configured.
    pub const CONFIGURED_MAINT: Self = Self(0x04);
    /// Forced to drain by an operator or an agent.
    pub const FORCED_DRAIN: Self = Self(0x08);
    /// Draining because the tracked server does.
    pub const INHERITED_DRAIN: Self = Self(0x10);
    /// In maintenance because its name does not resolve.
    pub const RESOLUTION_MAINT: Self = Self(0x20);
    /// Its name was set by an operator (no maintenance in itself).
    pub const HOST_SET: Self = Self(0x40);

    const MAINT: u8 = 0x23;
    const DRAIN: u8 = 0x18;

    /// From the bits of `srv_admin_state`; unknown bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x7f)
    }

    /// The bits of `srv_admin_state`.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `other` is in it.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// In maintenance for any reason.
    #[must_use]
    pub const fn is_maint(self) -> bool {
        self.0 & Self::MAINT != 0
    }

    /// Draining for any reason.
    #[must_use]
    pub const fn is_drain(self) -> bool {
        self.0 & Self::DRAIN != 0
    }

    /// With `other` added.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// With `other` taken away.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
