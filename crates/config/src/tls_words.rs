//! Functions that rows of TLS words share: files that must exist, notices about old versions.

use ballast_model::{AuthoritySource, FileBases, TlsFile};
use ballast_syntax::{Diagnostic, Severity, Span};

use crate::args::Args;
use crate::context::Context;
use crate::tls::{Options, PLAIN, Protocol};

/// What files that make up a bundle end in.
const BUNDLE: [&str; 3] = ["rsa", "dsa", "ecdsa"];

/// No argument.
///
/// # Errors
/// Never.
pub(crate) fn no_argument<C>(
    _: &mut C,
    _: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    Ok(())
}

/// One argument of any form.
///
/// # Errors
/// When it is missing.
pub(crate) fn any_argument<C>(
    _: &mut C,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    args.text("an argument").map(|_| ())
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

/// Takes the value of a word; `what` completes "missing".
///
/// # Errors
/// When there is none.
pub(crate) fn value<'a>(args: &mut Args<'a>, what: &str) -> Result<&'a str, Diagnostic> {
    match args.next() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => {
            let message = format!("'{}' : missing {what}", args.keyword());
            Err(Diagnostic::alert("missing-argument", message).at(args.keyword_span()))
        }
    }
}

/// Applies a word that bind lines and lines of a crt-list share.
///
/// # Errors
/// When its value is missing or wrong, or a file is not there.
pub(crate) fn option(
    options: &mut Options,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.keyword();
    let value = if PLAIN.contains(&word) {
        None
    } else {
        args.next()
    };
    let span = args.keyword_span();
    let origin = context.origin(span);
    let bases = context.bases();
    let set = options.set(word, value, &bases, &origin);
    set.map_err(|message| args.wrong(message))?;
    match word {
        "ca-file" => authorities_exist(options.given.ca_file.as_ref(), word, span, context),
        "ca-verify-file" => {
            authorities_exist(options.given.ca_verify_file.as_ref(), word, span, context)
        }
        "crl-file" => file_exists(options.given.crl_file.as_ref(), word, span, context),
        "ciphers" => {
            check_ciphers(word, value.unwrap_or_default(), span, context);
            Ok(())
        }
        "ssl-min-ver" => {
            report_old_version(options.versions.min, span, context);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Warns about names of policies in a list of cipher suites.
pub(crate) fn check_ciphers(word: &str, text: &str, span: Span, context: &mut Context<'_>) {
    if text.contains("PROFILE=") {
        let message =
            format!("'{word}' : '{text}' names a policy that only some systems' OpenSSL knows");
        context.warn("unknown-ciphers", message, span);
    }
}

/// Says that a floor below TLS 1.2 is raised.
pub(crate) fn report_old_version(floor: Option<Protocol>, span: Span, context: &mut Context<'_>) {
    let Some(floor) = floor.filter(|floor| *floor < Protocol::Tls12) else {
        return;
    };
    let message = format!(
        "'ssl-min-ver {}' : versions before TLSv1.2 are not built in, TLSv1.2 is the oldest one",
        floor.word()
    );
    context.report(Diagnostic::new(Severity::Notice, "old-tls", message).at(span));
}

/// Checks that authorities are there.
///
/// # Errors
/// When they are not.
pub(crate) fn authorities_exist(
    authorities: Option<&AuthoritySource>,
    word: &str,
    span: Span,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    match authorities {
        Some(AuthoritySource::File(file)) => file_exists(Some(file), word, span, context),
        _ => Ok(()),
    }
}

/// Checks that a file that verifies is there.
///
/// # Errors
/// When it is not.
pub(crate) fn file_exists(
    file: Option<&TlsFile>,
    word: &str,
    span: Span,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let Some(file) = file else {
        return Ok(());
    };
    context.exists_at(&file.path, || {
        let message = format!("'{word}' : unable to load {}", file.path);
        Diagnostic::alert("missing-file", message).at(span)
    })
}

/// Takes the name of a certificate.
///
/// # Errors
/// When there is none.
pub(crate) fn certificate(
    args: &mut Args<'_>,
    context: &Context<'_>,
    what: &str,
) -> Result<TlsFile, Diagnostic> {
    let name = value(args, what)?;
    Ok(TlsFile {
        path: context.bases().certificate(name),
        origin: context.origin(args.keyword_span()),
    })
}

/// Checks that a certificate is there: an entry of a `crt-store` that was read before, a file, a
/// directory, or a bundle.
///
/// # Errors
/// When it is not.
pub(crate) fn certificate_exists(
    file: &TlsFile,
    span: Span,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let path = &file.path;
    if context.declarations.tls.loads.contains(path) {
        return Ok(());
    }
    let mut parts = BUNDLE.iter().map(|end| format!("{path}.{end}"));
    let has_bundle = context.declarations.tls.bundles;
    if has_bundle && parts.any(|part| context.machine.exists(&context.path(&part))) {
        return Ok(());
    }
    context.exists_at(path, || {
        let message = format!(
            "unable to stat SSL certificate from file '{path}' : No such file or directory."
        );
        Diagnostic::alert("missing-file", message).at(span)
    })
}

/// Checks that the files of a line of a crt-list are there.
///
/// # Errors
/// When one is not.
pub(crate) fn line_files_exist(
    line: &ballast_model::CertificateListLine,
    span: Span,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    certificate_exists(&line.certificate, span, context)?;
    let options = &line.options;
    authorities_exist(options.ca_file.as_ref(), "ca-file", span, context)?;
    let verify = options.ca_verify_file.as_ref();
    authorities_exist(verify, "ca-verify-file", span, context)?;
    file_exists(options.crl_file.as_ref(), "crl-file", span, context)?;
    let parts = &line.parts;
    for file in [&parts.key, &parts.ocsp, &parts.issuer, &parts.sctl] {
        part_exists(file.as_ref(), span, context)?;
    }
    Ok(())
}

/// Checks that a part of a certificate is there.
///
/// # Errors
/// When it is not.
pub(crate) fn part_exists(
    file: Option<&TlsFile>,
    span: Span,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let Some(file) = file else {
        return Ok(());
    };
    context.exists_at(&file.path, || {
        let message = format!("'{}' cannot be read or parsed.", file.path);
        Diagnostic::alert("missing-file", message).at(span)
    })
}

impl Context<'_> {
    /// The directories that names of files start from, as far as they are known.
    pub(crate) fn bases(&self) -> FileBases {
        FileBases {
            default_path: self.declarations.base.clone(),
            ..self.declarations.tls.bases.clone()
        }
    }
}
