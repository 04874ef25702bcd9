//! Ids of proxies that stay the same over changes.
//!
//! Sections without an `id` are numbered by their order, so removing one would renumber all that
//! follow. While the process lives, a proxy that keeps its name keeps its number: statistics that
//! are read by number stay comparable, and a plan names only what really changed. Numbers that `id`
//! gives are always the file's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ballast_model::{Config, ProxyCommon};

/// A proxy with a number of its own; the two halves of a `listen` share one.
#[derive(Eq, Hash, PartialEq)]
enum NumberedProxy {
    Frontend(String),
    Backend(String),
    Listen(String),
}

fn numbered_proxy(common: &ProxyCommon, one: fn(String) -> NumberedProxy) -> NumberedProxy {
    let name = common.name.clone();
    if common.listen {
        NumberedProxy::Listen(name)
    } else {
        one(name)
    }
}

fn proxies(config: &Config) -> impl Iterator<Item = (NumberedProxy, &ProxyCommon)> {
    let fronts = config.frontends.iter().map(|one| &one.common);
    let backs = config.backends.iter().map(|one| &one.common);
    let fronts = fronts.map(|common| (numbered_proxy(common, NumberedProxy::Frontend), common));
    fronts.chain(backs.map(|common| (numbered_proxy(common, NumberedProxy::Backend), common)))
}

/// Gives the proxies of `next` the numbers that those of the same name have in `current`, and the
/// others the smallest free numbers.
pub fn keep(next: &mut Config, current: &Config) {
    let numbers_in_force: HashMap<NumberedProxy, u32> =
        proxies(current).map(|(who, one)| (who, one.id)).collect();
    let first = proxies(next).map(|(_, one)| one.id).min().unwrap_or(1);
    let mut numbers: HashMap<NumberedProxy, u32> = HashMap::new();
    let mut taken: HashSet<u32> = HashSet::new();
    for (who, one) in proxies(next).filter(|(_, one)| one.id_is_explicit.0) {
        taken.insert(one.id);
        numbers.insert(who, one.id);
    }
    for (who, _) in proxies(next) {
        if let Some(&number) = numbers_in_force.get(&who)
            && !numbers.contains_key(&who)
            && taken.insert(number)
        {
            numbers.insert(who, number);
        }
    }
    let mut free = first..;
    for (who, one) in proxies(next) {
        numbers.entry(who).or_insert_with(|| {
            // There are fewer proxies than numbers.
            free.find(|number| !taken.contains(number))
                .unwrap_or(one.id)
        });
    }
    let number = |who: &NumberedProxy, id: u32| numbers.get(who).copied().unwrap_or(id);
    for frontend in &mut next.frontends {
        let id = number(
            &numbered_proxy(&frontend.common, NumberedProxy::Frontend),
            frontend.common.id,
        );
        if frontend.common.id != id {
            Arc::make_mut(frontend).common.id = id;
        }
    }
    for backend in &mut next.backends {
        let id = number(
            &numbered_proxy(&backend.common, NumberedProxy::Backend),
            backend.common.id,
        );
        if backend.common.id != id {
            Arc::make_mut(backend).common.id = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use ballast_model::{Backend, Frontend, IsExplicit};

    use super::*;

    /// Frontends numbered by their order; `name=number` gives one a number of its own.
    fn config(names: &[&str]) -> Config {
        let mut config = Config::default();
        for (index, name) in names.iter().enumerate() {
            let (name, given) = match name.split_once('=') {
                Some((name, number)) => (name, Some(number.parse().unwrap())),
                None => (*name, None),
            };
            let mut frontend = Frontend::default();
            frontend.common.name = name.into();
            frontend.common.id = given.unwrap_or(index as u32 + 2);
            frontend.common.id_is_explicit = IsExplicit(given.is_some());
            config.frontends.push(Arc::new(frontend));
        }
        config
    }

    fn kept(next: &[&str], current: &[&str]) -> Vec<u32> {
        let mut next = config(next);
        keep(&mut next, &config(current));
        next.frontends.iter().map(|one| one.common.id).collect()
    }

    #[test]
    fn what_stays_keeps_its_number() {
        assert_eq!(kept(&["a", "b"], &["a", "b"]), [2, 3]);
        assert_eq!(kept(&["b", "c"], &["a", "b"]), [3, 2]);
        assert_eq!(kept(&["new", "a", "b"], &["a", "b"]), [4, 2, 3]);
    }

    #[test]
    fn what_the_file_gives_is_the_file_s() {
        assert_eq!(kept(&["b=7"], &["a", "b"]), [7]);
        // The number belongs to another proxy now.
        assert_eq!(kept(&["a", "b=2"], &["a", "b"]), [3, 2]);
    }

    #[test]
    fn the_halves_of_a_listen_have_one() {
        let mut current = config(&["a"]);
        let half = |id| {
            let mut common = ProxyCommon {
                id,
                listen: true,
                ..ProxyCommon::default()
            };
            common.name = "both".into();
            common
        };
        let listen = |config: &mut Config, id| {
            let (mut front, mut back) = (Frontend::default(), Backend::default());
            (front.common, back.common) = (half(id), half(id));
            config.frontends.push(Arc::new(front));
            config.backends.push(Arc::new(back));
        };
        listen(&mut current, 3);
        let mut next = config(&[]);
        listen(&mut next, 2);
        keep(&mut next, &current);
        assert_eq!(next.frontends[0].common.id, 3);
        assert_eq!(next.backends[0].common.id, 3);
    }
}
