//! Checking a configuration: its messages, and the exit code.

use ballast_config::{Loaded, Stub, Surroundings, TextOptions};
use ballast_edit::SectionEdit;
use ballast_model::{Address, Config};
use ballast_reconcile::{StartFiles, has_listener, read_states, unserved};
use ballast_syntax::{Diagnostic, Severity};

use crate::args::{CheckOptions, Options};
use crate::host::{machine, state_file};
use crate::machine::Machine;
use crate::{read, say, tools};

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

/// Reads the configuration of a start, with the sections that commands wrote in the former process.
/// `Err` is the exit code of a start that ends here; all messages are printed.
pub(crate) fn for_start(
    options: &Options,
    section_edits: &[SectionEdit],
) -> Result<StartFiles, u8> {
    let fail = |text: &str| {
        say::alert(text);
        1
    };
    let files = read::files_and_pipes(&options.files).map_err(|error| fail(&error))?;
    if files.is_empty() {
        return Err(fail("config : no configuration file was found"));
    }
    let machine = machine(options, &files);
    let load = |files| load(files, &machine);
    let mut read = StartFiles::read(files, section_edits, &load, &say::warn);
    let loaded = &mut read.loaded;
    options.read_options().forgive_unresolved(loaded);
    if options.dump_configuration {
        dump(loaded);
    }
    let wrong = read_states(&loaded.config, &state_file).1.into_iter();
    let wrong = wrong.map(|text| Diagnostic::warning("state-file", text));
    loaded.diagnostics.extend(wrong);
    let least = if options.diagnostics {
        Severity::Diag
    } else {
        Severity::Notice
    };
    tell(loaded, options.json, least);
    if loaded.has_alerts() {
        return Err(1);
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        return Err(fail(
            "config : Some warnings were found and 'zero-warning' is set. Aborting.",
        ));
    }
    Ok(read)
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

/// Says which words are checked and not carried out yet; true when there are some.
pub(crate) fn tell_unserved(loaded: &Loaded) -> bool {
    for text in unserved(loaded) {
        say::alert(&text);
    }
    !loaded.unserved.is_empty()
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
