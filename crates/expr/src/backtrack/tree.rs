//! An expression as a tree.

use std::collections::HashMap;

use crate::byte_set::ByteSet;
use crate::pcre::END;

/// A part of an expression.
#[derive(Clone)]
pub(super) enum Node {
    /// One byte of a set.
    Set(Box<ByteSet>),
    /// One after the other.
    Sequence(Vec<Node>),
    /// One of them, tried in order.
    Choice(Vec<Node>),
    /// What is reported, by its number.
    Group(usize, Box<Node>),
    Repeat(Repeat),
    Look(Look),
    /// The first way it matches is the only one.
    Atomic(Box<Node>),
    /// What a group matched.
    Reference {
        group: usize,
        fold: bool,
    },
    /// One of two, for a group that took part or did not.
    Condition {
        group: usize,
        yes: Box<Node>,
        no: Box<Node>,
    },
    Place(Place),
    /// The match is reported from here on.
    Keep,
}

/// A part that is repeated.
#[derive(Clone)]
pub(super) struct Repeat {
    pub(super) node: Box<Node>,
    pub(super) least: u32,
    /// None: without a limit.
    pub(super) most: Option<u32>,
    pub(super) order: Order,
}

/// Which number of repetitions is tried first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Most,
    Least,
    /// The most, and no other.
    MostOnly,
}

/// What must, or must not, stand ahead or behind.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) ahead: bool,
    pub(super) negated: bool,
    pub(super) node: Box<Node>,
}

/// A place in the subject.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// The end, or before a newline that is the end.
    EndOrNewline,
    End,
    LineEnd,
    LineStart,
    /// Where the search began.
    SearchStart,
    Start,
    WordBoundary,
    WordEnd,
    WordInside,
    WordStart,
}

/// An expression.
pub(super) struct Tree {
    pub(super) root: Node,
    pub(super) group_count: usize,
}

/// Reads what [`Pcre`](crate::pcre::Pcre) wrote.
///
/// # Errors
/// When it is nothing that is written there.
pub(super) fn parse(text: &str, fold: bool) -> Result<Tree, String> {
    let (names, group_count) = names(text.as_bytes());
    let mut parser = Parser {
        rest: text.as_bytes(),
        fold,
        groups: 0,
        names,
        looks: 0,
    };
    let root = parser.choice()?;
    if !parser.rest.is_empty() {
        return Err("unmatched closing parenthesis".to_owned());
    }
    Ok(Tree { root, group_count })
}

/// The groups that have a name, and how many there are: they may be referred to before they begin.
fn names(text: &[u8]) -> (HashMap<Vec<u8>, usize>, usize) {
    let mut names = HashMap::new();
    let mut count = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte != b'(' {
            continue;
        }
        let inside = &text[at..];
        if inside.starts_with(b"?(") {
            // The parenthesis of a condition is no group.
            at += 2;
            continue;
        }
        if let Some(named) = inside.strip_prefix(b"?P<") {
            count += 1;
            let end = memchr::memchr(b'>', named).unwrap_or(named.len());
            names.insert(named[..end].to_vec(), count);
        } else if inside.first() != Some(&b'?') {
            count += 1;
        }
    }
    (names, count)
}

struct Parser<'t> {
    rest: &'t [u8],
    fold: bool,
    groups: usize,
    names: HashMap<Vec<u8>, usize>,
    /// How many parts that look ahead or behind are open.
    looks: usize,
}

type Parsed<T = Node> = Result<T, String>;

impl Parser<'_> {
    fn take(&mut self, text: &[u8]) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Parsed<u8> {
        let (first, rest) = self.rest.split_first().ok_or("it has no end")?;
        self.rest = rest;
        Ok(*first)
    }

    fn choice(&mut self) -> Parsed {
        let mut branches = vec![self.sequence()?];
        while self.take(b"|") {
            branches.push(self.sequence()?);
        }
        Ok(match branches.len() {
            1 => branches.swap_remove(0),
            _ => Node::Choice(branches),
        })
    }

    fn sequence(&mut self) -> Parsed {
        let mut nodes = Vec::new();
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            if let Some(node) = self.item()? {
                let node = self.repeated(node)?;
                nodes.push(node);
            }
        }
        Ok(match nodes.len() {
            1 => nodes.swap_remove(0),
            _ => Node::Sequence(nodes),
        })
    }

    /// One part; none for flags.
    fn item(&mut self) -> Parsed<Option<Node>> {
        Ok(Some(match self.next()? {
            b'(' => return self.group(),
            b'[' => self.class()?,
            b'\\' => self.escape()?,
            byte if char::from(byte) == END => Node::Place(Place::EndOrNewline),
            // These stand in groups with the flags that make them so.
            b'.' => Node::Set(Box::new(ByteSet::of(|_| true))),
            b'^' => Node::Place(Place::LineStart),
            b'$' => Node::Place(Place::LineEnd),
            byte => self.literal(byte),
        }))
    }

    fn literal(&self, literal: u8) -> Node {
        let is_in = |byte: u8| match self.fold {
            true => byte.eq_ignore_ascii_case(&literal),
            false => byte == literal,
        };
        Node::Set(Box::new(ByteSet::of(is_in)))
    }

    fn repeated(&mut self, node: Node) -> Parsed {
        let (least, most) = match self.rest.first() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => {
                self.next()?;
                let least = self.number()?;
                let most = match self.take(b",") {
                    false => Some(least),
                    true if self.rest.first() == Some(&b'}') => None,
                    true => Some(self.number()?),
                };
                if most.is_some_and(|most| most < least) {
                    return Err("numbers out of order in {} quantifier".to_owned());
                }
                if self.rest.first() != Some(&b'}') {
                    return Err("a count has no end".to_owned());
                }
                (least, most)
            }
            _ => return Ok(node),
        };
        self.next()?;
        let order = match () {
            () if self.take(b"+") => Order::MostOnly,
            () if self.take(b"?") => Order::Least,
            () => Order::Most,
        };
        let node = Box::new(node);
        Ok(Node::Repeat(Repeat {
            node,
            least,
            most,
            order,
        }))
    }

    fn number(&mut self) -> Parsed<u32> {
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let length = self.rest.iter().take_while(is_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        number
            .filter(|number| *number <= 65_535)
            .ok_or_else(|| "number too big in {} quantifier".to_owned())
    }

    fn group(&mut self) -> Parsed<Option<Node>> {
        let fold = self.fold;
        let node = if !self.take(b"?") {
            self.capture()?
        } else if self.take(b"P<") {
            let length = memchr::memchr(b'>', self.rest).ok_or("a name has no end")?;
            self.rest = &self.rest[length + 1..];
            self.capture()?
        } else if self.take(b"(") {
            self.condition()?
        } else if self.take(b">") {
            Node::Atomic(Box::new(self.choice()?))
        } else if let Some((ahead, negated)) = self.look() {
            self.looks += 1;
            let node = Box::new(self.choice()?);
            self.looks -= 1;
            Node::Look(Look {
                ahead,
                negated,
                node,
            })
        } else {
            let mut on = true;
            loop {
                match self.next()? {
                    b'-' => on = false,
                    b'i' => self.fold = on,
                    b'm' | b's' => {}
                    // The flags hold up to the end of the group that they stand in.
                    b')' => return Ok(None),
                    b':' => break,
                    _ => return Err("unrecognized character after (?".to_owned()),
                }
            }
            self.choice()?
        };
        self.fold = fold;
        match self.take(b")") {
            true => Ok(Some(node)),
            false => Err("missing closing parenthesis".to_owned()),
        }
    }

    fn look(&mut self) -> Option<(bool, bool)> {
        let looks: [(&[u8], bool, bool); 4] = [
            (b"=", true, false),
            (b"!", true, true),
            (b"<=", false, false),
            (b"<!", false, true),
        ];
        let found = looks.into_iter().find(|(text, ..)| self.take(text));
        found.map(|(_, ahead, negated)| (ahead, negated))
    }

    fn capture(&mut self) -> Parsed {
        self.groups += 1;
        let number = self.groups;
        Ok(Node::Group(number, Box::new(self.choice()?)))
    }

    fn condition(&mut self) -> Parsed {
        let group = self.number()? as usize;
        if !self.take(b")") {
            return Err("a condition has no end".to_owned());
        }
        let mut branches = match self.choice()? {
            Node::Choice(branches) => branches,
            node => vec![node],
        };
        let no = match branches.len() {
            1 => Node::Sequence(Vec::new()),
            2 => branches.swap_remove(1),
            _ => return Err("conditional subpattern contains more than two branches".to_owned()),
        };
        Ok(Node::Condition {
            group,
            yes: Box::new(branches.swap_remove(0)),
            no: Box::new(no),
        })
    }

    fn escape(&mut self) -> Parsed {
        Ok(match self.next()? {
            b'A' => Node::Place(Place::Start),
            b'B' => Node::Place(Place::WordInside),
            b'G' => Node::Place(Place::SearchStart),
            b'K' if self.looks > 0 => {
                return Err("\\K is not allowed in lookarounds".to_owned());
            }
            b'K' => Node::Keep,
            b'b' if self.take(b"{start}") => Node::Place(Place::WordStart),
            b'b' if self.take(b"{end}") => Node::Place(Place::WordEnd),
            b'b' => Node::Place(Place::WordBoundary),
            b'z' => Node::Place(Place::End),
            b'x' => {
                let byte = self.hexadecimal()?;
                self.literal(byte)
            }
            b'k' => {
                let end = memchr::memchr(b'>', self.rest).ok_or("a name has no end")?;
                let name = self.rest[..end]
                    .strip_prefix(b"<")
                    .ok_or("a name is missing")?;
                let group = self.names.get(name).copied();
                self.rest = &self.rest[end + 1..];
                let group = group.ok_or("reference to non-existent subpattern")?;
                Node::Reference {
                    group,
                    fold: self.fold,
                }
            }
            digit if digit.is_ascii_digit() => {
                let is_digit = |byte: &&u8| byte.is_ascii_digit();
                let length = self.rest.iter().take_while(is_digit).count();
                let more = &self.rest[..length];
                let group = [digit].iter().chain(more).fold(0_usize, |number, digit| {
                    number
                        .saturating_mul(10)
                        .saturating_add(usize::from(digit - b'0'))
                });
                self.rest = &self.rest[length..];
                Node::Reference {
                    group,
                    fold: self.fold,
                }
            }
            other => return Err(format!("\\{} is not known", char::from(other))),
        })
    }

    fn hexadecimal(&mut self) -> Parsed<u8> {
        let digits = [self.next()?, self.next()?];
        let digits = std::str::from_utf8(&digits).ok();
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.ok_or_else(|| "\\x is not followed by two digits".to_owned())
    }

    /// A class after its bracket.
    fn class(&mut self) -> Parsed {
        let negated = self.take(b"^");
        let mut set = ByteSet::of(|_| false);
        loop {
            let first = match self.next()? {
                b']' => break,
                b'\\' if self.take(b"x") => self.hexadecimal()?,
                byte => byte,
            };
            let mut last = first;
            if self.take(b"-") {
                last = match self.next()? {
                    b'\\' if self.take(b"x") => self.hexadecimal()?,
                    byte => byte,
                };
            }
            set.add_range(first, last);
        }
        let is_in = |byte: u8| {
            let folded = [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
            set.contains(byte) || (self.fold && folded.iter().any(|byte| set.contains(*byte)))
        };
        Ok(Node::Set(Box::new(ByteSet::of(|byte| {
            is_in(byte) != negated
        }))))
    }
}
