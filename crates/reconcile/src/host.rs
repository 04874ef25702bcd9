//! The process around the reconciler.

use std::sync::Arc;

use ballast_config::Machine;
use ballast_edit::ConfigFiles;
use ballast_engine::{Generation, Registry, Server};
use ballast_health::{Effect, Health};
use ballast_syntax::Severity;
use ballast_tls::certificate_file_changes::CertificateFileChange;

use crate::request::ConfigInput;

/// What the reconciler asks of the process around it: files and the machine, the servers that are
/// probed, the frontends that listen, and a console.
pub trait ReconcilerHost: Send + Sync {
    /// The generation in force.
    fn generation(&self) -> Arc<Generation>;

    /// Puts `next` in force; returns the generation that was. Workers change to it as participants
    /// commit.
    fn put_in_force(&self, next: Arc<Generation>) -> Arc<Generation>;

    /// The registry.
    fn registry(&self) -> &Registry;

    /// How many connections the descriptors of the start allow.
    fn connection_count_hard_max(&self) -> u32;

    /// The files of the start, or a source in their place.
    ///
    /// # Errors
    /// The file that cannot be read, as HAProxy says it.
    fn files(&self, source: Option<ConfigInput>) -> Result<ConfigFiles, String>;

    /// The machine, as a configuration in these files asks about it.
    fn machine(&self, files: &ConfigFiles) -> Box<dyn Machine>;

    /// The content of a state file.
    ///
    /// # Errors
    /// The error of the system.
    fn state_file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Replaces files, each in one step.
    ///
    /// # Errors
    /// The error of the system. Some of the files may have been replaced.
    fn write_files(&self, files: &ConfigFiles) -> Result<(), String>;

    /// Changes files with certificates and keys, each in one step and in their order.
    ///
    /// # Errors
    /// What failed, and what to do.
    fn change_certificate_files(&self, changes: &[CertificateFileChange]) -> Result<(), String>;

    /// Changes the health of a server, and carries out the effects. False when there is no such
    /// server, or probes have not begun.
    fn change_health(
        &self,
        backend: &str,
        server: &str,
        change: &mut dyn FnMut(&mut Health, u64) -> Vec<Effect>,
    ) -> bool;

    /// A server has another address: probes use it.
    fn server_moved(&self, server: &Arc<Server>);

    /// Updates the servers that track others.
    fn update_tracking_servers(&self);

    /// Has a frontend refuse clients until it is resumed. False when it cannot; the log says why.
    fn pause_frontend(&self, name: &str) -> bool;

    /// Has a paused frontend listen again. False when it cannot; the log says why.
    fn resume_frontend(&self, name: &str) -> bool;

    /// Closes the sockets of a frontend.
    fn shut_frontend(&self, name: &str);

    /// Accepts clients that wait because of a limit that was raised.
    fn limits_changed(&self);

    /// A reload is through: what it needed, and large lists that went with it, were freed.
    fn memory_was_freed(&self);

    /// Prints a warning on the console.
    fn warn(&self, text: &str);

    /// Prints an alert on the console.
    fn alert(&self, text: &str);

    /// Prints a message on the console, and logs it to the targets of the global section.
    fn log(&self, severity: Severity, text: &str);

    /// Replaces the text of `show startup-logs`: files were read again.
    fn set_startup_log(&self, log: String);
}

/// The machine and the console of a start.
pub struct StartHost<'h> {
    /// The machine.
    pub machine: &'h dyn Machine,
    /// Reads a state file.
    pub state_file: &'h dyn Fn(&str) -> Result<Vec<u8>, String>,
    /// Prints a warning on the console.
    pub warn: &'h dyn Fn(&str),
}
