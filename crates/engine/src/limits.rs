//! Limits that are computed from other numbers of the configuration.

use std::collections::{HashMap, HashSet};

use ballast_model::{Backend, Config, RouteTarget, Server};

/// The sum of `maxconn` of all frontends that name each backend. Rules that compute a name do not count.
#[derive(Debug, Default)]
pub struct FullconnSums<'c>(HashMap<&'c str, u64>);

impl<'c> FullconnSums<'c> {
    /// Reads all frontends once.
    pub fn of(config: &'c Config, process_max: u32) -> Self {
        let mut fullconn_sums = Self::default();
        let open = config.frontends.iter();
        for frontend in open.filter(|frontend| !frontend.common.disabled) {
            let max = u64::from(frontend.connection_count_max.unwrap_or(process_max));
            let mut names: HashSet<&str> =
                frontend.default_backend.as_deref().into_iter().collect();
            for route in &frontend.routes {
                if let RouteTarget::Static(name) = &route.target {
                    names.insert(name);
                }
            }
            for name in names {
                *fullconn_sums.0.entry(name).or_default() += max;
            }
        }
        fullconn_sums
    }

    /// `fullconn` of a backend: what it says, or a tenth of what the frontends that name it may let
    /// in together, at least 1 (configuration manual, "fullconn").
    pub fn of_backend(&self, backend: &Backend) -> u32 {
        if let Some(written) = backend.full_connections {
            return written.max(1);
        }
        let sum = self.0.get(backend.common.name.as_str());
        let sum = sum.copied().unwrap_or(0);
        u32::try_from(sum.div_ceil(10)).unwrap_or(u32::MAX).max(1)
    }
}

/// How many sessions a server may carry while its backend carries `backend_sessions`
/// (configuration manual, "minconn"): it grows from `minconn` to `maxconn` as the backend
/// fills up to `fullconn`, and a server in slow start gets its share in percent. 0 is no limit.
pub fn server_limit(
    server: &Server,
    backend_sessions: u32,
    full_connections: u32,
    throttle_percent: u32,
) -> u32 {
    let range = (server.connection_count_min, server.connection_count_max);
    limit_within(range, backend_sessions, full_connections, throttle_percent)
}

/// As [`server_limit`], from `minconn` and a `maxconn` that may have been changed since.
pub(crate) fn limit_within(
    (min, max): (u32, u32),
    backend_sessions: u32,
    full_connections: u32,
    throttle_percent: u32,
) -> u32 {
    if max == 0 {
        return 0;
    }
    let limit = if min >= max || min == 0 || backend_sessions >= full_connections {
        max
    } else {
        let share = u64::from(max) * u64::from(backend_sessions) / u64::from(full_connections);
        u32::try_from(share).unwrap_or(max).max(min)
    };
    if throttle_percent >= 100 {
        return limit;
    }
    let throttled = u64::from(limit) * u64::from(throttle_percent) / 100;
    u32::try_from(throttled).unwrap_or(limit).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_model::{Address, Frontend};

    fn server(min: u32, max: u32) -> Server {
        let address = Address::Unix("/s".into());
        let mut server = Server::new("s".into(), address);
        (server.connection_count_min, server.connection_count_max) = (min, max);
        server
    }

    #[test]
    fn the_limit_grows_with_the_backend() {
        let server = server(10, 100);
        assert_eq!(server_limit(&server, 0, 1000, 100), 10);
        assert_eq!(server_limit(&server, 500, 1000, 100), 50);
        assert_eq!(server_limit(&server, 1000, 1000, 100), 100);
        assert_eq!(server_limit(&server, 5000, 1000, 100), 100);
    }

    #[test]
    fn no_maxconn_is_no_limit_and_slow_start_leaves_one() {
        assert_eq!(server_limit(&server(0, 0), 7, 10, 100), 0);
        assert_eq!(server_limit(&server(0, 50), 7, 10, 10), 5);
        assert_eq!(server_limit(&server(0, 3), 7, 10, 1), 1);
    }

    #[test]
    fn fullconn_is_a_tenth_of_what_may_come() {
        let mut config = Config::default();
        let mut frontend = Frontend::default();
        frontend.common.name = "f".into();
        frontend.default_backend = Some("b".into());
        frontend.connection_count_max = Some(501);
        let mut off = frontend.clone();
        off.common.disabled = true;
        config.frontends.extend([frontend.into(), off.into()]);
        let mut backend = Backend::default();
        backend.common.name = "b".into();
        assert_eq!(FullconnSums::of(&config, 2000).of_backend(&backend), 51);
        backend.full_connections = Some(7);
        assert_eq!(FullconnSums::of(&config, 2000).of_backend(&backend), 7);
    }
}
