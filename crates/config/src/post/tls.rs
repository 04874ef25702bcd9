//! TLS of binds and servers, once the whole configuration is known: versions, protocols, what a
//! line cannot do without.
//!
//! Source: HAProxy configuration manual, sections 5.1 and 5.2; the wording is HAProxy's where it
//! has one.

use ballast_model::{
    BindTls, CertificateSource, CheckMethod, CheckRule, HttpProtocol, Mode, ServerTls, TlsOptions,
};
use ballast_syntax::{Diagnostic, Severity, Span};
use ballast_tls::options::VerifyMode;
use ballast_tls::store::is_certificate_file;

use super::report;
use crate::context::Context;
use crate::draft::{BindDraft, ProxyDraft, ServerDraft};
use crate::tls::words::{BindWords, UnspokenFile};
use crate::tls::{Fault, Protocol, VersionRemark};

const H2: &str = "h2";
const HTTP1: &str = "http/1.1";

/// Completes the binds with `ssl`.
pub(super) fn binds(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let mut binds = std::mem::take(&mut draft.binds);
    for bind in binds.iter().filter(|bind| !bind.tls.ssl) {
        let files = files_of_bind(&bind.tls);
        context.declarations.tls.unspoken.extend(files);
    }
    for bind in binds.iter_mut().filter(|bind| bind.tls.ssl) {
        let at = context.file_and_line(bind.span);
        let line = BindLine {
            proxy: &draft.name,
            what: format!("for bind '{}' at [{at}]", bind.tls.argument),
            is_http: draft.common.mode == Mode::Http,
        };
        let mut tls = bind.tls.model();
        if !draft.certificates.lines.is_empty() {
            let list = CertificateSource::List(draft.certificates.clone());
            tls.certificates.push(list);
        }
        line.certificates(bind, &tls, context);
        line.versions(bind, &mut tls.options, context);
        line.verify(&tls, bind.span, context);
        if line.is_http {
            line.protocols(&mut tls.options, bind, context);
        }
        bind.bind.tls = Some(Box::new(tls));
    }
    draft.binds = binds;
}

/// The files that a bind line without `ssl` names.
fn files_of_bind(words: &BindWords) -> Vec<UnspokenFile> {
    let options = &words.options.given;
    let certificates = words.certificates.iter().filter_map(|source| match source {
        CertificateSource::Crt(file) | CertificateSource::DefaultCrt(file) => Some(file.clone()),
        CertificateSource::List(_) => None,
    });
    let authorities = [&options.ca_file, &options.ca_verify_file];
    let mut files: Vec<_> = certificates.map(UnspokenFile::Certificate).collect();
    files.extend(
        authorities
            .into_iter()
            .flatten()
            .cloned()
            .map(UnspokenFile::Authorities),
    );
    files.extend(options.crl_file.clone().map(UnspokenFile::Revocation));
    files.extend(words.ticket_keys.clone().map(UnspokenFile::TicketKeys));
    files
}

/// A bind line, for messages.
struct BindLine<'d> {
    proxy: &'d str,
    /// `for bind ':443' at [t.cfg:7]`.
    what: String,
    is_http: bool,
}

impl BindLine<'_> {
    fn report(
        &self,
        severity: Severity,
        code: &'static str,
        message: &str,
        span: Span,
        context: &mut Context<'_>,
    ) {
        let message = format!("Proxy '{}': {message}", self.proxy);
        report(context, severity, code, message, Some(span));
    }

    fn certificates(&self, bind: &BindDraft, tls: &BindTls, context: &mut Context<'_>) {
        let machine = context.machine;
        let is_empty = |source: &CertificateSource| match source {
            CertificateSource::List(list) => list.lines.is_empty(),
            // A directory that cannot be read is reported when it is loaded.
            CertificateSource::Crt(file) | CertificateSource::DefaultCrt(file) => {
                let names = machine.list(&file.path).ok().flatten();
                names.is_some_and(|names| !names.iter().any(|name| is_certificate_file(name)))
            }
        };
        // The stand-in of a list is empty.
        let is_stand_in = |source: &CertificateSource| match source {
            CertificateSource::List(list) => !context.machine.exists(&list.path),
            _ => false,
        };
        let all = &tls.certificates;
        // One that is not there was reported.
        let is_told = bind.tls.names_certificate && all.is_empty();
        if is_told || !all.iter().all(is_empty) || all.iter().any(is_stand_in) {
            return;
        }
        let message = format!("no SSL certificate specified {}", self.what);
        let (severity, rest) = if tls.strict_sni {
            (
                Severity::Warning,
                ", ssl connections will fail (use 'crt').",
            )
        } else {
            (Severity::Alert, " (use 'crt').")
        };
        let message = format!("{message}{rest}");
        self.report(
            severity,
            "missing-certificate",
            &message,
            bind.span,
            context,
        );
    }

    fn versions(&self, bind: &BindDraft, options: &mut TlsOptions, context: &mut Context<'_>) {
        let what = &self.what;
        let (range, remarks) = match bind.tls.options.versions.range(true) {
            Ok(found) => found,
            Err(fault) => {
                let message = match fault {
                    Fault::AllDisabled => format!("all SSL/TLS versions are disabled {what}."),
                    Fault::TooOld(version) => format!("{} {what}.", too_old(version)),
                };
                self.report(
                    Severity::Alert,
                    "no-tls-version",
                    &message,
                    bind.span,
                    context,
                );
                return;
            }
        };
        (options.version_min, options.version_max) = range;
        for remark in remarks {
            let message = match remark {
                VersionRemark::FlagsIgnored => format!(
                    "no-sslv3/no-tlsv1x are ignored {what}. Use only 'ssl-min-ver' and \
                     'ssl-max-ver' to fix."
                ),
                // Such a ceiling is refused.
                VersionRemark::Ambiguous(_) => continue,
                VersionRemark::Hole(version) => format!(
                    "SSL/TLS versions range not contiguous {what}. Hole find for {}. Use only \
                     'ssl-min-ver' and 'ssl-max-ver' to fix.",
                    version.word()
                ),
            };
            self.report(
                Severity::Warning,
                "odd-tls-versions",
                &message,
                bind.span,
                context,
            );
        }
    }

    fn verify(&self, tls: &BindTls, span: Span, context: &mut Context<'_>) {
        let lacks = |options: &TlsOptions| {
            let asks = options
                .verify
                .is_some_and(|verify| verify != VerifyMode::None);
            asks && options.ca_file.is_none() && options.ca_verify_file.is_none()
        };
        let lists = tls.certificates.iter().filter_map(|source| match source {
            CertificateSource::List(list) => Some(&list.lines),
            _ => None,
        });
        let mut lines = lists.flatten();
        if lacks(&tls.options) || lines.any(|line| lacks(&line.options.inherit(&tls.options))) {
            let message = format!("verify is enabled but no CA file specified {}.", self.what);
            self.report(Severity::Alert, "missing-ca-file", &message, span, context);
        }
    }

    /// Sets the default of `alpn`, and tells of clients that would be offered what is refused then.
    fn protocols(&self, options: &mut TlsOptions, bind: &BindDraft, context: &mut Context<'_>) {
        let protocol = bind.bind.protocol;
        let offered = options
            .alpn
            .get_or_insert_with(|| offered_by_default(protocol));
        let offers_h2 = offered.iter().any(|name| name == H2);
        if protocol == Some(HttpProtocol::Http1) && offers_h2 {
            let message = format!(
                "'proto h1' refuses the clients that choose HTTP/2, which is offered {} (add 'alpn \
                 http/1.1').",
                self.what
            );
            let code = "protocol-refused";
            self.report(Severity::Notice, code, &message, bind.span, context);
        }
    }
}

/// What HTTP frontends offer unless `alpn` or `no-alpn` says otherwise. As HAProxy 3.2 does, `proto h1`
/// does not change it.
fn offered_by_default(protocol: Option<HttpProtocol>) -> Vec<String> {
    let names: &[&str] = match protocol {
        Some(HttpProtocol::Http2) => &[H2],
        Some(HttpProtocol::Http1) | None => &[H2, HTTP1],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn too_old(version: Protocol) -> String {
    format!(
        "{} is the newest version allowed, and none before TLSv1.2 is built in,",
        version.word()
    )
}

/// Completes the servers with `ssl` or probes over TLS.
pub(super) fn servers(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    for one in &mut draft.servers {
        let check = one
            .server
            .checks
            .method
            .as_deref()
            .unwrap_or(&draft.back.check);
        let connects = connects_with_tls(check);
        let words = &one.tls;
        if words.ssl.is_none() && words.check_ssl != Some(true) && !connects {
            let unspoken = &mut context.declarations.tls.unspoken;
            unspoken.extend(words.ca_file.clone().map(UnspokenFile::Authorities));
            unspoken.extend(words.crl_file.clone().map(UnspokenFile::Revocation));
            continue;
        }
        let mut tls = words.model();
        let name = format!("'server {}/{}'", draft.name, one.server.name);
        let checks = &one.server.checks;
        let is_same = checks.address.is_none() && checks.port.is_none();
        tls.probes = words.check_ssl.unwrap_or(tls.traffic && is_same);
        certificate(one, &name, context);
        verify(one, &name, &mut tls, context);
        versions(one, &name, &draft.name, &mut tls, context);
        one.server.tls = Some(Box::new(tls));
    }
}

/// Whether a step of the checks connects with `ssl`.
fn connects_with_tls(check: &CheckMethod) -> bool {
    let (CheckMethod::Http { rules, .. } | CheckMethod::Tcp { rules, .. }) = check else {
        return false;
    };
    let mut rules = rules.iter();
    rules.any(|rule| matches!(rule, CheckRule::Connect(connect) if connect.tls.is_some()))
}

fn certificate(one: &ServerDraft, name: &str, context: &mut Context<'_>) {
    let Some(file) = &one.tls.certificate else {
        return;
    };
    let path = &file.path;
    if context.declarations.tls.loads.contains(path) {
        return;
    }
    let result = context.exists_at(path, || {
        let message = format!(
            "{name} : unable to stat SSL certificate from file '{path}' : No such file or \
             directory."
        );
        let mut alert = Diagnostic::alert("missing-file", message);
        alert.span = one.crt_span.or(one.span);
        alert
    });
    context.report_error(result);
}

fn verify(one: &ServerDraft, name: &str, tls: &mut ServerTls, context: &mut Context<'_>) {
    let is_off = context.declarations.tls.verify_none;
    tls.verify = one.tls.verify.unwrap_or(!is_off);
    // What is named and not there was reported.
    if !tls.verify || one.tls.names_ca_file {
        return;
    }
    let message = if is_off {
        format!("{name} : verify is enabled but no CA file specified.")
    } else {
        format!(
            "{name} : verify is enabled by default but no CA file specified. If you're running on \
             a LAN where you're certain to trust the server's certificate, please set an explicit \
             'verify none' statement on the 'server' line, or use 'ssl-server-verify none' in the \
             global section to disable server-side verifications by default."
        )
    };
    let mut alert = Diagnostic::alert("missing-ca-file", message).help(
        "add 'ca-file <file>' (or '@system-ca'), or 'verify none' where the network is trusted",
    );
    alert.span = one.span;
    context.report(alert);
}

fn versions(
    one: &ServerDraft,
    name: &str,
    backend: &str,
    tls: &mut ServerTls,
    context: &mut Context<'_>,
) {
    let server = &one.server.name;
    let (range, remarks) = match one.tls.versions.range(false) {
        Ok(found) => found,
        Err(fault) => {
            let message = match fault {
                Fault::AllDisabled => format!(
                    "{name} : backend '{backend}': all SSL/TLS versions are disabled for server \
                     '{server}'."
                ),
                Fault::TooOld(version) => {
                    format!("{name} : {} for this server.", too_old(version))
                }
            };
            report(
                context,
                Severity::Alert,
                "no-tls-version",
                message,
                one.span,
            );
            return;
        }
    };
    (tls.version_min, tls.version_max) = range;
    for remark in remarks {
        let message = match remark {
            VersionRemark::FlagsIgnored => format!(
                "{name} : no-sslv3/no-tlsv1x are ignored for this server. Use only 'ssl-min-ver' \
                 and 'ssl-max-ver' to fix."
            ),
            VersionRemark::Ambiguous(_) => continue,
            VersionRemark::Hole(version) => format!(
                "{name} : backend '{backend}': SSL/TLS versions range not contiguous for server \
                 '{server}'. Hole find for {}. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix.",
                version.word()
            ),
        };
        report(
            context,
            Severity::Warning,
            "odd-tls-versions",
            message,
            one.span,
        );
    }
}
