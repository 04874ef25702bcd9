//! A certificate as its files have it: what is written where a command changed it.
//!
//! The changes are carried out in their order. After each of them a start finds the old certificate
//! or the new one: the key and the certificate are in one file while two files are replaced.

use crate::certificate::{Certificate, CertificateParts};
use crate::pem::write_pem;
use crate::pkcs8::private_key_pem;
use crate::store::{CertificateFiles, CertificateOrigin};

/// A file that gets another content, or goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateFileChange {
    /// Its path.
    pub path: String,
    /// What it will have; `None`: it is removed.
    pub content: Option<Vec<u8>>,
    /// Only its owner may read it.
    pub is_secret: bool,
}

/// The files of a certificate that came with a command, as they are looked for at a start; `None`:
/// its name is no path.
#[must_use]
pub fn files_of_name(name: &str) -> Option<CertificateFiles> {
    (!name.starts_with('@')).then(|| CertificateFiles {
        certificate: Some(name.to_owned()),
        key: Some(name.to_owned()),
        ocsp: Some(format!("{name}.ocsp")),
        issuer: None,
        sctl: Some(format!("{name}.sctl")),
    })
}

/// What is written for a certificate, and where it comes from then. `former` is what its files have,
/// where that is known.
///
/// # Errors
/// Why no file can have it.
pub fn changes(
    name: &str,
    certificate: &Certificate,
    (origin, former): (&CertificateOrigin, Option<&Certificate>),
) -> Result<(Vec<CertificateFileChange>, CertificateOrigin), String> {
    let files = match &origin.files.certificate {
        Some(_) => origin.files.clone(),
        None => files_of_name(name).ok_or_else(|| format!("'{name}' is no name of a file"))?,
    };
    let Some(path) = files.certificate.clone() else {
        return Err(format!("'{name}' is no name of a file"));
    };
    // As at a start: an issuer is looked for where a response is.
    let looked_for = files.ocsp == Some(format!("{path}.ocsp"));
    let issuer_file = files.issuer.clone();
    let issuer_file = issuer_file.or_else(|| looked_for.then(|| format!("{path}.issuer")));
    let new = certificate.parts();
    let old = former.map(Certificate::parts);
    let key = new.key.as_ref().and_then(|key| {
        let leaf = new.certificates.first()?;
        private_key_pem(key.der()?, leaf)
    });
    let key = key.ok_or_else(|| format!("the key of '{name}' cannot be written"))?;
    let mut plan = WritePlan(Vec::new());
    // A response for another certificate could refuse a start: it goes first, and comes last.
    let staple = |parts: &CertificateParts| (parts.ocsp.clone(), parts.certificates.clone());
    let is_stapled_anew = old.as_ref().map(staple) != Some(staple(&new));
    if let Some(ocsp) = files.ocsp.as_ref().filter(|_| is_stapled_anew) {
        plan.remove(ocsp);
    }
    let chain: String = new
        .certificates
        .iter()
        .map(|der| write_pem("CERTIFICATE", der))
        .collect();
    let both = format!("{key}{chain}").into_bytes();
    match files.key.as_ref().filter(|file| **file != path) {
        None => plan.replace(&path, both, true),
        Some(file) => {
            let der = |parts: &CertificateParts| {
                let key = parts.key.as_ref();
                key.and_then(|key| Some(key.der()?.secret_der().to_vec()))
            };
            if old.as_ref().and_then(der) != der(&new) {
                plan.replace(&path, both, true);
                plan.replace(file, key.into_bytes(), true);
            }
            plan.replace(&path, chain.into_bytes(), true);
        }
    }
    let issuer = |parts: &CertificateParts| {
        let der = parts.issuer.as_ref();
        der.map(|der| write_pem("CERTIFICATE", der).into_bytes())
    };
    plan.side(
        (name, "issuer", issuer_file.as_ref()),
        old.as_ref().map(issuer),
        issuer(&new),
    )?;
    let sctl = |parts: &CertificateParts| parts.sctl.as_ref().map(|sctl| sctl.to_vec());
    plan.side(
        (name, "sctl", files.sctl.as_ref()),
        old.as_ref().map(sctl),
        sctl(&new),
    )?;
    if is_stapled_anew && let Some(ocsp) = &new.ocsp {
        plan.side(
            (name, "ocsp", files.ocsp.as_ref()),
            None,
            Some(ocsp.to_vec()),
        )?;
    }
    let issuer = issuer_file.filter(|_| files.issuer.is_some() || new.ocsp.is_some());
    let origin = CertificateOrigin {
        files: CertificateFiles { issuer, ..files },
        files_digest: Some(certificate.content_digest()),
    };
    Ok((plan.0, origin))
}

/// The changes for a certificate that is deleted: the certificate first, so that no key is asked for.
#[must_use]
pub fn removals(files: &CertificateFiles) -> Vec<CertificateFileChange> {
    let mut plan = WritePlan(Vec::new());
    let all = [
        &files.certificate,
        &files.key,
        &files.ocsp,
        &files.issuer,
        &files.sctl,
    ];
    for path in all.into_iter().flatten() {
        if plan.0.iter().all(|change| change.path != *path) {
            plan.remove(path);
        }
    }
    plan.0
}

struct WritePlan(Vec<CertificateFileChange>);

impl WritePlan {
    fn replace(&mut self, path: &str, content: Vec<u8>, is_secret: bool) {
        self.0.push(CertificateFileChange {
            path: path.to_owned(),
            content: Some(content),
            is_secret,
        });
    }

    fn remove(&mut self, path: &str) {
        self.0.push(CertificateFileChange {
            path: path.to_owned(),
            content: None,
            is_secret: false,
        });
    }

    /// A file beside the certificate. `old` is what it has, where that is known.
    fn side(
        &mut self,
        (name, what, path): (&str, &str, Option<&String>),
        old: Option<Option<Vec<u8>>>,
        new: Option<Vec<u8>>,
    ) -> Result<(), String> {
        if old.as_ref() == Some(&new) {
            return Ok(());
        }
        match (path, new) {
            (Some(path), Some(content)) => self.replace(path, content, false),
            (Some(path), None) => self.remove(path),
            (None, Some(_)) => return Err(format!("no line names a file for '{name}.{what}'")),
            (None, None) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
