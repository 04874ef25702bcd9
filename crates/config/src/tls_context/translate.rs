//! Options and files of the model, as the room of certificates takes them.

use ballast_model::{CertificatePartFiles, GlobalTls, NameFilter, ServerTls, TlsFile, TlsOptions};
use ballast_tls::names::NameFilters;
use ballast_tls::options::HandshakeOptions;
use ballast_tls::store::{ExtraFiles, LoadOptions, StoreOptions};

pub(super) fn store_options(global: &GlobalTls) -> StoreOptions {
    let extra = &global.extra_files;
    StoreOptions {
        // The model has whole paths.
        crt_base: None,
        extra: ExtraFiles {
            bundle: extra.bundle,
            key: extra.key,
            ocsp: extra.ocsp,
            issuer: extra.issuer,
            sctl: extra.sctl,
        },
        replaces_ending: extra.replaces_extension,
        skips_self_issued: global.skip_self_issued,
        updates_ocsp: global.ocsp_updates.is_default,
    }
}

pub(super) fn load_options(parts: &CertificatePartFiles) -> LoadOptions {
    let path = |file: &Option<TlsFile>| file.as_ref().map(|file| file.path.clone());
    LoadOptions {
        key: path(&parts.key),
        ocsp: path(&parts.ocsp),
        issuer: path(&parts.issuer),
        sctl: path(&parts.sctl),
        updates_ocsp: parts.ocsp_update,
    }
}

pub(super) fn filters_of(filters: &[NameFilter]) -> NameFilters {
    let mut all = NameFilters::default();
    for filter in filters {
        let mark = if filter.negated { "!" } else { "" };
        all.add(format!("{mark}{}", filter.name).as_bytes());
    }
    all
}

pub(super) fn client_options(tls: &ServerTls) -> HandshakeOptions {
    HandshakeOptions {
        allow_early_data: tls.allow_early_data,
        alpn: tls.alpn.clone(),
        ciphers: tls.ciphers.clone(),
        ciphersuites: tls.ciphersuites.clone(),
        client_signature_algorithms: tls.client_signature_algorithms.clone(),
        curves: tls.curves.clone(),
        ecdhe: None,
        signature_algorithms: tls.signature_algorithms.clone(),
        version_max: tls.version_max,
        version_min: tls.version_min,
    }
}

pub(super) fn handshake_options(options: &TlsOptions) -> HandshakeOptions {
    HandshakeOptions {
        allow_early_data: options.allow_early_data,
        alpn: options.alpn.clone().unwrap_or_default(),
        ciphers: options.ciphers.clone(),
        ciphersuites: options.ciphersuites.clone(),
        // Judged with the certificates of clients, by the verifier.
        client_signature_algorithms: None,
        curves: options.curves.clone(),
        ecdhe: options.ecdhe.clone(),
        signature_algorithms: options.signature_algorithms.clone(),
        version_max: options.version_max,
        version_min: options.version_min,
    }
}
