//! `http-check connect` and `tcp-check connect`.

use ballast_expr::Phase;
use ballast_model::{CheckConnect, CheckPort, CheckTls, HttpProtocol};
use ballast_syntax::Diagnostic;

use crate::address::{self, AddressForm};
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::mux_protocol::MuxProtocol;
use crate::proxy::expressions;
use crate::tls::protocols;

const WORDS: &[&str] = &[
    "comment",
    "port",
    "addr",
    "send-proxy",
    "ssl",
    "sni",
    "alpn",
    "proto",
    "via-socks4",
    "linger",
    "default",
];

/// Reads what follows `connect`.
pub(super) fn connect(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<CheckConnect, Diagnostic> {
    let mut connect = CheckConnect::default();
    let keyword = args.keyword();
    // Without `ssl` the other words have no effect.
    let mut tls = CheckTls::default();
    let mut is_tls = false;
    while let Some(word) = args.next() {
        match word {
            "comment" => connect.comment = Some(argument(args, word, "a string")?.to_owned()),
            "port" => port(&mut connect, draft, args, context)?,
            "addr" => {
                let text = argument(args, word, "an address")?;
                let environment = context.machine.environment();
                let parsed = address::parse(text, AddressForm::default(), &environment)
                    .map_err(|error| args.wrong(format!("'{keyword}' : {error}")))?;
                connect.address = Some(parsed.address);
            }
            "send-proxy" => connect.send_proxy = true,
            "linger" => connect.linger = true,
            "default" => connect.default = true,
            "ssl" => is_tls = true,
            "sni" => tls.sni = Some(argument(args, word, "a string")?.to_owned()),
            "alpn" => {
                let text = args.next().filter(|text| !text.is_empty());
                let text = text.ok_or_else(|| {
                    let what = "missing the comma-delimited ALPN protocol suite";
                    args.wrong(format!("'{keyword}' : 'alpn' : {what}."))
                })?;
                tls.alpn = Some(protocols(text));
            }
            "via-socks4" => connect.via_socks4 = true,
            "proto" => connect.protocol = protocol(args, context)?,
            other => {
                let words: Vec<_> = WORDS.iter().map(|word| format!("'{word}'")).collect();
                let message = format!(
                    "'{keyword}' : expects {} but got '{other}' as argument",
                    words.join(", ")
                );
                let known = WORDS.iter().copied();
                return Err(suggestion(args.wrong(message), other, known));
            }
        }
    }
    connect.tls = is_tls.then_some(tls);
    Ok(connect)
}

/// The protocol after `proto`.
fn protocol(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<Option<HttpProtocol>, Diagnostic> {
    let keyword = args.keyword();
    let name = argument(args, "proto", "a protocol")?;
    let Some(protocol) = MuxProtocol::named(name) else {
        let message = format!("'{keyword}' : 'proto' : unknown MUX protocol '{name}'.");
        let known = MuxProtocol::ALL.iter().map(|protocol| protocol.word());
        return Err(suggestion(args.wrong(message), name, known));
    };
    let check = keyword.split(' ').next().unwrap_or(keyword);
    if !protocol.fits_check(check == "http-check") {
        return Err(args.wrong(format!(
            "'{keyword}' : 'proto' : invalid MUX protocol '{name}' for {check}."
        )));
    }
    if protocol == MuxProtocol::Fcgi {
        context.unimplemented(&format!("{keyword} proto fcgi"), "FastCGI", args.span());
    }
    Ok(protocol.http())
}

/// The argument of a word of a check rule.
pub(super) fn argument<'a>(
    args: &mut Args<'a>,
    word: &str,
    what: &str,
) -> Result<&'a str, Diagnostic> {
    match args.next() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => {
            let message = format!("'{}' : '{word}' expects {what} as argument", args.keyword());
            Err(args.wrong(message))
        }
    }
}

/// A number, or an expression that gives one.
fn port(
    connect: &mut CheckConnect,
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let keyword = args.keyword();
    let text = argument(args, "port", "a port number or a sample expression")?;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse::<u16>() {
            Ok(port) if port > 0 => {
                connect.port = Some(CheckPort::Fixed(port));
                Ok(())
            }
            _ => Err(args.wrong(format!(
                "'{keyword}' : expects a valid TCP port (from range 1 to 65535) or a sample \
                 expression, got {text}"
            ))),
        };
    }
    args.seek(args.position() - 1);
    let expr = expressions::expr(draft, args, context, "a port", &[Phase::Check])?;
    connect.port = Some(CheckPort::Expr(expr));
    Ok(())
}
