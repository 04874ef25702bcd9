//! Files are read as the configuration that follows the one in force.

use std::ops::Range;
use std::sync::Arc;

use ballast_config::{LoadedConfig, Machine, TextOptions};
use ballast_edit::{ConfigFiles, Refusal};
use ballast_expr::Store;
use ballast_model::Config;
use ballast_syntax::{Diagnostic, Severity};
use ballast_tls::shared_store::FormerStore;

use crate::console::console_line;

/// Options of the command line that hold for every configuration.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// `-dW`: warnings refuse the configuration.
    pub zero_warning: bool,
    /// `-dr`: a server whose name does not resolve starts without address.
    pub ignore_resolution_failures: bool,
    /// `-N`: the limit of frontends that set none.
    pub proxy_connection_count_max: Option<u32>,
    /// `-dR`: listening sockets share no address.
    pub no_reuseport: bool,
    /// `-dS`: nothing is spliced.
    pub no_splice: bool,
    /// `-L`: the name of this process among its peers.
    pub local_peer: Option<String>,
}

impl ReadOptions {
    /// Applies them to a configuration.
    pub fn apply(&self, config: &mut Config) {
        if let Some(count) = self.proxy_connection_count_max {
            for frontend in &mut config.frontends {
                Arc::make_mut(frontend)
                    .connection_count_max
                    .get_or_insert(count);
            }
        }
        let global = Arc::make_mut(&mut config.global);
        global.no_reuseport |= self.no_reuseport;
        global.no_splice |= self.no_splice;
        if let Some(name) = &self.local_peer {
            global.localpeer = Some(name.clone());
        }
    }

    /// Makes warnings of names that do not resolve, where the options say so.
    pub fn downgrade_unresolved_names(&self, loaded: &mut LoadedConfig) {
        if !self.ignore_resolution_failures {
            return;
        }
        for found in &mut loaded.diagnostics {
            if found.code == "unresolved-name" && found.severity == Severity::Alert {
                found.severity = Severity::Warning;
                let text = found.message.trim_end_matches('.');
                found.message = format!("{text}, disabling server.");
                found.help = None;
            }
        }
    }
}

/// Which warnings of a configuration are reported.
#[derive(Clone, Debug)]
pub(crate) enum WarningScope {
    /// All of it.
    All,
    /// Those in these bytes of the file at that place. The others were reported before.
    Part(Option<(usize, Range<usize>)>),
}

impl WarningScope {
    fn includes(&self, found: &Diagnostic) -> bool {
        match (self, found.span) {
            (Self::All, _) => true,
            (Self::Part(Some((file, part))), Some(span)) => {
                span.file.index() == *file && part.contains(&span.range().start)
            }
            (Self::Part(_), _) => false,
        }
    }
}

/// Reads a configuration; returns it and the messages about it.
fn load(
    options: &ReadOptions,
    ((patterns, former), machine): ((&Arc<Store>, FormerStore), &dyn Machine),
    files: ConfigFiles,
    warnings: &WarningScope,
) -> (LoadedConfig, String) {
    let config_options = ballast_config::Options {
        former,
        ..ballast_config::Options::default()
    };
    let mut loaded = ballast_config::load_after(patterns, files, machine, config_options);
    options.downgrade_unresolved_names(&mut loaded);
    let is_reported =
        |found: &Diagnostic| found.severity == Severity::Alert || warnings.includes(found);
    loaded.diagnostics.retain(is_reported);
    let pid = std::process::id();
    let mut messages = ballast_config::diagnostics_text(
        &loaded,
        TextOptions {
            pid,
            excerpts: true,
            least: Severity::Warning,
        },
    );
    if loaded.has_alerts() {
        messages.push_str(&ballast_config::closing_lines(&loaded, pid));
    }
    for text in unimplemented(&loaded) {
        messages.push_str(&console_line(Severity::Alert, &text));
    }
    (loaded, messages)
}

/// Whether a configuration listens anywhere. A command socket is enough.
pub fn has_listener(config: &Config) -> bool {
    if !config.global.stats_sockets.is_empty() {
        return true;
    }
    let mut enabled = config
        .frontends
        .iter()
        .filter(|frontend| !frontend.common.disabled);
    enabled.any(|frontend| !frontend.binds.is_empty())
}

/// A message for each word that is checked and not carried out yet.
pub fn unimplemented(loaded: &LoadedConfig) -> impl Iterator<Item = String> {
    loaded.unimplemented.iter().map(|word| {
        let location = word.span.map_or_else(String::new, |span| {
            let at = loaded.sources.locate(span);
            format!("parsing [{}:{}] : ", at.file, at.line)
        });
        format!(
            "config : {location}{}. A start with it is refused.",
            word.message()
        )
    })
}

/// Reads files, and refuses them as a start would; returns the configuration and the warnings.
pub(crate) fn read(
    options: &ReadOptions,
    reader: ((&Arc<Store>, FormerStore), &dyn Machine),
    files: ConfigFiles,
    warnings: &WarningScope,
) -> Result<(LoadedConfig, String), Refusal> {
    let (loaded, messages) = load(options, reader, files, warnings);
    if loaded.has_alerts() || !loaded.unimplemented.is_empty() {
        return Err(Refusal(messages));
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        let text = "Some warnings were found and 'zero-warning' is set. Aborting.";
        return Err(Refusal(messages + &console_line(Severity::Alert, text)));
    }
    // An edit may read a part without listeners.
    if matches!(warnings, WarningScope::All) && !has_listener(&loaded.config) {
        let text = "No enabled listener found (check for 'bind' directives) ! Exiting.";
        return Err(Refusal(console_line(Severity::Alert, text)));
    }
    Ok((loaded, messages))
}
