//! The rules of one proxy.

use std::sync::Arc;
use std::time::Duration;

use ballast_expr::{AclSet, ExpressionError, Linker, Needs};

use crate::log_profile::LogProfile;
use crate::rule::Rule;
use crate::rule_list::RuleList;
use crate::rule_set_kind::RuleSetKind;

/// The rule sets of one proxy, each in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSets {
    /// `quic-initial`.
    pub quic_initial: RuleList,
    /// `tcp-request connection`.
    pub tcp_connection: RuleList,
    /// `tcp-request session`.
    pub tcp_session: RuleList,
    /// `tcp-request content`.
    pub tcp_content: RuleList,
    /// `tcp-request inspect-delay`: how long the content rules may wait for data.
    pub request_inspect_delay: Option<Duration>,
    /// `tcp-response content`.
    pub tcp_response: RuleList,
    /// `tcp-response inspect-delay`.
    pub response_inspect_delay: Option<Duration>,
    /// `http-request`.
    pub http_request: RuleList,
    /// `redirect` lines: they run after the `http-request` rules.
    pub redirects: RuleList,
    /// `http-response`.
    pub http_response: RuleList,
    /// `http-after-response`.
    pub http_after_response: RuleList,
    /// `http-error` lines with log formats: each is a `return` that makes one error page. They run one
    /// at a time, when the proxy answers with that page, and never as a list.
    pub error_replies: RuleList,
}

impl RuleSets {
    /// The rules of one rule set.
    pub fn of(&self, rule_set: RuleSetKind) -> &RuleList {
        match rule_set {
            RuleSetKind::QuicInitial => &self.quic_initial,
            RuleSetKind::TcpConnection => &self.tcp_connection,
            RuleSetKind::TcpSession => &self.tcp_session,
            RuleSetKind::TcpContent => &self.tcp_content,
            RuleSetKind::TcpResponse => &self.tcp_response,
            RuleSetKind::HttpRequest => &self.http_request,
            RuleSetKind::HttpResponse => &self.http_response,
            RuleSetKind::HttpAfterResponse => &self.http_after_response,
            RuleSetKind::Redirect => &self.redirects,
        }
    }

    /// The rules of one rule set, mutable.
    pub fn of_mut(&mut self, rule_set: RuleSetKind) -> &mut RuleList {
        match rule_set {
            RuleSetKind::QuicInitial => &mut self.quic_initial,
            RuleSetKind::TcpConnection => &mut self.tcp_connection,
            RuleSetKind::TcpSession => &mut self.tcp_session,
            RuleSetKind::TcpContent => &mut self.tcp_content,
            RuleSetKind::TcpResponse => &mut self.tcp_response,
            RuleSetKind::HttpRequest => &mut self.http_request,
            RuleSetKind::HttpResponse => &mut self.http_response,
            RuleSetKind::HttpAfterResponse => &mut self.http_after_response,
            RuleSetKind::Redirect => &mut self.redirects,
        }
    }

    /// Every rule: those of each rule set, then [`Self::error_replies`].
    pub fn all_rules(&self) -> impl Iterator<Item = &Rule> {
        let lists = RuleSetKind::ALL
            .into_iter()
            .map(|rule_set| self.of(rule_set));
        lists.chain([&self.error_replies]).flatten()
    }

    /// Every rule, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Rule> {
        self.lists_mut().flat_map(|list| list.iter_mut())
    }

    fn lists_mut(&mut self) -> impl Iterator<Item = &mut RuleList> {
        [
            &mut self.quic_initial,
            &mut self.tcp_connection,
            &mut self.tcp_session,
            &mut self.tcp_content,
            &mut self.tcp_response,
            &mut self.http_request,
            &mut self.redirects,
            &mut self.http_response,
            &mut self.http_after_response,
            &mut self.error_replies,
        ]
        .into_iter()
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        RuleSetKind::ALL
            .iter()
            .all(|rule_set| self.of(*rule_set).is_empty())
    }

    /// Appends the rules of `more`; its delays replace these where it has some.
    pub fn append(&mut self, mut more: RuleSets) {
        for rule_set in RuleSetKind::ALL {
            self.of_mut(rule_set).append(more.of_mut(rule_set));
        }
        self.error_replies.append(&mut more.error_replies);
        self.request_inspect_delay = more.request_inspect_delay.or(self.request_inspect_delay);
        self.response_inspect_delay = more.response_inspect_delay.or(self.response_inspect_delay);
    }

    /// What is checked but not implemented, in order: the words of actions, places, samples and
    /// converters. A configuration that contains one is not started.
    pub fn unimplemented(&self, acls: &AclSet) -> Vec<&'static str> {
        let mut all = Vec::new();
        for rule_set in RuleSetKind::ALL {
            let rules = self.of(rule_set);
            if !rules.is_empty() && !rule_set.is_implemented() {
                all.push(rule_set.words());
            }
            all.extend(rules.iter().flat_map(|rule| rule.unimplemented(acls)));
        }
        all
    }

    /// What the rules of one rule set need. `acls` holds the ACLs of the proxy; after linking it may
    /// be empty.
    pub fn needs(&self, rule_set: RuleSetKind, acls: &AclSet) -> Needs {
        let rules = self.of(rule_set).iter();
        rules.fold(Needs::NONE, |sum, rule| sum | rule.needs(acls))
    }

    /// Links every rule to the ACLs, lists and maps it names.
    ///
    /// # Errors
    /// One for each rule that could not be linked.
    pub fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Vec<ExpressionError>> {
        let errors: Vec<ExpressionError> = self
            .iter_mut()
            .filter_map(|rule| rule.link(linker).err())
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Makes the indexes of long lists. All rules must be linked, and there must be no more to come.
    pub fn make_indexes(&mut self) {
        self.lists_mut().for_each(RuleList::make_index);
    }

    /// Sets the pages that `errorfiles` arguments name. `page` returns the page of a section for a
    /// status, as a whole response; if a section has no page for the status, the proxy's page is
    /// used.
    pub fn link_pages(&mut self, mut page: impl FnMut(&str, u16) -> Option<Arc<[u8]>>) {
        for rule in self
            .lists_mut()
            .flat_map(RuleList::iter_mut_keeping_conditions)
        {
            rule.action.link_pages(&mut page);
        }
    }

    /// Sets the log profiles that `do-log` rules name. `profile` returns the profile of a name; where
    /// there is none, lines are built as without one.
    pub fn link_profiles(&mut self, mut profile: impl FnMut(&str) -> Option<Arc<LogProfile>>) {
        for rule in self
            .lists_mut()
            .flat_map(RuleList::iter_mut_keeping_conditions)
        {
            rule.action.link_profile(&mut profile);
        }
    }
}
