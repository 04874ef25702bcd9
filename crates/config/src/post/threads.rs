//! How many threads there are, and which of them serve a bind.

use ballast_syntax::Diagnostic;
use ballast_topology::Layout;

use crate::build::Drafts;
use crate::context::{Context, THREADS_CODE};
use crate::draft::ShardWord;

/// The maximum number of sockets of a bind.
const SHARDS_MAX: usize = ballast_topology::THREADS_MAX;

/// Reports what is wrong with threads and processors, and tells binds their threads.
pub(super) fn check(drafts: &mut Drafts, context: &mut Context<'_>) {
    let layout = match Layout::of(&context.machine.processors(), &drafts.global.cpu) {
        Ok(layout) => layout,
        Err(error) => {
            // HAProxy counts threads when all lines are right.
            if !context.has_alerts() {
                context.report(Diagnostic::alert(THREADS_CODE, error.0));
            }
            return;
        }
    };
    if !context.has_alerts() {
        for warning in &layout.warnings {
            context.report(Diagnostic::warning(THREADS_CODE, warning.clone()));
        }
    }
    for draft in &mut drafts.proxies {
        let title = format!("{} '{}'", draft.kind.word(), draft.name);
        for bind in &mut draft.binds {
            match bind.threads.resolve(&layout) {
                Ok(threads) => bind.bind.threads = threads,
                Err(what) => {
                    let line = &bind.tls.argument;
                    let at = context.file_and_line(bind.span);
                    let message =
                        format!("{title}: 'thread' directive {what} in 'bind {line}' at [{at}].");
                    context.report(Diagnostic::alert(THREADS_CODE, message));
                }
            }
            bind.bind.shard_count = shards(bind.shards, bind.bind.threads.as_deref(), &layout);
        }
    }
}

/// The number of sockets: a thread or group that serves the bind has one.
fn shards(word: ShardWord, threads: Option<&[u16]>, layout: &Layout) -> u16 {
    let serves = |number: usize| {
        let number = u16::try_from(number + 1).unwrap_or(u16::MAX);
        threads.is_none_or(|threads| threads.contains(&number))
    };
    let serving = (0..layout.threads.len()).filter(|&thread| serves(thread));
    let count = match word {
        ShardWord::Count(count) => usize::from(count),
        ShardWord::ByThread => serving.count(),
        ShardWord::ByGroup => {
            let groups = serving.map(|thread| layout.threads[thread].group);
            groups.collect::<std::collections::BTreeSet<_>>().len()
        }
    };
    u16::try_from(count.clamp(1, SHARDS_MAX)).unwrap_or(u16::MAX)
}
