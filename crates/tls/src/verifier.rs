//! How a chain of certificates is judged: OpenSSL's way, with OpenSSL's errors, because that is
//! what `ssl_c_err` tells, `crt-ignore-err` ignores, and internal authorities were made for
//! (openssl-verification-options(1)). A browser's rules would refuse certificates that have served
//! for years: version 1 roots, names in the subject only, no extended key usage.
//!
//! Some signatures that OpenSSL checks cannot be checked here (`signatures`): where the weak digest (68)
//! of one is ignored, a bad signature (7) is found. The errors 32 to 63, violated name constraints
//! among them, are ignored by no line, as under HAProxy 3.2.
//!
//! The chain is built without going back: the first trusted issuer that fits, else the first one
//! that was sent. Every step uses up a certificate, so a peer cannot make it long.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, GeneralSubtree, X509Certificate};

use crate::authorities::{RevocationList, TrustedAuthorities};
use crate::signatures::SignedObject;
use crate::verify_error::{IgnoredErrors, VerifyError};
use crate::x509::{Facts, Purpose, with_name_constraints};

/// The most certificates of a peer that are looked at.
const SENT_MAX: usize = 32;
/// The longest chain (OpenSSL's default depth).
const CHAIN_MAX: usize = 100;

/// The errors that HAProxy 3.2 ends the handshake for whatever its lines say.
const NEVER_IGNORED: RangeInclusive<u8> = 32..=63;

/// What verification found: the values of `ssl_c_verify`, `ssl_c_err`, `ssl_c_ca_err` and
/// `ssl_c_ca_err_depth`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PeerVerdict {
    /// The last error, 0 without one.
    pub result: VerifyError,
    /// The first error of the leaf.
    pub error: VerifyError,
    /// The first error of an authority.
    pub ca_error: VerifyError,
    /// The position in the chain of that authority.
    pub ca_error_depth: u8,
    /// True when an error was found that is not ignored: the handshake fails with `result`.
    pub is_refused: bool,
}

/// What a chain is judged by.
#[derive(Clone, Copy)]
pub(crate) struct ChainRules<'t> {
    pub(crate) trust: &'t TrustedAuthorities,
    pub(crate) purpose: Purpose,
    pub(crate) ca_ignored: IgnoredErrors,
    pub(crate) crt_ignored: IgnoredErrors,
    pub(crate) algorithms: &'t WebPkiSupportedAlgorithms,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

/// The first error that is not ignored ends the judgement.
struct Refused;

/// The errors of one judgement.
struct Findings<'j> {
    rules: &'j ChainRules<'j>,
    verdict: PeerVerdict,
}

impl Findings<'_> {
    fn record_error(&mut self, error: VerifyError, depth: usize) -> Result<(), Refused> {
        let verdict = &mut self.verdict;
        verdict.result = error;
        let ignored = if depth == 0 {
            if verdict.error == VerifyError::OK {
                verdict.error = error;
            }
            self.rules.crt_ignored
        } else {
            if verdict.ca_error == VerifyError::OK {
                verdict.ca_error = error;
                verdict.ca_error_depth = u8::try_from(depth).unwrap_or(u8::MAX);
            }
            self.rules.ca_ignored
        };
        if ignored.contains(error) && !NEVER_IGNORED.contains(&error.0) {
            return Ok(());
        }
        verdict.is_refused = true;
        Err(Refused)
    }

    fn found_if(&mut self, is_so: bool, error: VerifyError, depth: usize) -> Result<(), Refused> {
        if is_so {
            self.record_error(error, depth)
        } else {
            Ok(())
        }
    }
}

/// The leaf, its issuer, and so on.
struct Chain {
    certificates: Vec<Facts>,
    /// True when the last one is a root that is trusted.
    is_trusted: bool,
    /// How many are not from the trusted ones.
    untrusted: usize,
}

impl ChainRules<'_> {
    /// Judges what a peer has shown.
    pub(crate) fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
    ) -> PeerVerdict {
        let mut findings = Findings {
            rules: self,
            verdict: PeerVerdict::default(),
        };
        let _ = self.verify_all(leaf, sent, &mut findings);
        findings.verdict
    }

    /// The end of the chain of what a peer has shown.
    pub(crate) fn root(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
    ) -> Option<CertificateDer<'static>> {
        let sent = sent.iter().take(SENT_MAX).filter_map(Facts::read).collect();
        let mut chain = self.build(Facts::read(leaf)?, sent);
        chain.certificates.pop().map(|root| root.der)
    }

    fn verify_all(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        findings: &mut Findings<'_>,
    ) -> Result<(), Refused> {
        let Some(leaf) = Facts::read(leaf) else {
            findings.record_error(VerifyError::UNSPECIFIED, 0)?;
            return Ok(());
        };
        let sent: Vec<Facts> = sent.iter().take(SENT_MAX).filter_map(Facts::read).collect();
        let chain = self.build(leaf, sent);
        self.check_trust(&chain, findings)?;
        self.check_extensions(&chain.certificates, findings)?;
        self.check_strength(&chain.certificates, findings)?;
        if self.trust.revocation.is_some() {
            self.check_revocation(&chain.certificates, findings)?;
        }
        self.check_signatures(&chain.certificates, findings)?;
        check_names(&chain.certificates, findings)
    }

    fn build(&self, leaf: Facts, mut sent: Vec<Facts>) -> Chain {
        let mut chain = Chain {
            certificates: vec![leaf],
            is_trusted: false,
            untrusted: 1,
        };
        let mut from_trusted = false;
        while let Some(last) = chain.certificates.last() {
            if last.is_self_signed() {
                let mut same = self.trust.of_subject(&last.subject);
                chain.is_trusted = from_trusted || same.any(|trusted| trusted.der == last.der);
                if chain.is_trusted && !from_trusted {
                    chain.untrusted -= 1;
                }
                break;
            }
            if chain.certificates.len() > CHAIN_MAX {
                break;
            }
            let is_valid =
                |facts: &&Facts| (facts.not_before..=facts.not_after).contains(&self.now);
            let candidates: Vec<&Facts> = self
                .trust
                .of_subject(&last.issuer)
                .filter(|trusted| last.may_be_issued_by(trusted))
                .filter(|trusted| {
                    chain
                        .certificates
                        .iter()
                        .all(|used| used.der != trusted.der)
                })
                .collect();
            let trusted = candidates
                .iter()
                .copied()
                .find(is_valid)
                .or(candidates.first().copied());
            let next = match trusted {
                Some(trusted) => {
                    from_trusted = true;
                    trusted.clone()
                }
                None if from_trusted => break,
                None => {
                    let index = sent.iter().position(|issuer| last.may_be_issued_by(issuer));
                    let Some(index) = index else { break };
                    chain.untrusted += 1;
                    sent.swap_remove(index)
                }
            };
            chain.certificates.push(next);
        }
        chain
    }

    fn check_trust(&self, chain: &Chain, findings: &mut Findings<'_>) -> Result<(), Refused> {
        if chain.is_trusted {
            return Ok(());
        }
        let count = chain.certificates.len();
        let is_self_signed = chain.certificates.last().is_some_and(Facts::is_self_signed);
        let error = match (is_self_signed, count) {
            _ if count > CHAIN_MAX => VerifyError::CERT_CHAIN_TOO_LONG,
            (true, 1) => VerifyError::DEPTH_ZERO_SELF_SIGNED_CERT,
            (true, _) => VerifyError::SELF_SIGNED_CERT_IN_CHAIN,
            _ if chain.untrusted < count => VerifyError::UNABLE_TO_GET_ISSUER_CERT,
            _ => VerifyError::UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        };
        findings.record_error(error, count - 1)
    }

    fn check_extensions(
        &self,
        chain: &[Facts],
        findings: &mut Findings<'_>,
    ) -> Result<(), Refused> {
        // Authorities below this one that were not issued by themselves.
        let mut below = 0;
        for (depth, facts) in chain.iter().enumerate() {
            let critical = facts.has_unknown_critical;
            findings.found_if(critical, VerifyError::UNHANDLED_CRITICAL_EXTENSION, depth)?;
            let is_no_authority = depth > 0 && !facts.is_authority;
            findings.found_if(is_no_authority, VerifyError::INVALID_CA, depth)?;
            let is_unfit = is_no_authority || !facts.is_for(self.purpose, depth == 0);
            findings.found_if(is_unfit, VerifyError::INVALID_PURPOSE, depth)?;
            let is_over = facts.path_length.is_some_and(|length| below > length);
            findings.found_if(
                depth > 1 && is_over,
                VerifyError::PATH_LENGTH_EXCEEDED,
                depth,
            )?;
            if depth > 0 && !facts.is_self_issued() {
                below += 1;
            }
        }
        Ok(())
    }

    fn check_strength(&self, chain: &[Facts], findings: &mut Findings<'_>) -> Result<(), Refused> {
        for (depth, facts) in chain.iter().enumerate() {
            let error = match depth {
                0 => VerifyError::EE_KEY_TOO_SMALL,
                _ => VerifyError::CA_KEY_TOO_SMALL,
            };
            findings.found_if(facts.has_weak_key(), error, depth)?;
            let is_top = depth + 1 == chain.len();
            let is_weak = !is_top && facts.has_weak_signature();
            findings.found_if(is_weak, VerifyError::CA_MD_TOO_WEAK, depth)?;
        }
        Ok(())
    }

    /// With `crl-file` every certificate of the chain needs a list, but the root that ends it.
    fn check_revocation(
        &self,
        chain: &[Facts],
        findings: &mut Findings<'_>,
    ) -> Result<(), Refused> {
        for (depth, facts) in chain.iter().enumerate() {
            let issuer = match chain.get(depth + 1) {
                Some(issuer) => issuer,
                None if depth > 0 && facts.is_self_signed() => break,
                None => facts,
            };
            let Some(list) = self.list_of(facts, issuer) else {
                findings.record_error(VerifyError::UNABLE_TO_GET_CRL, depth)?;
                continue;
            };
            let no_sign = !issuer.may_sign_crl();
            findings.found_if(no_sign, VerifyError::KEYUSAGE_NO_CRL_SIGN, depth)?;
            let is_other = !list.is_about(facts);
            findings.found_if(is_other, VerifyError::DIFFERENT_CRL_SCOPE, depth)?;
            let time = self.list_time(list);
            findings.found_if(time != VerifyError::OK, time, depth)?;
            let is_signed = SignedObject::read(&list.der)
                .is_some_and(|signed| signed.is_signed_by(&issuer.key, self.algorithms));
            findings.found_if(!is_signed, VerifyError::CRL_SIGNATURE_FAILURE, depth)?;
            let critical = list.has_unknown_critical;
            findings.found_if(
                critical,
                VerifyError::UNHANDLED_CRITICAL_CRL_EXTENSION,
                depth,
            )?;
            findings.found_if(list.has(&facts.serial), VerifyError::CERT_REVOKED, depth)?;
        }
        Ok(())
    }

    /// The list that fits best: without what is unknown, about the certificate, in time; of equal ones
    /// the newest, for a file may still have yesterday's beside today's.
    fn list_of(&self, facts: &Facts, issuer: &Facts) -> Option<&RevocationList> {
        let lists = self.trust.lists_of(&facts.issuer);
        let fitting = lists
            .filter(|list| !list.is_partial && issuer.has_key_id(list.authority_key_id.as_deref()));
        fitting.min_by_key(|list| {
            (
                list.has_unknown_critical,
                !list.is_about(facts),
                self.list_time(list) != VerifyError::OK,
                Reverse(list.last_update),
            )
        })
    }

    fn list_time(&self, list: &RevocationList) -> VerifyError {
        if list.last_update > self.now {
            VerifyError::CRL_NOT_YET_VALID
        } else if list.next_update.is_some_and(|next| next < self.now) {
            VerifyError::CRL_HAS_EXPIRED
        } else {
            VerifyError::OK
        }
    }

    /// Signatures and times, from the top down.
    fn check_signatures(
        &self,
        chain: &[Facts],
        findings: &mut Findings<'_>,
    ) -> Result<(), Refused> {
        for (depth, facts) in chain.iter().enumerate().rev() {
            match chain.get(depth + 1) {
                Some(issuer) => {
                    let is_signed = SignedObject::read(&facts.der)
                        .is_some_and(|signed| signed.is_signed_by(&issuer.key, self.algorithms));
                    findings.found_if(!is_signed, VerifyError::CERT_SIGNATURE_FAILURE, depth)?;
                }
                // The top is trusted as it is, or there was an error already.
                None if facts.is_self_signed() => {}
                None if depth == 0 => {
                    findings.record_error(VerifyError::UNABLE_TO_VERIFY_LEAF_SIGNATURE, 0)?;
                }
                None => continue,
            }
            let (early, late) = (self.now < facts.not_before, self.now > facts.not_after);
            findings.found_if(early, VerifyError::CERT_NOT_YET_VALID, depth)?;
            findings.found_if(late, VerifyError::CERT_HAS_EXPIRED, depth)?;
        }
        Ok(())
    }
}

/// Name constraints of authorities, on all names below them (RFC 5280, 4.2.1.10).
fn check_names(chain: &[Facts], findings: &mut Findings<'_>) -> Result<(), Refused> {
    for (depth, facts) in chain.iter().enumerate() {
        if depth > 0 && facts.is_self_issued() {
            continue;
        }
        for authority in chain[depth + 1..]
            .iter()
            .filter(|facts| facts.has_name_constraints)
        {
            let error = with_name_constraints(authority, |constraints| {
                let permitted = constraints
                    .permitted_subtrees
                    .as_deref()
                    .unwrap_or_default();
                let excluded = constraints.excluded_subtrees.as_deref().unwrap_or_default();
                name_error(facts, permitted, excluded)
            });
            let error = error.unwrap_or(VerifyError::UNSUPPORTED_CONSTRAINT_SYNTAX);
            if error != VerifyError::OK {
                findings.record_error(error, depth)?;
            }
        }
    }
    Ok(())
}

fn name_error(
    facts: &Facts,
    permitted: &[GeneralSubtree<'_>],
    excluded: &[GeneralSubtree<'_>],
) -> VerifyError {
    let Ok((_, parsed)) = X509Certificate::from_der(&facts.der) else {
        return VerifyError::UNSUPPORTED_NAME_SYNTAX;
    };
    let subject = GeneralName::DirectoryName(parsed.subject().clone());
    let alternatives = parsed.subject_alternative_name().ok().flatten();
    let mut names: Vec<&GeneralName<'_>> = alternatives
        .iter()
        .flat_map(|found| &found.value.general_names)
        .collect();
    if parsed.subject().iter().next().is_some() {
        names.push(&subject);
    }
    // A name in the subject only is a DNS name too.
    let common: Vec<GeneralName<'_>> = parsed
        .subject()
        .iter_common_name()
        .filter(|_| {
            !names
                .iter()
                .any(|name| matches!(name, GeneralName::DNSName(_)))
        })
        .filter_map(|name| name.as_str().ok())
        .filter(|name| name.contains('.') && !name.contains(' '))
        .map(GeneralName::DNSName)
        .collect();
    names.extend(&common);
    for name in names {
        let (mut is_asked, mut is_permitted) = (false, false);
        for subtree in permitted {
            match is_within(name, &subtree.base) {
                NameInSubtree::Yes => (is_asked, is_permitted) = (true, true),
                NameInSubtree::No => is_asked = true,
                NameInSubtree::OtherType => {}
                NameInSubtree::Unknown => return VerifyError::UNSUPPORTED_CONSTRAINT_TYPE,
            }
        }
        if is_asked && !is_permitted {
            return VerifyError::PERMITTED_VIOLATION;
        }
        for subtree in excluded {
            match is_within(name, &subtree.base) {
                NameInSubtree::Yes => return VerifyError::EXCLUDED_VIOLATION,
                NameInSubtree::Unknown => return VerifyError::UNSUPPORTED_CONSTRAINT_TYPE,
                NameInSubtree::No | NameInSubtree::OtherType => {}
            }
        }
    }
    VerifyError::OK
}

/// Whether a name is in the subtree of a name constraint (RFC 5280, 4.2.1.10).
enum NameInSubtree {
    Yes,
    No,
    OtherType,
    Unknown,
}

fn is_within(name: &GeneralName<'_>, base: &GeneralName<'_>) -> NameInSubtree {
    let answer = |is_so| {
        if is_so {
            NameInSubtree::Yes
        } else {
            NameInSubtree::No
        }
    };
    let ends_with = |name: &str, base: &str| {
        let (name, base) = (name.to_ascii_lowercase(), base.to_ascii_lowercase());
        let is_below = name
            .strip_suffix(&base)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.') || base.starts_with('.'));
        base.is_empty() || is_below
    };
    match (name, base) {
        (GeneralName::DNSName(name), GeneralName::DNSName(base)) => answer(ends_with(name, base)),
        (GeneralName::RFC822Name(name), GeneralName::RFC822Name(base)) => {
            let host = name.rsplit_once('@').map_or("", |(_, host)| host);
            answer(match base.contains('@') {
                true => name.eq_ignore_ascii_case(base),
                false if base.starts_with('.') => ends_with(host, base),
                false => host.eq_ignore_ascii_case(base),
            })
        }
        (GeneralName::IPAddress(name), GeneralName::IPAddress(base)) => {
            let (network, mask) = base.split_at(base.len() / 2);
            let is_same = name.len() == network.len()
                && name
                    .iter()
                    .zip(network)
                    .zip(mask)
                    .all(|((name, network), mask)| name & mask == network & mask);
            answer(is_same)
        }
        (GeneralName::URI(name), GeneralName::URI(base)) => match host_of(name) {
            Some(host) if base.starts_with('.') => answer(ends_with(host, base)),
            Some(host) => answer(host.eq_ignore_ascii_case(base)),
            None => NameInSubtree::Unknown,
        },
        (GeneralName::DirectoryName(name), GeneralName::DirectoryName(base)) => {
            let mut parts = name.iter();
            answer(base.iter().all(|base| parts.next() == Some(base)))
        }
        // These are judged; where only one of two is of such a type, the other is not meant.
        (
            GeneralName::DNSName(_)
            | GeneralName::RFC822Name(_)
            | GeneralName::IPAddress(_)
            | GeneralName::URI(_)
            | GeneralName::DirectoryName(_),
            _,
        )
        | (
            _,
            GeneralName::DNSName(_)
            | GeneralName::RFC822Name(_)
            | GeneralName::IPAddress(_)
            | GeneralName::URI(_)
            | GeneralName::DirectoryName(_),
        ) => NameInSubtree::OtherType,
        _ => NameInSubtree::Unknown,
    }
}

/// The host of a URI: what a constraint of URIs is about.
fn host_of(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("://")?;
    let host = rest.split([':', '/']).next()?;
    (!host.is_empty()).then_some(host)
}
