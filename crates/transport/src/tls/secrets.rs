//! The secrets of a session, for those who look into its packets (`tune.ssl.keylog`).

use std::cell::RefCell;
use std::fmt;

use rustls::KeyLog;

/// The secrets of a session by their labels in a key log (draft-ietf-tls-keylogfile).
#[derive(Clone, Default)]
pub struct SessionSecrets(Vec<(Box<str>, Box<[u8]>)>);

impl SessionSecrets {
    /// The secret of this label.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|row| *row.0 == *label)?;
        Some(&found.1)
    }
}

impl fmt::Debug for SessionSecrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets are not shown.
        write!(out, "SessionSecrets({})", self.0.len())
    }
}

/// What a configuration logs keys with that has its secrets kept: `key_log` of rustls's
/// configurations. The handshake that is under way on this thread gets them.
#[derive(Debug)]
pub struct SecretKeeper;

thread_local! {
    /// The secrets of the handshake that is stepped through on this thread.
    static SECRETS: RefCell<SessionSecrets> = const { RefCell::new(SessionSecrets(Vec::new())) };
}

impl KeyLog for SecretKeeper {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        SECRETS.with_borrow_mut(|secrets| secrets.0.push((label.into(), secret.into())));
    }
}

/// Moves what was kept since the last call behind `secrets`.
pub(super) fn collect(secrets: &mut SessionSecrets) {
    SECRETS.with_borrow_mut(|kept| secrets.0.append(&mut kept.0));
}
