//! A load generator that names every failure and never stops at one.
//!
//! "Nothing failed while it was changed" is worth what its witness is worth. Known load
//! generators stop at the first error, count all errors as one, send a request again in silence,
//! or leave out the latencies of the requests they did not send. This one does none of that, is
//! cheap enough to share a machine with what it measures, and its exit code says what it saw:
//! 0 nothing failed, 1 something did, 2 it could not begin.
//!
//! It knows no other room: it measures Ballast and must not share its mistakes.

mod answer;
mod args;
mod client;
mod exchange;
mod failure;
mod frame;
mod histogram;
mod longest;
mod pace;
mod plan;
mod report;
mod run;
mod socket;
mod tally;
mod websockets;
mod witness;

use std::process::ExitCode;

use crate::report::Report;

/// Something failed.
const FAILED: u8 = 1;
/// It could not begin.
const UNABLE: u8 = 2;

fn main() -> ExitCode {
    let plan = match args::read(std::env::args().skip(1)) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("ballast-load: {fault}\n(ballast-load --help shows what it knows)");
            return ExitCode::from(UNABLE);
        }
    };
    let tally = match run::run(plan.clone()) {
        Ok(tally) => tally,
        Err(error) => {
            eprintln!("ballast-load: {error}");
            return ExitCode::from(UNABLE);
        }
    };
    let report = Report::of(&plan, &tally);
    if plan.is_json {
        match report.json() {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("ballast-load: {error}");
                return ExitCode::from(UNABLE);
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
