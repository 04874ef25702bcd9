//! The report as a page: one file with everything in it, readable without scripts.
//!
//! A page is made from what `--json` prints, of this run or of earlier ones: there is one way, and
//! several runs can be compared. Charts are SVG in the page; who points at one sees the values.

mod charts;
mod compare;
mod page;
mod panel;
mod scale;
mod tables;
mod text;
mod view;

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::html::view::View;
use crate::report::Report;

/// More runs cannot be told apart in a chart.
const RUN_COUNT_MAX: usize = 6;

/// Fails when the page could not be written later. An earlier page stays.
///
/// # Errors
///
/// Those of opening the file.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).open(path);
    opened.map(drop).map_err(|error| named(path, &error))
}

/// Writes the page of one run.
///
/// # Errors
///
/// Those of writing the file.
pub(crate) fn write(report: &Report<'_>, path: &Path) -> io::Result<()> {
    let view: View = serde_json::from_value(serde_json::to_value(report)?)?;
    fs::write(path, page::page(&[view])).map_err(|error| named(path, &error))
}

/// Writes a page from files that `--json` printed.
///
/// # Errors
///
/// What is wrong with which file.
pub(crate) fn write_reports(reports: &[PathBuf], path: &Path) -> Result<(), String> {
    if reports.len() > RUN_COUNT_MAX {
        return Err(format!("report: at most {RUN_COUNT_MAX} files"));
    }
    let views = reports.iter().map(|report| {
        let text = fs::read_to_string(report).map_err(|error| error.to_string());
        let view = text.and_then(|text| {
            serde_json::from_str::<View>(&text).map_err(|error| error.to_string())
        });
        let mut view = view.map_err(|error| format!("{}: {error}", report.display()))?;
        let stem = || Some(report.file_stem()?.to_string_lossy().into_owned());
        view.title = view.title.or_else(stem);
        Ok::<View, String>(view)
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    fs::write(path, page::page(&views)).map_err(|error| named(path, &error).to_string())
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
