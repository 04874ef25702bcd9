//! What a match of a regular expression reports.

/// Sub-expressions whose positions are reported (PCRE's `\0` to `\9`).
pub(crate) const GROUPS_MAX: usize = 10;

/// Positions of the groups of one match: where the whole and each of the first nine groups
/// begin and end, for those that took part.
pub type Groups = [Option<(usize, usize)>; GROUPS_MAX];
