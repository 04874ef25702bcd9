//! Words of server lines about the server's role in the backend.

use std::time::Duration;

use ballast_model::{HashKey, InitAddr, InitState, IsExplicit, OnMarkedDown, OnMarkedUp};
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::check;
use crate::context::Context;
use crate::draft::ServerDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ServerDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new("backup", Sections::SERVER, "", "used only when no other server is usable", |server_draft, _, _| {
        server_draft.server.backup = true;
        Ok(())
    }),
    R::new("cookie", Sections::SERVER, "<value>", "the cookie value that stands for the server", |server_draft, args, _| {
        server_draft.server.cookie = Some(args.text("<value> as argument.")?.to_owned());
        Ok(())
    })
    .examples("cookie s1", "cookie"),
    R::new("disabled", Sections::SERVER, "", "begins in maintenance", |server_draft, _, _| {
        server_draft.server.disabled = true;
        server_draft.server.says_disabled = IsExplicit(true);
        Ok(())
    }),
    R::new("enabled", Sections::SERVER, "", "does not begin in maintenance", |server_draft, _, _| {
        server_draft.server.disabled = false;
        server_draft.server.says_disabled = IsExplicit(false);
        Ok(())
    }),
    R::new("guid", Sections::SERVER, "<string>", "the identifier that stays when the server is renamed", |server_draft, args, context| {
        let position = args.position();
        check::guid(server_draft, args, context)?;
        args.seek(position);
        server_draft.server.guid = Some(args.text("a name")?.to_owned());
        Ok(())
    })
    .examples("guid web-1", "guid a/b"),
    R::new("hash-key", Sections::SERVER, "id | addr | addr-port | guid", "what places the server on the hash ring", |server_draft, args, context| {
        let choices = [
            ("id", Some(HashKey::Id)),
            ("addr", Some(HashKey::Addr)),
            ("addr-port", Some(HashKey::AddrPort)),
            ("guid", None),
        ];
        let refusal = |_: &str| "'hash-key' has to be 'id', 'addr', or 'addr-port'".to_owned();
        let key = args.choice_or(&choices, refusal)?;
        match key {
            Some(key) => server_draft.server.hash_key = key,
            None => context.unimplemented("hash-key guid", "GUIDs of servers", args.keyword_span()),
        }
        Ok(())
    })
    .examples("hash-key addr", "hash-key name"),
    R::new("id", Sections::SERVER, "<value>", "number of the server in statistics and hashes", |server_draft, args, _| {
        let has_value = args.peek().is_some();
        let number = args.number("a positive integer", 1..=i64::from(i32::MAX)).map_err(|mut error| {
            error.message = match has_value {
                true => "'id' : custom id has to be > 0".to_owned(),
                false => "'id' : expects an integer argument".to_owned(),
            };
            error
        })?;
        server_draft.server.id = u32::try_from(number).expect("the range was checked");
        server_draft.id_span = Some(args.keyword_span());
        Ok(())
    })
    .examples("id 7", "id 0"),
    R::new("init-addr", Sections::SERVER, "{last | libc | none | <ip>},[...]*", "how the address is found at start", |server_draft, args, _| {
        let text = args.text("a list of methods")?;
        let mut methods = Vec::new();
        for method in text.split(',') {
            methods.push(match method {
                "last" => InitAddr::Last,
                "libc" => InitAddr::Libc,
                "none" => InitAddr::None,
                _ => InitAddr::Address(method.parse().map_err(|_| {
                    args.wrong(format!("'init-addr' : unknown init-addr method '{method}', supported methods are 'libc', 'last', 'none'"))
                })?),
            });
        }
        server_draft.server.init_addr = methods;
        Ok(())
    })
    .examples("init-addr last,libc,none", "init-addr maybe"),
    R::new("init-state", Sections::SERVER, "fully-up | up | down | fully-down", "what is believed of the server at start", |server_draft, args, _| {
        let choices = [
            ("fully-up", InitState::FullyUp),
            ("up", InitState::Up),
            ("down", InitState::Down),
            ("fully-down", InitState::FullyDown),
        ];
        server_draft.server.init_state = args.choice_or(&choices, |text| {
            format!("'init-state' expects one of 'none', 'fully-up', 'up', 'down', or 'fully-down' but got '{text}'")
        })?;
        Ok(())
    })
    .examples("init-state down", "init-state well"),
    R::new("max-reuse", Sections::SERVER, "<count>", "exchanges one connection may carry", |server_draft, args, _| {
        let number = args.number("a number", -1..=i64::from(i32::MAX))?;
        server_draft.server.reuse_count_max = u32::try_from(number).ok();
        Ok(())
    })
    .examples("max-reuse 100", "max-reuse x"),
    R::new("maxconn", Sections::SERVER, "<maxconn>", "concurrent connections the server takes", |server_draft, args, context| {
            server_draft.server.connection_count_max = count(args, context)?;
        Ok(())
    })
    .examples("maxconn 100", "maxconn x"),
    R::new("maxqueue", Sections::SERVER, "<maxqueue>", "requests that may wait for the server", |server_draft, args, context| {
            server_draft.server.queue_count_max = count(args, context)?;
        Ok(())
    })
    .examples("maxqueue 10", "maxqueue x"),
    R::new("minconn", Sections::SERVER, "<minconn>", "lower end of a limit that follows the backend's load", |server_draft, args, context| {
            server_draft.server.connection_count_min = count(args, context)?;
        Ok(())
    })
    .examples("minconn 10", "minconn x"),
    R::new("no-backup", Sections::SERVER, "", "undoes backup", |server_draft, _, _| {
        server_draft.server.backup = false;
        Ok(())
    }),
    R::new("non-stick", Sections::SERVER, "", "sessions with the server are not remembered", |server_draft, _, _| {
        server_draft.server.non_stick = true;
        Ok(())
    }),
    R::new("on-marked-down", Sections::SERVER, "shutdown-sessions", "what happens to sessions when the server goes down", |server_draft, args, _| {
        let choices = [("shutdown-sessions", OnMarkedDown::ShutdownSessions)];
        let refusal = |text: &str| format!("'on-marked-down' expects 'shutdown-sessions' but got '{text}'");
        server_draft.server.on_marked_down = args.choice_or(&choices, refusal)?;
        Ok(())
    })
    .examples("on-marked-down shutdown-sessions", "on-marked-down nothing"),
    R::new("on-marked-up", Sections::SERVER, "shutdown-backup-sessions", "what happens to sessions of backups when the server comes back", |server_draft, args, _| {
        let choices = [("shutdown-backup-sessions", OnMarkedUp::ShutdownBackupSessions)];
        let refusal = |text: &str| format!("'on-marked-up' expects 'shutdown-backup-sessions' but got '{text}'");
        server_draft.server.on_marked_up = args.choice_or(&choices, refusal)?;
        Ok(())
    })
    .examples("on-marked-up shutdown-backup-sessions", "on-marked-up nothing"),
    R::new("pool-low-conn", Sections::SERVER, "<max>", "kept connections below which threads take from each other", |_, args, context| {
        count(args, context)?;
        Ok(())
    })
    .examples("pool-low-conn 4", "pool-low-conn x")
    .ignored("each worker keeps its own server connections"),
    R::new("pool-max-conn", Sections::SERVER, "<max>", "connections kept without use; -1 is no limit", |server_draft, args, _| {
        let number = args.number("a number", -1..=i64::from(i32::MAX))?;
        server_draft.server.idle_count_max = u32::try_from(number).ok();
        Ok(())
    })
    .examples("pool-max-conn 10", "pool-max-conn -2"),
    R::new("pool-purge-delay", Sections::SERVER, "<delay>", "how often half of the unused connections are closed", |server_draft, args, _| {
        server_draft.server.idle_purge_delay = args.time("a delay")?;
        Ok(())
    })
    .examples("pool-purge-delay 10s", "pool-purge-delay x"),
    R::new("redir", Sections::SERVER, "<prefix>", "GET and HEAD requests are redirected there", |server_draft, args, _| {
        server_draft.server.redirect_prefix = Some(args.text("a prefix")?.to_owned());
        Ok(())
    })
    .examples("redir http://other", "redir"),
    R::new("shard", Sections::SERVER, "<number>", "which part of the tables a peer receives", check::count)
        .examples("shard 1", "shard x")
        .unimplemented("peers"),
    R::new("slowstart", Sections::SERVER, "<start_time_in_ms>", "time to full weight after coming back", |server_draft, args, _| {
        server_draft.server.slow_start = args.time("a time")?;
        Ok(())
    })
    .examples("slowstart 30s", "slowstart slow"),
    R::new("stick", Sections::SERVER, "", "undoes non-stick", |server_draft, _, _| {
        server_draft.server.non_stick = false;
        Ok(())
    }),
    R::new("strict-maxconn", Sections::SERVER, "", "kept connections count towards maxconn too", |server_draft, _, _| {
        server_draft.server.has_strict_maxconn = true;
        Ok(())
    }),
    R::new("track", Sections::SERVER, "[<backend>/]<server>", "takes the state of another server", |server_draft, args, _| {
        let text = args.text("[<proxy>/]<server> as argument.")?;
        let (backend, name) = text.split_once('/').unwrap_or(("", text));
        server_draft.server.track = Some((backend.to_owned(), name.to_owned()));
        server_draft.track_span = Some(args.keyword_span());
        Ok(())
    })
    .examples("track other", "track"),
    R::new("weight", Sections::SERVER, "<weight>", "share of the traffic, 0 to 256", |server_draft, args, context| {
        let text = args.peek().unwrap_or_default();
        let number = args.lenient_number("a weight", 0..=256, context).map_err(|mut error| {
            if error.code == "bad-value" {
                error.message = format!("weight of server {} is not within 0 and 256 ({text}).", server_draft.server.name);
            }
            error
        })?;
        server_draft.server.weight = u16::try_from(number).expect("the range was checked");
        Ok(())
    })
    .examples("weight 10", "weight 257"),
    R::new("healthcheck", Sections::SERVER, "<name>", "uses the check of a healthcheck section", healthcheck)
        .examples("healthcheck hc", "healthcheck"),
];

fn healthcheck(
    server_draft: &mut ServerDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.word("the name of a healthcheck section")?;
    server_draft.healthcheck = Some(word.text().to_owned());
    let kind = ballast_syntax::SectionKind::Healthcheck;
    context
        .declarations
        .add_reference(kind, word.text(), "healthcheck", word.span());
    Ok(())
}

/// A number that is not negative.
fn count(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<u32, Diagnostic> {
    let number = args.lenient_number("a number", 0..=i64::from(u32::MAX), context)?;
    Ok(u32::try_from(number).expect("the range was checked"))
}

/// A time other than zero.
///
/// # Errors
/// When it is.
pub(super) fn positive(args: &mut Args<'_>) -> Result<Duration, Diagnostic> {
    let time = args.time("a delay as argument")?;
    if time.is_zero() {
        return Err(args.wrong(format!("invalid value 0 for argument '{}'", args.keyword())));
    }
    Ok(time)
}

/// The same for check intervals, where a number without a unit may be meant in seconds.
///
/// # Errors
/// When it is zero.
pub(super) fn delay(
    server: &str,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<Duration, Diagnostic> {
    let time = positive(args)?;
    let server = if server.is_empty() {
        "default-server"
    } else {
        server
    };
    args.warn_of_missing_unit(&format!("server '{server}'"), context);
    Ok(time)
}
