//! A load generator that names every failure and does not stop at one.
//!
//! "Nothing failed during the change" is only worth as much as the observer. Known load generators
//! stop at the first error, count all errors as one, silently repeat requests, or leave out the
//! latencies of requests that they did not send. This one does none of that, is cheap enough to run
//! on the machine that it measures, and has exit codes: 0 nothing failed, 1 something did, 2 it
//! could not start.
//!
//! It depends on no other crate of the workspace: it measures Ballast and must not share its
//! errors.

mod answer;
mod args;
mod client;
mod exchange;
mod failure;
mod frame;
mod h2;
mod histogram;
mod longest;
mod pace;
mod plan;
mod report;
mod run;
mod shared;
mod socket;
mod stream;
mod table;
mod tally;
mod threads;
mod tls;
mod wakeup;
mod websockets;

use std::process::ExitCode;

use crate::report::Report;

/// Something failed.
const FAILED: u8 = 1;
/// It could not start.
const EXIT_UNABLE: u8 = 2;

fn main() -> ExitCode {
    let plan = match args::read(std::env::args().skip(1)) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(failure) => {
            eprintln!("ballast-load: {failure}\n(ballast-load --help shows what it knows)");
            return ExitCode::from(EXIT_UNABLE);
        }
    };
    let tally = match threads::run(plan.clone()) {
        Ok(tally) => tally,
        Err(error) => {
            eprintln!("ballast-load: {error}");
            return ExitCode::from(EXIT_UNABLE);
        }
    };
    let report = Report::of(&plan, &tally);
    if plan.is_json {
        match report.json() {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("ballast-load: {error}");
                return ExitCode::from(EXIT_UNABLE);
            }
        }
    } else {
        print!("{}", report.table());
    }
    if tally.failed() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}
