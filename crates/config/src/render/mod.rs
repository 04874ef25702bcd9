//! Output for people and programs: diagnostics as lines and as JSON, the keyword table.

mod json;
mod table;
mod text;

pub use json::json_lines;
pub use table::{keyword_json, keyword_markdown, keyword_text};
pub use text::{
    TextOptions, alerts_are_of_threads, closing_lines, diagnostic_text, diagnostics_text,
};
