//! Grammar of TLS words that bind and server lines share.

use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;

/// The base directory of relative file names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BaseDirectory {
    /// `ca-base`.
    Ca,
    /// `crt-base`.
    Crt,
}

/// No argument.
///
/// # Errors
/// Never.
pub(crate) fn none<C>(_: &mut C, _: &mut Args<'_>, _: &mut Context<'_>) -> Result<(), Diagnostic> {
    Ok(())
}

/// One argument of any form.
///
/// # Errors
/// When it is missing.
pub(crate) fn text<C>(
    _: &mut C,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    args.text("an argument").map(|_| ())
}

/// A list of cipher suites.
///
/// # Errors
/// When it is missing.
pub(crate) fn ciphers<C>(
    _: &mut C,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.word("a list of cipher suites")?;
    if word.text().contains("PROFILE=") {
        let message = format!(
            "'{}' : '{}' names a policy that only some systems' OpenSSL knows",
            args.keyword(),
            word.text()
        );
        context.warn("unknown-ciphers", message, word.span());
    }
    Ok(())
}

/// `on` or `off`.
///
/// # Errors
/// When it is neither.
pub(crate) fn on_off<C>(
    _: &mut C,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    args.choice(&[("on", ()), ("off", ())])
}

/// A TLS version's name.
///
/// # Errors
/// When it is none.
pub(crate) fn version<C>(
    _: &mut C,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    args.choice(&[
        ("SSLv3", ()),
        ("TLSv1.0", ()),
        ("TLSv1.1", ()),
        ("TLSv1.2", ()),
        ("TLSv1.3", ()),
    ])
}

/// A file that must exist.
///
/// # Errors
/// When it is missing from the line or the machine.
pub(crate) fn file(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    base: BaseDirectory,
) -> Result<(), Diagnostic> {
    let word = args.word("a file name")?;
    let name = word.text();
    if name.starts_with('@') {
        return Ok(()); // `@system-ca` and the stores of crt-store sections.
    }
    let directory = match base {
        BaseDirectory::Ca => context.names.ca_base.as_deref(),
        BaseDirectory::Crt => context.names.crt_base.as_deref(),
    };
    let path = match directory {
        Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
        _ => name.to_owned(),
    };
    context.exists(&path, args.keyword(), word.span())
}
