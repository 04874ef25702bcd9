//! `show fd`: the open descriptors of the process, and what each is for.
//!
//! The kernel tells which there are (`/proc`); the workers tell of the connections that they carry. What is
//! shown of a connection is known, and what HAProxy shows of its own structures (flags, pointers, the
//! state of its poller) is left out.
//!
//! Source: management manual, section 9.3, "show fd".

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use ballast_engine::ServerState;
use ballast_engine::descriptors::{
    ConnectionCursor, ConnectionDescriptor, ConnectionKind, ConnectionList, ConnectionSide,
    ListeningDescriptor,
};
use ballast_model::CliLevel;
use ballast_worker::yield_now;

use super::anonymous::NameMasking;
use crate::answer::{CommandAnswer, ReportBatches};
use crate::command::{Command, CommandCall};
use crate::control::Control;
use crate::shared::{CliShared, ProcessRole};

/// How many connections a worker tells of at once.
const CONNECTION_COUNT: usize = 64;

/// How many descriptors are looked at before other tasks have their turn.
const DESCRIPTOR_COUNT: usize = 64;

/// How many servers are looked at, or a few more, before other tasks have their turn.
const SERVER_COUNT: usize = 1024;

/// Where the kernel lists the descriptors of the process.
const LISTING: &str = "/proc/self/fd";

pub(crate) static COMMANDS: &[Command] = &[Command::new(
    &["show", "fd"],
    "show fd [-!plcfbsd]* [num]",
    "list the descriptors in use",
    show,
)
.for_level(CliLevel::Operator)];

/// Which descriptors are shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct DescriptorFilter {
    kinds: KindSet,
    number: Option<RawFd>,
}

/// A set of kinds of descriptors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct KindSet(u8);

impl KindSet {
    const NONE: Self = Self(0);
    const PIPES: Self = Self(1);
    const LISTENERS: Self = Self(2);
    const CLIENTS: Self = Self(4);
    const SERVERS: Self = Self(8);
    /// Files, timers and what else is none of the above.
    const OTHERS: Self = Self(16);
    const ALL: Self = Self(31);

    /// The kinds that a letter stands for.
    fn of_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'p' => Self::PIPES,
            'l' => Self::LISTENERS,
            'c' => Self::CLIENTS.with(Self::SERVERS),
            'f' => Self::CLIENTS,
            'b' | 's' => Self::SERVERS,
            // No connection leads to anything but a client or a server.
            'd' => Self::NONE,
            _ => return None,
        })
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl DescriptorFilter {
    /// Letters that are inverted first take from all kinds, others add to none.
    fn read(words: &[String]) -> Result<Self, CommandAnswer> {
        let mut kinds: Option<KindSet> = None;
        let mut number = None;
        for word in words {
            if word.starts_with(|first: char| first.is_ascii_digit()) {
                let end = word.find(|letter: char| !letter.is_ascii_digit());
                let digits = &word[..end.unwrap_or(word.len())];
                // A number that is no descriptor's finds nothing.
                number = Some(digits.parse().unwrap_or(RawFd::MAX));
                continue;
            }
            let mut is_inverted = false;
            for letter in word.chars() {
                if matches!(letter, '-' | '!') {
                    is_inverted = true;
                    continue;
                }
                let Some(named) = KindSet::of_letter(letter) else {
                    return Err(CommandAnswer::error("Invalid FD type"));
                };
                kinds = Some(match is_inverted {
                    true => kinds.unwrap_or(KindSet::ALL).without(named),
                    false => kinds.unwrap_or(KindSet::NONE).with(named),
                });
            }
        }
        Ok(Self {
            kinds: kinds.unwrap_or(KindSet::ALL),
            number,
        })
    }
}

fn show(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(control) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let filter = match DescriptorFilter::read(call.args) {
        Ok(filter) => filter,
        Err(answer) => return answer,
    };
    CommandAnswer::Batches(Box::new(DescriptorWalk {
        control: Arc::clone(control),
        shared: Rc::clone(call.shared),
        names: NameMasking::of(call.session),
        filter,
        found: None,
    }))
}

/// A walk through the descriptors of the process.
struct DescriptorWalk {
    control: Arc<dyn Control>,
    shared: Rc<CliShared>,
    names: NameMasking,
    filter: DescriptorFilter,
    /// What is still to be shown, once it is known.
    found: Option<FoundDescriptors>,
}

/// The descriptors at one moment.
struct FoundDescriptors {
    /// Those to be shown, in order.
    numbers: VecDeque<RawFd>,
    connections: HashMap<RawFd, ConnectionDescriptor>,
    listeners: HashMap<RawFd, ListeningDescriptor>,
    /// The backends of servers, by the address of a server's state.
    backends: HashMap<usize, String>,
    /// Workers that did not tell of all of their connections in time.
    late_workers: VecDeque<usize>,
}

impl ReportBatches for DescriptorWalk {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + '_>> {
        Box::pin(async {
            if self.found.is_none() {
                self.found = match self.find().await {
                    Ok(found) => Some(found),
                    Err(_) => return None,
                };
            } else {
                yield_now().await;
            }
            let (filter, names) = (self.filter, self.names);
            let found = self.found.as_mut()?;
            if found.numbers.is_empty() {
                let worker = found.late_workers.pop_front()?;
                return Some(format!(
                    "# Thread {} did not answer in time: not all of its connections are described.\n",
                    worker + 1
                ));
            }
            let count = found.numbers.len().min(DESCRIPTOR_COUNT);
            let numbers: Vec<RawFd> = found.numbers.drain(..count).collect();
            let mut text = String::new();
            for number in numbers {
                // One that was closed meanwhile is not shown, nor is that of the listing itself.
                if let Ok(target) = std::fs::read_link(Path::new(LISTING).join(number.to_string()))
                {
                    found.describe(
                        number,
                        &target.to_string_lossy(),
                        (filter, names),
                        &mut text,
                    );
                }
            }
            Some(text)
        })
    }
}

impl DescriptorWalk {
    async fn find(&self) -> io::Result<FoundDescriptors> {
        let mut numbers = Vec::new();
        for (position, entry) in std::fs::read_dir(LISTING)?.enumerate() {
            let name = entry?.file_name();
            let number: Option<RawFd> = name.to_str().and_then(|name| name.parse().ok());
            numbers.extend(number.filter(|number| {
                let wanted = self.filter.number;
                wanted.is_none_or(|wanted| wanted == *number)
            }));
            if position % DESCRIPTOR_COUNT == DESCRIPTOR_COUNT - 1 {
                yield_now().await;
            }
        }
        numbers.sort_unstable();
        let own_worker = ballast_worker::worker_index().unwrap_or(0);
        let mut listeners = self.control.listeners();
        listeners.extend(self.shared.listeners(own_worker));
        let mut connections = self.shared.connections(own_worker);
        let mut late_workers = VecDeque::new();
        for worker in 0..ballast_worker::worker_count() {
            if !self.find_connections(worker, &mut connections).await {
                late_workers.push_back(worker);
            }
        }
        let backends = self.find_backends(&connections).await;
        Ok(FoundDescriptors {
            numbers: numbers.into(),
            connections: connections
                .into_iter()
                .map(|connection| (connection.descriptor, connection))
                .collect(),
            listeners: listeners
                .into_iter()
                .map(|listener| (listener.descriptor, listener))
                .collect(),
            backends,
            late_workers,
        })
    }

    /// The names of the backends of those servers that have connections.
    async fn find_backends(&self, connections: &[ConnectionDescriptor]) -> HashMap<usize, String> {
        let sides = connections.iter().map(|connection| &connection.side);
        let mut wanted: HashSet<usize> = sides
            .filter_map(|side| match side {
                ConnectionSide::Server(state, _) => Some(address_of(state)),
                ConnectionSide::Client(_) | ConnectionSide::Caller => None,
            })
            .collect();
        let generation = self.control.generation();
        let mut backends = HashMap::new();
        let mut looked_at = 0;
        for backend in &generation.backends {
            if wanted.is_empty() {
                break;
            }
            for server in &backend.servers {
                let address = address_of(&server.state);
                if wanted.remove(&address) {
                    backends.insert(address, backend.model.common.name.clone());
                }
            }
            looked_at += backend.servers.len();
            if looked_at >= SERVER_COUNT {
                looked_at = 0;
                yield_now().await;
            }
        }
        backends
    }

    /// Adds the connections of a worker that may be shown; false if it did not tell of all.
    async fn find_connections(
        &self,
        worker: usize,
        connections: &mut Vec<ConnectionDescriptor>,
    ) -> bool {
        let mut next = Some(ConnectionCursor::default());
        while let Some(cursor) = next {
            let kind = match cursor.list {
                ConnectionList::Servers => KindSet::SERVERS,
                _ => KindSet::CLIENTS,
            };
            // To be told from the others that are wanted, those of other kinds must be known.
            if !self.filter.kinds.has(kind.with(KindSet::OTHERS)) {
                next = cursor.list.next().map(ConnectionCursor::at_start_of);
                continue;
            }
            let page = self.control.connections(worker, cursor, CONNECTION_COUNT);
            let Some(page) = page.await else {
                return false;
            };
            connections.extend(page.connections);
            next = page.next;
            yield_now().await;
        }
        true
    }
}

fn address_of(state: &Arc<ServerState>) -> usize {
    Arc::as_ptr(state).addr()
}

impl FoundDescriptors {
    /// Writes the line of a descriptor that leads to `target`, if it is of a kind that is wanted.
    fn describe(
        &self,
        number: RawFd,
        target: &str,
        (filter, names): (DescriptorFilter, NameMasking),
        into: &mut String,
    ) {
        // The number may be that of another socket by now.
        let connection = self.connections.get(&number);
        let connection = connection.filter(|known| target == format!("socket:[{}]", known.socket));
        let listener = match connection {
            Some(_) => None,
            None => self.listeners.get(&number),
        };
        let listener = listener.filter(|known| {
            let socket = known.socket;
            socket.is_some_and(|socket| target == format!("socket:[{socket}]"))
        });
        let kind = match (connection, listener) {
            (Some(connection), _) => match connection.side {
                ConnectionSide::Client(_) | ConnectionSide::Caller => KindSet::CLIENTS,
                ConnectionSide::Server(..) => KindSet::SERVERS,
            },
            (None, Some(_)) => KindSet::LISTENERS,
            (None, None) if target.starts_with("pipe:") => KindSet::PIPES,
            (None, None) => KindSet::OTHERS,
        };
        if !filter.kinds.has(kind) {
            return;
        }
        let _ = write!(into, "{number:>7} : {}", target.escape_debug());
        if let Some(connection) = connection {
            self.describe_connection(connection, names, into);
        } else if let Some(listener) = listener {
            describe_listener(listener, names, into);
        }
        into.push('\n');
    }

    fn describe_connection(
        &self,
        connection: &ConnectionDescriptor,
        names: NameMasking,
        into: &mut String,
    ) {
        let is_back = matches!(connection.side, ConnectionSide::Server(..));
        let _ = write!(
            into,
            " tmask={:#x} back={}",
            thread_mask(connection.worker),
            u8::from(is_back)
        );
        describe_addresses(connection.local, connection.peer, into);
        let _ = match &connection.side {
            ConnectionSide::Client(frontend) => {
                write!(into, " fe={}", names.name(frontend.name()))
            }
            ConnectionSide::Caller => write!(into, " fe=GLOBAL"),
            ConnectionSide::Server(state, server) => {
                // A server that was removed has no backend any more.
                let backend = self.backends.get(&address_of(state));
                let backend = backend.map_or("?".into(), |backend| names.name(backend));
                write!(into, " sv={backend}/{}", names.name(server))
            }
        };
        match connection.carries {
            None => into.push_str(" nomux"),
            Some(kind) => {
                let _ = write!(into, " mux={}", kind.mux());
                if let ConnectionKind::Http2 { stream_count } = kind {
                    let _ = write!(into, " .nbst={stream_count}");
                }
            }
        }
        if let Some(session) = connection.session {
            let _ = write!(into, " .sc.app={session:#x}");
        }
        into.push_str(match connection.is_tls {
            true => " xprt=SSL",
            false => " xprt=RAW",
        });
    }
}

fn describe_listener(listener: &ListeningDescriptor, names: NameMasking, into: &mut String) {
    let _ = write!(
        into,
        " tmask={:#x} l.st={} fe={}",
        thread_mask(listener.worker),
        listener.state,
        match listener.frontend.as_str() {
            "GLOBAL" => "GLOBAL".into(),
            name => names.name(name),
        },
    );
    describe_addresses(listener.address, None, into);
}

/// The mask of the one thread that watches the descriptor.
fn thread_mask(worker: usize) -> u128 {
    u32::try_from(worker)
        .ok()
        .and_then(|worker| 1_u128.checked_shl(worker))
        .unwrap_or(0)
}

fn describe_addresses(local: Option<SocketAddr>, peer: Option<SocketAddr>, into: &mut String) {
    into.push_str(match local.or(peer) {
        None => " fam=unix",
        Some(address) if address.is_ipv6() => " fam=ipv6",
        Some(_) => " fam=ipv4",
    });
    for (word, address) in [("lport", local), ("rport", peer)] {
        if let Some(address) = address {
            let _ = write!(into, " {word}={}", address.port());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Option<DescriptorFilter> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        DescriptorFilter::read(&words).ok()
    }

    #[test]
    fn letters_choose_kinds() {
        let kinds = |words: &str| read(words).unwrap().kinds;
        assert_eq!(kinds(""), KindSet::ALL);
        assert_eq!(kinds("-"), KindSet::ALL);
        assert_eq!(kinds("l"), KindSet::LISTENERS);
        assert_eq!(kinds("lf"), KindSet::LISTENERS.with(KindSet::CLIENTS));
        assert_eq!(kinds("l f"), kinds("lf"));
        assert_eq!(kinds("c"), kinds("fsd"));
        assert_eq!(kinds("c!f"), kinds("b"));
        assert_eq!(kinds("!l"), kinds("-l"));
        assert_eq!(kinds("!l !f"), kinds("-lf"));
        assert!(!kinds("-lf").has(KindSet::CLIENTS) && kinds("-lf").has(KindSet::OTHERS));
        // The inversion ends with its word.
        assert_eq!(kinds("!l f"), kinds("!l"));
        assert_eq!(kinds("d"), KindSet::NONE);
        assert!(read("q").is_none() && read("-1").is_none());
    }

    #[test]
    fn a_number_chooses_a_descriptor() {
        for words in ["5", "5x", "l 5", "5 l"] {
            assert_eq!(read(words).unwrap().number, Some(5), "{words}");
        }
        assert_eq!(read("99999999999").unwrap().number, Some(RawFd::MAX));
        assert_eq!(read("l").unwrap().number, None);
    }

    #[test]
    fn a_descriptor_that_became_another_is_not_described_as_the_former() {
        let connection = ConnectionDescriptor {
            descriptor: 7,
            socket: 100,
            worker: 1,
            local: Some(([127, 0, 0, 1], 80).into()),
            peer: Some(([127, 0, 0, 1], 9000).into()),
            side: ConnectionSide::Caller,
            carries: Some(ConnectionKind::Http2 { stream_count: 3 }),
            is_tls: true,
            session: None,
        };
        let found = FoundDescriptors {
            numbers: VecDeque::new(),
            connections: HashMap::from([(7, connection)]),
            listeners: HashMap::new(),
            backends: HashMap::new(),
            late_workers: VecDeque::new(),
        };
        let line = |target: &str| {
            let mut text = String::new();
            let shown = (read("").unwrap(), NameMasking::default());
            found.describe(7, target, shown, &mut text);
            text
        };
        assert_eq!(
            line("socket:[100]"),
            "      7 : socket:[100] tmask=0x2 back=0 fam=ipv4 lport=80 rport=9000 fe=GLOBAL mux=H2 \
             .nbst=3 xprt=SSL\n"
        );
        assert_eq!(line("socket:[101]"), "      7 : socket:[101]\n");
        assert_eq!(line("/tmp/x"), "      7 : /tmp/x\n");
    }
}
