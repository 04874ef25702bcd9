//! Configuration text, changed as text.
//!
//! Commands edit the files of a configuration in memory, line by line, and `persist` writes words
//! back to them. Nothing here reads a file, knows the time or decides what is put in force: text
//! and an edit go in, text comes out, and `ballast_config` says what it means.
//!
//! - [`SectionMap`]: files, and where the sections of proxies stand in them. It puts sections that
//!   commands wrote ([`SectionEdit`]) in the place of those of the files.
//! - [`SectionOperation`]: what a command does to one section.
//! - [`FileText`]: one file whose words and lines are changed where they stand.
//! - [`server_line`]: the `server` line that a command brings, without reading the files.
//! - [`excerpt`]: the part of the files that says what one section means.

pub mod excerpt;
mod file_text;
mod fuzz;
mod request;
mod section_text;
mod sections;
pub mod server_line;
mod words;

pub use file_text::FileText;
pub use fuzz::fuzz_one;
pub use request::{
    EditCommand, Refusal, SECTION_EDIT_BYTES_MAX, SECTION_EDIT_COUNT_MAX, SectionEdit, SectionName,
    SectionOperation, SectionWord,
};
pub use sections::{EditedFiles, InsertPosition, SectionMap};
pub use words::{quoted_line, words_of};

/// Files by name, with what they hold.
pub type ConfigFiles = Vec<(String, Vec<u8>)>;

/// The name in diagnostics of text that is in no file.
pub const NO_FILE: &str = "<<";
