//! The draft of the sections other than proxies and `global`.

use std::sync::Arc;

use ballast_model::{
    CertificateLoad, CertificateStoreSection, Config, ErrorPages, FileBases, ListedUser,
    LogProfile, Userlist,
};
use ballast_syntax::{Diagnostic, SectionKind, Span};

use crate::build::Drafts;
use crate::context::Context;
use crate::link;

/// A section being read.
#[derive(Debug)]
pub(crate) struct PlainSectionDraft {
    /// Its kind.
    pub(crate) kind: SectionKind,
    /// Its name; empty when it has none.
    pub(crate) name: String,
    /// Pages of an `http-errors` section.
    pub(crate) pages: ErrorPages,
    /// Users of a `userlist` section, and where they stand.
    pub(crate) users: Vec<(ListedUser, Span)>,
    /// Groups of a `userlist` section, the users that each names, and the places.
    pub(crate) groups: Vec<(String, Vec<String>, Span)>,
    /// ACLs of an `fcgi-app` section.
    pub(crate) acls: ballast_expr::AclSet,
    /// Names of servers or nameservers that must be unique.
    pub(crate) members: Vec<String>,
    /// Keywords that occurred, for sections with required words.
    pub(crate) seen_keywords: Vec<&'static str>,
    /// `crt-base` and `key-base` of a `crt-store` section.
    pub(crate) bases: FileBases,
    /// `load` lines of a `crt-store` section.
    pub(crate) loads: Vec<CertificateLoad>,
    /// What a `log-profile` section says.
    pub(crate) log_profile: LogProfile,
}

impl PlainSectionDraft {
    /// An empty section.
    pub(crate) fn new(kind: SectionKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            pages: ErrorPages::default(),
            users: Vec::new(),
            groups: Vec::new(),
            acls: ballast_expr::AclSet::new(),
            members: Vec::new(),
            seen_keywords: Vec::new(),
            bases: FileBases::default(),
            loads: Vec::new(),
            log_profile: LogProfile::named(name),
        }
    }

    /// Passes on what other sections or the model need.
    pub(crate) fn finish(mut self, span: Span, context: &mut Context<'_>, drafts: &mut Drafts) {
        match self.kind {
            SectionKind::CrtStore => self.certificate_store(drafts),
            SectionKind::HttpErrors => {
                let groups = &mut context.declarations.error_groups;
                groups.insert(self.name, self.pages);
            }
            SectionKind::LogProfile => {
                link::link_log_profile(&mut self.log_profile, span, context);
                drafts.log_profiles.push(Arc::new(self.log_profile));
            }
            SectionKind::Userlist => self.userlist(context, &mut drafts.config),
            SectionKind::FcgiApp if !self.seen_keywords.contains(&"docroot") => {
                let message = format!("FCGI application '{}' has no docroot", self.name);
                context.report(Diagnostic::alert("missing-argument", message).at(span));
            }
            SectionKind::Resolvers
                if self.members.is_empty()
                    && !self.seen_keywords.contains(&"parse-resolv-conf") =>
            {
                let message = format!("resolvers '{}' has no nameservers configured!", self.name);
                context.warn("no-nameserver", message, span);
            }
            SectionKind::Cache if !self.seen_keywords.contains(&"total-max-size") => {
                let message = format!("the size of cache '{}' is not set", self.name);
                context.report(Diagnostic::alert("missing-argument", message).at(span));
            }
            _ => {}
        }
    }

    /// Adds the certificates to the store of that name.
    fn certificate_store(self, drafts: &mut Drafts) {
        let stores = &mut drafts.global.tls.certificate_stores;
        if let Some(store) = stores.iter_mut().find(|store| store.name == self.name) {
            store.loads.extend(self.loads);
            return;
        }
        stores.push(CertificateStoreSection {
            name: self.name,
            loads: self.loads,
        });
    }

    /// Adds to users the groups that name them.
    fn userlist(self, context: &mut Context<'_>, config: &mut Config) {
        let mut list = Userlist {
            name: self.name,
            ..Userlist::default()
        };
        let names: Vec<String> = self.groups.iter().map(|(name, ..)| name.clone()).collect();
        for (mut user, span) in self.users {
            for group in &user.groups {
                if !names.contains(group) {
                    let message = format!("userlist '{}': no such group '{group}'", list.name);
                    context.report(Diagnostic::alert("unknown-group", message).at(span));
                }
            }
            for (group, users, _) in &self.groups {
                if users.contains(&user.name) && !user.groups.contains(group) {
                    user.groups.push(group.clone());
                }
            }
            list.users.push(user);
        }
        for (group, users, span) in &self.groups {
            for user in users {
                if !list.users.iter().any(|known| known.name == *user) {
                    let message = format!(
                        "userlist '{}': no such user '{user}' of '{group}'",
                        list.name
                    );
                    context.report(Diagnostic::alert("unknown-user", message).at(*span));
                }
            }
        }
        list.groups = names;
        config.userlists.push(list);
    }
}
