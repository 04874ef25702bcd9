//! Asking: samples, converters, ACLs, patterns, maps and log formats.
//!
//! Everything that a rule can ask stands here: the grammar of sample expressions with its
//! catalogues of fetches and converters, ACLs and the conditions over them, pattern lists and
//! maps, and log formats. Parsing gives plain data ([`Expr`], [`Criterion`], [`Condition`],
//! [`LogFormat`]); linking joins it to lists and ACLs ([`Linker`]); evaluating asks a [`Facts`]
//! and works in a [`Scratch`]. No clock, no chance, no file is touched from here.

mod acl;
mod args;
mod calendar;
mod conv;
mod error;
mod eval;
mod evaluation;
mod expr;
mod facts;
mod fetch;
mod files;
mod hex;
mod logformat;
mod mask;
mod needs;
mod pattern;
mod phase;
mod place;
mod regex;
mod scratch;
mod slot;
mod value;
mod vars;

pub use acl::{
    ACL_WORDS, Acl, AclSet, AclWord, Condition, Criterion, Linker, Misplaced, PREDEFINED, Polarity,
    Source, Target, Term, predefined,
};
pub use args::{Arg, ArgKind, ArgSpec, ArgValue};
pub use conv::{Conv, conv, convs};
pub use error::{Error, nearest};
pub use eval::{Truth, eval, eval_with};
pub use expr::{Expr, Reference, Step};
pub use facts::{
    BackendFacts, CaptureFacts, ConnectionFacts, Ends, ExchangeFacts, Facts, FrontendFacts,
    ListenerFacts, ProcessFacts, Record, ServerFacts, Side, Time,
};
pub use fetch::{Fetch, fetch, fetches};
pub use files::Files;
pub use logformat::{
    ALIASES, Alias, AliasId, CLF_HTTP_LOG_FORMAT, CLF_TCP_LOG_FORMAT, DEFAULT_HTTP_LOG_FORMAT,
    DEFAULT_TCP_LOG_FORMAT, Flags, HTTP_LOG_FORMAT, HTTPS_LOG_FORMAT, Item, LogFormat,
    TCP_LOG_FORMAT, Usage, alias,
};
pub use needs::Needs;
pub use pattern::{
    Discarded, Entry, Handle, Hit, ListChange, Listed, Method, NamedList, Pair, PatternError,
    PatternRef, Probe, RuntimeEntries, Store, Which, WrittenEntries, merge, parse_payload,
};
pub use phase::{Phase, Phases};
pub use place::Place;
pub use regex::{Groups, Regex};
pub use scratch::Scratch;
pub use slot::Slot;
pub use value::{Kind, Value};
pub use vars::{Scope, VarName};
