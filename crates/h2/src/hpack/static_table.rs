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
pub(crate) const fn index_of(name: &[u8]) -> usize {
    let slot = BY_SUM[sum(name) % SLOTS] as usize;
    if slot == 0 || !is_equal(ENTRIES[slot - 1].0.as_bytes(), name) {
        return 0;
    }
    slot
}

/// Comparison that constants may use.
#[inline]
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

/// The entry with this name and value, searched from the first entry of that name on.
pub(crate) fn index_of_pair(first: usize, name: &[u8], value: &[u8]) -> Option<usize> {
    (first..=STATIC_COUNT)
        .take_while(|index| entry(*index).is_some_and(|(other, _)| other == name))
        .find(|index| entry(*index).is_some_and(|(_, other)| other == value))
}

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
            assert_eq!(index_of_pair(first, name, value), Some(index));
        }
        let last = (1..=STATIC_COUNT).rfind(|at| !entry(*at).unwrap().1.is_empty());
        assert_eq!(last, Some(LAST_VALUE));
        assert_eq!(index_of(b"x-other"), 0);
        assert_eq!(index_of(b""), 0);
        assert_eq!(
            index_of_pair(index_of(b":method"), b":method", b"PUT"),
            None
        );
        assert_eq!(entry(0), None);
        assert_eq!(entry(62), None);
    }
}
