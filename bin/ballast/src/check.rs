//! Judging a configuration: what is said of it, and with which exit code.

use std::ops::Range;
use std::sync::Arc;

use ballast_config::{Loaded, Stub, Surroundings, TextOptions};
use ballast_edit::SectionEdit;
use ballast_expr::Store;
use ballast_model::{Address, Config};
use ballast_syntax::{Diagnostic, Severity};

use crate::args::{CheckOptions, Options};
use crate::machine::Machine;
use crate::{read, reading, say, states, tools};
use ballast_edit::{Files, Place, SectionMap};

/// The exit code of a configuration that is right and has nothing to listen on.
const NO_LISTENER: u8 = 2;

/// `check`: says everything there is to say of files.
pub(crate) fn files(options: &CheckOptions) -> u8 {
    let files = match read::files_and_pipes(&options.files) {
        Ok(files) => files,
        Err(error) => {
            say::alert(&error);
            return 1;
        }
    };
    let machine = Machine::new(&options.files, None, false);
    let loaded = if options.stub {
        load(files, &Stub(machine))
    } else {
        load(files, &machine)
    };
    tell(&loaded, options.json, Severity::Notice);
    if !options.json && !loaded.has_alerts() {
        for stub in &loaded.stubs {
            say::notice(&format!("config : {stub}"));
        }
        if !tell_unserved(&loaded) {
            for line in verdict(&loaded, true) {
                say::line!("{line}");
            }
        }
    }
    u8::from(loaded.has_alerts() || !loaded.unserved.is_empty())
}

/// A configuration that was read for a start.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) loaded: Loaded,
    /// The files as they are.
    pub(crate) texts: SectionMap,
    /// Sections by command that were read in place of theirs.
    pub(crate) section_edits: Vec<SectionEdit>,
    /// What the files say without these, where there are some.
    pub(crate) file: Option<Config>,
}

/// Reads the configuration of a start, with the sections that overrides wrote in the process before.
/// `Err` is the exit code of a start that ends here, with everything said.
pub(crate) fn for_start(options: &Options, overridden: &[SectionEdit]) -> Result<Read, u8> {
    let fail = |text: &str| {
        say::alert(text);
        1
    };
    let files = read::files_and_pipes(&options.files).map_err(|error| fail(&error))?;
    if files.is_empty() {
        return Err(fail("config : no configuration file was found"));
    }
    let machine = reading::machine(options, &files);
    let mut loaded = load(files.clone(), &machine);
    let texts = SectionMap::of(Arc::new(files), std::mem::take(&mut loaded.sections));
    let with_edits = texts.with_edits(overridden, Place::Beside);
    for title in &with_edits.overruled {
        say::warn(&format!(
            "The file overrules what was set by command: {title}"
        ));
    }
    let mut section_edits = with_edits.kept;
    let mut file = None;
    if !section_edits.is_empty() {
        let whole = load(with_edits.files, &machine);
        if whole.has_alerts() || !whole.unserved.is_empty() {
            // Better without them than not at all.
            say::warn("The files do not go with the sections that commands wrote: without them.");
            section_edits.clear();
        } else {
            file = Some(std::mem::replace(&mut loaded, whole).config);
        }
    }
    if options.ignore_resolution_failures {
        forgive_unresolved(&mut loaded);
    }
    if options.dump_configuration {
        dump(&loaded);
    }
    let wrong = states::read(&loaded.config).1.into_iter();
    let wrong = wrong.map(|text| Diagnostic::warning("state-file", text));
    loaded.diagnostics.extend(wrong);
    let least = if options.diagnostics {
        Severity::Diag
    } else {
        Severity::Notice
    };
    tell(&loaded, options.json, least);
    if loaded.has_alerts() {
        return Err(1);
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        return Err(fail(
            "config : Some warnings were found and 'zero-warning' is set. Aborting.",
        ));
    }
    Ok(Read {
        loaded,
        texts,
        section_edits,
        file,
    })
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
pub(crate) fn again(
    options: &Options,
    patterns: &Arc<Store>,
    files: Files,
    about: &About,
) -> (Loaded, String) {
    let machine = reading::machine(options, &files).serving();
    let mut loaded = ballast_config::load_after(
        patterns,
        files,
        &machine,
        ballast_config::Options::default(),
    );
    if options.ignore_resolution_failures {
        forgive_unresolved(&mut loaded);
    }
    let target = |found: &Diagnostic| found.severity == Severity::Alert || about.wants(found);
    loaded.diagnostics.retain(target);
    let pid = std::process::id();
    let mut said = ballast_config::text(
        &loaded,
        TextOptions {
            pid,
            excerpts: true,
            least: Severity::Warning,
        },
    );
    if loaded.has_alerts() {
        said.push_str(&ballast_config::closing_lines(&loaded, pid));
    }
    for text in unserved(&loaded) {
        said.push_str(&say::line_of(say::Severity::Alert, &text));
    }
    (loaded, said)
}

/// `-c`: what is printed about a configuration without alerts, and the exit code. That it is valid
/// is told by the code, and in words where `-V` asks for them, as HAProxy 3.2 has it.
pub(crate) fn conclude(loaded: &Loaded, quiet: bool, verbose: bool) -> u8 {
    // A file that would not start is not right.
    if tell_unserved(loaded) || tell_closed(&loaded.config) {
        return 1;
    }
    let listens = has_listener(&loaded.config);
    if !quiet {
        if listens {
            for line in verdict(loaded, verbose) {
                say::line!("{line}");
            }
        } else {
            say::line!(
                "Configuration file has no error but will not start (no listener) => exit(2)."
            );
        }
    }
    if listens { 0 } else { NO_LISTENER }
}

/// Says which descriptors to listen on are not open; true when there are some.
fn tell_closed(config: &Config) -> bool {
    let open = ballast_net::inherit::numbers();
    let binds = config.frontends.iter().flat_map(|frontend| &frontend.binds);
    let mut is_told = false;
    for bind in binds {
        let Address::Fd(number) = bind.address else {
            continue;
        };
        if !open.contains(&number) {
            let (file, line) = (&bind.origin.file, bind.origin.line);
            say::alert(&format!(
                "config : parsing [{file}:{line}] : 'bind' : cannot use file descriptor \
                 '{number}' : Bad file descriptor."
            ));
            is_told = true;
        }
    }
    is_told
}

/// Whether anything that may be reached is configured; a command socket is enough.
pub(crate) fn has_listener(config: &Config) -> bool {
    if !config.global.stats_sockets.is_empty() {
        return true;
    }
    let mut enabled = config
        .frontends
        .iter()
        .filter(|frontend| !frontend.common.disabled);
    enabled.any(|frontend| !frontend.binds.is_empty())
}

/// Says which words are checked and not carried out yet; true when there are some.
pub(crate) fn tell_unserved(loaded: &Loaded) -> bool {
    for text in unserved(loaded) {
        say::alert(&text);
    }
    !loaded.unserved.is_empty()
}

/// The words that are checked and not carried out yet, a line each.
fn unserved(loaded: &Loaded) -> impl Iterator<Item = String> {
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

fn load(files: Vec<(String, Vec<u8>)>, surroundings: &dyn Surroundings) -> Loaded {
    ballast_config::load(files, surroundings, ballast_config::Options::default())
}

fn tell(loaded: &Loaded, json: bool, least: Severity) {
    if json {
        tools::print_all(&ballast_config::json_lines(loaded));
        return;
    }
    let pid = std::process::id();
    let options = TextOptions {
        pid,
        excerpts: true,
        least,
    };
    let warns = |found: &&Diagnostic| found.severity == Severity::Warning;
    let warnings = loaded.diagnostics.iter().filter(warns).count();
    let mut text = ballast_config::text(loaded, options);
    text.push_str(&ballast_config::closing_lines(loaded, pid));
    say::lines(&text, warnings, loaded.has_alerts());
}

fn verdict(loaded: &Loaded, verbose: bool) -> impl Iterator<Item = &'static str> {
    let warned = loaded.has_warnings().then_some("Warnings were found.");
    let valid = verbose.then_some("Configuration file is valid");
    warned.into_iter().chain(valid)
}

/// `-dr`: a server whose name does not resolve starts without address.
fn forgive_unresolved(loaded: &mut Loaded) {
    for found in &mut loaded.diagnostics {
        if found.code == "unresolved-name" && found.severity == Severity::Alert {
            found.severity = Severity::Warning;
            let text = found.message.trim_end_matches('.');
            found.message = format!("{text}, disabling server.");
            found.help = None;
        }
    }
}

/// `-dC`: the text as it was read, file by file.
fn dump(loaded: &Loaded) {
    for file in loaded.sources.files() {
        let text = String::from_utf8_lossy(loaded.sources.bytes(file));
        say::line!(
            "# {}\n{}",
            loaded.sources.name(file),
            text.trim_end_matches('\n')
        );
    }
}
