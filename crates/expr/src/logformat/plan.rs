//! The steps in which a format is written, made when it is parsed: whether a blank is written is
//! known then nearly always, and so are the texts between items.

use super::encode::Encoding;
use super::numbers::is_bare_number;
use super::{AliasId, Flags, Item, Usage};
use crate::byte_text::bytes_of_text;

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Text, with the blanks in it.
    Text(Box<[u8]>),
    /// One byte of text.
    Byte(u8),
    /// A blank, unless nothing was written since the last one.
    Blank,
    /// An alias that is not encoded.
    Alias(AliasId, Flags),
    /// One that is a number whatever its flags are.
    Number(AliasId),
    /// Another item, by its index.
    Item(usize),
}

/// What is known of what stands before an item.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Before {
    /// A blank, or nothing at all: no blank follows.
    Blank,
    /// Something else.
    Text,
    /// A blank, and items that may have written nothing.
    Unknown,
}

/// The steps of these items.
pub(super) fn steps(usage: Usage, items: &[Item]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut text = Vec::new();
    // Blanks are written once, and not before anything else.
    let mut before = Before::Blank;
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Blank => {
                let next_is_sure = items
                    .get(index + 1)
                    .is_some_and(|next| always_writes(usage, next));
                match before {
                    Before::Blank => {}
                    Before::Text if next_is_sure => text.push(b' '),
                    // Later blanks are compared with this one.
                    Before::Text | Before::Unknown => {
                        end_text(&mut steps, &mut text);
                        steps.push(Step::Blank);
                    }
                }
                before = Before::Blank;
                continue;
            }
            Item::Literal(more) => text.extend_from_slice(&bytes_of_text(more)),
            Item::Alias { alias, flags, .. } if encoding(usage, *flags) == Encoding::Plain => {
                end_text(&mut steps, &mut text);
                steps.push(match is_bare_number(alias.id) {
                    true => Step::Number(alias.id),
                    false => Step::Alias(alias.id, *flags),
                });
            }
            Item::Alias { .. } | Item::Sample { .. } => {
                end_text(&mut steps, &mut text);
                steps.push(Step::Item(index));
            }
        }
        before = match before {
            _ if always_writes(usage, item) => Before::Text,
            Before::Text => Before::Text,
            Before::Blank | Before::Unknown => Before::Unknown,
        };
    }
    end_text(&mut steps, &mut text);
    steps
}

fn end_text(steps: &mut Vec<Step>, text: &mut Vec<u8>) {
    match text.as_slice() {
        [] => {}
        [byte] => steps.push(Step::Byte(*byte)),
        bytes => steps.push(Step::Text(bytes.into())),
    }
    text.clear();
}

/// Whether an item writes something, whatever the exchange is.
fn always_writes(usage: Usage, item: &Item) -> bool {
    match item {
        Item::Literal(text) => !text.is_empty(),
        Item::Blank | Item::Sample { .. } => false,
        Item::Alias { alias, flags, .. } => {
            // What is not known is a dash in a log.
            usage == Usage::Log
                && encoding(usage, *flags) == Encoding::Plain
                && !matches!(
                    alias.id,
                    AliasId::Method
                        | AliasId::Uri
                        | AliasId::Path
                        | AliasId::PathOnly
                        | AliasId::Query
                        | AliasId::HttpVersion
                        | AliasId::RequestLine
                        | AliasId::RequestCaptures
                        | AliasId::RequestCapturesClf
                        | AliasId::ResponseCaptures
                        | AliasId::ResponseCapturesClf
                        | AliasId::Options
                )
        }
    }
}

/// How what has these flags is encoded. In headers and the like HAProxy heeds no such flags.
pub(super) fn encoding(usage: Usage, flags: Flags) -> Encoding {
    match usage {
        Usage::Http => Encoding::Plain,
        Usage::Log | Usage::Text | Usage::UniqueId if flags.json => {
            Encoding::Json { utf8: flags.utf8 }
        }
        Usage::Log | Usage::Text | Usage::UniqueId if flags.cbor => Encoding::Cbor,
        Usage::Log | Usage::Text | Usage::UniqueId => Encoding::Plain,
    }
}
