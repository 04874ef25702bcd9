//! Boolean `option` words: on, `no`, or `default`.
//!
//! Source: HAProxy configuration manual, section 4.2, "option ...".

use ballast_model::ConnectionMode;

use crate::args::{Args, Prefix};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// A boolean option with a field.
macro_rules! switch {
    ($word:literal, $sections:ident, $help:literal, $draft:ident => $field:expr) => {
        R::new($word, Sections::$sections, "", $help, |$draft, args, _| {
            args.end()?;
            $field = args.prefix == Prefix::None;
            Ok(())
        })
        .examples($word, concat!($word, " extra"))
        .with_no_and_default()
    };
}

/// The old name of an option.
macro_rules! former {
    ($word:literal, $sections:ident, $new:literal, $draft:ident => $field:expr) => {
        R::new(
            $word,
            Sections::$sections,
            "",
            concat!("the former name of '", $new, "'"),
            |$draft, args, context| {
                args.end()?;
                if args.prefix != Prefix::None {
                    let message = concat!("negation is not supported for '", $word, "'");
                    return Err(args.wrong(message.to_owned()));
                }
                $field = true;
                let message = concat!(
                    "'",
                    $word,
                    "' is deprecated. please use '",
                    $new,
                    "' if absolutely needed."
                );
                context.warn("deprecated", message, args.keyword_span());
                Ok(())
            },
        )
        .examples($new, concat!($word, " extra"))
        .with_no_and_default()
    };
}

/// A boolean option without a field.
macro_rules! noted {
    ($word:literal, $sections:ident, $help:literal, $reason:literal) => {
        R::new($word, Sections::$sections, "", $help, crate::check::none)
            .examples($word, concat!($word, " extra"))
            .with_no_and_default()
            .ignored($reason)
    };
}

/// A connection mode; the last one in a section wins, and `no` only removes its own.
macro_rules! ending {
    ($word:literal, $help:literal, $mode:ident) => {
        R::new($word, Sections::PROXIES, "", $help, |draft, args, _| {
            args.end()?;
            end_with(draft, args, ConnectionMode::$mode);
            Ok(())
        })
        .examples($word, concat!($word, " extra"))
        .with_no_and_default()
    };
}

/// The rows.
pub(super) const ROWS: &[R] = &[
    switch!("option abortonclose", BACK,
        "a client that leaves while it is queued gives up its request",
        draft => draft.common.abort_on_close),
    switch!("option accept-unsafe-violations-in-http-request", FRONT,
        "take requests that break the rules in known, dangerous ways",
        draft => draft.common.accept_invalid_requests)
    .http(),
    switch!("option accept-unsafe-violations-in-http-response", BACK,
        "take responses that break the rules in known, dangerous ways",
        draft => draft.common.accept_invalid_responses)
    .http(),
    former!("option accept-invalid-http-request", FRONT,
        "option accept-unsafe-violations-in-http-request",
        draft => draft.common.accept_invalid_requests)
    .http(),
    former!("option accept-invalid-http-response", BACK,
        "option accept-unsafe-violations-in-http-response",
        draft => draft.common.accept_invalid_responses)
    .http(),
    switch!("option allbackups", BACK, "all backup servers work when no other server is left",
        draft => draft.back.options.all_backups),
    switch!("option checkcache", BACK,
        "refuse responses whose cookie a cache could keep",
        draft => draft.back.options.check_cache)
    .http(),
    switch!("option clitcpka", FRONT, "TCP keep-alive probes towards clients",
        draft => draft.front.keepalive.enabled),
    switch!("option contstats", FRONT, "count long exchanges while they last",
        draft => draft.front.options.continuous_stats),
    switch!("option disable-h2-upgrade", FRONT, "no HTTP/2 by its preface on clear connections",
        draft => draft.front.options.disable_h2_upgrade)
    .http(),
    switch!("option dontlog-normal", FRONT, "log only what went wrong",
        draft => draft.front.log.skip_normal),
    switch!("option dontlognull", FRONT, "do not log connections that carried nothing",
        draft => draft.front.log.skip_null),
    switch!("option h1-case-adjust-bogus-client", FRONT,
        "send header names to clients in the case 'h1-case-adjust' lists",
        draft => draft.front.options.case_adjust),
    switch!("option h1-case-adjust-bogus-server", BACK,
        "send header names to servers in the case 'h1-case-adjust' lists",
        draft => draft.back.options.case_adjust),
    switch!("option http-buffer-request", PROXIES,
        "wait for the request's body before rules and balancing",
        draft => draft.common.buffer_request)
    .http(),
    switch!("option http-drop-request-trailers", BACK, "drop trailers of requests",
        draft => draft.back.options.drop_request_trailers)
    .http(),
    switch!("option http-drop-response-trailers", FRONT, "drop trailers of responses",
        draft => draft.front.options.drop_response_trailers)
    .http(),
    switch!("option http-ignore-probes", FRONT, "do not log or count connections without a request",
        draft => draft.front.options.ignore_probes)
    .http(),
    noted!("option http-no-delay", PROXIES, "forward every piece of a body at once",
        "what has come is forwarded at once, and the system is never asked to wait for more")
    .http(),
    switch!("option http-pretend-keepalive", BACK,
        "do not tell servers that their connection will be closed",
        draft => draft.back.options.pretend_keepalive)
    .http(),
    switch!("option http-use-proxy-header", FRONT,
        "requests to a proxy carry their credentials in Proxy-Authorization",
        draft => draft.front.options.use_proxy_header)
    .http(),
    switch!("option idle-close-on-response", FRONT, "let idle clients be answered once when stopping",
        draft => draft.front.options.idle_close_on_response)
    .http(),
    switch!("option independent-streams", PROXIES,
        "sending does not refresh the timeout of a response or a body's next bytes; of a tunnel's it does",
        draft => draft.common.independent_streams),
    switch!("option log-health-checks", BACK, "log each change of a check's result",
        draft => draft.back.options.log_health_checks),
    switch!("option log-separate-errors", FRONT, "log failures at a higher level",
        draft => draft.front.log.separate_errors),
    switch!("option logasap", FRONT, "log as soon as the response begins",
        draft => draft.front.log.as_soon_as_possible),
    switch!("option nolinger", PROXIES, "reset connections instead of closing them",
        draft => draft.common.no_linger),
    switch!("option persist", BACK, "try the cookie's server even when it is down",
        draft => draft.back.options.persist),
    switch!("option prefer-last-server", BACK,
        "stay on the server of the previous request, unless the request tells the server",
        draft => draft.back.options.prefer_last_server)
    .http(),
    switch!("option socket-stats", FRONT, "statistics for each bind",
        draft => draft.front.options.socket_stats),
    R::new(
        "option splice-auto",
        Sections::PROXIES,
        "",
        "move bytes in the kernel while they come fast; it is so unless 'no' says otherwise",
        |draft, args, _| {
            args.end()?;
            draft.common.splicing.auto = match args.prefix {
                Prefix::None => Some(true),
                Prefix::No => Some(false),
                Prefix::Default => None,
            };
            Ok(())
        },
    )
    .examples("option splice-auto", "option splice-auto extra")
    .with_no_and_default(),
    switch!("option splice-request", PROXIES, "move bytes of requests in the kernel",
        draft => draft.common.splicing.request),
    switch!("option splice-response", PROXIES, "move bytes of responses in the kernel",
        draft => draft.common.splicing.response),
    switch!("option srvtcpka", BACK, "TCP keep-alive probes towards servers",
        draft => draft.back.keepalive.enabled),
    R::new(
        "option tcp-smart-accept",
        Sections::FRONT,
        "",
        "save a packet when accepting; in HTTP mode it is always so unless 'no' says otherwise",
        |draft, args, _| {
            args.end()?;
            draft.front.options.smart_accept = match args.prefix {
                Prefix::None => Some(true),
                Prefix::No => Some(false),
                Prefix::Default => None,
            };
            Ok(())
        },
    )
    .examples("option tcp-smart-accept", "option tcp-smart-accept extra")
    .with_no_and_default(),
    switch!("option tcp-smart-connect", BACK, "save a packet when connecting",
        draft => draft.back.options.smart_connect),
    R::new(
        "option tcpka",
        Sections::PROXIES,
        "",
        "TCP keep-alive probes on both sides",
        |draft, args, _| {
            args.end()?;
            let is_on = args.prefix == Prefix::None;
            draft.front.keepalive.enabled = is_on;
            draft.back.keepalive.enabled = is_on;
            Ok(())
        },
    )
    .examples("option tcpka", "option tcpka extra")
    .with_no_and_default(),
    switch!("option transparent", BACK, "connect to where the client wanted to go",
        draft => draft.back.options.transparent),
    noted!("option use-small-buffers", BACK, "keep small requests in small buffers",
        "a buffer is held only while it is filled, whatever its size"),
    ending!("option httpclose", "close the client's (frontend) or the server's (backend) connection after each exchange", Close),
    ending!("option http-keep-alive", "keep both connections after each exchange", KeepAlive),
    ending!("option http-server-close", "close the server's connection after each exchange",
        ServerClose),
    REMOVED_FORCECLOSE,
    R::new(
        "option http-tunnel",
        Sections::PROXIES,
        "",
        "removed",
        crate::check::any,
    )
    .with_no_and_default()
    .refused("is not supported any more since HAProxy 2.1, just remove it: it should not be needed", ""),
    R::new(
        "option http-use-htx",
        Sections::PROXIES,
        "",
        "removed",
        crate::check::any,
    )
    .with_no_and_default()
    .refused("is not supported any more since HAProxy 2.6, just remove it: it changes nothing", ""),
    R::new(
        "option http_proxy",
        Sections::PROXIES,
        "",
        "removed",
        crate::check::any,
    )
    .with_no_and_default()
    .refused(
        "is not supported any more since HAProxy 2.5",
        "http-request set-dst, http-request set-dst-port and http-request set-uri",
    ),
];

const REMOVED_FORCECLOSE: R = R::new(
    "option forceclose",
    Sections::PROXIES,
    "",
    "removed",
    crate::check::any,
)
.with_no_and_default()
.refused(
    "is not supported any more since HAProxy 2.0, just remove it",
    "option httpclose",
);

fn end_with(draft: &mut ProxyDraft, args: &Args<'_>, mode: ConnectionMode) {
    let now = &mut draft.common.connection_mode;
    if args.prefix == Prefix::None {
        *now = mode;
    } else if *now == mode {
        *now = ConnectionMode::default();
    }
}
