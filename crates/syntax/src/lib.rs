//! Configuration text to a lossless syntax tree with spans; never fails.
//!
//! This crate knows the grammar of `haproxy.cfg` that applies to every line: words, quotes,
//! escapes, variables, sections, conditional blocks, and the formats of times and sizes. It does
//! not know any keyword inside a section. Every text gives a [`Document`]: errors are in
//! [`Document::diagnostics`], and the parts of the tree put together give the text back byte for
//! byte.
//!
//! The crate is pure: files are passed in as bytes, the environment as an [`Env`], and what a
//! condition may ask about the program as [`ProgramFacts`].
//!
//! Source: HAProxy configuration manual, section 2, and HAProxy's observed behaviour.

pub mod byte_text;
mod condition;
mod conditional;
mod diagnostic;
mod document;
mod env;
mod facts;
mod fuzz;
mod lexer;
mod limits;
mod line;
mod parser;
mod section;
mod source;
mod value;
mod version;
mod word;

pub use condition::{ConditionError, PREDICATES, Predicate, evaluate, evaluate_condition};
pub use diagnostic::{Diagnostic, Severity, TextEdit};
pub use document::Document;
pub use env::{Env, EnvNameError};
pub use facts::{FixedFacts, ProgramFacts};
pub use fuzz::fuzz_one;
pub use limits::{
    CONDITION_DEPTH_MAX, CONDITION_NESTING_MAX, DIAGNOSTIC_COUNT_MAX, EXPANDED_BYTES_MAX,
    FILE_BYTES_MAX, HAPROXY_WORD_COUNT_MAX, LINE_BYTES_MAX, LINE_COUNT_MAX,
    RESOLVED_LINE_BYTES_MAX, WORD_COUNT_MAX,
};
pub use line::{Directive, LineKind, LinePart, LinePartKind, SourceLine};
pub use parser::{Parser, parse, parse_str};
pub use section::{SECTIONS, Section, SectionKind, SectionNaming, SectionPlace, SectionRow};
pub use source::{FileId, Location, SourceMap, Span};
pub use value::{
    ParsedTime, TimeUnit, ValueError, ValueErrorKind, parse_size, parse_time, trailing_after_time,
};
pub use version::{HaproxyVersion, SslVersion};
pub use word::Word;
