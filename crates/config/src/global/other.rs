//! Global keywords about Lua, QUIC, the environment and others: most belong to a part of the
//! program that is refused or not implemented.
//!
//! Source: HAProxy configuration manual, section 3.

use ballast_expr::{ExpressionReference, Phase, VarName, VarScope};
use ballast_model::{Global, ProcessVariable, VariableSource};
use ballast_syntax::Diagnostic;

use crate::args::{Args, Prefix};
use crate::check;
use crate::context::Context;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<Global>;

const CLIENT: &str = "there is no HTTP client but that of ocsp-update, which has limits of its own";
const DEVICES: &str = "belongs to a device detection library that is not built in";

macro_rules! rows {
    ($state:ident($reason:expr); $($word:literal, $args:literal, $help:literal, $check:tt, $good:literal;)*) => {
        &[$(R::new($word, Sections::GLOBAL, $args, $help, check::form!($check))
            .examples(concat!($word, " ", $good), "")
            .$state($reason)),*]
    };
}

pub(super) const CLIENT_ROWS: &[R] = rows! { ignored(CLIENT);
    "httpclient.resolvers.disabled", "on | off", "resolves no names", ["on" "off"], "on";
    "httpclient.resolvers.id", "<resolvers id>", "section that resolves names", resolvers, "default";
    "httpclient.resolvers.prefer", "ipv4 | ipv6", "family preferred", ["ipv4" "ipv6"], "ipv4";
    "httpclient.retries", "<number>", "how often is tried again", amount, "3";
    "httpclient.ssl.ca-file", "<cafile>", "authorities of servers", one, "ca.pem";
    "httpclient.ssl.verify", "none | required", "whether certificates are verified", ["none" "required"], "none";
    "httpclient.timeout.connect", "<timeout>", "longest wait for a connection", time, "5s";
};

pub(super) const LUA_ROWS: &[R] = rows! { unimplemented("Lua");
    "lua-load", "<file> [<arg>...]", "runs a script at start", some, "/etc/a.lua";
    "lua-load-per-thread", "<file> [<arg>...]", "runs a script at start in each thread", some, "/etc/a.lua";
};

pub(super) const DEVICE_ROWS: &[R] = &[
    R::new(
        "51degrees-allow-unmatched",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-cache-size",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-data-file",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-difference",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-drift",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-property-name-list",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-property-separator",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-use-performance-graph",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "51degrees-use-predictive-graph",
        Sections::GLOBAL,
        "",
        "51Degrees",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "deviceatlas-json-file",
        Sections::GLOBAL,
        "",
        "DeviceAtlas",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "deviceatlas-log-level",
        Sections::GLOBAL,
        "",
        "DeviceAtlas",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "deviceatlas-properties-cookie",
        Sections::GLOBAL,
        "",
        "DeviceAtlas",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "deviceatlas-separator",
        Sections::GLOBAL,
        "",
        "DeviceAtlas",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "wurfl-cache-size",
        Sections::GLOBAL,
        "",
        "WURFL",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new("wurfl-data-file", Sections::GLOBAL, "", "WURFL", check::any).refused(DEVICES, ""),
    R::new(
        "wurfl-information-list",
        Sections::GLOBAL,
        "",
        "WURFL",
        check::any,
    )
    .refused(DEVICES, ""),
    R::new(
        "wurfl-information-list-separator",
        Sections::GLOBAL,
        "",
        "WURFL",
        check::any,
    )
    .refused(DEVICES, ""),
];

pub(super) const REMOVED_ROWS: &[R] = &[
    R::new("debug", Sections::GLOBAL, "", "printed what passed", check::any)
        .refused("is not supported any more since HAProxy 2.2", ""),
    R::new("nbproc", Sections::GLOBAL, "<number>", "several processes", check::any).refused(
        "is not supported any more since HAProxy 2.5. Threads will automatically be used on multi-processor machines if available.",
        "nbthread <number>",
    ),
];

/// The rest.
pub(super) const ROWS: &[R] = &[
    R::new("acme.scheduler", Sections::GLOBAL, "auto | off", "renews certificates by itself", check::form!(["auto" "off"]))
        .examples("acme.scheduler auto", "acme.scheduler")
        .ignored("acts on 'acme' sections only"),
    R::new("anonkey", Sections::GLOBAL, "<key>", "key that names are hidden with", check::form!((0 .. 4294967295)))
        .examples("anonkey 123", "anonkey x")
        .ignored("nothing is printed anonymised"),
    R::new("debug.counters", Sections::GLOBAL, "on | off", "counts what developers ask for", check::one)
        .examples("debug.counters on", "")
        .ignored("there are no such counters"),
    R::new("dns-accept-family", Sections::GLOBAL, "<family>[,...]", "families that resolved addresses may have", check::families)
        .examples("dns-accept-family ipv4", "dns-accept-family")
        .ignored("acts on resolvers only"),
    R::new("h1-accept-payload-with-any-method", Sections::GLOBAL, "", "allows bodies in HTTP/1.0 GET, HEAD and DELETE", check::none)
        .ignored("requests whose length can be read in two ways stay refused"),
    R::new("h1-case-adjust", Sections::GLOBAL, "<from> <to>", "writes a header's name in another case", |global, args, _| {
        let (from, to) = (args.text("<from> and <to>")?, args.text("<from> and <to>")?);
        if !from.eq_ignore_ascii_case(to) || from.chars().any(|c| c.is_ascii_uppercase()) {
            return Err(args.wrong("'h1-case-adjust' expects the name in lower case, then the same name in another"));
        }
        if global.case_adjust.iter().any(|(known, _)| known == from) {
            return Err(args.wrong(format!("duplicate entry '{from}'")));
        }
        global.case_adjust.push((from.to_owned(), to.to_owned()));
        args.end()
    })
    .examples("h1-case-adjust content-length Content-Length", "h1-case-adjust a b"),
    R::new("h1-case-adjust-file", Sections::GLOBAL, "<hdrs-file>", "the same from a file", case_file)
        .examples("h1-case-adjust-file /etc/headers", "h1-case-adjust-file"),
    R::new("h1-do-not-close-on-insecure-transfer-encoding", Sections::GLOBAL, "", "keeps connections that could be smuggled on", check::none)
        .ignored("requests whose length can be read in two ways stay refused"),
    R::new("h2-workaround-bogus-websocket-clients", Sections::GLOBAL, "", "hides WebSocket over HTTP/2", |global, args, _| {
        args.end()?;
        global.tune.h2.offers_websocket = args.prefix == Prefix::No;
        Ok(())
    })
    .examples("h2-workaround-bogus-websocket-clients", "h2-workaround-bogus-websocket-clients x")
    .with_no(),
    R::new("harden.reject-privileged-ports.quic", Sections::GLOBAL, "on | off", "refuses QUIC clients on low ports", check::on_off)
        .examples("harden.reject-privileged-ports.quic on", "harden.reject-privileged-ports.quic x")
        .ignored("acts on QUIC only"),
    R::new("harden.reject-privileged-ports.tcp", Sections::GLOBAL, "on | off", "refuses clients on low ports", |_, args, context| {
        if args.choice(&[("on", true), ("off", false)])? {
            context.unimplemented("harden.reject-privileged-ports.tcp", "", args.keyword_span());
        }
        args.end()
    })
    .examples("harden.reject-privileged-ports.tcp off", "harden.reject-privileged-ports.tcp x"),
    R::new("limited-quic", Sections::GLOBAL, "", "QUIC with limited libraries", check::none).ignored("acts on QUIC only"),
    R::new("lua-prepend-path", Sections::GLOBAL, "<string> [<type>]", "where scripts look for others", check::lua_path)
        .examples("lua-prepend-path /etc/?.lua", "lua-prepend-path")
        .ignored("acts on Lua only"),
    R::new("pp2-never-send-local", Sections::GLOBAL, "", "probes send PROXY headers of a proxied connection", check::none).unimplemented("the PROXY protocol in health checks"),
    R::new("presetenv", Sections::GLOBAL, "<name> <value>", "sets a variable that is not set", check::any).examples("presetenv A b", "presetenv A"),
    R::new("profiling.memory", Sections::GLOBAL, "on | off", "counts allocations", check::one)
        .examples("profiling.memory on", "")
        .ignored("profilers of the system do it"),
    R::new("profiling.tasks", Sections::GLOBAL, "auto | on | off", "measures tasks", check::profiling)
        .examples("profiling.tasks auto", "")
        .ignored("profilers of the system do it"),
    R::new("resetenv", Sections::GLOBAL, "[<name> ...]", "removes all variables but these", check::any).examples("resetenv A", ""),
    R::new("set-var", Sections::GLOBAL, "<var-name> <expr>", "sets a variable of the process", |global, args, context| {
        let name = variable(args)?;
        let expr = args.expr("an expression")?;
        expr.available(Phase::Config).map_err(|error| args.wrong(error.to_string()))?;
        refuse_files(args, &expr.references())?;
        context.check_expr(&expr, args.span());
        global.variables.push(ProcessVariable { name, source: VariableSource::Expr(expr) });
        args.end()
    })
    .examples("set-var proc.a int(1)", "set-var proc.a"),
    R::new("set-var-fmt", Sections::GLOBAL, "<var-name> <fmt>", "sets a variable of the process from a format", |global, args, context| {
        let name = variable(args)?;
        let format = args.format("a format", ballast_expr::Usage::Text)?;
        format.available(Phase::Config).map_err(|error| args.wrong(error.to_string()))?;
        refuse_files(args, &format.references())?;
        context.check_format(&format, args.span());
        global.variables.push(ProcessVariable { name, source: VariableSource::Format(format) });
        args.end()
    })
    .examples("set-var-fmt proc.a abc", "set-var-fmt proc.a"),
    R::new("setenv", Sections::GLOBAL, "<name> <value>", "sets a variable", check::any).examples("setenv A b", "setenv A"),
    R::new("shm-stats-file", Sections::GLOBAL, "<path>", "counters shared between processes", check::one)
        .examples("shm-stats-file /dev/shm/s", "shm-stats-file")
        .unimplemented("files of statistics"),
    R::new("shm-stats-file-max-objects", Sections::GLOBAL, "<number>", "objects in that file", check::amount)
        .examples("shm-stats-file-max-objects 100", "shm-stats-file-max-objects x")
        .unimplemented("files of statistics"),
    R::new("unsetenv", Sections::GLOBAL, "[<name> ...]", "removes variables", check::any).examples("unsetenv A", ""),
];

/// Lists and maps are loaded by the proxies that use them.
fn refuse_files(args: &Args<'_>, references: &[ExpressionReference]) -> Result<(), Diagnostic> {
    let is_file = |one: &ExpressionReference| {
        matches!(
            one,
            ExpressionReference::MapFile(_) | ExpressionReference::PatternFile(_)
        )
    };
    if references.iter().any(is_file) {
        return Err(args.wrong(format!(
            "'{}' : maps are not available here",
            args.keyword()
        )));
    }
    Ok(())
}

/// A variable of the whole process.
fn variable(args: &mut Args<'_>) -> Result<VarName, Diagnostic> {
    let name = args.text("a variable and what it is set to")?;
    let parsed = VarName::parse(name).map_err(|error| {
        let what = format!("error in the variable of '{}'", args.keyword());
        args.expr_error(args.position() - 1, &error, &what)
    })?;
    if parsed.scope == VarScope::Proc {
        return Ok(parsed);
    }
    Err(args.wrong(format!(
        "'{}' : variable '{name}' does not begin with 'proc.'",
        args.keyword()
    )))
}

/// Lines of `<from> <to>`; empty lines and those that begin with `#` are skipped.
fn case_file(
    global: &mut Global,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.word("a file name")?;
    let bytes = context.read(word.text(), "h1-case-adjust-file", word.span())?;
    args.end()?;
    for (at, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (from, to) = case_line(line, &global.case_adjust).map_err(|message| {
            let location = format!("h1-case-adjust-file '{}' : {message}", word.text());
            let at = at + 1;
            Diagnostic::alert("bad-value", format!("{location} at line {at}.")).at(word.span())
        })?;
        global.case_adjust.push((from.to_owned(), to.to_owned()));
    }
    Ok(())
}

/// A name in lower case and its spelling.
fn case_line<'l>(line: &'l str, known: &[(String, String)]) -> Result<(&'l str, &'l str), String> {
    let (from, to) = line
        .split_once([' ', '\t'])
        .map(|(from, to)| (from, to.trim()))
        .ok_or("expect <to>")?;
    if !from.eq_ignore_ascii_case(to) || from.chars().any(|c| c.is_ascii_uppercase()) {
        return Err("<from> and <to> must not differ except the case".to_owned());
    }
    if known.iter().any(|(name, _)| name == from) {
        return Err(format!("duplicate entry '{from}'"));
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_case_file_names_one_header_twice() {
        let known = [("host".to_owned(), "Host".to_owned())];
        assert_eq!(case_line("x-a \t X-A", &known), Ok(("x-a", "X-A")));
        let cases = [
            ("x-a", "expect <to>"),
            ("X-A X-a", "<from> and <to> must not differ except the case"),
            ("x-a X-B", "<from> and <to> must not differ except the case"),
            (
                "x-a X-A x",
                "<from> and <to> must not differ except the case",
            ),
            ("host HOST", "duplicate entry 'host'"),
        ];
        for (line, message) in cases {
            assert_eq!(case_line(line, &known), Err(message.to_owned()), "{line}");
        }
    }
}
