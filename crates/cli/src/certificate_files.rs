//! Files with certificates and keys are written.

use std::io::ErrorKind;
use std::path::Path;

use ballast_net::{FileChange, change_files};
use ballast_tls::certificate_file_changes::CertificateFileChange;

/// Carries out changes in their order, each in one step: a start after any of them finds what was
/// there before, or what is there after. It blocks for as long as the disk takes.
///
/// # Errors
/// What failed, and what to do. No file was changed, unless a disk fails between two steps.
pub fn change_certificate_files(changes: &[CertificateFileChange]) -> Result<(), String> {
    let changes: Vec<FileChange<'_>> = changes
        .iter()
        .map(|change| FileChange {
            path: Path::new(&change.path),
            content: change.content.as_deref(),
            is_secret: change.is_secret,
        })
        .collect();
    change_files(&changes).map_err(|error| {
        let advice = match error.io().kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "let the process write to the directory"
            }
            ErrorKind::NotFound => "make the directory",
            _ => "mend that",
        };
        format!("{error}: {advice}, or set 'persist off', and try again.")
    })
}
