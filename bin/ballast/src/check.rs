//! Checks a configuration: prints its messages, and returns the exit code.

use ballast_config::{LoadedConfig, Machine, StandInMachine, TextOptions};
use ballast_edit::SectionEdit;
use ballast_model::{Address, Config};
use ballast_reconcile::{
    SavedCounts, StartFiles, console_line, has_listener, read_states, unimplemented,
};
use ballast_syntax::{Diagnostic, Severity};
use ballast_tls::shared_store::SharedStore;
use ballast_tls::store::TakeOver;

use crate::args::{CheckOptions, Options};
use crate::host::{machine, state_file};
use crate::machine::LocalMachine;
use crate::{config_files, console, processors, tools};

/// The exit code of a valid configuration without listeners.
const NO_LISTENER: u8 = 2;

/// `check`: prints all messages about files. Returns the exit code.
pub(crate) fn check_files(options: &CheckOptions) -> u8 {
    let files = match config_files::read_with_pipes(&options.files) {
        Ok(files) => files,
        Err(error) => {
            console::alert(&error);
            return 1;
        }
    };
    let machine = LocalMachine::new(&options.files, None, false);
    let loaded = if options.stub {
        load(files, &StandInMachine(machine))
    } else {
        load(files, &machine)
    };
    print_diagnostics(&loaded, options.json, Severity::Notice);
    if !options.json && !loaded.has_alerts() {
        for stub in &loaded.stand_ins {
            console::notice(&format!("config : {stub}"));
        }
        if !report_unimplemented(&loaded) {
            for line in validity_lines(&loaded, true) {
                console::print_line!("{line}");
            }
        }
    }
    u8::from(loaded.has_alerts() || !loaded.unimplemented.is_empty())
}

/// Reads the configuration of a start, with the sections that commands wrote in the former process
/// and what they did to certificates there. `Err` is the exit code of a start that ends here; all messages are printed.
pub(crate) fn read_for_start(
    options: &Options,
    section_edits: &[SectionEdit],
    former: &SharedStore,
) -> Result<StartFiles, u8> {
    let fail = |text: &str| {
        console::alert(text);
        1
    };
    let files = config_files::read_with_pipes(&options.files).map_err(|error| fail(&error))?;
    if files.is_empty() {
        return Err(fail("config : no configuration file was found"));
    }
    let machine = machine(options, &files);
    let load = |files| load_after(former, files, &machine);
    let mut read = StartFiles::read(files, section_edits, &load, &console::warn);
    let loaded = &mut read.loaded;
    options.read_options().downgrade_unresolved_names(loaded);
    if options.dump_configuration {
        print_text(loaded);
    }
    let wrong = read_states(&loaded.config, &state_file).1.into_iter();
    let wrong = wrong.map(|text| Diagnostic::warning("state-file", text));
    loaded.diagnostics.extend(wrong);
    let (_, wrong) = SavedCounts::of(&loaded.config, &state_file);
    let wrong = wrong.map(|text| Diagnostic::warning("stats-file", text));
    loaded.diagnostics.extend(wrong);
    let lowest_severity = if options.diagnostics {
        Severity::Diag
    } else {
        Severity::Notice
    };
    print_diagnostics(loaded, options.json, lowest_severity);
    if loaded.has_alerts() {
        if options.show_processors && ballast_config::alerts_are_of_threads(loaded) {
            print_processors(&loaded.config);
        }
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

/// `-dc` of a configuration that is refused for its threads, as far as they have places.
fn print_processors(config: &Config) {
    if let Ok(layout) = processors::layout(&config.global.cpu) {
        console::print_line!("{}", layout.report().trim_end_matches('\n'));
    }
}

/// `-c`: completes the check of a configuration without alerts, and returns the exit code. The
/// message that the file is valid is printed with `-V` only, as in HAProxy 3.2.
pub(crate) fn finish(loaded: &LoadedConfig, quiet: bool, verbose: bool) -> u8 {
    // A file that cannot be started is not valid.
    if report_unimplemented(loaded) || report_closed_fds(&loaded.config) {
        return 1;
    }
    let listens = has_listener(&loaded.config);
    if !quiet {
        if listens {
            for line in validity_lines(loaded, verbose) {
                console::print_line!("{line}");
            }
        } else {
            console::print_line!(
                "Configuration file has no error but will not start (no listener) => exit(2)."
            );
        }
    }
    if listens { 0 } else { NO_LISTENER }
}

/// Prints an alert for each `fd@` to listen on that is not open; true when there are some.
fn report_closed_fds(config: &Config) -> bool {
    let open = ballast_net::inherit::numbers();
    let binds = config.frontends.iter().flat_map(|frontend| &frontend.binds);
    let mut is_any_closed = false;
    for bind in binds {
        let Address::Fd(number) = bind.address else {
            continue;
        };
        if !open.contains(&number) {
            let (file, line) = (&bind.origin.file, bind.origin.line);
            console::alert(&format!(
                "config : parsing [{file}:{line}] : 'bind' : cannot use file descriptor \
                 '{number}' : Bad file descriptor."
            ));
            is_any_closed = true;
        }
    }
    is_any_closed
}

/// Prints an alert for each word that is checked and not carried out yet; true when there are some.
pub(crate) fn report_unimplemented(loaded: &LoadedConfig) -> bool {
    for text in unimplemented(loaded) {
        console::alert(&text);
    }
    !loaded.unimplemented.is_empty()
}

fn load(files: Vec<(String, Vec<u8>)>, machine: &dyn Machine) -> LoadedConfig {
    load_after(&SharedStore::default(), files, machine)
}

fn load_after(
    former: &SharedStore,
    files: Vec<(String, Vec<u8>)>,
    machine: &dyn Machine,
) -> LoadedConfig {
    let options = ballast_config::Options {
        former: former.former(TakeOver::Changes),
        ..ballast_config::Options::default()
    };
    ballast_config::load(files, machine, options)
}

fn print_diagnostics(loaded: &LoadedConfig, json: bool, least: Severity) {
    if json {
        tools::print_all(&ballast_config::json_lines(loaded));
        return;
    }
    let warns = |found: &&Diagnostic| found.severity == Severity::Warning;
    let warnings = loaded.diagnostics.iter().filter(warns).count();
    console::diagnostics(&messages(loaded, least), warnings, loaded.has_alerts());
}

/// The diagnostics of a configuration from the severity `least` on. With errors, words that are not
/// carried out yet are among them, so that one check lists all that must be changed.
fn messages(loaded: &LoadedConfig, least: Severity) -> String {
    let pid = std::process::id();
    let options = TextOptions {
        pid,
        excerpts: true,
        least,
    };
    let mut text = ballast_config::diagnostics_text(loaded, options);
    if loaded.has_alerts() {
        for word in unimplemented(loaded) {
            text.push_str(&console_line(Severity::Alert, &word));
        }
    }
    text.push_str(&ballast_config::closing_lines(loaded, pid));
    text
}

fn validity_lines(loaded: &LoadedConfig, verbose: bool) -> impl Iterator<Item = &'static str> {
    let warned = loaded.has_warnings().then_some("Warnings were found.");
    let valid = verbose.then_some("Configuration file is valid");
    warned.into_iter().chain(valid)
}

/// `-dC`: the text as it was read, file by file.
fn print_text(loaded: &LoadedConfig) {
    for file in loaded.sources.files() {
        let text = String::from_utf8_lossy(loaded.sources.bytes(file));
        console::print_line!(
            "# {}\n{}",
            loaded.sources.name(file),
            text.trim_end_matches('\n')
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_words_that_are_not_carried_out_yet_are_listed_together() {
        let text =
            "defaults\n mode http\nfrontend f\n bind 192.0.2.1:80\n nonsense x\n filter trace\n";
        let files = vec![("t.cfg".to_owned(), text.into())];
        let loaded = load(files, &StandInMachine(LocalMachine::new(&[], None, false)));
        let messages = messages(&loaded, Severity::Notice);
        let at = |part: &str| messages.find(part).unwrap_or_else(|| panic!("{messages}"));
        let error = at("[t.cfg:5] : unknown keyword 'nonsense'");
        let later = at(
            "[t.cfg:6] : 'filter' is understood but not carried out yet: it comes in a later \
                        version, with filters. A start with it is refused.\n",
        );
        assert!(error < later && later < at("Fatal errors found"));
    }
}
