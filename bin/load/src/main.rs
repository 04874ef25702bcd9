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
mod html;
mod longest;
mod marks;
mod origin;
mod pace;
mod plan;
mod progress;
mod report;
mod run;
mod series;
mod shared;
mod socket;
mod stream;
mod table;
mod tally;
mod threads;
mod tls;
mod wakeup;
mod websockets;

use std::io;
use std::process::ExitCode;

use crate::args::Command;
use crate::plan::Plan;
use crate::report::Report;

/// Something failed.
const FAILED: u8 = 1;
/// It could not start.
const EXIT_UNABLE: u8 = 2;

fn main() -> ExitCode {
    match args::read(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            print!("{}", args::HELP);
            ExitCode::SUCCESS
        }
        Ok(Command::Run(plan)) => match run(&plan) {
            Ok(0) => ExitCode::SUCCESS,
            Ok(_) => ExitCode::from(FAILED),
            Err(error) => unable(&error.to_string()),
        },
        Ok(Command::Page { reports, html }) => match html::write_reports(&reports, &html) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => unable(&failure),
        },
        Err(failure) => unable(&format!(
            "{failure}\n(ballast-load --help shows what it knows)"
        )),
    }
}

fn unable(why: &str) -> ExitCode {
    eprintln!("ballast-load: {why}");
    ExitCode::from(EXIT_UNABLE)
}

/// Runs the plan and reports; returns how many requests failed.
fn run(plan: &Plan) -> io::Result<u64> {
    // Before the run, not after it, is when to say that a file cannot be written.
    let html = plan.html.as_deref();
    html.map(html::check_writable).transpose()?;
    let tally = threads::run(plan.clone())?;
    let report = Report::of(plan, &tally);
    if plan.is_json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.table());
    }
    html.map(|path| html::write(&report, path)).transpose()?;
    Ok(tally.failed())
}
