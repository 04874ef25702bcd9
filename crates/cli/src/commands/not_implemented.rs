//! Commands about parts that are not implemented: QUIC, ACME.
//!
//! Tools give these commands whatever the configuration is. They get the answers of an HAProxy
//! without such objects: lists are empty, and a named object is not found. A command that would
//! create an object is refused with a message of our own.
//!
//! Source: management manual, section 9.3; the messages, as seen of HAProxy 3.2.

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::command::Command;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["acme", "challenge_ready"],
        "acme challenge_ready <certfile> domain <domain>",
        "not implemented: an ACME challenge is ready",
        |call| {
            let (certificate, domain) = (call.arg(0), call.arg(2));
            CommandAnswer::error(format!(
                "Couldn't find the ACME task using crt \"{certificate}\" and dns \"{domain}\" !"
            ))
        },
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["acme", "renew"],
        "acme renew <certfile>",
        "not implemented: renew a certificate by ACME",
        |call| CommandAnswer::error(format!("Can't find the certificate '{}'.", call.arg(0))),
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["acme", "status"],
        "acme status",
        "not implemented: list the certificates that ACME renews",
        |_| CommandAnswer::Report(ACME_HEAD.into()),
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["show", "quic"],
        "show quic [help|<format>] [<filter>]",
        "not implemented: list QUIC connections",
        |_| CommandAnswer::Report(QUIC_HEAD.into()),
    )
    .for_level(CliLevel::Operator),
];

/// The head of the list of certificates that ACME renews.
const ACME_HEAD: &str = "# certificate\tsection\tstate\texpiration date (UTC)\texpires in\t\
                         scheduled date (UTC)\tscheduled in\n";

/// The head of the list of QUIC connections.
const QUIC_HEAD: &str = "# conn/frontend                     state   in_flight infl_p lost_p         \
                         Local Address           Foreign Address      local & remote CIDs\n";
