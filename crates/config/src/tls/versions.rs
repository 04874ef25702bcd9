//! `ssl-min-ver`, `ssl-max-ver`, `force-tlsv1x` and `no-tlsv1x`.
//!
//! Source: HAProxy configuration manual, sections 5.1 and 5.2; what the words do together was
//! observed on HAProxy 3.2.

use ballast_tls::options::TlsVersion;

/// A version that the configuration can name.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Protocol {
    /// `SSLv3`.
    Ssl3,
    /// `TLSv1.0`.
    Tls10,
    /// `TLSv1.1`.
    Tls11,
    /// `TLSv1.2`.
    Tls12,
    /// `TLSv1.3`.
    Tls13,
}

impl Protocol {
    /// All of them, the oldest first.
    const ALL: [Self; 5] = [
        Self::Ssl3,
        Self::Tls10,
        Self::Tls11,
        Self::Tls12,
        Self::Tls13,
    ];

    /// The version of that name.
    ///
    /// # Errors
    /// With HAProxy's words, when there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.word() == text)
            .ok_or_else(|| format!("'{text}' : unknown ssl/tls version"))
    }

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ssl3 => "SSLv3",
            Self::Tls10 => "TLSv1.0",
            Self::Tls11 => "TLSv1.1",
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }

    /// The version as the model has it; older ones are raised to the oldest that is built in.
    pub(crate) fn built_in(self) -> TlsVersion {
        match self {
            Self::Tls13 => TlsVersion::Tls13,
            _ => TlsVersion::Tls12,
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a line said of versions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Versions {
    /// `ssl-min-ver` and `force-*`.
    pub(crate) min: Option<Protocol>,
    /// `ssl-max-ver` and `force-*`.
    pub(crate) max: Option<Protocol>,
    /// `no-*`, as bits.
    disabled: u8,
}

/// Something odd in the words, which has an effect all the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VersionRemark {
    /// `no-*` beside the other words is ignored.
    FlagsIgnored,
    /// Only the newest version was given, and it is older than the oldest by default.
    Ambiguous(Protocol),
    /// A version in the middle is disabled.
    Hole(Protocol),
}

/// Why no version is left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The words exclude each other.
    AllDisabled,
    /// The newest version allowed is not built in.
    TooOld(Protocol),
}

/// The oldest and the newest version; `None` where nothing was said.
pub(crate) type Range = (Option<TlsVersion>, Option<TlsVersion>);

impl Versions {
    /// `force-*`.
    pub(crate) fn force(&mut self, version: Protocol) {
        self.min = Some(version);
        self.max = Some(version);
    }

    /// `no-*`.
    pub(crate) fn disable(&mut self, version: Protocol) {
        self.disabled |= version.bit();
    }

    /// Adds what a line left open.
    pub(crate) fn add_defaults(&mut self, defaults: &Self) {
        self.min = self.min.or(defaults.min);
        self.max = self.max.or(defaults.max);
        self.disabled |= defaults.disabled;
    }

    /// The versions of a line, and what is odd about them. A bind line has a floor of TLS 1.2 by
    /// default, a server line none.
    ///
    /// # Errors
    /// When no version is left that is built in.
    pub(crate) fn range(&self, is_bind: bool) -> Result<(Range, Vec<VersionRemark>), Fault> {
        let mut remarks = Vec::new();
        if self.min.is_none() && self.max.is_none() {
            let range = self.without_disabled(is_bind, &mut remarks)?;
            return Ok((range, remarks));
        }
        if self.disabled != 0 {
            remarks.push(VersionRemark::FlagsIgnored);
        }
        let max = self.max.unwrap_or(Protocol::Tls13);
        if is_bind && self.min.is_none() && max < Protocol::Tls12 {
            remarks.push(VersionRemark::Ambiguous(max));
        }
        if self.min.is_some_and(|min| min > max) || max == Protocol::Ssl3 {
            return Err(Fault::AllDisabled);
        }
        if max < Protocol::Tls12 {
            return Err(Fault::TooOld(max));
        }
        let range = (
            self.min.map(Protocol::built_in),
            self.max.map(Protocol::built_in),
        );
        Ok((range, remarks))
    }

    /// The versions that `no-*` leaves.
    fn without_disabled(
        &self,
        is_bind: bool,
        remarks: &mut Vec<VersionRemark>,
    ) -> Result<Range, Fault> {
        if self.disabled == 0 {
            return Ok((None, None));
        }
        let floor = if is_bind {
            Protocol::Tls12
        } else {
            Protocol::Tls10
        };
        let left: Vec<_> = Protocol::ALL
            .into_iter()
            .filter(|one| *one >= floor && self.disabled & one.bit() == 0)
            .collect();
        let (Some(first), Some(last)) = (left.first(), left.last()) else {
            return Err(Fault::AllDisabled);
        };
        if *last < Protocol::Tls12 {
            return Err(Fault::TooOld(*last));
        }
        let holes = Protocol::ALL
            .into_iter()
            .filter(|one| (first..last).contains(&one) && !left.contains(one));
        remarks.extend(holes.map(VersionRemark::Hole));
        let min = left.iter().copied().find(|one| *one >= Protocol::Tls12);
        let min = min.filter(|min| *min > Protocol::Tls12);
        let max = (*last < Protocol::Tls13).then_some(*last);
        Ok((min.map(Protocol::built_in), max.map(Protocol::built_in)))
    }
}

#[cfg(test)]
mod tests {
    use super::Protocol::{Tls10, Tls11, Tls12, Tls13};
    use super::*;

    fn words(text: &str) -> Versions {
        let mut versions = Versions::default();
        for word in text.split_whitespace() {
            let (kind, number) = word.split_at(word.len() - 2);
            let version = match number {
                "10" => Tls10,
                "11" => Tls11,
                "12" => Tls12,
                _ => Tls13,
            };
            match kind {
                "min" => versions.min = Some(version),
                "max" => versions.max = Some(version),
                "force" => versions.force(version),
                _ => versions.disable(version),
            }
        }
        versions
    }

    /// The words, for a bind or a server, and the range with its remarks as HAProxy has them.
    #[test]
    fn words_together_are_a_range() {
        let (old, new) = (Some(TlsVersion::Tls12), Some(TlsVersion::Tls13));
        for (text, is_bind, expected) in [
            ("", true, Ok(((None, None), vec![]))),
            ("min12", true, Ok(((old, None), vec![]))),
            ("min10", true, Ok(((old, None), vec![]))),
            ("min13 max12", true, Err(Fault::AllDisabled)),
            ("max11", true, Err(Fault::TooOld(Tls11))),
            ("force10", true, Err(Fault::TooOld(Tls10))),
            ("force12", true, Ok(((old, old), vec![]))),
            ("force12 force13", true, Ok(((new, new), vec![]))),
            ("force12 min13", true, Err(Fault::AllDisabled)),
            ("no12", true, Ok(((new, None), vec![]))),
            ("no13", true, Ok(((None, old), vec![]))),
            ("no12 no13", true, Err(Fault::AllDisabled)),
            ("no10 no11", true, Ok(((None, None), vec![]))),
            (
                "min10 no11",
                true,
                Ok(((old, None), vec![VersionRemark::FlagsIgnored])),
            ),
            (
                "force13 no13",
                true,
                Ok(((new, new), vec![VersionRemark::FlagsIgnored])),
            ),
            (
                "no12",
                false,
                Ok(((new, None), vec![VersionRemark::Hole(Tls12)])),
            ),
            ("no10 no11 no12", false, Ok(((new, None), vec![]))),
            ("no12 no13", false, Err(Fault::TooOld(Tls11))),
        ] {
            assert_eq!(words(text).range(is_bind), expected, "{text}");
        }
    }
}
