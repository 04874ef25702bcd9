//! The static table (RFC 7541 appendix A).

/// The entries, the first of which has index 1.
#[rustfmt::skip]
static ENTRIES: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The number of entries, and the index of the last.
pub(crate) const STATIC_COUNT: usize = ENTRIES.len();

/// The last entry that has a value: those after it give a name only.
pub(crate) const LAST_VALUE: usize = 16;

/// Name and value of an entry; `index` is from 1 on.
#[inline]
pub(crate) fn entry(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = ENTRIES.get(index.checked_sub(1)?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// The first entry with this name; 0 if there is none.
#[inline]
pub(crate) fn index_of(name: &[u8]) -> usize {
    let slot = usize::from(BY_SUM[sum(name) % SLOTS]);
    if slot == 0 || ENTRIES[slot - 1].0.as_bytes() != name {
        return 0;
    }
    slot
}

/// The same for constants.
pub(crate) const fn const_index_of(name: &[u8]) -> usize {
    let slot = BY_SUM[sum(name) % SLOTS] as usize;
    if slot == 0 || !is_equal(ENTRIES[slot - 1].0.as_bytes(), name) {
        return 0;
    }
    slot
}

/// Comparison that constants may use.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The entry with this value among those of one name, the first of which has the index `first`.
pub(crate) fn index_of_pair(first: usize, value: &[u8]) -> Option<usize> {
    let last = match first {
        METHOD => METHOD + 1,
        PATH => PATH + 1,
        SCHEME => SCHEME + 1,
        STATUS => STATUS + 6,
        only => only,
    };
    (first..=last).find(|index| entry(*index).is_some_and(|(_, other)| other == value))
}

/// The entry of a status.
#[inline]
pub(crate) fn index_of_status(status: u16) -> Option<usize> {
    Some(match status {
        200 => STATUS,
        204 => STATUS + 1,
        206 => STATUS + 2,
        304 => STATUS + 3,
        400 => STATUS + 4,
        404 => STATUS + 5,
        500 => STATUS + 6,
        _ => return None,
    })
}

/// The first entries of the names that have several.
const METHOD: usize = 2;
const PATH: usize = 4;
const SCHEME: usize = 6;
const STATUS: usize = 8;

/// Where the names stand by their sum: a size for which no two names meet.
const SLOTS: usize = 512;

static BY_SUM: [u8; SLOTS] = by_sum();

/// A number for a name, from its length and three of its bytes.
#[inline]
const fn sum(name: &[u8]) -> usize {
    let len = name.len();
    if len == 0 {
        return 0;
    }
    let (first, middle, last) = (name[0], name[len / 2], name[len - 1]);
    len * FACTORS[0]
        + first as usize * FACTORS[1]
        + middle as usize * FACTORS[2]
        + last as usize * FACTORS[3]
}

/// Chosen by trial: the tests say when two names meet.
const FACTORS: [usize; 4] = [42, 7, 12, 41];

#[expect(clippy::cast_possible_truncation, reason = "61 entries")]
const fn by_sum() -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    // From the last: of entries with the same name the first one stays.
    let mut index = ENTRIES.len();
    while index > 0 {
        slots[sum(ENTRIES[index - 1].0.as_bytes()) % SLOTS] = index as u8;
        index -= 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_at_its_first_entry() {
        for index in 1..=STATIC_COUNT {
            let (name, value) = entry(index).unwrap();
            let first = index_of(name);
            let expected = (1..=STATIC_COUNT).find(|at| entry(*at).unwrap().0 == name);
            assert_eq!(Some(first), expected, "{}", String::from_utf8_lossy(name));
            assert_eq!(const_index_of(name), first);
            assert_eq!(index_of_pair(first, value), Some(index));
        }
        let last = (1..=STATIC_COUNT).rfind(|at| !entry(*at).unwrap().1.is_empty());
        assert_eq!(last, Some(LAST_VALUE));
        assert_eq!(index_of(b"x-other"), 0);
        assert_eq!(index_of(b""), 0);
        assert_eq!(const_index_of(b"x-other"), 0);
        assert_eq!(index_of_pair(index_of(b":method"), b"PUT"), None);
        for status in 0..1000_u16 {
            let value = status.to_string();
            let expected = index_of_pair(index_of(b":status"), value.as_bytes());
            assert_eq!(index_of_status(status), expected, "{status}");
        }
        assert_eq!(entry(0), None);
        assert_eq!(entry(62), None);
    }
}
