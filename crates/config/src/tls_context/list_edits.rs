//! What commands have done to crt-lists and directories, on bind lines that are compiled again.

use std::sync::Arc;

use ballast_model::{BindTls, CertificateListLine, Origin};
use ballast_syntax::Severity;
use ballast_tls::bind::{BindCertificates, BindEntry, ListRow};
use ballast_tls::store::LoadOptions;
use ballast_tls::store_transaction::ListEdit;

use super::translate::filters_of;
use super::{Compiler, TlsSettingsByOptions};

impl Compiler<'_> {
    /// The certificates of a line, with what commands have done to its lists.
    pub(super) fn with_list_edits(
        &mut self,
        tls: &BindTls,
        certificates: BindCertificates,
        known: &mut TlsSettingsByOptions,
    ) -> BindCertificates {
        let edits = std::mem::take(&mut self.list_edits);
        let mut entries = certificates.entries().to_vec();
        let own = edits
            .iter()
            .filter(|edit| certificates.lists().contains(&edit.list));
        let mut edited = false;
        for edit in own {
            edited = true;
            if !edit.is_added {
                entries.retain(|entry| !edit.is_about(entry));
            } else if !entries.iter().any(|entry| edit.is_about(entry)) {
                entries.extend(self.added_entry(tls, edit, known));
            }
        }
        self.list_edits = edits;
        match edited {
            true => certificates.with_entries(entries),
            false => certificates,
        }
    }

    /// The entry of a line that a command added; `None` where it can no longer be.
    fn added_entry(
        &mut self,
        tls: &BindTls,
        edit: &ListEdit,
        known: &mut TlsSettingsByOptions,
    ) -> Option<BindEntry> {
        let line = match &edit.line {
            None => Ok(CertificateListLine::default()),
            Some(text) => crate::certificate_list("CLI", text, &self.bases)
                .and_then(|read| read.lines.into_iter().last().ok_or_else(String::new)),
        };
        let loaded = line.and_then(|line| {
            let loaded = self
                .store
                .load(self.files, &edit.certificate, &LoadOptions::default());
            loaded
                .map(|stored| (line, stored))
                .map_err(|error| error.to_string())
        });
        let (line, certificate) = match loaded {
            Ok(loaded) => loaded,
            Err(why) => {
                let ListEdit {
                    list, certificate, ..
                } = edit;
                let text = format!("'{certificate}', which a command added to '{list}': {why}");
                self.report(Severity::Warning, &Origin::default(), text);
                return None;
            }
        };
        let options = line.options.inherit(&tls.options);
        let tls_settings = self.tls_settings(tls, &options, &Origin::default(), known)?;
        Some(BindEntry {
            certificate,
            filters: (!line.filters.is_empty()).then(|| filters_of(&line.filters)),
            is_default: false,
            tls_settings,
            row: Some(Arc::new(ListRow {
                list: edit.list.as_str().into(),
                number: edit.number,
                words: edit.words.clone(),
            })),
        })
    }
}
