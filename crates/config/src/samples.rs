//! Keyword rows for samples and converters, derived from the catalogues of `ballast_expr`.

use std::sync::LazyLock;

use ballast_expr::{ArgKind, ArgSpec, converters, fetches};

use crate::feature::feature_of;
use crate::keyword::{Keyword, KeywordState, Prefixes, Sections};

/// One keyword for each sample and each converter.
pub(crate) fn keywords() -> &'static [Keyword] {
    static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(all);
    &KEYWORDS
}

fn all() -> Vec<Keyword> {
    let samples = fetches().map(|row| Keyword {
        state: match (row.is_implemented(), row.refusal) {
            (true, _) => KeywordState::Honoured,
            (false, "") => KeywordState::Unimplemented(feature_of(row.word)),
            (false, reason) => KeywordState::Refused {
                reason,
                instead: "",
            },
        },
        ..keyword(row.word, Sections::SAMPLES, row.args, row.help)
    });
    let converters = converters().map(|row| Keyword {
        state: if row.is_implemented() {
            KeywordState::Honoured
        } else {
            KeywordState::Unimplemented(feature_of(row.word))
        },
        ..keyword(row.word, Sections::CONVERTERS, row.args, row.help)
    });
    samples.chain(converters).collect()
}

/// A row whose examples are tested where the word is implemented.
fn keyword(word: &'static str, sections: Sections, args: ArgSpec, help: &'static str) -> Keyword {
    Keyword {
        word,
        sections,
        state: KeywordState::Honoured,
        // The rows of a program live as long as it does, and so may their texts.
        args: Box::leak(form(args).into_boxed_str()),
        help,
        good: "",
        bad: "",
        prefixes: Prefixes::None,
        http: false,
        experimental: false,
    }
}

/// The arguments in the manual's notation: `(<int>[,<text>])`.
fn form(args: ArgSpec) -> String {
    if args.kinds.is_empty() {
        return String::new();
    }
    // Up to twelve arguments of one kind are shown as one that is repeated.
    let shown = if args.kinds.len() > 6 {
        1
    } else {
        args.kinds.len()
    };
    let mut text = String::new();
    for (index, kind) in args.kinds[..shown].iter().enumerate() {
        if index >= args.required {
            text.push('[');
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(word_of(*kind));
    }
    if shown < args.kinds.len() {
        text.push_str("[,...]");
    }
    text.push_str(&"]".repeat(shown.saturating_sub(args.required)));
    format!("({text})")
}

fn word_of(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::Acl => "<ACL>",
        ArgKind::Address => "<address>",
        ArgKind::Base64OrVar => "<base64 or variable>",
        ArgKind::Backend => "<backend>",
        ArgKind::DistccToken => "<token>",
        ArgKind::DnFormat => "<format>",
        ArgKind::File => "<file>",
        ArgKind::FixTag => "<tag>",
        ArgKind::Frontend => "<frontend>",
        ArgKind::Int => "<integer>",
        ArgKind::IntOrVar => "<integer or variable>",
        ArgKind::Ipv4 => "<IPv4 address>",
        ArgKind::Ipv6 => "<IPv6 address>",
        ArgKind::JwtAlgorithmOrVar => "<algorithm or variable>",
        ArgKind::JwtKeyOrVar => "<key or variable>",
        ArgKind::Mask4 => "<IPv4 mask>",
        ArgKind::Mask6 => "<IPv6 mask>",
        ArgKind::MessageDigest => "<digest>",
        ArgKind::ProtobufField => "<field number>",
        ArgKind::ProtobufType => "<type>",
        ArgKind::ProxyValueType => "<type>",
        ArgKind::Regex => "<regex>",
        ArgKind::Server => "<server>",
        ArgKind::SetCondition => "<condition>",
        ArgKind::Table => "<table>",
        ArgKind::Text => "<text>",
        ArgKind::Userlist => "<userlist>",
        ArgKind::Var => "<variable>",
    }
}
