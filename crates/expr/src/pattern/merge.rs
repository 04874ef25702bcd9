//! Who wins where a file and a command changed the same list.

use std::collections::{HashMap, HashSet};

use super::key_entries::EntryPair;

/// What a list holds after its file changed from `old` to `new` while it ran as `live`.
///
/// Per key, all entries of it together: where the file changed, the file wins; where it did not,
/// what is live stays. Keys come in the order of the new file, those that only a command added after
/// them. The same file again changes nothing.
pub fn merge(old: &[EntryPair], new: &[EntryPair], live: &[EntryPair]) -> Vec<EntryPair> {
    if old == new {
        return live.to_vec();
    }
    let before = by_key(old);
    let after = by_key(new);
    let now = by_key(live);
    let mut merged = Vec::with_capacity(live.len().max(new.len()));
    let mut placed: HashSet<&str> = HashSet::new();
    for pair in new {
        let key = &*pair.0;
        let was = before.get(key);
        if was != after.get(key) || was == now.get(key) {
            merged.push(pair.clone());
        } else if placed.insert(key) {
            // Only a command changed it: all its entries stand where the first one did.
            merged.extend(now.get(key).into_iter().flatten().copied().cloned());
        }
    }
    let overridden = live.iter().filter(|(key, _)| {
        let key = &**key;
        !before.contains_key(key) && !after.contains_key(key)
    });
    merged.extend(overridden.cloned());
    merged
}

/// The entries of the keys in which `old` and `live` differ: those of `old`, and those of `live`.
/// `merge` of the two, whatever the new file, changes what `merge` of the whole would.
pub(super) fn overridden(
    old: &[EntryPair],
    live: &[EntryPair],
) -> (Vec<EntryPair>, Vec<EntryPair>) {
    let before = by_key(old);
    let now = by_key(live);
    let changed = |(key, _): &&EntryPair| before.get(&**key) != now.get(&**key);
    let of = |pairs: &[EntryPair]| pairs.iter().filter(changed).cloned().collect();
    (of(old), of(live))
}

fn by_key(pairs: &[EntryPair]) -> HashMap<&str, Vec<&EntryPair>> {
    let mut keys: HashMap<&str, Vec<&EntryPair>> = HashMap::with_capacity(pairs.len());
    for pair in pairs {
        keys.entry(&pair.0).or_default().push(pair);
    }
    keys
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn pairs() -> impl Strategy<Value = Vec<EntryPair>> {
        let pair = ("[a-d]", "[x-z]").prop_map(|(key, value)| {
            let value: Arc<str> = Arc::from(value);
            (Arc::from(key), Some(value))
        });
        proptest::collection::vec(pair, 0..8)
    }

    fn of<'p>(pairs: &'p [EntryPair], key: &str) -> Vec<&'p EntryPair> {
        pairs.iter().filter(|(known, _)| &**known == key).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_file_wins_where_it_changed_and_the_override_elsewhere(
            old in pairs(), new in pairs(), live in pairs(),
        ) {
            let merged = merge(&old, &new, &live);
            for key in ["a", "b", "c", "d"] {
                let wanted = if of(&old, key) == of(&new, key) { &live } else { &new };
                prop_assert_eq!(of(&merged, key), of(wanted, key), "{}", key);
            }
        }

        #[test]
        fn without_an_override_the_file_is_the_list(old in pairs(), new in pairs()) {
            prop_assert_eq!(merge(&old, &new, &old), new);
        }

        #[test]
        fn what_overrides_changed_is_enough_to_merge(old in pairs(), new in pairs(), live in pairs()) {
            let (was, is) = overridden(&old, &live);
            let (short, whole) = (merge(&was, &new, &is), merge(&old, &new, &live));
            prop_assert_eq!(short.len(), whole.len());
            for (key, _) in &whole {
                prop_assert_eq!(of(&short, key), of(&whole, key), "{}", key);
            }
        }

        #[test]
        fn the_same_file_changes_nothing(old in pairs(), live in pairs()) {
            prop_assert_eq!(merge(&old, &old, &live), live);
        }

        #[test]
        fn merging_twice_is_merging_once(old in pairs(), new in pairs(), live in pairs()) {
            let once = merge(&old, &new, &live);
            prop_assert_eq!(merge(&new, &new, &once), once);
        }
    }
}
