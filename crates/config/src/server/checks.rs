//! Words of server lines about health checks.

use std::net::IpAddr;

use ballast_model::{Address, Observe, OnError};
use ballast_syntax::Diagnostic;

use super::words::delay;
use crate::address::{self, AddressForm, AddressPort};
use crate::args::Args;
use crate::check;
use crate::context::Context;
use crate::draft::ServerDraft;
use crate::keyword::{Row, Sections};
use crate::mux_protocol::{MuxProtocol, protocol};

/// A row of this file's table.
type R = Row<ServerDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "addr",
        Sections::SERVER,
        "<ipv4|ipv6>",
        "address that is probed instead of the server's",
        |server_draft, args, context| {
            let (address, port) = probe_address(args, context)?;
            server_draft.server.checks.address = Some(address);
            if port.is_some() && !server_draft.has_check_port {
                server_draft.server.checks.port = port;
            }
            Ok(())
        },
    )
    .examples("addr 192.0.2.7", "addr 192.0.2.7:x"),
    R::new(
        "agent-addr",
        Sections::SERVER,
        "<addr>",
        "address of the agent",
        |server_draft, args, context| {
            let (address, port) = probe_address(args, context)?;
            server_draft.server.checks.agent_address = Some(address);
            if port.is_some() {
                server_draft.server.checks.agent_port = port;
            }
            Ok(())
        },
    )
    .examples("agent-addr 192.0.2.7", "agent-addr 192.0.2.7:x"),
    R::new(
        "agent-check",
        Sections::SERVER,
        "",
        "asks an agent on the server how it is",
        |server_draft, _, _| {
            server_draft.server.checks.agent_enabled = true;
            Ok(())
        },
    )
    .examples("agent-check agent-port 8080", ""),
    R::new(
        "agent-inter",
        Sections::SERVER,
        "<delay>",
        "time between questions to the agent",
        |server_draft, args, context| {
            server_draft.server.checks.agent_interval =
                Some(delay(&server_draft.server.name, args, context)?);
            Ok(())
        },
    )
    .examples("agent-inter 5s", "agent-inter 0"),
    R::new(
        "agent-port",
        Sections::SERVER,
        "<port>",
        "port of the agent",
        |server_draft, args, context| {
            server_draft.server.checks.agent_port =
                Some(port(args, context)?).filter(|port| *port > 0);
            Ok(())
        },
    )
    .examples("agent-port 8080", "agent-port x"),
    R::new(
        "agent-send",
        Sections::SERVER,
        "<string>",
        "what the agent is asked",
        |server_draft, args, _| {
            server_draft.server.checks.agent_send = Some(args.text("a string")?.to_owned());
            Ok(())
        },
    )
    .examples("agent-send hello", "agent-send"),
    R::new(
        "check",
        Sections::SERVER,
        "",
        "the server is probed",
        |server_draft, _, _| {
            server_draft.server.checks.enabled = true;
            Ok(())
        },
    ),
    R::new(
        "check-pool-conn-name",
        Sections::SERVER,
        "<name>",
        "name of the kept connection that probes take",
        check::word,
    )
    .examples("check-pool-conn-name a", "check-pool-conn-name")
    .ignored("probes open connections of their own"),
    R::new(
        "check-proto",
        Sections::SERVER,
        "<name>",
        "protocol that probes speak",
        |server_draft, args, context| {
            let protocol = protocol(args)?;
            server_draft.server.checks.protocol = protocol.http();
            server_draft.check_protocol = Some(protocol);
            let (word, feature) = match protocol {
                MuxProtocol::Fcgi => ("check-proto fcgi", "FastCGI"),
                MuxProtocol::Spop => ("check-proto spop", "filters"),
                MuxProtocol::H1 | MuxProtocol::H2 | MuxProtocol::None | MuxProtocol::Quic => {
                    return Ok(());
                }
            };
            context.unimplemented(word, feature, args.keyword_span());
            Ok(())
        },
    )
    .examples("check-proto h1", "check-proto h9"),
    R::new(
        "check-reuse-pool",
        Sections::SERVER,
        "",
        "probes take kept connections",
        check::nothing,
    )
    .ignored("probes open connections of their own"),
    R::new(
        "check-send-proxy",
        Sections::SERVER,
        "",
        "probes begin with a PROXY protocol header",
        |server_draft, _, _| {
            server_draft.server.checks.sends_proxy_header = true;
            Ok(())
        },
    ),
    R::new(
        "check-via-socks4",
        Sections::SERVER,
        "",
        "probes go through the SOCKS4 proxy",
        |server_draft, _, _| {
            server_draft.server.checks.via_socks4 = true;
            Ok(())
        },
    ),
    R::new(
        "downinter",
        Sections::SERVER,
        "<delay>",
        "time between probes while the server is down",
        |server_draft, args, context| {
            server_draft.server.checks.down_interval =
                Some(delay(&server_draft.server.name, args, context)?);
            Ok(())
        },
    )
    .examples("downinter 10s", "downinter 0"),
    R::new(
        "error-limit",
        Sections::SERVER,
        "<count>",
        "observed errors before on-error acts",
        |server_draft, args, context| {
            server_draft.server.checks.error_limit = at_least_one(args, context)?;
            Ok(())
        },
    )
    .examples("error-limit 5", "error-limit 0"),
    R::new(
        "fall",
        Sections::SERVER,
        "<count>",
        "failed probes in a row until the server is down",
        |server_draft, args, context| {
            server_draft.server.checks.fall = at_least_one(args, context)?;
            Ok(())
        },
    )
    .examples("fall 3", "fall 0"),
    R::new(
        "fastinter",
        Sections::SERVER,
        "<delay>",
        "time between probes while the state is changing",
        |server_draft, args, context| {
            server_draft.server.checks.fast_interval =
                Some(delay(&server_draft.server.name, args, context)?);
            Ok(())
        },
    )
    .examples("fastinter 1s", "fastinter 0"),
    R::new(
        "inter",
        Sections::SERVER,
        "<delay>",
        "time between probes",
        |server_draft, args, context| {
            server_draft.server.checks.interval = delay(&server_draft.server.name, args, context)?;
            Ok(())
        },
    )
    .examples("inter 2s", "inter 0"),
    R::new(
        "no-agent-check",
        Sections::SERVER,
        "",
        "undoes agent-check",
        |server_draft, _, _| {
            server_draft.server.checks.agent_enabled = false;
            Ok(())
        },
    ),
    R::new(
        "no-check",
        Sections::SERVER,
        "",
        "undoes check",
        |server_draft, _, _| {
            server_draft.server.checks.enabled = false;
            Ok(())
        },
    ),
    R::new(
        "no-check-reuse-pool",
        Sections::SERVER,
        "",
        "undoes check-reuse-pool",
        check::nothing,
    )
    .ignored("probes open connections of their own"),
    R::new(
        "no-check-send-proxy",
        Sections::SERVER,
        "",
        "undoes check-send-proxy",
        |server_draft, _, _| {
            server_draft.server.checks.sends_proxy_header = false;
            Ok(())
        },
    ),
    R::new(
        "observe",
        Sections::SERVER,
        "layer4 | layer7",
        "counts failures of the traffic too",
        |server_draft, args, _| {
            let choices = [
                ("none", None),
                ("layer4", Some(Observe::Layer4)),
                ("layer7", Some(Observe::Layer7)),
            ];
            server_draft.server.checks.observe = args.choice_or(&choices, |text| {
                if text.is_empty() {
                    return "'observe' expects <mode> as argument.".to_owned();
                }
                format!("'observe' expects one of 'none', 'layer4', 'layer7' but got '{text}'")
            })?;
            Ok(())
        },
    )
    .examples("observe layer7", "observe layer8"),
    R::new(
        "on-error",
        Sections::SERVER,
        "fastinter | fail-check | sudden-death | mark-down",
        "what observed errors do",
        |server_draft, args, _| {
            let choices = [
                ("fastinter", OnError::FastInter),
                ("fail-check", OnError::FailCheck),
                ("sudden-death", OnError::SuddenDeath),
                ("mark-down", OnError::MarkDown),
            ];
            server_draft.server.checks.on_error = args.choice_or(&choices, |text| {
                format!(
                    "'on-error' expects one of 'fastinter', 'fail-check', 'sudden-death' or \
                     'mark-down' but got '{text}'"
                )
            })?;
            Ok(())
        },
    )
    .examples("on-error mark-down", "on-error pray"),
    R::new(
        "port",
        Sections::SERVER,
        "<port>",
        "port that is probed instead of the server's",
        |server_draft, args, context| {
            let said = Some(port(args, context)?).filter(|port| *port > 0);
            server_draft.has_check_port = said.is_some();
            server_draft.server.checks.port = said;
            Ok(())
        },
    )
    .examples("port 8080", "port x"),
    R::new(
        "rise",
        Sections::SERVER,
        "<count>",
        "successful probes in a row until the server is up",
        |server_draft, args, context| {
            server_draft.server.checks.rise = at_least_one(args, context)?;
            Ok(())
        },
    )
    .examples("rise 2", "rise 0"),
];

fn at_least_one(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<u32, Diagnostic> {
    let keyword = args.keyword();
    let has_value = args.peek().is_some();
    let number = args.lenient_number("an integer argument.", 1..=i64::from(i32::MAX), context);
    let number = number.map_err(|mut error| {
        if keyword == "error-limit" {
            error.message = "error-limit has to be > 0.".to_owned();
        } else if has_value {
            error.message = format!("'{keyword}' has to be > 0.");
        }
        error
    })?;
    Ok(u32::try_from(number).expect("the range was checked"))
}

fn port(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<u16, Diagnostic> {
    let number = args.lenient_number("a port number as argument.", 0..=65535, context)?;
    Ok(u16::try_from(number).expect("the range was checked"))
}

fn probe_address(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(Address, Option<u16>), Diagnostic> {
    let text = args.text(match args.keyword() {
        "addr" => "<ipv4|ipv6> as argument.",
        _ => "an address as argument.",
    })?;
    let wrong = |error: String| args.wrong(format!("'{}' : {error}", args.keyword()));
    if args.keyword() == "agent-addr" {
        // The agent's may be an address of either family without brackets.
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok((Address::Inet((ip, 0).into()), None));
        }
        let behind_brackets = text.rsplit(']').next().unwrap_or_default();
        if behind_brackets.contains([':', '/', '@']) {
            let error = format!("'{text}' is more than an address: agent-port names the port");
            return Err(wrong(error));
        }
    }
    let parsed =
        address::parse(text, AddressForm::default(), &context.environment).map_err(wrong)?;
    let port = match parsed.port {
        AddressPort::Fixed(port, _) if port > 0 => Some(port),
        _ => None,
    };
    let address = context.resolve_address(&parsed.address).map_err(wrong)?;
    Ok((address, port))
}
