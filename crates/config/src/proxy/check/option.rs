//! The options that select a check, and `external-check`.

use ballast_expr::{LogFormat, Usage};
use ballast_model::{HttpCheckSend, ProtocolCheck};
use ballast_syntax::Diagnostic;

use super::CheckKind;
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "type",
        Sections::HEALTHCHECK,
        "<type> [param*]",
        "the kind of check: the words of an 'option' that selects one",
        kind,
    )
    .examples("type httpchk", "type nosuch"),
    R::new(
        "option httpchk",
        Sections::CHECKS,
        "[ <uri> | <method> <uri> [<version> [<host>]] ]",
        "probe servers with an HTTP request",
        httpchk,
    )
    .examples(
        "option httpchk GET /health HTTP/1.1",
        "option httpchk GET / HTTP/1.1 a b",
    ),
    R::new(
        "option tcp-check",
        Sections::CHECKS,
        "",
        "probe servers with 'tcp-check' rules",
        |draft, args, _| {
            args.end()?;
            choose(draft, args, CheckKind::Tcp);
            Ok(())
        },
    )
    .examples("option tcp-check", "option tcp-check extra"),
    R::new(
        "option smtpchk",
        Sections::CHECKS,
        "[ { HELO | EHLO } <domain> ]",
        "probe mail servers",
        smtp,
    )
    .examples(
        "option smtpchk EHLO mail.example.net",
        "option smtpchk EHLO a b",
    ),
    R::new(
        "option mysql-check",
        Sections::CHECKS,
        "[ user <name> [ { post-41 | pre-41 } ] ]",
        "probe MySQL servers",
        mysql,
    )
    .examples(
        "option mysql-check user probe post-41",
        "option mysql-check user",
    ),
    R::new(
        "option pgsql-check",
        Sections::CHECKS,
        "user <name>",
        "probe PostgreSQL servers",
        pgsql,
    )
    .examples("option pgsql-check user probe", "option pgsql-check"),
    R::new(
        "option redis-check",
        Sections::CHECKS,
        "",
        "probe Redis servers",
        |draft, args, _| {
            args.end()?;
            choose_protocol(draft, args, ProtocolCheck::Redis);
            Ok(())
        },
    )
    .examples("option redis-check", "option redis-check extra"),
    R::new(
        "option ldap-check",
        Sections::CHECKS,
        "",
        "probe LDAP servers",
        |draft, args, _| {
            args.end()?;
            choose_protocol(draft, args, ProtocolCheck::Ldap);
            Ok(())
        },
    )
    .examples("option ldap-check", "option ldap-check extra"),
    R::new(
        "option ssl-hello-chk",
        Sections::CHECKS,
        "",
        "probe servers with the beginning of a TLS handshake",
        |draft, args, _| {
            args.end()?;
            choose_protocol(draft, args, ProtocolCheck::SslHello);
            Ok(())
        },
    )
    .examples("option ssl-hello-chk", "option ssl-hello-chk extra"),
    R::new(
        "option spop-check",
        Sections::CHECKS,
        "",
        "probe SPOP agents",
        |draft, args, _| {
            args.end()?;
            choose_protocol(draft, args, ProtocolCheck::Spop);
            Ok(())
        },
    )
    .examples("option spop-check", "option spop-check extra"),
    R::new(
        "option external-check",
        Sections::CHECKS,
        "",
        "probe servers with a program",
        |draft, args, _| {
            args.end()?;
            let kind = if args.prefix == crate::args::Prefix::None {
                CheckKind::External
            } else {
                CheckKind::Connect
            };
            choose(draft, args, kind);
            Ok(())
        },
    )
    .examples("option external-check", "option external-check extra"),
    R::new(
        "external-check command",
        Sections::CHECKS,
        "<command>",
        "the program that probes servers",
        |draft, args, _| {
            let command = args.text("a command")?.to_owned();
            draft.section_state.check.command = Some((command, Some(args.span())));
            args.end()
        },
    )
    .examples("external-check command /bin/true", "external-check command"),
    R::new(
        "external-check path",
        Sections::CHECKS,
        "<path>",
        "where the probing program finds its own programs",
        |draft, args, _| {
            let path = args.text("a path")?.to_owned();
            draft.section_state.check.path = Some((path, Some(args.span())));
            args.end()
        },
    )
    .examples("external-check path /bin", "external-check path"),
];

/// The words of `type`, and what they select.
const TYPES: &[&str] = &[
    "external-check",
    "httpchk",
    "ldap-check",
    "mysql-check",
    "pgsql-check",
    "redis-check",
    "smtpchk",
    "spop-check",
    "ssl-hello-chk",
    "tcp-check",
];

/// `type` of a `healthcheck` section.
fn kind(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.text("a type of check")?.to_owned();
    let kind = match word.as_str() {
        "httpchk" => return httpchk(draft, args, context),
        "mysql-check" => return mysql(draft, args, context),
        "pgsql-check" => return pgsql(draft, args, context),
        "smtpchk" => return smtp(draft, args, context),
        "external-check" => CheckKind::External,
        "ldap-check" => CheckKind::Protocol(ProtocolCheck::Ldap),
        "redis-check" => CheckKind::Protocol(ProtocolCheck::Redis),
        "spop-check" => CheckKind::Protocol(ProtocolCheck::Spop),
        "ssl-hello-chk" => CheckKind::Protocol(ProtocolCheck::SslHello),
        "tcp-check" => CheckKind::Tcp,
        other => {
            let error = args.wrong(format!("'type' : unknown type of check '{other}'"));
            return Err(suggestion(error, other, TYPES.iter().copied()));
        }
    };
    args.end()?;
    choose(draft, args, kind);
    Ok(())
}

fn choose(draft: &mut ProxyDraft, args: &Args<'_>, kind: CheckKind) {
    draft.section_state.check.kind = kind;
    draft.section_state.check.kind_span = Some(args.keyword_span());
}

fn choose_protocol(draft: &mut ProxyDraft, args: &Args<'_>, check: ProtocolCheck) {
    choose(draft, args, CheckKind::Protocol(check));
}

fn smtp(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let words = args.texts();
    let hello = match words.as_slice() {
        [word, domain, ..] if !word.is_empty() && !domain.is_empty() => {
            // Any other word means the older greeting.
            let word = if *word == "EHLO" { "EHLO" } else { "HELO" };
            Some((word.to_owned(), (*domain).to_owned()))
        }
        _ => None,
    };
    args.next();
    args.next();
    args.end()?;
    choose_protocol(draft, args, ProtocolCheck::Smtp { hello });
    Ok(())
}

fn pgsql(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let expects = "'user <username>' as argument";
    match args.next() {
        Some("user") => {}
        None => return Err(args.missing_argument(expects)),
        Some(other) => {
            let message = format!(
                "'option pgsql-check' only supports optional values: 'user' (got \
                 '{other}')"
            );
            return Err(suggestion(args.wrong(message), other, ["user"]));
        }
    }
    let user = args.text(expects)?.to_owned();
    args.end()?;
    choose_protocol(draft, args, ProtocolCheck::Pgsql { user });
    Ok(())
}

fn mysql(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let (user, before_41) = match args.next() {
        None => (None, false),
        Some("user") => {
            let Some(user) = args.next().filter(|user| !user.is_empty()) else {
                let message = "'option mysql-check user' expects <username> as argument";
                return Err(args.wrong(message));
            };
            let before_41 = match args.next() {
                None | Some("post-41") => false,
                Some("pre-41") => true,
                Some(other) => {
                    let message = format!(
                        "keyword 'user' only supports 'post-41' and 'pre-41' (got '{other}')"
                    );
                    return Err(suggestion(
                        args.wrong(message),
                        other,
                        ["post-41", "pre-41"],
                    ));
                }
            };
            (Some(user.to_owned()), before_41)
        }
        Some(other) => {
            let message = format!(
                "'option mysql-check' only supports optional values: 'user' (got '{other}')"
            );
            return Err(suggestion(args.wrong(message), other, ["user"]));
        }
    };
    args.end()?;
    choose_protocol(draft, args, ProtocolCheck::Mysql { user, before_41 });
    Ok(())
}

fn httpchk(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut send = HttpCheckSend::default();
    let words = args.texts();
    match words.as_slice() {
        [] => {}
        [uri] => send.uri = Some((*uri).to_owned()),
        [method, uri, ..] => {
            send.method = Some((*method).to_owned());
            send.uri = Some((*uri).to_owned());
        }
    }
    args.next();
    args.next();
    if let Some(version) = args.next() {
        let (version, rest) = version.split_once("\r\n").unwrap_or((version, ""));
        send.version = Some(version.to_owned());
        if !rest.is_empty() {
            let message = "'option httpchk' : hiding headers or body at the end of the version \
                           string is unsupported. Use 'http-check send' directive instead";
            return Err(args.wrong(message));
        }
    }
    if let Some(host) = args.next() {
        let format = LogFormat::parse(host, Usage::Http)
            .map_err(|error| args.wrong(format!("'option httpchk' : {}", error.message)))?;
        send.headers.push(("host".to_owned(), format));
    }
    args.end()?;
    choose(draft, args, CheckKind::Http(Box::new(send)));
    draft.section_state.check.forget_inherited_rules();
    Ok(())
}
