//! What can be said of an expression without searching: where its matches begin, how long they are.

use crate::byte_set::ByteSet;

use super::tree::{Look, Node, Order, Place, Repeat};
use super::{Skipping, Starts};

/// How many bytes a part takes: at least, and at most where there is a limit.
pub(super) type Width = (u32, Option<u32>);

/// Where matches can begin.
pub(super) fn starts(root: &Node) -> Starts {
    let mut first = ByteSet::of(|_| false);
    let can_be_empty = add_first(root, &mut first);
    let required = required(root);
    Starts {
        anchored: is_anchored(root),
        skipping: skipping(root),
        first: (!can_be_empty).then_some(first),
        required: (0..=u8::MAX)
            .filter(|byte| required.contains(*byte))
            .collect(),
    }
}

/// Adds the bytes that a match of `node` can begin with; whether it can match without a byte.
fn add_first(node: &Node, first: &mut ByteSet) -> bool {
    match node {
        Node::Set(set) => {
            first.add(set, false);
            false
        }
        Node::Sequence(nodes) => nodes.iter().all(|node| add_first(node, first)),
        Node::Choice(nodes) => {
            let mut can_be_empty = false;
            for node in nodes {
                can_be_empty |= add_first(node, first);
            }
            can_be_empty
        }
        Node::Group(_, node) | Node::Atomic(node) => add_first(node, first),
        Node::Repeat(Repeat {
            node, least, most, ..
        }) => *most == Some(0) || add_first(node, first) || *least == 0,
        Node::Condition { yes, no, .. } => {
            let can_be_empty = add_first(yes, first);
            add_first(no, first) || can_be_empty
        }
        Node::Reference { .. } => {
            first.add_range(0, u8::MAX);
            true
        }
        Node::Look(_) | Node::Place(_) | Node::Keep => true,
    }
}

/// The bytes that stand in, or behind the beginning of, whatever `node` matches.
fn required(node: &Node) -> ByteSet {
    let none = || ByteSet::of(|_| false);
    match node {
        Node::Set(set) => match set.single() {
            Some(_) => (**set).clone(),
            None => none(),
        },
        Node::Sequence(nodes) => nodes.iter().fold(none(), |mut all, node| {
            all.add(&required(node), false);
            all
        }),
        Node::Choice(nodes) => {
            let all = nodes.iter().map(required);
            all.reduce(|one, other| common(&one, &other))
                .unwrap_or_else(none)
        }
        Node::Repeat(Repeat {
            node, least: 1.., ..
        })
        | Node::Group(_, node)
        | Node::Atomic(node)
        | Node::Look(Look {
            ahead: true,
            negated: false,
            node,
        }) => required(node),
        Node::Condition { yes, no, .. } => common(&required(yes), &required(no)),
        _ => none(),
    }
}

fn common(one: &ByteSet, other: &ByteSet) -> ByteSet {
    ByteSet::of(|byte| one.contains(byte) && other.contains(byte))
}

fn is_anchored(node: &Node) -> bool {
    match node {
        Node::Place(Place::Start) => true,
        Node::Sequence(nodes) => {
            let takes_nothing = |node: &&Node| matches!(node, Node::Place(_) | Node::Look(_));
            let before = nodes.iter().take_while(takes_nothing).count();
            nodes.iter().take(before + 1).any(is_anchored)
        }
        Node::Choice(nodes) => nodes.iter().all(is_anchored),
        Node::Group(_, node) | Node::Atomic(node) => is_anchored(node),
        _ => false,
    }
}

fn skipping(root: &Node) -> Option<Skipping> {
    let first = match root {
        Node::Sequence(nodes) => nodes.first()?,
        node => node,
    };
    let Node::Repeat(Repeat {
        node,
        least: 0,
        most: None,
        order: Order::Most | Order::Least,
    }) = first
    else {
        return None;
    };
    let Node::Set(set) = &**node else {
        return None;
    };
    if has_search_start(root) {
        return None;
    }
    match set.all_but_one() {
        Some(b'\n') => Some(Skipping::Line),
        _ => set.is_all().then_some(Skipping::All),
    }
}

fn has_search_start(node: &Node) -> bool {
    match node {
        Node::Place(place) => *place == Place::SearchStart,
        Node::Sequence(nodes) | Node::Choice(nodes) => nodes.iter().any(has_search_start),
        Node::Group(_, node) | Node::Atomic(node) => has_search_start(node),
        Node::Repeat(repeat) => has_search_start(&repeat.node),
        Node::Look(look) => has_search_start(&look.node),
        Node::Condition { yes, no, .. } => has_search_start(yes) || has_search_start(no),
        Node::Set(_) | Node::Reference { .. } | Node::Keep => false,
    }
}

/// How many bytes `node` takes; `groups` says it of the groups that ended before.
pub(super) fn width(node: &Node, groups: &mut Vec<Option<Width>>) -> Width {
    match node {
        Node::Set(_) => (1, Some(1)),
        Node::Sequence(nodes) => nodes.iter().fold((0, Some(0)), |sum, node| {
            let more = width(node, groups);
            let most = sum
                .1
                .zip(more.1)
                .and_then(|(one, other): (u32, u32)| one.checked_add(other));
            (sum.0.saturating_add(more.0), most)
        }),
        Node::Choice(nodes) => {
            let widths = nodes.iter().map(|node| width(node, groups));
            widths.reduce(either).unwrap_or((0, Some(0)))
        }
        Node::Group(number, node) => {
            let is = width(node, groups);
            if groups.len() <= *number {
                groups.resize(number + 1, None);
            }
            groups[*number] = Some(is);
            is
        }
        Node::Atomic(node) => width(node, groups),
        Node::Repeat(Repeat {
            node, least, most, ..
        }) => {
            let once = width(node, groups);
            let most = most
                .zip(once.1)
                .and_then(|(times, once)| times.checked_mul(once));
            (
                once.0.saturating_mul(*least),
                if once.1 == Some(0) { Some(0) } else { most },
            )
        }
        Node::Reference { group, .. } => {
            let known = groups.get(*group).copied().flatten();
            known.unwrap_or((0, None))
        }
        Node::Condition { yes, no, .. } => either(width(yes, groups), width(no, groups)),
        Node::Look(look) => {
            width(&look.node, groups);
            (0, Some(0))
        }
        Node::Place(_) | Node::Keep => (0, Some(0)),
    }
}

fn either(one: Width, other: Width) -> Width {
    let most = one.1.zip(other.1).map(|(one, other)| one.max(other));
    (one.0.min(other.0), most)
}
