//! The keys of session tickets: those of a file, or those of the process.

use std::sync::Arc;

use ballast_model::{BindTls, TlsFile};
use ballast_tls::shared_store::KEYS_OF_PROCESS;
use ballast_tls::tickets::TicketKeys;

use super::Compiler;

impl Compiler<'_> {
    /// The keys of the tickets of a line, if it gives any. The outer `None`: it was reported why there are none.
    pub(super) fn ticket_keys(&mut self, tls: &BindTls) -> Option<Option<Arc<TicketKeys>>> {
        if !tls.tickets && tls.ticket_keys.is_none() {
            return Some(None);
        }
        let keys = self.known_ticket_keys(tls)?;
        Some(Some(keys).filter(|_| tls.tickets))
    }

    fn known_ticket_keys(&mut self, tls: &BindTls) -> Option<Arc<TicketKeys>> {
        let file = tls.ticket_keys.as_ref();
        let name = file.map_or(KEYS_OF_PROCESS, |file| file.path.as_str());
        if let Some(compiled) = self.ticket_keys.get(name) {
            return Some(Arc::clone(compiled));
        }
        let keys = match (self.former.ticket_keys(name), file) {
            (Some(former), _) => former,
            (None, Some(file)) => self.ticket_keys_of(file)?,
            (None, None) => Arc::new(TicketKeys::random()),
        };
        self.ticket_keys.insert(name.to_owned(), Arc::clone(&keys));
        Some(keys)
    }

    /// The keys of a `tls-ticket-keys` file.
    pub(super) fn ticket_keys_of(&mut self, file: &TlsFile) -> Option<Arc<TicketKeys>> {
        let content = self.files.read(&file.path);
        let read = content.and_then(|content| {
            let keys = content.map(|content| TicketKeys::read(&content));
            keys.transpose().map_err(|error| error.to_string())
        });
        let keys = read.map(|read| self.former.ticket_keys_after(&file.path, read));
        let (missing, error) = match keys {
            Ok(Some(keys)) => return Some(keys),
            Ok(None) => (Some(&file.path), "No such file or directory".to_owned()),
            Err(error) => (None, error),
        };
        let text = format!(
            "'tls-ticket-keys' : unable to load '{}' : {error}",
            file.path
        );
        self.file_problem(&file.origin, missing, text);
        None
    }
}
