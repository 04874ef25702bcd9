//! The command line: HAProxy's options, and Ballast's commands.
//!
//! Started under HAProxy's options the program behaves as HAProxy documents them (management
//! manual, section 3). Words of our own come first on the line and begin without a dash:
//! `ballast check`, `ballast keywords`, `ballast upgrade`.

use std::fmt;

use ballast_reconcile::ReadOptions;

/// The command of a command line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ProgramCommand {
    /// Serve, or check and leave (`-c`).
    Run(Box<Options>),
    /// `-cc <condition>`: evaluate a condition and leave.
    Condition(String),
    /// `-v` or `-vv`: say which version this is; true adds how it was built.
    Version(bool),
    /// `-h`, or nothing at all: say how to call the program, as HAProxy does for a mistake.
    Usage,
    /// `--help`, `help`, or behind a command of our own: say how to call it.
    Help(Option<&'static OwnCommand>),
    /// `check`: check files.
    Check(CheckOptions),
    /// `keywords`: print the table of words; true prints JSON.
    Keywords(bool),
    /// `upgrade`: rewrite removed directives.
    Upgrade(UpgradeOptions),
    /// `plan`: say what files would change of a running process.
    Plan(PlanOptions),
}

/// HAProxy's options.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Options {
    /// `-f` and what follows `--`: files and directories, in order.
    pub(crate) files: Vec<String>,
    /// `-c`: check the files and leave.
    pub(crate) check_only: bool,
    /// `-D`: go to the background.
    pub(crate) daemon: bool,
    /// `-W` and `-Ws`: a master process starts and watches the worker.
    pub(crate) master_worker: bool,
    /// `-Ws`: notifies the service manager when the program is ready.
    pub(crate) notify: bool,
    /// `-S`: master command sockets, with their bind options after commas.
    pub(crate) master_sockets: Vec<String>,
    /// `-q`: no messages.
    pub(crate) quiet: bool,
    /// `-V`: messages in spite of `quiet`.
    pub(crate) verbose: bool,
    /// `-d`: stay in the foreground and talk.
    pub(crate) debug: bool,
    /// `-db`: stay in the foreground.
    pub(crate) foreground: bool,
    /// `-n`: `maxconn` of the process.
    pub(crate) connection_count_max: Option<u32>,
    /// `-N`: `maxconn` of proxies that set none.
    pub(crate) proxy_connection_count_max: Option<u32>,
    /// `-p`: file for the process number.
    pub(crate) pidfile: Option<String>,
    /// `-m`: memory limit in MB.
    pub(crate) memory_megabytes_max: Option<u32>,
    /// `-C`: directory to change to before files are read.
    pub(crate) directory: Option<String>,
    /// `-L`: local peer name.
    pub(crate) local_peer: Option<String>,
    /// `-x`: socket to fetch listening sockets from.
    pub(crate) listeners_from: Option<String>,
    /// `-sf`: processes to be asked to finish.
    pub(crate) finish: Vec<i32>,
    /// `-st`: processes to be terminated.
    pub(crate) terminate: Vec<i32>,
    /// `-dW`: any warning is an error.
    pub(crate) zero_warning: bool,
    /// `-dD`: prints suspicious statements.
    pub(crate) diagnostics: bool,
    /// `-dr`: names that do not resolve leave their servers down.
    pub(crate) ignore_resolution_failures: bool,
    /// `-dC`: print the configuration as it was understood.
    pub(crate) dump_configuration: bool,
    /// `-dc`: prints the processors, and where threads run.
    pub(crate) show_processors: bool,
    /// `-dR`: no `SO_REUSEPORT`.
    pub(crate) no_reuseport: bool,
    /// `-dS`: no splicing.
    pub(crate) no_splice: bool,
    /// `-dV`: server certificates are not verified.
    pub(crate) no_server_verify: bool,
    /// `--format json`: messages as JSON lines.
    pub(crate) json: bool,
}

impl Options {
    /// What it says of every configuration that is read.
    pub(crate) fn read_options(&self) -> ReadOptions {
        ReadOptions {
            zero_warning: self.zero_warning,
            ignore_resolution_failures: self.ignore_resolution_failures,
            proxy_connection_count_max: self.proxy_connection_count_max,
            no_reuseport: self.no_reuseport,
            no_splice: self.no_splice,
            local_peer: self.local_peer.clone(),
        }
    }
}

/// What `check` takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct CheckOptions {
    /// `--stub`: what is missing on this machine is replaced by stand-ins.
    pub(crate) stub: bool,
    /// `--format json`.
    pub(crate) json: bool,
    /// Files and directories.
    pub(crate) files: Vec<String>,
}

/// What `upgrade` takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct UpgradeOptions {
    /// `--write`: the file is replaced; without it only the difference is shown.
    pub(crate) write: bool,
    /// Files.
    pub(crate) files: Vec<String>,
}

/// What `plan` takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PlanOptions {
    /// `-s`: the command socket of the process; a path, or an address with a port.
    pub(crate) socket: String,
    /// `-f`: files and directories; none asks what the process's own would change.
    pub(crate) files: Vec<String>,
}

/// A command of Ballast, which HAProxy does not have.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct OwnCommand {
    /// Its word.
    pub(crate) word: &'static str,
    /// What follows it.
    pub(crate) args: &'static str,
    /// What it does.
    pub(crate) help: &'static str,
    /// Exit codes besides 2, which says that the command line was not understood.
    pub(crate) codes: &'static str,
}

/// The commands of Ballast.
pub(crate) const OWN_COMMANDS: &[OwnCommand] = &[
    OwnCommand {
        word: "check",
        args: "[--stub] [--format json] FILE...",
        help: "judge files as one configuration, also away from their machine",
        codes: "0 valid, 1 errors or words that are not carried out yet",
    },
    OwnCommand {
        word: "keywords",
        args: "[--json]",
        help: "every word of the language, and what becomes of it",
        codes: "0",
    },
    OwnCommand {
        word: "plan",
        args: "[-f FILE]... -s SOCKET",
        help: "what files would change of a process that runs",
        codes: "0 nothing, 1 changes, 3 changes with drains, 2 refused or nobody answers",
    },
    OwnCommand {
        word: "upgrade",
        args: "[--write] FILE...",
        help: "rewrite what HAProxy has removed",
        codes: "0 all is rewritten, 1 a line is left or a file cannot be read or written",
    },
];

/// The Ballast command that a command line begins with.
pub(crate) fn own_command(words: &[String]) -> Option<&'static OwnCommand> {
    let first = words.first()?;
    OWN_COMMANDS.iter().find(|own| own.word == first)
}

/// The error of a command line that is not understood; the text says what to write instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Parses the words after the program's name.
///
/// # Errors
/// [`UsageError`] when a word is unknown or lacks its value.
pub(crate) fn parse(words: &[String]) -> Result<ProgramCommand, UsageError> {
    let rest = words.get(1..).unwrap_or_default();
    let asks = |word: &String| matches!(word.as_str(), "--help" | "-h");
    if let Some(own) = own_command(words)
        && rest.iter().any(asks)
    {
        return Ok(ProgramCommand::Help(Some(own)));
    }
    match words.first().map(String::as_str) {
        None | Some("-h") => Ok(ProgramCommand::Usage),
        Some("check") => check(&words[1..]),
        Some("keywords") => Ok(ProgramCommand::Keywords(json_only(
            "keywords",
            &words[1..],
        )?)),
        Some("upgrade") => upgrade(&words[1..]),
        Some("plan") => plan(&words[1..]),
        Some("help" | "--help") => Ok(ProgramCommand::Help(own_command(rest))),
        Some("--version") => Ok(ProgramCommand::Version(false)),
        Some(_) => options(words),
    }
}

fn check(words: &[String]) -> Result<ProgramCommand, UsageError> {
    let mut options = CheckOptions::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--stub" => options.stub = true,
            "--json" => options.json = true,
            "--format" => options.json = format(words.next())?,
            "-f" | "--" => {}
            flag if flag.starts_with('-') && flag != "-" => return Err(unknown("check", flag)),
            file => options.files.push(file.to_owned()),
        }
    }
    if options.files.is_empty() {
        return Err(UsageError(
            "'check' needs a file: ballast check [--stub] FILE".into(),
        ));
    }
    Ok(ProgramCommand::Check(options))
}

fn upgrade(words: &[String]) -> Result<ProgramCommand, UsageError> {
    let mut options = UpgradeOptions::default();
    for word in words {
        match word.as_str() {
            "--write" | "-w" => options.write = true,
            "-f" | "--" => {}
            flag if flag.starts_with('-') && flag != "-" => return Err(unknown("upgrade", flag)),
            file => options.files.push(file.to_owned()),
        }
    }
    if options.files.is_empty() {
        return Err(UsageError(
            "'upgrade' needs a file: ballast upgrade [--write] FILE".into(),
        ));
    }
    Ok(ProgramCommand::Upgrade(options))
}

fn plan(words: &[String]) -> Result<ProgramCommand, UsageError> {
    let mut options = PlanOptions::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-s" => {
                let socket = words.next().cloned();
                options.socket = socket.ok_or_else(|| UsageError("'-s' needs a value".into()))?;
            }
            "-f" | "--" => {}
            flag if flag.starts_with('-') && flag != "-" => return Err(unknown("plan", flag)),
            file => options.files.push(file.to_owned()),
        }
    }
    if options.socket.is_empty() {
        return Err(UsageError(
            "'plan' needs the process's command socket: ballast plan -f FILE -s SOCKET".into(),
        ));
    }
    Ok(ProgramCommand::Plan(options))
}

fn json_only(command: &str, words: &[String]) -> Result<bool, UsageError> {
    match words {
        [] => Ok(false),
        [flag] if flag == "--json" => Ok(true),
        [flag, ..] => Err(unknown(command, flag)),
    }
}

fn format(value: Option<&String>) -> Result<bool, UsageError> {
    match value.map(String::as_str) {
        Some("json") => Ok(true),
        Some("text") => Ok(false),
        _ => Err(UsageError("'--format' is 'text' or 'json'".into())),
    }
}

fn unknown(command: &str, flag: &str) -> UsageError {
    UsageError(format!("'{command}' does not know the option '{flag}'"))
}

/// Parses HAProxy's options. Letters are not combined (`-db` is one option), and values are separate
/// words.
fn options(words: &[String]) -> Result<ProgramCommand, UsageError> {
    let mut options = Options::default();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix('-') else {
            return Err(UsageError(format!(
                "'{word}' is neither an option nor a command; files follow '-f' or '--'"
            )));
        };
        let mut value = || {
            words
                .next()
                .cloned()
                .ok_or_else(|| UsageError(format!("'-{flag}' needs a value")))
        };
        match known_prefix(flag) {
            "-" => {
                options.files.extend(words.by_ref().cloned());
            }
            "v" => return Ok(ProgramCommand::Version(false)),
            "vv" => return Ok(ProgramCommand::Version(true)),
            "cc" => return Ok(ProgramCommand::Condition(value()?)),
            "f" => options.files.push(value()?),
            "n" => options.connection_count_max = Some(number(flag, &value()?)?),
            "N" => options.proxy_connection_count_max = Some(number(flag, &value()?)?),
            "m" => options.memory_megabytes_max = Some(number(flag, &value()?)?),
            "p" => options.pidfile = Some(value()?),
            "C" => options.directory = Some(value()?),
            "L" => options.local_peer = Some(value()?),
            "x" => options.listeners_from = Some(value()?),
            "S" => options.master_sockets.push(value()?),
            "-format" => options.json = format(words.next())?,
            "sf" | "st" => {
                let list = if flag == "sf" {
                    &mut options.finish
                } else {
                    &mut options.terminate
                };
                while let Some(pid) = words.peek().and_then(|word| word.parse().ok()) {
                    list.push(pid);
                    words.next();
                }
            }
            "c" => options.check_only = true,
            "D" => options.daemon = true,
            // No name is asked for IPv6 alone.
            "4" => {}
            "W" => options.master_worker = true,
            "Ws" => (options.master_worker, options.notify) = (true, true),
            "q" => options.quiet = true,
            "V" => options.verbose = true,
            "d" => (options.debug, options.foreground) = (true, true),
            "db" => options.foreground = true,
            "h" => return Ok(ProgramCommand::Usage),
            other if debug_flag(&mut options, other) => {}
            other => return Err(UsageError(format!("unknown option '-{other}'"))),
        }
    }
    Ok(ProgramCommand::Run(Box::new(options)))
}

/// An option without the letters that HAProxy ignores: of `-cq` it reads `c`, of `-vvx` it reads
/// `vv`.
fn known_prefix(flag: &str) -> &str {
    const PREFIXES: [&str; 8] = ["cc", "c", "vv", "v", "D", "V", "q", "h"];
    PREFIXES
        .into_iter()
        .find(|read| flag.starts_with(read))
        .unwrap_or(flag)
}

/// Applies a `-d*` option. Those that choose among pollers, allocators or kernels that Ballast does
/// not have are accepted without effect.
fn debug_flag(options: &mut Options, flag: &str) -> bool {
    match flag {
        "dW" => options.zero_warning = true,
        "dD" => options.diagnostics = true,
        "dr" => options.ignore_resolution_failures = true,
        "dC" => options.dump_configuration = true,
        "dR" => options.no_reuseport = true,
        "dS" => options.no_splice = true,
        "dV" => options.no_server_verify = true,
        "dc" => options.show_processors = true,
        "de" | "dp" | "dk" | "dG" | "dl" | "dL" | "dZ" | "dF" | "dI" | "dv" => {}
        _ => {
            return flag.strip_prefix("dM").is_some_and(is_memory_debug)
                || ["dK", "dt", "dT"].iter().any(|word| flag.starts_with(word));
        }
    }
    true
}

/// What HAProxy's memory allocator can be told after `-dM`; with `no-` in front each is undone.
const MEMORY_DEBUG: [&str; 10] = [
    "backup",
    "cache",
    "caller",
    "fail",
    "global",
    "integrity",
    "merge",
    "poison",
    "tag",
    "uaf",
];

/// Whether `text` is what may follow `-dM`: a byte, then words separated by commas. Nothing of it acts here.
fn is_memory_debug(text: &str) -> bool {
    let (first, others) = text.split_once(',').unwrap_or((text, ""));
    let digits = first.strip_prefix('-').unwrap_or(first);
    let is_byte = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).is_ok(),
        None => digits.parse::<u64>().is_ok(),
    };
    let is_known = |word: &str| {
        matches!(word, "" | "help" | "cold-first" | "hot-first")
            || MEMORY_DEBUG.contains(&word.strip_prefix("no-").unwrap_or(word))
    };
    // Whoever asks for help reads on by himself.
    first == "help" || ((is_byte || is_known(first)) && others.split(',').all(is_known))
}

fn number(flag: &str, value: &str) -> Result<u32, UsageError> {
    value
        .parse()
        .map_err(|_| UsageError(format!("'-{flag}' needs a number, not '{value}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn run(line: &str) -> Options {
        match parse(&words(line)).unwrap() {
            ProgramCommand::Run(options) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn varnishtests_lines_are_understood() {
        let options = run("-d -dM -dI -dW -de -m 50 -f /tmp/x/cfg");
        assert!(options.debug && options.foreground && options.zero_warning);
        assert_eq!(options.memory_megabytes_max, Some(50));
        assert_eq!(options.files, ["/tmp/x/cfg"]);
        let options = run("-Ws -S fd@5 -f cfg -D -p pid");
        assert!(options.master_worker && options.notify && options.daemon);
        assert_eq!(options.master_sockets, ["fd@5"]);
        assert_eq!(options.pidfile.as_deref(), Some("pid"));
    }

    #[test]
    fn pids_end_at_the_first_word_that_is_none() {
        let options = run("-sf 12 13 -f a -- b c");
        assert_eq!(
            (options.finish, options.files),
            (vec![12, 13], words("a b c"))
        );
    }

    /// What is accepted and not named is found by nobody.
    #[test]
    fn the_usage_names_every_option() {
        let usage = crate::version::usage(crate::version::ProgramName::Ballast);
        let named: Vec<&str> = usage.split([' ', ',', ':', '\n']).collect();
        let letters = || ('a'..='z').chain('A'..='Z');
        let one = letters().map(|letter| format!("-{letter}"));
        let two =
            letters().flat_map(|first| letters().map(move |second| format!("-{first}{second}")));
        let mut count = 0;
        for option in one.chain(two) {
            // `-cq` is `-c`; a condition, a number and an address are read as they come.
            let is_longer = known_prefix(&option[1..]) != &option[1..];
            let unknown = |error: UsageError| error.0.starts_with("unknown option");
            if is_longer || parse(&[option.clone(), "1".into()]).is_err_and(unknown) {
                continue;
            }
            assert!(named.contains(&option.as_str()), "{option}");
            count += 1;
        }
        assert!(count > 30, "{count}");
    }

    #[test]
    fn our_own_commands_come_first() {
        let check = CheckOptions {
            stub: true,
            json: false,
            files: words("a.cfg"),
        };
        assert_eq!(
            parse(&words("check --stub a.cfg")),
            Ok(ProgramCommand::Check(check))
        );
        assert_eq!(
            parse(&words("keywords --json")),
            Ok(ProgramCommand::Keywords(true))
        );
        assert_eq!(parse(&[]), Ok(ProgramCommand::Usage));
        let plan = PlanOptions {
            socket: "/run/s".into(),
            files: words("a.cfg b.cfg"),
        };
        assert_eq!(
            parse(&words("plan -f a.cfg -s /run/s -f b.cfg")),
            Ok(ProgramCommand::Plan(plan))
        );
        assert!(parse(&words("plan a.cfg")).is_err());
        assert!(parse(&words("check")).is_err());
        assert!(parse(&words("chekc x")).is_err());
        for own in OWN_COMMANDS {
            let help = Ok(ProgramCommand::Help(Some(own)));
            for line in ["help ", ""].map(|before| format!("{before}{} --help", own.word)) {
                assert_eq!(parse(&words(&line)), help, "{line}");
            }
        }
        assert_eq!(parse(&words("--help")), Ok(ProgramCommand::Help(None)));
    }

    #[test]
    fn the_readme_has_the_exit_codes() {
        let readme = include_str!("../../../README.md");
        for command in OWN_COMMANDS {
            let row = format!("| `ballast {}` | {} |", command.word, command.codes);
            assert!(readme.contains(&row), "{row}");
        }
    }

    #[test]
    fn a_missing_value_is_named() {
        assert_eq!(
            parse(&words("-c -f")),
            Err(UsageError("'-f' needs a value".into()))
        );
        assert!(parse(&words("-n many")).unwrap_err().0.contains("'many'"));
        assert!(parse(&words("-zz")).is_err());
    }
}
