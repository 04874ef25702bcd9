//! A catalogue row: everything about a keyword in one place.
//!
//! A keyword is known only by its row. Parsing and lowering look words up in a
//! [`crate::table::Table`] of rows; the compatibility table, its JSON form and `docs/keywords.md`
//! are printed from the same rows; the examples of each row are tests.

use std::fmt;
use std::ops::BitOr;

use ballast_syntax::{Diagnostic, SectionKind};

use crate::args::Args;
use crate::context::{Context, planned_release};
use crate::feature::NEWER;

/// A set of places where a keyword may occur: sections, and lines that have words of their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sections(pub u32);

macro_rules! section_words {
    ($($name:ident = $bit:expr, $word:expr;)*) => {
        impl Sections {
            $(#[doc = concat!("`", $word, "`.")] pub const $name: Sections = Sections(1 << $bit);)*

            /// Every single place with its word.
            pub const PLACES: &'static [(Sections, &'static str)] = &[$((Sections::$name, $word)),*];
        }
    };
}

section_words! {
    GLOBAL = 0, "global";
    DEFAULTS = 1, "defaults";
    FRONTEND = 2, "frontend";
    LISTEN = 3, "listen";
    BACKEND = 4, "backend";
    PEERS = 5, "peers";
    RESOLVERS = 6, "resolvers";
    USERLIST = 7, "userlist";
    MAILERS = 8, "mailers";
    CACHE = 9, "cache";
    HTTP_ERRORS = 10, "http-errors";
    RING = 11, "ring";
    LOG_FORWARD = 12, "log-forward";
    LOG_PROFILE = 13, "log-profile";
    CRT_STORE = 14, "crt-store";
    ACME = 15, "acme";
    HEALTHCHECK = 16, "healthcheck";
    TRACES = 17, "traces";
    FCGI_APP = 18, "fcgi-app";
    NAMESPACE_LIST = 19, "namespace_list";
    PROGRAM = 20, "program";
    BIND = 21, "bind line";
    SERVER = 22, "server line";
    CRT_LIST = 23, "crt-list line";
    CRT_LOAD = 24, "crt-store load line";
    STATS_SOCKET = 25, "stats socket line";
    RULES = 26, "rules";
    SAMPLES = 27, "samples";
    CONVERTERS = 28, "converters";
}

impl Sections {
    /// `defaults`, `frontend`, `listen`, `backend`: all proxies.
    pub const PROXIES: Sections = Sections(0b11110);
    /// `defaults`, `frontend`, `listen`: the client side.
    pub const FRONT: Sections = Sections(0b01110);
    /// `defaults`, `listen`, `backend`: the server side.
    pub const BACK: Sections = Sections(0b11010);
    /// `defaults`, `listen`, `backend`, `healthcheck`: where checks are described.
    pub const CHECKS: Sections = Sections(0b11010 | 1 << 16);
    /// `frontend`, `listen`.
    pub const FRONT_ONLY: Sections = Sections(0b01100);
    /// `listen`, `backend`.
    pub const BACK_ONLY: Sections = Sections(0b11000);
    /// `frontend`, `listen`, `backend`: every proxy but `defaults`.
    pub const NAMED: Sections = Sections(0b11100);

    /// Whether the sets have a place in common.
    #[must_use]
    pub const fn has(self, section: Sections) -> bool {
        self.0 & section.0 != 0
    }

    /// The set of one section.
    #[must_use]
    pub fn of(kind: SectionKind) -> Sections {
        Sections::PLACES
            .iter()
            .find(|(_, word)| *word == kind.word())
            .map_or(Sections(0), |(section, _)| *section)
    }

    /// The words of the places.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Sections::PLACES
            .iter()
            .filter(move |(section, _)| self.has(*section))
            .map(|(_, word)| *word)
    }
}

impl BitOr for Sections {
    type Output = Sections;
    fn bitor(self, other: Sections) -> Sections {
        Sections(self.0 | other.0)
    }
}

impl fmt::Display for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(word)?;
        }
        Ok(())
    }
}

/// How a keyword is treated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeywordState {
    /// It does what the manual says.
    Honoured,
    /// It is accepted and has no effect, for this reason. Tables print it as `noted`.
    Ignored(&'static str),
    /// It is refused.
    Refused {
        /// The reason.
        reason: &'static str,
        /// What to write instead; empty when there is nothing.
        instead: &'static str,
    },
    /// It is parsed and checked, but a configuration that contains it is not started. The text
    /// names the feature it is part of (`TLS`, `stick tables`); it is empty when there is none.
    /// Tables print it as `later`.
    Unimplemented(&'static str),
}

impl KeywordState {
    /// The state as one word, for the tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Honoured => "honoured",
            Self::Ignored(_) => "noted",
            Self::Refused { .. } => "refused",
            Self::Unimplemented(_) => "later",
        }
    }

    /// The state's text: reason, feature, replacement; empty when there is none.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Honoured => String::new(),
            Self::Ignored(reason) => reason.to_owned(),
            Self::Refused {
                reason,
                instead: "",
            } => reason.to_owned(),
            Self::Refused { reason, instead } => format!("{reason}; write: {instead}"),
            Self::Unimplemented(feature) => format!("checked; {}", planned_release(feature)),
        }
    }
}

/// Samples and converters that came after HAProxy 3.2 and are carried out all the same.
const NEWER_AND_HONOURED: [&str; 5] = [
    "fe_exists",
    "req.bytes_in",
    "res.bytes_in",
    "reverse",
    "tgroup",
];

/// Which of the prefixes `no` and `default` a keyword accepts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Prefixes {
    /// Neither.
    #[default]
    None,
    /// `no`.
    No,
    /// `no` and `default`.
    NoDefault,
}

/// The printable part of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keyword {
    /// One to three words (`timeout client`).
    pub word: &'static str,
    /// Where it may occur.
    pub sections: Sections,
    /// How it is treated.
    pub state: KeywordState,
    /// The form of its arguments, in the manual's notation.
    pub args: &'static str,
    /// Help: what it does, in one line.
    pub help: &'static str,
    /// An example that is accepted: the whole line as it is written in its section; for words of
    /// bind and server lines the word and its arguments. Empty: the word alone.
    pub good: &'static str,
    /// An example that is not accepted; empty when there is none.
    pub bad: &'static str,
    /// The prefixes that it accepts.
    pub prefixes: Prefixes,
    /// Whether it only makes sense in `mode http`; elsewhere there is a warning.
    pub http: bool,
    /// Whether it needs `expose-experimental-directives`.
    pub experimental: bool,
}

impl Keyword {
    /// Whether HAProxy 3.2 does not have it: later versions do.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        match self.state {
            KeywordState::Honoured => {
                self.sections.has(Sections::SAMPLES | Sections::CONVERTERS)
                    && NEWER_AND_HONOURED.contains(&self.word)
            }
            KeywordState::Ignored(reason) | KeywordState::Refused { reason, .. } => {
                reason.contains("versions after 3.2") || reason == ballast_expr::LATER_THAN_3_2
            }
            KeywordState::Unimplemented(feature) => feature == NEWER,
        }
    }
}

/// Applies a keyword to the draft.
///
/// # Errors
/// With the diagnostic to report; what was applied before stays.
pub(crate) type Handler<C> = fn(&mut C, &mut Args<'_>, &mut Context<'_>) -> Result<(), Diagnostic>;

/// A keyword and its handler on `C`, the draft of its section.
#[derive(Debug)]
pub(crate) struct Row<C: 'static> {
    /// The printable part.
    pub keyword: Keyword,
    /// The handler. For rows that are not honoured it checks the grammar.
    pub handler: Handler<C>,
}

impl<C: 'static> Row<C> {
    /// A row that is honoured, without examples.
    pub(crate) const fn new(
        word: &'static str,
        sections: Sections,
        args: &'static str,
        help: &'static str,
        handler: Handler<C>,
    ) -> Self {
        Self {
            keyword: Keyword {
                word,
                sections,
                state: KeywordState::Honoured,
                args,
                help,
                good: "",
                bad: "",
                prefixes: Prefixes::None,
                http: false,
                experimental: false,
            },
            handler,
        }
    }

    /// With an accepted example and one that is not (empty: none).
    #[must_use]
    pub(crate) const fn examples(mut self, good: &'static str, bad: &'static str) -> Self {
        self.keyword.good = good;
        self.keyword.bad = bad;
        self
    }

    /// Accepted without effect, for this reason.
    #[must_use]
    pub(crate) const fn ignored(mut self, reason: &'static str) -> Self {
        self.keyword.state = KeywordState::Ignored(reason);
        self
    }

    /// Checked, but not implemented.
    #[must_use]
    pub(crate) const fn unimplemented(mut self, feature: &'static str) -> Self {
        self.keyword.state = KeywordState::Unimplemented(feature);
        self
    }

    /// Refused.
    #[must_use]
    pub(crate) const fn refused(mut self, reason: &'static str, instead: &'static str) -> Self {
        self.keyword.state = KeywordState::Refused { reason, instead };
        self
    }

    /// Accepts `no`.
    #[must_use]
    pub(crate) const fn with_no(mut self) -> Self {
        self.keyword.prefixes = Prefixes::No;
        self
    }

    /// Accepts `no` and `default`.
    #[must_use]
    pub(crate) const fn with_no_and_default(mut self) -> Self {
        self.keyword.prefixes = Prefixes::NoDefault;
        self
    }

    /// Needs `expose-experimental-directives`.
    #[must_use]
    pub(crate) const fn experimental(mut self) -> Self {
        self.keyword.experimental = true;
        self
    }

    /// Makes sense in `mode http` only.
    #[must_use]
    pub(crate) const fn http(mut self) -> Self {
        self.keyword.http = true;
        self
    }
}
