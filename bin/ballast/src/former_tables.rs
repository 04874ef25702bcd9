//! The stick tables of the former process, which this one takes over while both run.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::{Generation, Process};
use ballast_handover::{TableChannel, TableRequest};
use ballast_stats::StatsHost;
use ballast_stick::{DumpUse, ScanCursor, dump_name};

use crate::console;
use crate::instance::Instance;
use crate::table_donor::STOP_WAIT_MAX;
use crate::threads;

/// How long the copy of all entries may take. The former process serves meanwhile.
const COPY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long what changed during the copy may take.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(5);

/// Slots that are emptied under one lock.
const SLOTS_PER_LOCK: usize = 1024;

/// The tables of the former process.
#[derive(Debug)]
pub(crate) struct FormerTables {
    channel: TableChannel,
    /// What the last answer was true of.
    token: u64,
    /// When this process began to serve.
    followed_ms: u32,
}

impl FormerTables {
    /// Fills the tables of this process, which serves nobody yet, over a channel to the former one.
    /// `None` if not all came.
    pub(crate) fn copy(channel: TableChannel, instance: &Instance) -> Option<Self> {
        let mut tables = Self {
            channel,
            token: 0,
            followed_ms: 0,
        };
        let is_whole = tables.request(TableRequest::All, instance);
        is_whole.then_some(tables)
    }

    /// Takes what changed since, just before this process serves, and asks for what changes from then
    /// on until the former process accepts no connections any more.
    pub(crate) fn follow(mut self, instance: &Instance) -> Option<Self> {
        let is_whole = self.request(TableRequest::Changes(self.token), instance);
        self.followed_ms = instance.registry.process().now_ms();
        // It is sent before this process serves, and so before the former one is told to stop.
        let is_asked = is_whole
            && self
                .channel
                .ask(TableRequest::LastChanges(self.token))
                .is_ok();
        is_asked.then_some(self)
    }

    /// Takes these last changes, while this process serves.
    pub(crate) fn follow_to_the_end(self, instance: &Arc<Instance>) {
        let instance = Arc::clone(instance);
        // Without a thread the last changes are lost.
        let _ = threads::start("ballast-tables", move || {
            let generation = instance.generation();
            let process = instance.registry.process();
            let until = Instant::now() + STOP_WAIT_MAX + CHANGES_TIMEOUT;
            // What cannot be read was named before.
            let mut refused = HashSet::new();
            refused.extend(
                generation
                    .tables
                    .all()
                    .iter()
                    .map(|table| table.name().to_owned()),
            );
            let each = |dump: &[u8], under_way_ms: u32| {
                let written_ms = process.now_ms().wrapping_sub(under_way_ms);
                let served_ms = written_ms.wrapping_sub(self.followed_ms);
                let dump_use = DumpUse::Merge(served_ms);
                read(&generation, dump, written_ms, dump_use, &mut refused);
            };
            // It may have ended at once.
            let _ = self.channel.receive(until, |_| until, each);
        });
    }

    /// Asks, and reads the answer into tables that nobody uses yet. False when it did not come whole.
    fn request(&mut self, request: TableRequest, instance: &Instance) -> bool {
        let (generation, process) = (&instance.generation(), instance.registry.process());
        let timeout = |is_all| {
            if is_all {
                COPY_TIMEOUT
            } else {
                CHANGES_TIMEOUT
            }
        };
        let until = Instant::now() + timeout(request == TableRequest::All);
        let mut filled = HashSet::new();
        let asked = self.channel.ask(request);
        let token = asked.and_then(|()| {
            let begin = |is_all| {
                // Commands removed entries there after the copy: it is made once more.
                if is_all && request != TableRequest::All {
                    clear(generation, process);
                }
                Instant::now() + timeout(is_all)
            };
            let mut refused = HashSet::new();
            let each = |dump: &[u8], under_way_ms: u32| {
                let written_ms = process.now_ms().wrapping_sub(under_way_ms);
                if let Some(name) = read(generation, dump, written_ms, DumpUse::Load, &mut refused)
                    && !filled.contains(name)
                {
                    filled.insert(name.to_owned());
                }
            };
            self.channel.receive(until, begin, each)
        });
        let tables = generation.tables.all().iter();
        for table in tables.filter(|table| filled.contains(table.name())) {
            table.finish_loading(process.now_ms());
        }
        match token {
            Ok(token) => {
                self.token = token;
                true
            }
            Err(error) => {
                let known = if request == TableRequest::All && filled.is_empty() {
                    "unknown"
                } else {
                    "known in part"
                };
                console::warn(&format!(
                    "the stick tables of the former process are {known}: {error}."
                ));
                false
            }
        }
    }
}

fn clear(generation: &Generation, process: &Process) {
    for table in generation.tables.all() {
        let mut cursor = ScanCursor::default();
        while table.remove_where(&mut cursor, SLOTS_PER_LOCK, process.now_ms(), |_| true) {}
    }
}

/// Reads a dump that was written at `written_ms`, by the clock of this process. Returns the name of
/// the table that it is of, where that is configured. A table that cannot be read is named once, and
/// is among the `refused` then.
fn read<'s>(
    generation: &Generation,
    dump: &'s [u8],
    written_ms: u32,
    dump_use: DumpUse,
    refused: &mut HashSet<String>,
) -> Option<&'s str> {
    let Ok(name) = dump_name(dump) else {
        if refused.insert(String::new()) {
            console::warn("a stick table of the former process cannot be read.");
        }
        return None;
    };
    // One that is not configured any more goes.
    let table = generation.tables.find(name)?;
    if let Err(error) = table.read_dump(dump, written_ms, dump_use)
        && refused.insert(name.to_owned())
    {
        console::warn(&format!("table '{name}' of the former process: {error}."));
    }
    Some(name)
}
