//! The environment in which a rule is parsed.

use ballast_expr::{AclSet, ExpressionError, PatternFileReader};

use crate::rule_set_kind::Capability;

/// The environment in which a rule is parsed.
pub struct ParseEnv<'a> {
    /// The ACLs declared so far in the section.
    pub acls: &'a AclSet,
    /// Reads the files that rules return as content.
    pub files: &'a mut dyn PatternFileReader,
    /// The sides that the section faces.
    pub capability: Capability,
    /// The section's name in messages: `frontend 'web'`.
    pub title: &'a str,
    /// `expose-experimental-directives` is on.
    pub experimental: bool,
    /// The rule makes the page of an `http-error` line: samples of responses may stand there, as in
    /// HAProxy, and have no value.
    pub is_error_page: bool,
    /// Sticky counters per stream: `tune.stick-counters`, 3 by default.
    pub stick_counters: u32,
    /// How many request captures the frontend has so far; `capture ... len` adds one.
    pub request_captures: usize,
    /// Lengths of the request captures that rules added, in order: to be appended to the frontend's
    /// own, of which there were [`ParseEnv::request_captures`] at first.
    pub new_captures: Vec<u32>,
    /// Samples of raw bytes in formats of HTTP, and the words they stand in: they have no value in an
    /// HTTP proxy.
    pub raw_samples: Vec<(&'static str, usize)>,
    /// Warnings; in the same form as errors.
    pub warnings: Vec<ExpressionError>,
}

impl<'a> ParseEnv<'a> {
    /// An environment with all defaults.
    pub fn new(
        acls: &'a AclSet,
        files: &'a mut dyn PatternFileReader,
        capability: Capability,
        title: &'a str,
    ) -> ParseEnv<'a> {
        ParseEnv {
            acls,
            files,
            capability,
            title,
            experimental: false,
            is_error_page: false,
            stick_counters: 3,
            request_captures: 0,
            new_captures: Vec::new(),
            raw_samples: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
