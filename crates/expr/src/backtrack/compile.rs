//! From the tree of an expression to steps.

use crate::byte_set::ByteSet;

use super::analysis::{self, Width};
use super::tree::{Look, Node, Order, Place, Repeat, Tree};

/// Steps of one expression, at most: what is repeated a number of times is written out.
const STEPS_MAX: usize = 100_000;
/// Bytes that one may look behind, where their number varies: PCRE2's limit.
const LOOK_BEHIND_MAX: u32 = 255;

/// The slot of where the match is reported from.
pub(super) const KEPT_SLOT: u32 = 0;

/// Slots of a group: where it began this time, and where what it matched last begins and ends.
pub(super) const SLOTS_PER_GROUP: u32 = 3;

/// One step. What is named by a number of type `u32` is another step, unless it is said otherwise.
pub(super) enum Step {
    Accept,
    Byte(u8),
    Set(Box<ByteSet>),
    Run(Box<Run>),
    Jump(u32),
    /// Go on with `first`; turn back to `second`.
    Split {
        first: u32,
        second: u32,
    },
    /// Note the place in a slot.
    Mark(u32),
    /// A group ends.
    Close(u32),
    /// Once more, unless this time took nothing since the mark in that slot.
    Again {
        mark: u32,
        start: u32,
    },
    Place(Place),
    Reference {
        group: u32,
        fold: bool,
    },
    /// Go on with `no` when the group took no part.
    Condition {
        group: u32,
        no: u32,
    },
    /// What follows, up to an [`Step::Accept`], is one way only; then go on with `end`.
    Atomic {
        end: u32,
    },
    LookAhead {
        negated: bool,
        end: u32,
    },
    LookBehind {
        negated: bool,
        least: u32,
        most: u32,
        end: u32,
    },
}

/// Bytes of one set, repeated.
pub(super) struct Run {
    pub(super) set: ByteSet,
    /// The only byte that is not in the set.
    pub(super) all_but: Option<u8>,
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) order: Order,
    /// The byte that must follow.
    pub(super) next: Option<u8>,
}

pub(super) struct Compiled {
    pub(super) steps: Vec<Step>,
    pub(super) slot_count: usize,
}

/// Compiles a tree.
///
/// # Errors
/// When it takes too many steps, or looks behind without a limit.
pub(super) fn compile(tree: &Tree) -> Result<Compiled, String> {
    let groups = u32::try_from(tree.group_count).map_err(|_| "too many groups")?;
    let mut widths = Vec::new();
    analysis::width(&tree.root, &mut widths);
    let mut compiler = Compiler {
        steps: Vec::new(),
        slot_count: KEPT_SLOT + 1 + SLOTS_PER_GROUP * groups,
        widths,
    };
    compiler.node(&tree.root)?;
    compiler.push(Step::Accept)?;
    for at in 1..compiler.steps.len() {
        let Step::Byte(byte) = compiler.steps[at] else {
            continue;
        };
        if let Step::Run(run) = &mut compiler.steps[at - 1] {
            run.next = Some(byte);
        }
    }
    Ok(Compiled {
        steps: compiler.steps,
        slot_count: compiler.slot_count as usize,
    })
}

/// The first slot of a group.
pub(super) const fn group_slot(group: u32) -> u32 {
    KEPT_SLOT + 1 + SLOTS_PER_GROUP * (group - 1)
}

struct Compiler {
    steps: Vec<Step>,
    slot_count: u32,
    widths: Vec<Option<Width>>,
}

type Done<T = ()> = Result<T, String>;

impl Compiler {
    fn here(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("at most STEPS_MAX")
    }

    fn push(&mut self, step: Step) -> Done<usize> {
        if self.steps.len() >= STEPS_MAX {
            return Err("regular expression is too large".to_owned());
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn node(&mut self, node: &Node) -> Done {
        match node {
            Node::Set(set) => {
                self.push(match set.single() {
                    Some(byte) => Step::Byte(byte),
                    None => Step::Set(set.clone()),
                })?;
            }
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.node(node))?,
            Node::Choice(nodes) => self.choice(nodes, Self::node)?,
            Node::Group(number, node) => {
                let number = u32::try_from(*number).map_err(|_| "too many groups")?;
                self.push(Step::Mark(group_slot(number)))?;
                self.node(node)?;
                self.push(Step::Close(number))?;
            }
            Node::Repeat(repeat) => self.repeat(repeat)?,
            Node::Look(look) if look.ahead => {
                let at = self.push(Step::LookAhead {
                    negated: look.negated,
                    end: 0,
                })?;
                self.inner(at, &look.node)?;
            }
            Node::Look(look) => self.look_behind(look)?,
            Node::Atomic(node) => {
                let at = self.push(Step::Atomic { end: 0 })?;
                self.inner(at, node)?;
            }
            Node::Reference { group, fold } => {
                let group = u32::try_from(*group).map_err(|_| "too many groups")?;
                self.push(Step::Reference { group, fold: *fold })?;
            }
            Node::Condition { group, yes, no } => {
                let group = u32::try_from(*group).map_err(|_| "too many groups")?;
                let at = self.push(Step::Condition { group, no: 0 })?;
                self.node(yes)?;
                let end = self.push(Step::Jump(0))?;
                self.steps[at] = Step::Condition {
                    group,
                    no: self.here(),
                };
                self.node(no)?;
                self.steps[end] = Step::Jump(self.here());
            }
            Node::Place(place) => {
                self.push(Step::Place(*place))?;
            }
            Node::Keep => {
                self.push(Step::Mark(KEPT_SLOT))?;
            }
        }
        Ok(())
    }

    /// What stands between the step at `at` and its end.
    fn inner(&mut self, at: usize, node: &Node) -> Done {
        self.node(node)?;
        self.end_inner(at)
    }

    fn end_inner(&mut self, at: usize) -> Done {
        self.push(Step::Accept)?;
        let here = self.here();
        match &mut self.steps[at] {
            Step::Atomic { end } | Step::LookAhead { end, .. } | Step::LookBehind { end, .. } => {
                *end = here;
            }
            _ => {}
        }
        Ok(())
    }

    fn look_behind(&mut self, look: &Look) -> Done {
        match &*look.node {
            // As in PCRE2 the branches are tried in their order, each with its own number of bytes, and the
            // first that matches is the only one. A negated one keeps no group: their order changes nothing.
            Node::Choice(branches) if !look.negated => {
                let at = self.push(Step::Atomic { end: 0 })?;
                self.choice(branches, |this, branch| this.branch_behind(branch, false))?;
                self.end_inner(at)
            }
            node => self.branch_behind(node, look.negated),
        }
    }

    fn branch_behind(&mut self, node: &Node, negated: bool) -> Done {
        let (least, most) = self.width_behind(node)?;
        let at = self.push(Step::LookBehind {
            negated,
            least,
            most,
            end: 0,
        })?;
        self.inner(at, node)
    }

    fn width_behind(&mut self, node: &Node) -> Done<(u32, u32)> {
        // Each branch has its own number of bytes.
        let branches = match node {
            Node::Choice(branches) => branches.as_slice(),
            node => std::slice::from_ref(node),
        };
        let (mut least, mut most) = (u32::MAX, 0);
        for branch in branches {
            let (low, high) = analysis::width(branch, &mut self.widths);
            let high = high.ok_or("length of lookbehind assertion is not limited")?;
            if high > u32::from(u16::MAX) || (low != high && high > LOOK_BEHIND_MAX) {
                return Err("branch too long in lookbehind assertion".to_owned());
            }
            least = least.min(low);
            most = most.max(high);
        }
        Ok((least, most))
    }

    /// Branches, compiled by `each` and tried in their order.
    fn choice(&mut self, nodes: &[Node], each: impl Fn(&mut Self, &Node) -> Done) -> Done {
        let mut ends = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            if number + 1 == nodes.len() {
                each(self, node)?;
                break;
            }
            let split = self.push(Step::Jump(0))?;
            each(self, node)?;
            ends.push(self.push(Step::Jump(0))?);
            self.steps[split] = Step::Split {
                first: u32::try_from(split + 1).expect("at most STEPS_MAX"),
                second: self.here(),
            };
        }
        for end in ends {
            self.steps[end] = Step::Jump(self.here());
        }
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat) -> Done {
        if let Node::Set(set) = &*repeat.node {
            self.push(Step::Run(Box::new(Run {
                set: (**set).clone(),
                all_but: set.all_but_one(),
                least: repeat.least,
                most: repeat.most.unwrap_or(u32::MAX),
                order: repeat.order,
                next: None,
            })))?;
            return Ok(());
        }
        if repeat.order == Order::MostOnly {
            let at = self.push(Step::Atomic { end: 0 })?;
            let inside = Repeat {
                order: Order::Most,
                ..repeat.clone()
            };
            return self.inner(at, &Node::Repeat(inside));
        }
        for _ in 0..repeat.least {
            let before = self.steps.len();
            self.node(&repeat.node)?;
            if self.steps.len() == before {
                // What takes no step is the same however often it stands there, and no limit of steps ends it.
                break;
            }
        }
        match repeat.most {
            None => self.star(repeat),
            Some(most) => self.options(repeat, most - repeat.least),
        }
    }

    /// Any number of times.
    fn star(&mut self, repeat: &Repeat) -> Done {
        let mark = self.slot_count;
        self.slot_count += 1;
        let start = self.here();
        let split = self.push(Step::Jump(0))?;
        self.push(Step::Mark(mark))?;
        self.node(&repeat.node)?;
        self.push(Step::Again { mark, start })?;
        self.steps[split] = split_of(repeat.order, start + 1, self.here());
        Ok(())
    }

    /// Up to so many times.
    fn options(&mut self, repeat: &Repeat, times: u32) -> Done {
        let mut splits = Vec::new();
        for _ in 0..times {
            splits.push(self.push(Step::Jump(0))?);
            self.node(&repeat.node)?;
        }
        let end = self.here();
        for split in splits {
            let inside = u32::try_from(split + 1).expect("at most STEPS_MAX");
            self.steps[split] = split_of(repeat.order, inside, end);
        }
        Ok(())
    }
}

fn split_of(order: Order, inside: u32, end: u32) -> Step {
    let (first, second) = match order {
        Order::Least => (end, inside),
        Order::Most | Order::MostOnly => (inside, end),
    };
    Step::Split { first, second }
}
