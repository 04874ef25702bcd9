//! Commands about parts that are not implemented: certificates, keys of TLS tickets, stick tables,
//! QUIC.
//!
//! Tools give these commands whatever the configuration is. They get the answers of an HAProxy
//! without such objects: lists are empty, and a named object is not found. A command that would
//! create an object is refused with a message of our own.
//!
//! Source: management manual, section 9.3; the messages, as seen of HAProxy 3.2.

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["abort", "ssl", "ca-file"],
        "abort ssl ca-file <cafile>",
        "not implemented: drop a pending change of a CA file",
        |call| no_transaction(call, "'abort ssl ca-file' expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["abort", "ssl", "cert"],
        "abort ssl cert <certfile>",
        "not implemented: drop a pending change of a certificate",
        |call| no_transaction(call, "'abort ssl cert' expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["abort", "ssl", "crl-file"],
        "abort ssl crl-file <crlfile>",
        "not implemented: drop a pending change of a CRL file",
        |call| no_transaction(call, "'abort ssl crl-file' expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["add", "ssl", "crt-list"],
        "add ssl crt-list <list> <cert> [opts]*",
        "not implemented: add a certificate to a list",
        |call| {
            let line = call.args.len() > 1 || call.payload.is_some();
            match call.arg(0) {
                list if !list.is_empty() && line => CommandAnswer::error(format!(
                    "Can't edit the crt-list: crt-list '{}' does not exist!",
                    list.escape_debug()
                )),
                _ => CommandAnswer::error(
                    "'add ssl crtlist' expects a filename and a certificate name",
                ),
            }
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["clear", "table"],
        "clear table <table> [<filter>]*",
        "not implemented: remove entries of a stick table",
        |call| {
            table(
                call,
                "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or \
                 <table> key <key> or <table> ptr <ptr>",
            )
        },
    )
    .changing(ChangeScope::State),
    Command::new(
        &["commit", "ssl", "ca-file"],
        "commit ssl ca-file <cafile>",
        "not implemented: commit a CA file",
        |call| not_committed(call, "'commit ssl ca-file expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["commit", "ssl", "cert"],
        "commit ssl cert <certfile>",
        "not implemented: commit a certificate",
        |call| not_committed(call, "'commit ssl cert expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["commit", "ssl", "crl-file"],
        "commit ssl crl-file <crlfile>",
        "not implemented: commit a CRL file",
        |call| not_committed(call, "'commit ssl crl-file expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["del", "ssl", "ca-file"],
        "del ssl ca-file <cafile>",
        "not implemented: delete a CA file",
        |call| not_removed(call, "CA file", "'del ssl ca-file' expects a CA file name"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["del", "ssl", "cert"],
        "del ssl cert <certfile>",
        "not implemented: delete a certificate",
        |call| {
            not_removed(
                call,
                "certificate",
                "'del ssl cert' expects a certificate name",
            )
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["del", "ssl", "crl-file"],
        "del ssl crl-file <crlfile>",
        "not implemented: delete a CRL file",
        |call| {
            not_removed(
                call,
                "CRL file",
                "'del ssl crl-file' expects a CRL file name",
            )
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["del", "ssl", "crt-list"],
        "del ssl crt-list <list> <cert[:line]>",
        "not implemented: remove a certificate from a list",
        |call| match call.args {
            [list, _, ..] => CommandAnswer::error(format!(
                "Can't delete the entry: crt-list '{}' does not exist!",
                list.escape_debug()
            )),
            _ => {
                CommandAnswer::error("'del ssl crtlist' expects a filename and a certificate name")
            }
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["new", "ssl", "ca-file"],
        "new ssl ca-file <cafile>",
        "not implemented: create an empty CA file",
        |call| not_made(call, "'new ssl ca-file' expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["new", "ssl", "cert"],
        "new ssl cert <certfile>",
        "not implemented: create an empty certificate",
        |call| not_made(call, "'new ssl cert' expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["new", "ssl", "crl-file"],
        "new ssl crl-file <crlfile>",
        "not implemented: create an empty CRL file",
        |call| not_made(call, "'new ssl crl-file' expects a filename"),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "ssl", "ca-file"],
        "set ssl ca-file <cafile> <payload>",
        "not implemented: replace a CA file",
        |call| {
            not_replaced(
                call,
                "a CA file",
                "'set ssl ca-file' expects a filename and CAs as a payload",
            )
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "ssl", "cert"],
        "set ssl cert <certfile> <payload>",
        "not implemented: replace a certificate",
        |call| {
            not_replaced(
                call,
                "a certificate",
                "'set ssl cert' expects a filename and a certificate as a payload",
            )
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "ssl", "crl-file"],
        "set ssl crl-file <crlfile> <payload>",
        "not implemented: replace a CRL file",
        |call| {
            not_replaced(
                call,
                "a CRL file",
                "'set ssl crl-file expects a filename and CRLs as a payload",
            )
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "ssl", "ocsp-response"],
        "set ssl ocsp-response <resp|payload>",
        "not implemented: replace the OCSP answer of a certificate",
        |call| {
            let given = match &call.payload {
                Some(lines) => String::from_utf8_lossy(lines).into_owned(),
                None => call.arg(0).to_owned(),
            };
            let letters = given.replace(['\n', '\r'], "");
            match letters.as_str() {
                "" => CommandAnswer::error(
                    "'set ssl ocsp-response' expects response in base64 encoding.",
                ),
                text if !is_base64(text) => CommandAnswer::error(
                    "'set ssl ocsp-response' received invalid base64 encoded response.",
                ),
                _ => CommandAnswer::error("There is no TLS here: nothing was done."),
            }
        },
    )
    .changing(ChangeScope::State),
    Command::new(
        &["set", "ssl", "tls-key"],
        "set ssl tls-key [id|file] <key>",
        "not implemented: set the next key of TLS tickets",
        |call| match call.args {
            [_, _, ..] => {
                CommandAnswer::error("'set ssl tls-key' unable to locate referenced filename")
            }
            _ => CommandAnswer::error(
                "'set ssl tls-key' expects a filename and the new TLS key in base64 encoding.",
            ),
        },
    )
    .changing(ChangeScope::State),
    Command::new(
        &["set", "table"],
        "set table <table> key <k> [data.* <v>]*",
        "not implemented: write an entry of a stick table",
        |call| {
            table(
                call,
                "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or \
                 <table> ptr <ptr> [data.<store_data_type> <value>]*",
            )
        },
    )
    .changing(ChangeScope::State),
    Command::new(
        &["show", "quic"],
        "show quic [help|<format>] [<filter>]",
        "not implemented: list QUIC connections",
        |_| CommandAnswer::Report(QUIC_HEAD.into()),
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "ssl", "ca-file"],
        "show ssl ca-file [<cafile>[:<index>]]",
        "not implemented: list the CA files",
        |call| {
            list(
                call,
                "# filename\n",
                "Can't display the CA file : Not found!",
            )
        },
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "ssl", "cert"],
        "show ssl cert [<certfile>]",
        "not implemented: list the certificates",
        |call| {
            list(
                call,
                "",
                "Can't display the certificate: Not found or the certificate is a bundle!",
            )
        },
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "ssl", "crl-file"],
        "show ssl crl-file [<crlfile[:<index>>]]",
        "not implemented: list the CRL files",
        |call| {
            list(
                call,
                "# filename\n",
                "Can't display the CRL file : Not found!",
            )
        },
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "ssl", "crt-list"],
        "show ssl crt-list [-n] [<list>]",
        "not implemented: list the lists of certificates",
        |call| match call.args {
            [flag] if flag == "-n" => {
                CommandAnswer::error("'show ssl crt-list -n' expects a filename or a directory")
            }
            [] => CommandAnswer::Report(String::new()),
            _ => CommandAnswer::error("didn't find the specified filename"),
        },
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["show", "ssl", "ocsp-response"],
        "show ssl ocsp-response [[text|base64] id]",
        "not implemented: list the OCSP answers",
        |call| list(call, "", "Certificate ID does not match any certificate."),
    ),
    Command::new(
        &["show", "ssl", "ocsp-updates"],
        "show ssl ocsp-updates",
        "not implemented: list the updates of OCSP answers",
        |_| {
            CommandAnswer::Report(
                "OCSP Certid | Path | Next Update | Last Update | Successes | Failures | Last \
                 Update Status | Last Update Status (str)\n"
                    .into(),
            )
        },
    ),
    Command::new(
        &["show", "ssl", "providers"],
        "show ssl providers",
        "not implemented: list the providers of the TLS library",
        |_| CommandAnswer::Report("Loaded providers : \n".into()),
    ),
    Command::new(
        &["show", "ssl", "sni"],
        "show ssl sni [-f <frontend>] [-A] [-t <offset>]",
        "not implemented: list the names of certificates",
        |_| {
            CommandAnswer::Report(
                "# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n"
                    .into(),
            )
        },
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "tls-keys"],
        "show tls-keys [id|*]",
        "not implemented: list the keys of TLS tickets",
        |call| match call.arg(0) {
            "" => CommandAnswer::Report("# id (file)\n".into()),
            "*" => CommandAnswer::Report("# id secret\n".into()),
            _ => CommandAnswer::error("'show tls-keys' unable to locate referenced filename"),
        },
    ),
];

/// The head of the list of QUIC connections.
const QUIC_HEAD: &str = "# conn/frontend                     state   in_flight infl_p lost_p         \
                         Local Address           Foreign Address      local & remote CIDs\n";

/// Whether the whole text is base64 (RFC 4648, section 4).
fn is_base64(text: &str) -> bool {
    let letters = text.trim_end_matches('=');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - letters.len() < 3 && letters.bytes().all(is_letter)
}

/// Lists all objects: only the head, since there are none. One object is not found.
fn list(call: &CommandCall<'_>, head: &str, not_found: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::Report(head.into()),
        _ => CommandAnswer::error(not_found),
    }
}

fn table(call: &CommandCall<'_>, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::error(usage),
        _ => CommandAnswer::error("No such table"),
    }
}

fn no_transaction(call: &CommandCall<'_>, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::error(usage),
        _ => CommandAnswer::error("No ongoing transaction!"),
    }
}

fn not_committed(call: &CommandCall<'_>, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::error(usage),
        file => CommandAnswer::error(format!(
            "No ongoing transaction! !\nCan't commit {}!",
            file.escape_debug()
        )),
    }
}

fn not_removed(call: &CommandCall<'_>, what: &str, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::error(usage),
        file => CommandAnswer::error(format!(
            "Can't remove the {what}: {what} '{}' doesn't exist!",
            file.escape_debug()
        )),
    }
}

fn not_replaced(call: &CommandCall<'_>, what: &str, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        file if !file.is_empty() && call.payload.is_some() => CommandAnswer::error(format!(
            "Can't replace {what} which is not referenced by the configuration!\nCan't update {}!",
            file.escape_debug()
        )),
        _ => CommandAnswer::error(usage),
    }
}

fn not_made(call: &CommandCall<'_>, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::error(usage),
        _ => CommandAnswer::error("There is no TLS here: nothing was made."),
    }
}
