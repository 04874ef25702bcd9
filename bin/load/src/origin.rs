//! The servers of a run, and the URLs that are asked of them.
//!
//! URLs of one address share its connections. How often each is asked for follows from the weights:
//! exactly on one server; over several servers, weights share out the connections.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use rustls_pki_types::ServerName;

use crate::socket::Address;

/// The weight of a URL without one.
const WEIGHT_DEFAULT: u32 = 1;
/// The maximum weight of a URL.
const WEIGHT_MAX: u32 = 10_000;
/// The maximum number of URLs: each has a histogram per thread.
const URL_COUNT_MAX: usize = 1000;
/// The maximum number of turns of one server: the sum of its weights, divided by what they have in
/// common.
const TURN_COUNT_MAX: u64 = 1_000_000;

/// A URL, and the request for it.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    /// Its index among all URLs of the run.
    pub(crate) number: usize,
    /// As it is shown.
    pub(crate) text: String,
    /// The value of `Host`.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) weight: u32,
    /// The request without its body, ready to send.
    pub(crate) head: Vec<u8>,
}

/// A server, and what is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) address: Address,
    /// Over TLS: the name to ask for when no other is given.
    pub(crate) tls: Option<ServerName<'static>>,
    /// At least one.
    pub(crate) urls: Vec<Url>,
    /// Indices of `urls`, as often as their weights say, mixed.
    turns: Vec<usize>,
}

impl Origin {
    /// The URL whose turn it is.
    pub(crate) fn url(&self, turn: usize) -> &Url {
        &self.urls[self.turns[turn % self.turns.len()]]
    }

    fn weight(&self) -> u64 {
        self.urls.iter().map(|url| u64::from(url.weight)).sum()
    }
}

/// A target as it is given: `URL [WEIGHT]`.
#[derive(Debug)]
pub(crate) struct Target {
    address: Address,
    tls: Option<ServerName<'static>>,
    host: String,
    /// None when the target has no path.
    path: Option<String>,
    weight: u32,
}

/// Parses targets, and resolves each name once.
#[derive(Debug, Default)]
pub(crate) struct TargetReader {
    addresses: HashMap<String, SocketAddr>,
}

impl TargetReader {
    /// Parses `[http[s]://]HOST[:PORT][/PATH]` or `unix@PATH`, with a weight behind it or without.
    /// Without a scheme `is_tls` tells whether it is over TLS.
    ///
    /// # Errors
    ///
    /// When it is written wrongly, or the name has no address.
    pub(crate) fn read(&mut self, line: &str, is_tls: bool) -> Result<Target, String> {
        let mut words = line.split_whitespace();
        let url = words.next().ok_or("a target is empty")?;
        let weight = words.next().map_or(Ok(WEIGHT_DEFAULT), weight);
        let weight = weight.map_err(|error| format!("{line}: {error}"))?;
        if words.next().is_some() {
            return Err(format!("{line}: wants a URL and perhaps a weight"));
        }
        let target = self.url(url, is_tls);
        let target = target.map_err(|error| format!("{url}: {error}"))?;
        Ok(Target { weight, ..target })
    }

    fn url(&mut self, url: &str, is_tls: bool) -> io::Result<Target> {
        let (rest, is_tls) = if let Some(rest) = url.strip_prefix("https://") {
            (rest, true)
        } else if let Some(rest) = url.strip_prefix("http://") {
            (rest, false)
        } else {
            (url, is_tls)
        };
        let (address, host, path) = if let Some(path) = rest.strip_prefix("unix@") {
            (Address::Unix(PathBuf::from(path)), "localhost", None)
        } else {
            let (host, path) = rest.find(['/', '?']).map_or((rest, None), |at| {
                let slash = if rest[at..].starts_with('?') { "/" } else { "" };
                (&rest[..at], Some(format!("{slash}{}", &rest[at..])))
            });
            let port = if is_tls { 443 } else { 80 };
            (Address::Tcp(self.resolve(host, port)?), host, path)
        };
        Ok(Target {
            address,
            tls: is_tls.then(|| server_name(host)).transpose()?,
            host: host.to_owned(),
            path,
            weight: WEIGHT_DEFAULT,
        })
    }

    fn resolve(&mut self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let key = format!("{host} {port}");
        if let Some(known) = self.addresses.get(&key) {
            return Ok(*known);
        }
        let mut found = match host.to_socket_addrs() {
            Ok(found) => found,
            // Perhaps only the port is missing.
            Err(_) => (host.trim_matches(['[', ']']), port).to_socket_addrs()?,
        };
        let first = found
            .next()
            .ok_or_else(|| io::Error::other("the name has no address"))?;
        self.addresses.insert(key, first);
        Ok(first)
    }
}

fn weight(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|weight| (1..=WEIGHT_MAX).contains(weight))
        .ok_or_else(|| format!("the weight {text} is no number from 1 to {WEIGHT_MAX}"))
}

/// The lines of a file of URLs, without comments.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Groups targets by server. Each is asked for its own path and for each of `paths`; for
/// `default_path` when there is neither.
///
/// # Errors
///
/// When there are too many URLs.
pub(crate) fn origins(
    targets: Vec<Target>,
    paths: &[String],
    default_path: &str,
) -> Result<Vec<Origin>, String> {
    let mut origins: Vec<Origin> = Vec::new();
    let mut number = 0;
    for target in targets {
        let own = target.path.iter().chain(paths);
        let mut all: Vec<String> = own.cloned().collect();
        if all.is_empty() {
            all.push(default_path.to_owned());
        }
        let position = origins
            .iter()
            .position(|origin| origin.address == target.address && origin.tls == target.tls);
        let position = position.unwrap_or_else(|| {
            origins.push(Origin {
                address: target.address.clone(),
                tls: target.tls.clone(),
                urls: Vec::new(),
                turns: Vec::new(),
            });
            origins.len() - 1
        });
        for path in all {
            let text = match (&target.address, target.tls.is_some()) {
                (Address::Unix(_), _) => format!("{} {path}", target.address),
                (Address::Tcp(_), true) => format!("https://{}{path}", target.host),
                (Address::Tcp(_), false) => format!("http://{}{path}", target.host),
            };
            origins[position].urls.push(Url {
                number,
                text,
                host: target.host.clone(),
                path,
                weight: target.weight,
                head: Vec::new(),
            });
            number += 1;
        }
    }
    if number > URL_COUNT_MAX {
        return Err(format!("{number} URLs: at most {URL_COUNT_MAX}"));
    }
    for origin in &mut origins {
        let weights: Vec<u32> = origin.urls.iter().map(|url| url.weight).collect();
        origin.turns = mix(&weights)?;
    }
    Ok(origins)
}

/// Indices of the weights, each as often as its weight says, evenly mixed.
fn mix(weights: &[u32]) -> Result<Vec<usize>, String> {
    let common = weights.iter().fold(0, |one, other| gcd(one, *other)).max(1);
    let count: u64 = weights.iter().map(|one| u64::from(one / common)).sum();
    if count > TURN_COUNT_MAX {
        return Err(format!("the weights add up to more than {TURN_COUNT_MAX}"));
    }
    let turns = weights.iter().enumerate().flat_map(|(index, weight)| {
        let weight = weight / common;
        // In the middles of `weight` equal parts.
        (0..weight).map(move |turn| ((f64::from(turn) + 0.5) / f64::from(weight), index))
    });
    let mut turns: Vec<(f64, usize)> = turns.collect();
    turns.sort_by(|one, other| one.0.total_cmp(&other.0));
    Ok(turns.into_iter().map(|(_, index)| index).collect())
}

fn gcd(one: u32, other: u32) -> u32 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

/// The origin of each connection: one for each, the rest by their weights.
///
/// # Errors
///
/// When there are fewer connections than origins.
pub(crate) fn share_connections(
    origins: &[Origin],
    connections: usize,
) -> Result<Vec<usize>, String> {
    if connections < origins.len() {
        let servers = origins.len();
        return Err(format!(
            "--connections {connections}: too few for {servers} servers"
        ));
    }
    let mut counts = vec![0u32; origins.len()];
    let shares = (0..connections).map(|number| {
        let next = if number < origins.len() {
            number
        } else {
            // The method of Sainte-Lague: the largest quotient is next, the first of equal ones.
            let quotient =
                |index: usize| origins[index].weight() as f64 / f64::from(2 * counts[index] + 1);
            (1..origins.len()).fold(0, |best, index| {
                if quotient(index) > quotient(best) {
                    index
                } else {
                    best
                }
            })
        };
        counts[next] += 1;
        next
    });
    Ok(shares.collect())
}

/// The name of `HOST[:PORT]` that TLS asks for. It asks for none when the host is an address.
fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(name).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], paths: &[&str]) -> Result<Vec<Origin>, String> {
        let mut reader = TargetReader::default();
        let targets = lines.iter().map(|line| reader.read(line, false));
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        origins(targets.collect::<Result<_, _>>()?, &paths, "/")
    }

    #[test]
    fn urls_of_one_address_share_a_server() {
        let lines = [
            "http://127.0.0.1:81/a 3",
            "localhost:82",
            "127.0.0.1:81/b",
            "http://127.0.0.1:81?q",
        ];
        let origins = read(&lines, &["/p"]).unwrap();
        assert_eq!(origins.len(), 2);
        let texts: Vec<&str> = origins[0].urls.iter().map(|url| &*url.text).collect();
        let expected = ["/a", "/p", "/b", "/p", "/?q", "/p"];
        assert_eq!(
            texts,
            expected.map(|path| format!("http://127.0.0.1:81{path}"))
        );
        let numbers: Vec<usize> = origins[0].urls.iter().map(|url| url.number).collect();
        assert_eq!(numbers, [0, 1, 3, 4, 5, 6]);
        assert_eq!(origins[1].urls[0].path, "/p");
    }

    #[test]
    fn turns_follow_the_weights() {
        let origins = read(&["127.0.0.1/a 30", "127.0.0.1/b 10", "127.0.0.1/c 20"], &[]).unwrap();
        let turns: Vec<&str> = (0..12).map(|turn| &*origins[0].url(turn).path).collect();
        for (path, count) in [("/a", 6), ("/b", 2), ("/c", 4)] {
            assert_eq!(turns.iter().filter(|turn| **turn == path).count(), count);
        }
        assert_ne!(turns[..3], ["/a", "/a", "/a"], "they are mixed");
    }

    #[test]
    fn connections_follow_the_weights_and_every_server_has_one() {
        let origins = read(&["127.0.0.1:1 1", "127.0.0.1:2 98", "127.0.0.1:3 1"], &[]).unwrap();
        assert_eq!(share_connections(&origins, 3).unwrap(), [0, 1, 2]);
        let shares = share_connections(&origins, 100).unwrap();
        let count = |which| shares.iter().filter(|one| **one == which).count();
        assert_eq!((count(0), count(1), count(2)), (1, 98, 1));
        assert!(share_connections(&origins, 2).is_err());
        let equal = read(&["127.0.0.1:1", "127.0.0.1:2"], &[]).unwrap();
        assert_eq!(share_connections(&equal, 5).unwrap(), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn comments_and_empty_lines_are_none() {
        let text = "# all\n\n  http://a/ 2 \n\thttp://b/\n";
        assert_eq!(
            lines(text).collect::<Vec<_>>(),
            ["http://a/ 2", "http://b/"]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for line in [
            "127.0.0.1 0",
            "127.0.0.1 many",
            "127.0.0.1 1 2",
            "",
            "127.0.0.1 10001",
        ] {
            assert!(read(&[line], &[]).is_err(), "{line}");
        }
    }
}
