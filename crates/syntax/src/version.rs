//! Version numbers, as conditions compare them.

/// A HAProxy version, as `haproxy -v` prints it: `2.6.12`, `2.7-dev3`, `2.5-dev8-b1b1f3-19`.
/// Missing components are zero; versions order as releases do, `dev` and `rc` before the release.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct HaproxyVersion {
    numbers: [u64; 4],
    stage: ReleaseStage,
    stage_number: u64,
    commits: u64,
}

#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
enum ReleaseStage {
    Dev,
    Candidate,
    #[default]
    Release,
}

impl HaproxyVersion {
    /// A released version.
    #[must_use]
    pub fn release(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            numbers: [major, minor, patch, 0],
            ..Self::default()
        }
    }

    /// Parses a version as far as possible; invalid parts count as zero, as in HAProxy
    /// (`version_atleast(abc)` is true there).
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (numbers, mut rest) = leading_numbers::<4>(text);
        let mut version = Self {
            numbers,
            ..Self::default()
        };
        for (word, stage) in [
            ("-dev", ReleaseStage::Dev),
            ("-rc", ReleaseStage::Candidate),
        ] {
            if let Some(after) = rest.strip_prefix(word) {
                let (number, after) = leading_number(after);
                version.stage = stage;
                version.stage_number = number.unwrap_or(0);
                rest = after;
                break;
            }
        }
        // The count of commits since the tag comes last, after an optional hash.
        let last = rest.rsplit_once('-').map_or("", |(_, last)| last);
        if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) {
            version.commits = last.parse().unwrap_or(u64::MAX);
        }
        version
    }
}

/// An OpenSSL version: `1.1.1`, `1.1.1w`, `3.0.0-beta1`.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct SslVersion {
    numbers: [u64; 3],
    /// The letter releases of the 1.x line, `a` = 1; `za` = 27.
    letters: u64,
    is_release: bool,
    stage_number: u64,
}

impl SslVersion {
    /// A version without letters.
    #[must_use]
    pub fn release(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            numbers: [major, minor, patch],
            is_release: true,
            ..Self::default()
        }
    }

    /// Parses a version; `None` when it is not three numbers, optional letters and an optional
    /// `-alphaN`, `-betaN` or `-dev`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut version = Self::default();
        let mut rest = text;
        for (index, number) in version.numbers.iter_mut().enumerate() {
            if index > 0 {
                rest = rest.strip_prefix('.')?;
            }
            let (value, after) = leading_number(rest);
            (*number, rest) = (value?, after);
        }
        let letters = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_lowercase())
                .len();
        if letters > 2 {
            return None;
        }
        version.letters = rest[..letters]
            .bytes()
            .map(|b| u64::from(b - b'a' + 1))
            .sum();
        rest = &rest[letters..];
        version.is_release = rest.is_empty();
        if let Some(stage) = rest.strip_prefix('-') {
            let digits = stage.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let (number, after) = leading_number(digits);
            if digits.len() == stage.len() || !after.is_empty() {
                return None;
            }
            version.stage_number = number.unwrap_or(0);
            rest = "";
        }
        rest.is_empty().then_some(version)
    }
}

/// Up to `N` numbers separated by dots, and the rest. A missing number is zero.
fn leading_numbers<const N: usize>(text: &str) -> ([u64; N], &str) {
    let mut numbers = [0; N];
    let mut rest = text;
    for (index, number) in numbers.iter_mut().enumerate() {
        let from = if index == 0 {
            Some(rest)
        } else {
            rest.strip_prefix('.')
        };
        let Some((Some(value), after)) = from.map(leading_number) else {
            break;
        };
        (*number, rest) = (value, after);
    }
    (numbers, rest)
}

/// The leading number of `text`, saturating, and the rest.
fn leading_number(text: &str) -> (Option<u64>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    if digits.is_empty() {
        return (None, text);
    }
    (Some(digits.parse().unwrap_or(u64::MAX)), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_as_releases_do() {
        let ordered = [
            "abc",
            "2",
            "2.4-dev3",
            "2.4-dev19",
            "2.4-dev19-4",
            "2.4-dev19-abcdef-12",
            "2.4-rc1",
            "2.4",
            "2.6",
            "2.6.12-dev",
            "2.6.12-rc1",
            "2.6.12",
            "2.6.12-1",
            "2.6.12.5",
            "2.6.13-dev1",
            "2.7-dev",
            "3",
        ];
        for pair in ordered.windows(2) {
            assert!(
                HaproxyVersion::parse(pair[0]) < HaproxyVersion::parse(pair[1]),
                "{pair:?}"
            );
        }
        assert_eq!(
            HaproxyVersion::parse("2.6.12-1+deb12u4"),
            HaproxyVersion::release(2, 6, 12)
        );
        assert_eq!(
            HaproxyVersion::parse("2.x"),
            HaproxyVersion::release(2, 0, 0)
        );
    }

    #[test]
    fn openssl_versions_order_and_are_checked() {
        let ordered = [
            "1.0.2",
            "1.1.1-beta1",
            "1.1.1",
            "1.1.1a",
            "1.1.1w",
            "1.1.1za",
            "3.0.0-beta2",
            "3.0.0",
            "3.0.19",
        ];
        for pair in ordered.windows(2) {
            let [old, new] = [pair[0], pair[1]].map(|v| SslVersion::parse(v).unwrap());
            assert!(old < new, "{pair:?}");
        }
        for bad in [
            "",
            "abc",
            "3",
            "3.0",
            "3.0.0.1",
            "3.0.0-",
            "1.1.1abc",
            "1.1.1-beta1x",
            "1..1",
        ] {
            assert_eq!(SslVersion::parse(bad), None, "{bad}");
        }
    }
}
