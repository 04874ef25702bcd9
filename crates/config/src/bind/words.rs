//! Words of bind lines, except for TLS.

use std::num::NonZeroU32;
use std::time::Duration;

use ballast_model::{CliLevel, SeverityOutput};
use ballast_syntax::Diagnostic;
use ballast_topology::{THREADS_MAX, ThreadSet};

use crate::args::Args;
use crate::check;
use crate::context::Context;
use crate::draft::{BindDraft, ShardWord};
use crate::keyword::{Row, Sections};
use crate::mux_protocol::{MuxProtocol, protocol};

/// A row of this file's table.
type R = Row<BindDraft>;

const BIND_AND_STATS_SOCKET: Sections = Sections(Sections::BIND.0 | Sections::STATS_SOCKET.0);

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new("accept-netscaler-cip", Sections::BIND, "<magic number>", "expects NetScaler's client address header", |draft, args, _| {
        let number = args.number("a magic number", 1..=i64::from(u32::MAX))?;
        draft.bind.netscaler_cip_magic = u32::try_from(number).ok().and_then(NonZeroU32::new);
        Ok(())
    })
    .examples("accept-netscaler-cip 1234", "accept-netscaler-cip x"),
    R::new("accept-proxy", BIND_AND_STATS_SOCKET, "", "expects a PROXY protocol header", |draft, _, _| {
        draft.bind.accept_proxy = true;
        Ok(())
    }),
    R::new("backlog", Sections::BIND, "<backlog>", "connections the system may hold before they are accepted", |draft, args, _| {
        draft.bind.backlog = Some(args.count("a number")?);
        Ok(())
    })
    .examples("backlog 1024", "backlog many"),
    R::new("cc", Sections::BIND, "<algorithm>", "TCP congestion control algorithm", |draft, args, _| {
        draft.bind.congestion_algorithm = Some(args.text("a congestion control algorithm")?.to_owned());
        Ok(())
    })
    .examples("cc bbr", "cc"),
    R::new("defer-accept", Sections::BIND, "", "accepts a connection when its first data are there", |draft, _, _| {
        draft.bind.defer_accept = true;
        Ok(())
    }),
    R::new("expose-fd", BIND_AND_STATS_SOCKET, "listeners", "gives the listening sockets to who asks", |draft, args, _| {
        args.choice(&[("listeners", ())])?;
        draft.socket.expose_listeners = true;
        Ok(())
    })
    .examples("expose-fd listeners", "expose-fd all"),
    R::new("gid", BIND_AND_STATS_SOCKET, "<gid>", "group of a unix socket, by number", |draft, args, _| {
        draft.bind.unix_owner.group = Some(args.count("a number")?.to_string());
        Ok(())
    })
    .examples("gid 100", "gid staff"),
    R::new("group", BIND_AND_STATS_SOCKET, "<group>", "group of a unix socket, by name", |draft, args, context| {
        draft.bind.unix_owner.group = Some(group(args, context)?);
        Ok(())
    })
    .examples("group haproxy", "group"),
    R::new("guid-prefix", Sections::BIND, "<string>", "prefix of the names that survive renames", check::guid)
        .examples("guid-prefix web", "guid-prefix a/b")
        .ignored("binds have no counters kept by name"),
    R::new("id", Sections::BIND, "<id>", "number of the bind in statistics", |draft, args, _| {
        let number = args.number("a positive integer", 1..=i64::from(i32::MAX))?;
        draft.id = Some(u32::try_from(number).expect("the range was checked"));
        Ok(())
    })
    .examples("id 7", "id 0"),
    R::new("idle-ping", Sections::BIND, "<delay>", "pings idle HTTP/2 clients", |draft, args, _| {
        draft.bind.idle_ping = Some(args.time("a delay")?).filter(|time| *time > Duration::ZERO);
        Ok(())
    })
    .examples("idle-ping 10s", "idle-ping soon"),
    R::new("interface", Sections::BIND, "<interface>", "listens on one interface only", |draft, args, _| {
        draft.bind.interface = Some(args.text("an interface name")?.to_owned());
        Ok(())
    })
    .examples("interface lo", "interface"),
    R::new("label", Sections::BIND, "<label>", "names the bind for rules", check::word)
        .examples("label a", "label")
        .ignored("nothing asks for it yet"),
    R::new("level", BIND_AND_STATS_SOCKET, "user | operator | admin", "what callers of a command socket may do", |draft, args, _| {
        draft.socket.level = args.choice(&[
            ("user", CliLevel::User),
            ("operator", CliLevel::Operator),
            ("admin", CliLevel::Admin),
        ])?;
        Ok(())
    })
    .examples("level admin", "level root"),
    R::new("maxconn", BIND_AND_STATS_SOCKET, "<maxconn>", "connections on this bind alone", |draft, args, _| {
        draft.bind.connection_count_max = Some(args.count("a number")?);
        Ok(())
    })
    .examples("maxconn 100", "maxconn -1"),
    R::new("mode", BIND_AND_STATS_SOCKET, "<mode>", "permissions of a unix socket, in octal", |draft, args, _| {
        let text = args.text("an octal mode")?;
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
        draft.bind.unix_owner.mode =
            Some(mode.ok_or_else(|| args.wrong(format!("'mode' expects an octal mode (got '{text}')")))?);
        Ok(())
    })
    .examples("mode 660", "mode 888"),
    R::new("mss", Sections::BIND, "<maxseg>", "largest TCP segment", |draft, args, _| {
        let number = args.number("a segment size", -65535..=65535)?;
        if number == 0 {
            return Err(args.wrong("'mss' : expects an MSS with and absolute value between 1 and 65535"));
        }
        draft.bind.mss = u16::try_from(number.unsigned_abs()).ok();
        Ok(())
    })
    .examples("mss 1400", "mss big"),
    R::new("name", BIND_AND_STATS_SOCKET, "<name>", "name of the bind in statistics and logs", |draft, args, _| {
        draft.bind.name = Some(args.text("a name")?.to_owned());
        Ok(())
    })
    .examples("name web", "name"),
    R::new("namespace", Sections::BIND, "<name>", "network namespace of the socket", |draft, args, context| {
        draft.bind.namespace = Some(check::namespace(args, context)?);
        Ok(())
    })
    .examples("namespace blue", "namespace"),
    R::new("nbconn", Sections::BIND, "<nbconn>", "connections a reverse bind keeps open", check::count)
        .refused(ballast_rules::NO_REVERSE_HTTP, ""),
    R::new("nice", Sections::BIND, "<nice>", "priority of the connections' tasks", |_, args, _| {
        args.number("a number", -1024..=1024).map(|_| ())
    })
    .examples("nice -10", "nice 5000")
    .ignored("tasks of one worker take turns fairly"),
    R::new("process", Sections::BIND, "<process>[/<threads>]", "threads that serve the bind, in the old notation", check::word)
        .refused("on 'bind' lines is not supported any more since HAProxy 2.5", "thread <threads>"),
    R::new("proto", Sections::BIND, "<name>", "forces the protocol spoken", |draft, args, context| {
        let (protocol, span) = (protocol(args)?, args.keyword_span());
        draft.bind.protocol = protocol.http();
        draft.protocol = Some((protocol, span));
        if protocol == MuxProtocol::Quic {
            context.unimplemented("proto quic", "QUIC", span);
        }
        Ok(())
    })
    .examples("proto h1", "proto h9"),
    R::new("quic-cc-algo", Sections::BIND, "<algorithm>", "QUIC congestion control", check::word)
        .examples("quic-cc-algo cubic", "quic-cc-algo")
        .unimplemented("QUIC"),
    R::new("quic-force-retry", Sections::BIND, "", "makes QUIC clients prove their address", check::nothing).unimplemented("QUIC"),
    R::new("quic-socket", Sections::BIND, "connection | listener", "how QUIC sockets are shared", check::word)
        .examples("quic-socket listener", "quic-socket")
        .unimplemented("QUIC"),
    R::new("severity-output", BIND_AND_STATS_SOCKET, "none | number | string", "how answers of a command socket show their severity", |draft, args, _| {
        draft.socket.severity = args.choice(&[
            ("none", SeverityOutput::None),
            ("number", SeverityOutput::Number),
            ("string", SeverityOutput::String),
        ])?;
        Ok(())
    })
    .examples("severity-output number", "severity-output loud"),
    R::new("shards", Sections::BIND, "<number> | by-thread | by-group", "sockets the bind is split into", |draft, args, _| {
        let Some(text) = args.next() else {
            return Err(args.wrong("'shards' : missing value"));
        };
        draft.shards = match text {
            "by-thread" => ShardWord::ByThread,
            "by-group" => ShardWord::ByGroup,
            _ => {
                let count = text.parse::<u32>().unwrap_or(0);
                let fits = u16::try_from(count).ok();
                let fits = fits.filter(|&count| (1..=THREADS_MAX).contains(&usize::from(count)));
                ShardWord::Count(fits.ok_or_else(|| args.wrong(format!("'shards' : invalid value {count}, allowed range is 1..{THREADS_MAX} or 'by-thread'")))?)
            }
        };
        Ok(())
    })
    .examples("shards 2", "shards none"),
    R::new("tcp-md5sig", Sections::BIND, "<password>", "signs TCP segments", check::word)
        .examples("tcp-md5sig secret", "tcp-md5sig")
        .unimplemented("TCP signatures"),
    R::new("tcp-ss", Sections::BIND, "<mode>", "keeps the client's SYN", check::count)
        .examples("tcp-ss 1", "tcp-ss x")
        .unimplemented("TCP fingerprints"),
    R::new("tcp-ut", Sections::BIND, "<delay>", "how long data may stay unacknowledged", |draft, args, _| {
        draft.bind.tcp_user_timeout = Some(args.time("a delay")?).filter(|time| *time > Duration::ZERO);
        Ok(())
    })
    .examples("tcp-ut 30s", "tcp-ut soon"),
    R::new("tfo", Sections::BIND, "", "TCP fast open", |draft, _, _| {
        draft.bind.tcp_fast_open = true;
        Ok(())
    }),
    R::new("thread", BIND_AND_STATS_SOCKET, "[<group>/]<set>[,...]", "threads that serve the bind", |draft, args, _| {
        draft.threads = ThreadSet::parse(args.next().unwrap_or_default()).map_err(|error| args.wrong(error))?;
        Ok(())
    })
    .examples("thread 1-4", "thread x"),
    R::new("transparent", Sections::BIND, "", "binds to addresses the machine does not have", |draft, _, _| {
        draft.bind.transparent = true;
        Ok(())
    }),
    R::new("uid", BIND_AND_STATS_SOCKET, "<uid>", "owner of a unix socket, by number", |draft, args, _| {
        draft.bind.unix_owner.user = Some(args.count("a number")?.to_string());
        Ok(())
    })
    .examples("uid 100", "uid root"),
    R::new("user", BIND_AND_STATS_SOCKET, "<user>", "owner of a unix socket, by name", |draft, args, context| {
        draft.bind.unix_owner.user = Some(user(args, context)?);
        Ok(())
    })
    .examples("user haproxy", "user"),
    R::new("v4v6", Sections::BIND, "", "an IPv6 wildcard takes IPv4 too", |draft, _, _| {
        draft.bind.v6_only = Some(false);
        Ok(())
    }),
    R::new("v6only", Sections::BIND, "", "an IPv6 wildcard takes no IPv4", |draft, _, _| {
        draft.bind.v6_only = Some(true);
        Ok(())
    }),
];

/// Checks that a user exists.
///
/// # Errors
/// When it does not.
pub(crate) fn user(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<String, Diagnostic> {
    let name = args.text("a user name")?;
    if !context.machine.has_user(name) {
        context.stand_in_or(&format!("user '{name}'"), || {
            args.wrong(format!(
                "cannot find user '{name}' for '{}'",
                args.keyword()
            ))
        })?;
    }
    Ok(name.to_owned())
}

/// Checks that a group exists.
///
/// # Errors
/// When it does not.
pub(crate) fn group(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<String, Diagnostic> {
    let name = args.text("a group name")?;
    if !context.machine.has_group(name) {
        context.stand_in_or(&format!("group '{name}'"), || {
            args.wrong(format!(
                "cannot find group '{name}' for '{}'",
                args.keyword()
            ))
        })?;
    }
    Ok(name.to_owned())
}
