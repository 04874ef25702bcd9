//! `timeout ...`, and the parameters of TCP keep-alive.
//!
//! Source: HAProxy configuration manual, section 4.2, "timeout" and "clitcpka-cnt" and siblings.

use std::time::Duration;

use ballast_syntax::{Diagnostic, SectionKind, TimeUnit};

use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// A timeout that sets one or two fields.
macro_rules! timeout {
    ($word:literal, $sections:ident, $help:literal, $draft:ident => $($field:expr),+) => {
        R::new(
            concat!("timeout ", $word),
            Sections::$sections,
            "<time>",
            $help,
            |$draft, args, context| {
                let of = $draft.title();
                let time = limit(args, &of, context)?;
                let before = [$($field),+][0];
                let said = &mut $draft.section_state.timeouts;
                let inherited = *said.entry($word).or_insert(before);
                if before != inherited && $draft.kind != SectionKind::Defaults {
                    let message = concat!("overwriting 'timeout ", $word, "' which was already specified");
                    context.warn("said-twice", message.to_owned(), args.keyword_span());
                }
                $($field = time;)+
                Ok(())
            },
        )
        .examples(
            concat!("timeout ", $word, " 30s"),
            concat!("timeout ", $word, " 30x"),
        )
    };
}

/// The rows.
pub(super) const ROWS: &[R] = &[
    timeout!("client", FRONT, "longest silence of a client",
        draft => draft.front.timeouts.client),
    timeout!("client-fin", FRONT, "longest silence of a client that has finished sending",
        draft => draft.front.timeouts.client_fin),
    timeout!("client-hs", FRONT, "longest TLS handshake of a client",
        draft => draft.front.timeouts.client_handshake),
    timeout!("http-request", PROXIES, "longest wait for a whole request head",
        draft => draft.front.timeouts.http_request, draft.back.timeouts.http_request),
    timeout!("http-keep-alive", PROXIES, "longest wait for the next request",
        draft => draft.front.timeouts.http_keep_alive, draft.back.timeouts.http_keep_alive),
    timeout!("tarpit", PROXIES, "how long tarpitted requests wait for their refusal",
        draft => draft.front.timeouts.tarpit, draft.back.timeouts.tarpit),
    timeout!("server", BACK, "longest silence of a server",
        draft => draft.back.timeouts.server),
    timeout!("server-fin", BACK, "longest silence of a server that has finished sending",
        draft => draft.back.timeouts.server_fin),
    timeout!("connect", BACK, "longest wait for a connection to a server",
        draft => draft.back.timeouts.connect),
    timeout!("queue", BACK, "longest wait for a server with room",
        draft => draft.back.timeouts.queue),
    timeout!("check", BACK, "longest wait for the answer of a check, once connected",
        draft => draft.back.timeouts.check),
    timeout!("tunnel", BACK, "longest silence of both sides of a tunnel",
        draft => draft.back.timeouts.tunnel),
    R::new(
        "clitcpka-cnt",
        Sections::FRONT,
        "<count>",
        "unanswered TCP probes before a client is dropped",
        |draft, args, _| {
            let count = args.count("an integer value")?;
            draft.front.keepalive.probe_count = Some(count);
            args.end()
        },
    )
    .examples("clitcpka-cnt 3", "clitcpka-cnt x"),
    R::new(
        "clitcpka-idle",
        Sections::FRONT,
        "<time>",
        "silence before the first TCP probe to a client",
        |draft, args, _| {
            draft.front.keepalive.idle = Some(seconds(args)?);
            args.end()
        },
    )
    .examples("clitcpka-idle 60s", "clitcpka-idle"),
    R::new(
        "clitcpka-intvl",
        Sections::FRONT,
        "<time>",
        "time between TCP probes to a client",
        |draft, args, _| {
            draft.front.keepalive.interval = Some(seconds(args)?);
            args.end()
        },
    )
    .examples("clitcpka-intvl 10s", "clitcpka-intvl x"),
    R::new(
        "srvtcpka-cnt",
        Sections::BACK,
        "<count>",
        "unanswered TCP probes before a server's connection is dropped",
        |draft, args, _| {
            let count = args.count("an integer value")?;
            draft.back.keepalive.probe_count = Some(count);
            args.end()
        },
    )
    .examples("srvtcpka-cnt 3", "srvtcpka-cnt x"),
    R::new(
        "srvtcpka-idle",
        Sections::BACK,
        "<time>",
        "silence before the first TCP probe to a server",
        |draft, args, _| {
            draft.back.keepalive.idle = Some(seconds(args)?);
            args.end()
        },
    )
    .examples("srvtcpka-idle 60s", "srvtcpka-idle"),
    R::new(
        "srvtcpka-intvl",
        Sections::BACK,
        "<time>",
        "time between TCP probes to a server",
        |draft, args, _| {
            draft.back.keepalive.interval = Some(seconds(args)?);
            args.end()
        },
    )
    .examples("srvtcpka-intvl 10s", "srvtcpka-intvl x"),
];

/// A time; zero means none.
fn limit(
    args: &mut Args<'_>,
    of: &str,
    context: &mut Context<'_>,
) -> Result<Option<Duration>, Diagnostic> {
    let time = args.time("an integer value (in milliseconds)")?;
    args.warn_of_missing_unit(of, context);
    args.end()?;
    Ok((!time.is_zero()).then_some(time))
}

/// A time in seconds, the kernel's unit for keep-alive.
fn seconds(args: &mut Args<'_>) -> Result<Duration, Diagnostic> {
    args.time_in("a time, in seconds without a unit", TimeUnit::Second)
}
