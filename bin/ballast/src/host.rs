//! The process around the reconciler.

use std::sync::{Arc, OnceLock};

use ballast_cli::Control as _;
use ballast_config::Machine;
use ballast_edit::{ConfigFiles, NO_FILE};
use ballast_engine::{Generation, Registry, Server};
use ballast_health::{Effect, Health};
use ballast_log::Level;
use ballast_net::is_memory_short;
use ballast_reconcile::{ConfigInput, ReconcilerHost, STATE_FILE_BYTES_MAX};
use ballast_stats::StatsHost as _;
use ballast_syntax::Severity;
use ballast_tls::certificate_file_changes::CertificateFileChange;

use crate::args::Options;
use crate::instance::Instance;
use crate::machine::{LocalMachine, regular_content};
use crate::{config_files, console, file_helper};

/// The process that serves.
#[derive(Debug)]
pub(crate) struct ServingProcess {
    pub(crate) instance: Arc<Instance>,
    pub(crate) options: Options,
}

impl ReconcilerHost for ServingProcess {
    fn generation(&self) -> Arc<Generation> {
        self.instance.generation()
    }

    fn put_in_force(&self, next: Arc<Generation>) -> Arc<Generation> {
        self.instance.generation.swap(next)
    }

    fn registry(&self) -> &Registry {
        &self.instance.registry
    }

    fn connection_count_hard_max(&self) -> u32 {
        self.instance.facts.connection_count_hard_max
    }

    fn files(&self, source: Option<ConfigInput>) -> Result<ConfigFiles, String> {
        if is_memory_short() {
            return Err("Memory is short: nothing is read until there is some again.".to_owned());
        }
        match source {
            Some(ConfigInput::Text(text)) => Ok(vec![(NO_FILE.to_owned(), text)]),
            Some(ConfigInput::File(name)) => config_files::read(&[name]),
            None => config_files::read(&self.options.files),
        }
    }

    fn machine(&self, files: &ConfigFiles) -> Box<dyn Machine> {
        Box::new(machine(&self.options, files).of_running_process())
    }

    fn state_file(&self, path: &str) -> Result<Vec<u8>, String> {
        state_file(path)
    }

    fn write_files(&self, files: &ConfigFiles) -> Result<(), String> {
        file_helper::write_files(files)
    }

    fn change_certificate_files(&self, changes: &[CertificateFileChange]) -> Result<(), String> {
        file_helper::change_certificate_files(changes)
    }

    fn change_health(
        &self,
        backend: &str,
        server: &str,
        change: &mut dyn FnMut(&mut Health, u64) -> Vec<Effect>,
    ) -> bool {
        self.instance.change_health(backend, server, change)
    }

    fn server_moved(&self, server: &Arc<Server>) {
        if let Some(health_controller) = self.instance.health_controller() {
            health_controller.address_changed(server);
        }
    }

    fn update_tracking_servers(&self) {
        if let Some(health_controller) = self.instance.health_controller() {
            health_controller.update_tracking_servers();
        }
    }

    fn pause_frontend(&self, name: &str) -> bool {
        self.instance.pause_frontend(name).is_ok()
    }

    fn resume_frontend(&self, name: &str) -> bool {
        self.instance.resume_frontend(name).is_ok()
    }

    fn shut_frontend(&self, name: &str) {
        self.instance.shut_frontend(name);
    }

    fn memory_was_freed(&self) {
        ballast_net::give_back_free_memory();
    }

    fn limits_changed(&self) {
        self.instance.limits_changed();
    }

    fn warn(&self, text: &str) {
        console::warn(text);
    }

    fn alert(&self, text: &str) {
        console::alert(text);
    }

    fn log(&self, severity: Severity, text: &str) {
        console::message(severity, text);
        let level = match severity {
            Severity::Alert => Level::Alert,
            Severity::Warning => Level::Warning,
            _ => Level::Notice,
        };
        self.instance.log_of_process(level, text);
    }

    fn set_startup_log(&self, log: String) {
        self.instance.set_startup_log(log);
    }
}

/// The machine, as a configuration in these files asks about it.
pub(crate) fn machine(options: &Options, files: &ConfigFiles) -> LocalMachine {
    // `HAPROXY_CFGFILES` names the files of the start, whatever is applied later, or each configuration
    // from elsewhere would change the environment. Text of commands has no file.
    static FILES_OF_START: OnceLock<Vec<String>> = OnceLock::new();
    let names = FILES_OF_START.get_or_init(|| {
        let named = files.iter().map(|(name, _)| name);
        named.filter(|name| *name != NO_FILE).cloned().collect()
    });
    LocalMachine::new(names, options.local_peer.as_deref(), options.master_worker)
}

/// The content of a state file: of the machine, or of the answers that were recorded.
pub(crate) fn state_file(path: &str) -> Result<Vec<u8>, String> {
    regular_content(path, STATE_FILE_BYTES_MAX)
}
