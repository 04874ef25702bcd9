//! Asking: samples, converters, ACLs, patterns, maps and log formats.
//!
//! Everything that a rule can ask stands here: the grammar of sample expressions with its
//! catalogues of fetches and converters, ACLs and the conditions over them, pattern lists and
//! maps, and log formats. Parsing gives plain data ([`Expr`], [`Criterion`], [`Condition`],
//! [`LogFormat`]); linking joins it to lists and ACLs ([`Linker`]); evaluating asks a [`Facts`]
//! and works in a [`Scratch`]. No clock, no chance, no file is touched from here.

mod acl;
mod args;
mod argument_check;
mod backtrack;
mod base64;
mod byte_set;
mod byte_text;
mod calendar;
mod cast_help;
mod condition_index;
mod condition_result;
mod config_line;
mod conv;
mod effects;
mod error;
mod eval;
mod evaluation;
mod expr;
mod facts;
mod fetch;
mod files;
mod fix_message;
mod groups;
mod hex;
mod links;
mod logformat;
mod mask;
mod message_digest;
mod needs;
mod number_text;
mod pattern;
mod pcre;
mod pcre_class;
mod pcre_escape;
mod pcre_property;
mod phase;
mod protobuf;
mod public_key;
mod rdp;
mod regex;
mod required_text;
mod scratch;
mod search_limit;
mod set_condition;
mod shared_sample;
mod slot;
mod table_key;
mod value;
mod vars;

pub use acl::{
    ACL_WORDS, Acl, AclSet, AclWord, Condition, Criterion, Linker, MisplacedAcl, PREDEFINED,
    PatternSource, Polarity, Term, TermTarget, predefined,
};
pub use args::{Arg, ArgKind, ArgSpec, ArgValue};
pub use byte_text::{bytes_of_text, is_text, path_of_text, text_of_bytes};
pub use cast_help::missing_cast;
pub use condition_index::{Candidates, ConditionIndex};
pub use condition_result::ConditionResult;
pub use config_line::{ConfigLine, FileName};
pub use conv::{Converter, converter, converters, is_forwarded_element};
pub use effects::SideEffects;
pub use error::{ExpressionError, nearest};
pub use eval::{eval, eval_as, eval_with};
pub use expr::{ConverterStep, Expr, ExpressionReference};
pub use facts::{
    AddressPair, BackendFacts, BodyFacts, CaptureFacts, CertificateFacts, CertificateOwner,
    ConnectionError, ConnectionFacts, ExchangeFacts, ExchangeNumbers, Facts, FrontendFacts,
    HelloFacts, ListenerFacts, NamePart, PasswordCheck, PeerVerification, ProcessFacts,
    ServerFacts, Side, StreamFacts, TcpFacts, Time, TlsError, TlsSessionFacts, UserFacts,
};
pub use fetch::{Fetch, LATER_THAN_3_2, cipher_name, fetch, fetches, version_name};
pub use files::PatternFileReader;
pub use groups::Groups;
pub use links::{LinkedAcl, Links};
pub use logformat::{
    ALIASES, Alias, AliasId, CLF_HTTP_LOG_FORMAT, CLF_TCP_LOG_FORMAT, DEFAULT_HTTP_LOG_FORMAT,
    DEFAULT_TCP_LOG_FORMAT, Flags, HTTP_LOG_FORMAT, HTTPS_LOG_FORMAT, Item, LogFormat,
    TCP_LOG_FORMAT, Usage, alias,
};
pub use needs::Needs;
pub use pattern::{
    DiscardedEntries, EntryPair, EntrySelector, Handle, ListChange, ListLookup, ListMatch,
    ListedPatterns, MatchMethod, NamedList, PatternEntry, PatternError, PatternRef, RuntimeEntries,
    Store, WrittenEntries, merge, parse_payload,
};
pub use phase::{Phase, Phases};
pub use rdp::rdp_cookie;
pub use regex::Regex;
pub use scratch::Scratch;
pub use search_limit::{SearchLimit, SharedSteps};
pub use set_condition::SetCondition;
pub use shared_sample::LastSample;
pub use slot::LinkSlot;
pub use table_key::{address_key, key_of, kind_of_keys};
pub use value::{SampleKind, Value};
pub use vars::{VarName, VarScope};
