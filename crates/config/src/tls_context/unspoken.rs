//! Files that lines name which do not speak TLS: they are read all the same, so that a file that is wrong is told
//! before somebody adds `ssl`.

use super::Compiler;
use crate::tls::words::UnspokenFile;

impl Compiler<'_> {
    /// Reads such files, and reports what is wrong with them.
    pub(super) fn unspoken(&mut self, files: &[UnspokenFile]) {
        for file in files {
            match file {
                UnspokenFile::Certificate(file) => {
                    let loaded = self.store.load_crt(self.files, &file.path);
                    self.loaded("crt", &file.origin, loaded);
                }
                UnspokenFile::Authorities(source) => {
                    self.authorities(Some(source));
                }
                UnspokenFile::Revocation(file) => {
                    self.revocation(Some(file));
                }
                UnspokenFile::TicketKeys(file) => {
                    self.ticket_keys_of(file);
                }
            }
        }
    }
}
