//! The ballast program: command line, processes and composition.
//!
//! It decides nothing. Rooms below say what a configuration means, what runs and how; here they
//! are put together in the order that a start needs, and taken apart in the order of a stop:
//!
//! ```text
//!   args ─► read ─► check ─► limits ─► listeners ─► (daemon, master) ─► identity ─► serve ─► stop
//! ```

mod args;
mod check;
mod control;
mod host;
mod identity;
mod instance;
mod limits;
mod logs;
mod machine;
mod master;
mod old_processes;
mod participants;
mod plan;
mod process;
mod read;
mod ready;
mod renewal;
mod run;
mod say;
mod serve;
mod services;
mod stop;
mod tools;
mod version;
mod worker;
mod worker_set;

use std::process::ExitCode;

use args::Command;

/// The exit code of a command line that was not understood.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    // Before anything is opened: what is open now was inherited (`fd@`).
    ballast_net::inherit::collect();
    ballast_net::ignore_broken_pipe();
    ballast_net::give_back_large_memory();
    let mut words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let name = if words.is_empty() {
        String::new()
    } else {
        words.remove(0)
    };
    let identity = version::Name::called(&name);
    let code = match args::parse(&words) {
        Ok(command) => dispatch(command, identity),
        Err(error) => {
            say::error_line!(
                "{}\n{error}\n\n{}",
                version::line(identity),
                version::usage(identity)
            );
            // HAProxy ends with 1; of a command of our own that could be an answer.
            if args::own(&words).is_some() || identity == version::Name::Ballast {
                USAGE
            } else {
                1
            }
        }
    };
    ExitCode::from(code)
}

fn dispatch(command: Command, name: version::Name) -> u8 {
    match command {
        Command::Run(options) => run::run(&options),
        Command::Condition(condition) => tools::condition(&condition),
        Command::Version(long) => {
            say::line!(
                "{}",
                if long {
                    version::long(name)
                } else {
                    version::short(name)
                }
            );
            0
        }
        Command::Usage => {
            say::line!("{}\n\n{}", version::line(name), version::usage(name));
            1
        }
        Command::Help(own) => {
            let text = own.map_or_else(|| version::usage(name), |own| version::usage_of(name, own));
            say::line!("{}\n\n{text}", version::line(name));
            0
        }
        Command::Check(options) => check::files(&options),
        Command::Keywords(json) => tools::keywords(json),
        Command::Upgrade(options) => tools::upgrade(&options),
        Command::Plan(options) => plan::run(&options),
    }
}
