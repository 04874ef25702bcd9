//! The process that a configuration is put in force in.

use std::sync::Arc;

use ballast_config::Surroundings;
use ballast_edit::Files;
use ballast_engine::{Generation, Registry, Server};
use ballast_health::{Effect, Health};

use crate::request::Source;

/// What the reconciler asks of the process around it: files and the machine, the servers that are
/// probed, the frontends that listen, and a console.
pub trait Host: Send + Sync {
    /// What is in force.
    fn generation(&self) -> Arc<Generation>;

    /// Has `next` be what is in force; answers what was. Workers go over to it as participants
    /// commit.
    fn put_in_force(&self, next: Arc<Generation>) -> Arc<Generation>;

    /// What outlives generations.
    fn registry(&self) -> &Registry;

    /// Connections that the descriptors of the start allow.
    fn connection_count_hard_max(&self) -> u32;

    /// The files of the start, or what is read in their place.
    ///
    /// # Errors
    /// What cannot be read, as HAProxy says it.
    fn files(&self, source: Option<Source>) -> Result<Files, String>;

    /// The machine, as a configuration in these files asks about it.
    fn surroundings(&self, files: &Files) -> Box<dyn Surroundings>;

    /// The content of a state file.
    ///
    /// # Errors
    /// What the system said.
    fn state_file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Replaces files, each in one step.
    ///
    /// # Errors
    /// What the system said. Some of the files may have been replaced.
    fn write_files(&self, files: &Files) -> Result<(), String>;

    /// Tells the health of a server something, and has all that follows done. False when there is
    /// no such server, or nobody probes yet.
    fn tell(
        &self,
        backend: &str,
        server: &str,
        say: &mut dyn FnMut(&mut Health, u64) -> Vec<Effect>,
    ) -> bool;

    /// A server has another address: it is probed there.
    fn moved(&self, server: &Arc<Server>);

    /// Has servers that track others follow what these were told.
    fn settle_tracking(&self);

    /// Has a frontend refuse clients until it is resumed. False when that cannot be done; why is
    /// in the log.
    fn pause_frontend(&self, name: &str) -> bool;

    /// Has a paused frontend listen again. False when that cannot be done; why is in the log.
    fn resume_frontend(&self, name: &str) -> bool;

    /// Closes the sockets of a frontend.
    fn shut_frontend(&self, name: &str);

    /// Lets in who waits because of a limit that was raised.
    fn limits_changed(&self);

    /// Says a warning on the console.
    fn warn(&self, text: &str);

    /// Says an alert on the console.
    fn alert(&self, text: &str);

    /// Files were read again, and this was said: `show startup-logs`.
    fn was_said(&self, log: String);
}
