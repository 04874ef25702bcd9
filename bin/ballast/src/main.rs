//! The ballast program: command line, processes and composition.
//!
//! It decides nothing about configuration. It composes the other crates, in the order of a start and
//! of a stop:
//!
//! ```text
//!   args ─► read ─► check ─► limits ─► listeners ─► (daemon, master) ─► identity ─► serve ─► stop
//! ```

mod args;
mod check;
mod config_files;
mod console;
mod control;
mod file_helper;
mod former_tables;
mod host;
mod identity;
mod instance;
mod limits;
mod logs;
mod machine;
mod master;
mod memory;
mod ocsp;
mod ocsp_state;
mod old_processes;
mod participants;
mod plan;
mod process;
mod processors;
mod question;
mod ready;
mod reexec;
mod reporter_command;
mod run;
mod search_report;
mod secrets;
mod serve;
mod services;
mod stop;
mod table_donor;
mod threads;
mod tools;
mod variables;
mod version;
mod worker;
mod worker_set;

use std::process::ExitCode;

use args::ProgramCommand;

#[global_allocator]
static ALLOCATOR: ballast_net::ReservingAllocator = ballast_net::ReservingAllocator;

/// The exit code of a command line that was not understood.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    // What is open now was inherited (`fd@`), so this comes before anything is opened.
    ballast_net::inherit::collect();
    ballast_net::ignore_broken_pipe();
    ballast_net::give_back_large_memory();
    ballast_net::save_address_space();
    let mut words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let name = if words.is_empty() {
        String::new()
    } else {
        words.remove(0)
    };
    let name = version::ProgramName::of_command(&name);
    let code = match args::parse(&words) {
        Ok(command) => dispatch(command, name),
        Err(error) => {
            let own = args::own_command(&words);
            let usage =
                own.map_or_else(|| version::usage(name), |own| version::usage_of(name, own));
            console::print_error_line!("{}\n{error}\n\n{usage}", version::first_line(name));
            // HAProxy exits with 1, which is a result of Ballast's commands.
            if own.is_some() || name == version::ProgramName::Ballast {
                USAGE
            } else {
                1
            }
        }
    };
    ExitCode::from(code)
}

fn dispatch(command: ProgramCommand, name: version::ProgramName) -> u8 {
    match command {
        ProgramCommand::Run(options) => run::run(&options),
        ProgramCommand::Condition(condition) => tools::condition(&condition),
        ProgramCommand::Version(long) => {
            console::print_line!(
                "{}",
                if long {
                    version::long(name)
                } else {
                    version::short(name)
                }
            );
            0
        }
        ProgramCommand::Usage => {
            console::print_line!("{}\n\n{}", version::first_line(name), version::usage(name));
            1
        }
        ProgramCommand::Help(own) => {
            let text = own.map_or_else(|| version::usage(name), |own| version::usage_of(name, own));
            console::print_line!("{}\n\n{text}", version::first_line(name));
            0
        }
        ProgramCommand::Check(options) => check::check_files(&options),
        ProgramCommand::Keywords(json) => tools::keywords(json),
        ProgramCommand::Upgrade(options) => tools::upgrade(&options),
        ProgramCommand::Plan(options) => plan::run(&options),
    }
}
