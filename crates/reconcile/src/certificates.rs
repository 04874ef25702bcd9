//! What commands changed of certificates and keys is written back to their files (`persist`).

use std::sync::Arc;

use ballast_edit::{ConfigFiles, Refusal};
use ballast_model::{CertificateSource, Config};
use ballast_tls::certificate_file_changes::{self, CertificateFileChange};
use ballast_tls::shared_store::SharedStore;
use ballast_tls::store_transaction::{ListEdit, TrustKind};

use crate::reconciler::Reconciler;
use crate::request::ChangeReport;

impl Reconciler {
    /// Writes certificates, authorities, revocation lists and keys of tickets that commands changed.
    /// The report has the files, and what no file can have.
    ///
    /// # Errors
    /// What cannot be written, and what to do. What was written before is in force and on the disk.
    pub(crate) fn write_certificates(&self) -> Result<ChangeReport, Refusal> {
        let generation = self.host.generation();
        let context = &generation.config.global.tls.shared_store;
        let _disk = context.lock_files();
        let mut report = ChangeReport::default();
        self.write_changed_certificates(context, &mut report)?;
        for (kind, word) in [
            (TrustKind::Authorities, "ca-file"),
            (TrustKind::Revocation, "crl-file"),
        ] {
            self.write_trust(context, (kind, word), &mut report);
        }
        self.write_ticket_keys(context, &mut report)?;
        self.write_lists(&generation.config, &mut report)?;
        Ok(report)
    }

    fn write_changed_certificates(
        &self,
        context: &SharedStore,
        report: &mut ChangeReport,
    ) -> Result<(), Refusal> {
        let state = context.copy();
        for stored in state.store.iter().filter(|stored| stored.is_changed()) {
            let certificate = stored.current();
            let name = stored.name();
            match certificate_file_changes::changes(name, &certificate, (&stored.origin(), None)) {
                Ok((changes, origin)) => {
                    self.change_files(&changes, report)?;
                    stored.note_origin(origin);
                    context.lock().note_change();
                }
                Err(why) => report.notes.push_str(&format!("Not written: {why}\n")),
            }
        }
        Ok(())
    }

    /// A directory of authorities cannot be written: it stays as it is in the process.
    fn write_trust(
        &self,
        context: &SharedStore,
        (kind, word): (TrustKind, &str),
        report: &mut ChangeReport,
    ) {
        let changed: Vec<_> = {
            let mut state = context.lock();
            let files = state.trust(kind).files.iter();
            let changed = files.filter(|(_, file)| file.is_changed());
            let changed = changed.filter(|(_, file)| !file.content.is_empty());
            changed
                .map(|(name, file)| (name.clone(), Arc::clone(&file.content)))
                .collect()
        };
        for (name, content) in changed {
            if name.starts_with('@') {
                let note = format!("Not written: {word} {name} is no file of the configuration\n");
                report.notes.push_str(&note);
                continue;
            }
            let change = CertificateFileChange {
                path: name.clone(),
                content: Some(content.pem().into_bytes()),
                is_secret: false,
            };
            if let Err(Refusal(why)) = self.change_files(&[change], report) {
                report
                    .notes
                    .push_str(&format!("Not written: {word} {name}: {why}\n"));
                continue;
            }
            if let Some(file) = context.lock().trust(kind).files.get_mut(&name) {
                file.of_file = Some(content.content_digest());
            }
        }
    }

    fn write_ticket_keys(
        &self,
        context: &SharedStore,
        report: &mut ChangeReport,
    ) -> Result<(), Refusal> {
        let changed: Vec<_> = {
            let state = context.lock();
            let files = state.ticket_keys.iter();
            let changed = files.filter(|(name, keys)| !name.is_empty() && keys.is_changed());
            changed
                .map(|(name, keys)| (name.clone(), Arc::clone(keys)))
                .collect()
        };
        for (path, keys) in changed {
            let (text, digest) = keys.file();
            let change = CertificateFileChange {
                path,
                content: Some(text.into_bytes()),
                is_secret: true,
            };
            self.change_files(&[change], report)?;
            keys.note_of_file(digest);
            context.lock().note_change();
        }
        Ok(())
    }

    /// Writes lines that commands added to crt-lists and removed from them.
    fn write_lists(&self, config: &Config, report: &mut ChangeReport) -> Result<(), Refusal> {
        let context = &config.global.tls.shared_store;
        let edits = context.lock().list_edits.clone();
        let mut lists: Vec<&str> = edits.iter().map(|edit| edit.list.as_str()).collect();
        lists.sort_unstable();
        lists.dedup();
        for list in lists {
            let own: Vec<&ListEdit> = edits.iter().filter(|edit| edit.list == list).collect();
            if !is_file(config, list) {
                own.into_iter()
                    .filter(|edit| !is_in_directory(edit))
                    .for_each(|edit| note_unwritten(edit, report));
                continue;
            }
            let machine = self.host.machine(&ConfigFiles::new());
            let text = machine
                .read(&config.global.tls.bases.path(list))
                .and_then(|text| {
                    let text = String::from_utf8(text);
                    text.map_err(|_| "it is no text".to_owned())
                });
            let text = text.map_err(|why| Refusal(format!("'{list}' cannot be read: {why}.")))?;
            let Some(text) = edited_list(&text, &own, config) else {
                own.into_iter()
                    .for_each(|edit| note_unwritten(edit, report));
                continue;
            };
            let change = CertificateFileChange {
                path: list.to_owned(),
                content: Some(text.into_bytes()),
                is_secret: false,
            };
            self.change_files(&[change], report)?;
            // An edit by command reads the list again.
            let answers = self.controller.machine_answers();
            answers.forget_content(std::iter::once(&*config.global.tls.bases.path(list)));
            let is_written = |edit: &ListEdit| own.contains(&edit);
            context.lock().list_edits.retain(|edit| !is_written(edit));
        }
        Ok(())
    }

    fn change_files(
        &self,
        changes: &[CertificateFileChange],
        report: &mut ChangeReport,
    ) -> Result<(), Refusal> {
        let generation = self.host.generation();
        let bases = &generation.config.global.tls.bases;
        let changes = bases.at_paths(changes);
        let done = self.host.change_certificate_files(&changes);
        done.map_err(Refusal)?;
        for change in changes.iter().filter(|change| change.content.is_some()) {
            if !report.lines.contains(&change.path) {
                report.lines.push(change.path.clone());
            }
        }
        Ok(())
    }
}

/// Whether a start finds the certificate because it is in the directory.
fn is_in_directory(edit: &ListEdit) -> bool {
    let rest = edit.certificate.strip_prefix(&edit.list);
    edit.is_added && edit.words.is_empty() && rest.is_some_and(|rest| rest.starts_with('/'))
}

fn note_unwritten(edit: &ListEdit, report: &mut ChangeReport) {
    let what = if edit.is_added {
        "added to"
    } else {
        "removed from"
    };
    report.notes.push_str(&format!(
        "Not written: '{}' {what} {}: change that list too\n",
        edit.certificate, edit.list
    ));
}

/// Whether a list is a file that lines name, and no directory.
fn is_file(config: &Config, list: &str) -> bool {
    let binds = config.frontends.iter().flat_map(|frontend| &frontend.binds);
    let sources = binds.filter_map(|bind| bind.tls.as_ref());
    let mut sources = sources.flat_map(|tls| &tls.certificates);
    let is_list = |source: &CertificateSource| match source {
        CertificateSource::List(known) => known.path == list,
        CertificateSource::Crt(_) | CertificateSource::DefaultCrt(_) => false,
    };
    !list.starts_with('@') && sources.any(is_list)
}

/// The text of a list with edits. The numbers of all other lines stay: commands tell them. `None`: the
/// file is not the one that commands edited.
fn edited_list(text: &str, edits: &[&ListEdit], config: &Config) -> Option<String> {
    let bases = &config.global.tls.bases;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for edit in edits {
        let at = edit.number.checked_sub(1)?;
        if edit.is_added {
            let line = edit.line.as_deref().unwrap_or(&edit.certificate).trim_end();
            if lines.get(at).is_some_and(|line| !line.trim().is_empty()) {
                lines.insert(at, String::new());
            }
            let count = lines.len().max(edit.number);
            lines.resize(count, String::new());
            line.clone_into(&mut lines[at]);
            continue;
        }
        let known = lines.get_mut(at)?;
        // A list whose last line has no end may have been cut.
        let whole = format!("{known}\n");
        let read = ballast_config::certificate_list(&edit.list, &whole, bases).ok()?;
        let [line] = &read.lines[..] else {
            return None;
        };
        if line.certificate.path != edit.certificate || line.words() != edit.words {
            return None;
        }
        known.clear();
    }
    let mut text = lines.join("\n");
    text.push('\n');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(is_added: bool, number: usize, certificate: &str, words: &str) -> ListEdit {
        ListEdit {
            is_added,
            list: "list".to_owned(),
            number,
            certificate: certificate.to_owned(),
            words: words.to_owned(),
            line: is_added.then(|| format!("{certificate}{words}")),
        }
    }

    #[test]
    fn lines_of_a_list_keep_their_numbers() {
        let text = "a.pem\n# one\nb.pem x.test\n# the end\n";
        let edited = |edits: &[ListEdit]| {
            let edits: Vec<&ListEdit> = edits.iter().collect();
            edited_list(text, &edits, &Config::default())
        };
        let added = edit(true, 4, "c.pem", " c.test");
        let expected = "a.pem\n# one\nb.pem x.test\nc.pem c.test\n# the end\n";
        assert_eq!(
            edited(std::slice::from_ref(&added)).as_deref(),
            Some(expected)
        );
        let removed = edit(false, 3, "b.pem", " x.test");
        let expected = "a.pem\n# one\n\n# the end\n";
        assert_eq!(
            edited(std::slice::from_ref(&removed)).as_deref(),
            Some(expected)
        );
        // The place of a line that was removed is taken again.
        let again = edit(true, 3, "d.pem", "");
        let expected = "a.pem\n# one\nd.pem\n# the end\n";
        assert_eq!(edited(&[removed, again]).as_deref(), Some(expected));
        let late = edit(true, 7, "d.pem", "");
        let expected = "a.pem\n# one\nb.pem x.test\n# the end\n\n\nd.pem\n";
        assert_eq!(edited(&[late]).as_deref(), Some(expected));
        for other in [
            edit(false, 3, "b.pem", " y.test"),
            edit(false, 2, "b.pem", " x.test"),
            edit(false, 9, "b.pem", " x.test"),
            edit(false, 0, "b.pem", " x.test"),
        ] {
            assert_eq!(edited(&[other]), None);
        }
    }
}
