//! Keyword rows: from the syntax tree to the model, with defaults and diagnostics.
//!
//! [`load()`] takes files as bytes and access to the machine ([`Machine`]) and returns the
//! model ([`ballast_model::Config`]) with all diagnostics about the text. Each keyword of the
//! language is a row ([`Keyword`]): honoured, noted, refused, or only checked; the tables in the
//! documentation are printed from the rows.
//!
//! A configuration can be run when [`LoadedConfig::has_alerts`] is false and [`LoadedConfig::unimplemented`] is
//! empty.

mod actions;
mod address;
mod args;
mod bind;
mod build;
mod check;
mod context;
mod draft;
mod feature;
mod fuzz;
mod global;
mod keyword;
mod link;
mod load;
mod log_line;
mod lower;
mod machine;
mod mux_protocol;
mod post;
mod proxy;
mod render;
mod samples;
mod section;
mod server;
mod spare_words;
mod stand_ins;
mod table;
mod tls;
mod tls_context;
mod tls_words;
mod upgrade;
mod upgraded;

pub use context::Unimplemented;
pub use fuzz::fuzz_one;
pub use keyword::{Keyword, KeywordState, Prefixes, Sections};
pub use load::{Options, load, load_after, parse_document};
pub use lower::LoadedConfig;
pub use machine::{EmptyMachine, Machine, StandInMachine};
pub use render::{
    TextOptions, alerts_are_of_threads, closing_lines, diagnostic_text, diagnostics_text,
    json_lines, keyword_json, keyword_markdown, keyword_text,
};
pub use tls::{CrtListText, certificate_list};
pub use tls_context::compile_bind_tls_settings;
pub use upgrade::{LineRewrite, UpgradeOutcome};
pub use upgraded::upgrade;

#[cfg(test)]
mod tests;

/// All rows: sections first, then the words of bind and server lines, then the actions of rules,
/// then samples and converters.
#[must_use]
pub fn keywords() -> Vec<Keyword> {
    let mut all = global::keywords();
    all.extend(proxy::keywords());
    all.extend(section::keywords());
    all.extend(bind::keywords());
    all.extend(server::keywords());
    all.extend_from_slice(actions::keywords());
    all.extend_from_slice(samples::keywords());
    all
}
