//! Files are read as a configuration that is to follow the one in force.

use std::ops::Range;
use std::sync::Arc;

use ballast_config::{Loaded, Surroundings, TextOptions};
use ballast_edit::{Files, Refusal};
use ballast_expr::Store;
use ballast_model::Config;
use ballast_syntax::{Diagnostic, Severity as Grade};

use crate::console::{Severity, console_line};

/// What the command line says of every configuration that is read.
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
    /// `-L`: the name of this process among its peers.
    pub local_peer: Option<String>,
}

impl ReadOptions {
    /// Puts it into a configuration.
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
        if let Some(name) = &self.local_peer {
            global.localpeer = Some(name.clone());
        }
    }

    /// Makes of names that do not resolve what the options say.
    pub fn forgive_unresolved(&self, loaded: &mut Loaded) {
        if !self.ignore_resolution_failures {
            return;
        }
        for found in &mut loaded.diagnostics {
            if found.code == "unresolved-name" && found.severity == Grade::Alert {
                found.severity = Grade::Warning;
                let text = found.message.trim_end_matches('.');
                found.message = format!("{text}, disabling server.");
                found.help = None;
            }
        }
    }
}

/// What warnings are wanted of a configuration that is read.
#[derive(Clone, Debug)]
pub(crate) enum About {
    /// All of it.
    All,
    /// These bytes of the file at that place: the rest was warned of when it was read.
    Part(Option<(usize, Range<usize>)>),
}

impl About {
    fn wants(&self, found: &Diagnostic) -> bool {
        match (self, found.span) {
            (Self::All, _) => true,
            (Self::Part(Some((file, part))), Some(span)) => {
                span.file.index() == *file && part.contains(&span.range().start)
            }
            (Self::Part(_), _) => false,
        }
    }
}

/// Reads a configuration that is to follow the one in force; what there is to say of it is
/// answered, not said.
fn again(
    options: &ReadOptions,
    (patterns, machine): (&Arc<Store>, &dyn Surroundings),
    files: Files,
    about: &About,
) -> (Loaded, String) {
    let mut loaded =
        ballast_config::load_after(patterns, files, machine, ballast_config::Options::default());
    options.forgive_unresolved(&mut loaded);
    let target = |found: &Diagnostic| found.severity == Grade::Alert || about.wants(found);
    loaded.diagnostics.retain(target);
    let pid = std::process::id();
    let mut said = ballast_config::text(
        &loaded,
        TextOptions {
            pid,
            excerpts: true,
            least: Grade::Warning,
        },
    );
    if loaded.has_alerts() {
        said.push_str(&ballast_config::closing_lines(&loaded, pid));
    }
    for text in unserved(&loaded) {
        said.push_str(&console_line(Severity::Alert, &text));
    }
    (loaded, said)
}

/// Whether anything that may be reached is configured; a command socket is enough.
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

/// The words that are checked and not carried out yet, a line each.
pub fn unserved(loaded: &Loaded) -> impl Iterator<Item = String> {
    loaded.unserved.iter().map(|word| {
        let place = word.span.map_or_else(String::new, |span| {
            let at = loaded.sources.locate(span);
            format!("parsing [{}:{}] : ", at.file, at.line)
        });
        format!(
            "config : {place}'{}' is understood but not carried out yet ({}): a start with it \
             is refused.",
            word.word, word.area
        )
    })
}

/// Understands files that are to follow what is in force.
pub(crate) fn read(
    options: &ReadOptions,
    reader: (&Arc<Store>, &dyn Surroundings),
    files: Files,
    about: &About,
) -> Result<(Loaded, String), Refusal> {
    let (loaded, said) = again(options, reader, files, about);
    if loaded.has_alerts() || !loaded.unserved.is_empty() {
        return Err(Refusal(said));
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        let text = "Some warnings were found and 'zero-warning' is set. Aborting.";
        return Err(Refusal(said + &console_line(Severity::Alert, text)));
    }
    // Of an edit only a part may be read.
    if matches!(about, About::All) && !has_listener(&loaded.config) {
        let text = "No enabled listener found (check for 'bind' directives) ! Exiting.";
        return Err(Refusal(console_line(Severity::Alert, text)));
    }
    Ok((loaded, said))
}
