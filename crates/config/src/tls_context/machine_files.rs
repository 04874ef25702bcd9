//! The files that TLS words name, read from the machine.

use ballast_model::FileBases;
use ballast_tls::files::CertificateFileReader;

use crate::machine::Machine;

/// The files of the machine, as the room of certificates asks for them.
pub(super) struct MachineFiles<'m> {
    pub(super) machine: &'m dyn Machine,
    pub(super) bases: &'m FileBases,
}

impl CertificateFileReader for MachineFiles<'_> {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let path = match path {
            SYSTEM_CA => system_authorities(self.machine),
            name => self.bases.path(name),
        };
        if !self.machine.exists(&path) {
            return Ok(None);
        }
        self.machine.read(&path).map(Some)
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        match path {
            SYSTEM_CA => Ok(None),
            name => self.machine.list(&self.bases.path(name)),
        }
    }
}

/// Where systems keep the authorities that they trust; the first that exists.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The name of these authorities.
pub(super) const SYSTEM_CA: &str = "@system-ca";

fn system_authorities(machine: &dyn Machine) -> String {
    let found = SYSTEM_AUTHORITIES.iter().find(|path| machine.exists(path));
    (*found.unwrap_or(&SYSTEM_AUTHORITIES[0])).to_owned()
}
