//! The threads of a `bind` line: numbers of the process, or of a group.

use crate::layout::Layout;
use crate::limits::{GROUP_THREADS_MAX, GROUPS_MAX, THREADS_MAX};
use crate::numbers::parse_prefix;
use crate::set::CpuSet;

/// `thread [<group>/]<set>[,...]` of a line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ThreadSet(Vec<Part>);

/// A range of threads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Part {
    /// The group that the numbers are relative to, from 1.
    group: Option<usize>,
    first: usize,
    last: usize,
    /// 2 for every other thread.
    step: usize,
}

/// A line has no more parts than this; what comes later is ignored.
const PARTS_MAX: usize = 2 * THREADS_MAX;

impl ThreadSet {
    /// Reads the word after `thread`.
    ///
    /// # Errors
    /// HAProxy's message, without the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        for text in text.split(',').filter(|part| !part.is_empty()) {
            let part = Part::parse(text)?;
            let former = parts.last().map(|part| part.group.is_some());
            match (former, part.group) {
                (Some(true), None) => {
                    return Err(format!(
                        "absolute thread specification '{text}' is not permitted after a \
                         group-relative thread range."
                    ));
                }
                (Some(false), Some(_)) => {
                    return Err(format!(
                        "group-relative thread specification '{text}' is not permitted after an \
                         absolute thread range."
                    ));
                }
                _ if parts.len() < PARTS_MAX => parts.push(part),
                _ => {}
            }
        }
        Ok(Self(parts))
    }

    /// The threads of the process that are meant, from 1; `None` for all of them.
    ///
    /// # Errors
    /// HAProxy's words about what there is not: they follow `'thread' directive`.
    pub fn resolve(&self, layout: &Layout) -> Result<Option<Vec<u16>>, String> {
        let mut threads = CpuSet::EMPTY;
        let (mut missing, mut named) = (None, 0);
        for part in &self.0 {
            let base = match part.group {
                None => 0..layout.threads.len(),
                Some(number) => {
                    let Some(group) = layout.groups.get(number - 1) else {
                        return Err(format!("references non-existing thread group {number}"));
                    };
                    group.first..group.first + group.count
                }
            };
            let numbers = (part.first..=part.last).step_by(part.step);
            let fits = base.end.min(layout.threads.len());
            let found: CpuSet = numbers
                .map(|number| base.start + number - 1)
                .take_while(|&thread| thread < fits)
                .collect();
            threads = threads.union(&found);
            named += 1;
            if found.is_empty() {
                missing = Some(part.group);
            }
        }
        match missing {
            Some(Some(group)) => Err(format!(
                "only references threads not belonging to group {group}"
            )),
            Some(None) if threads.is_empty() => {
                Err("only references non-existing threads".to_owned())
            }
            _ if named == 0 => Ok(None),
            _ => {
                let numbers = threads.iter().map(|thread| u16::try_from(thread + 1));
                Ok(Some(numbers.filter_map(Result::ok).collect()))
            }
        }
    }
}

impl Part {
    fn parse(text: &str) -> Result<Self, String> {
        let (group, set) = match text.split_once('/') {
            Some((group, set)) if group.bytes().all(|one| one.is_ascii_digit()) => {
                let number = parse_prefix(group).map_or(0, |(number, _)| number);
                let number = usize::try_from(number).ok();
                let number = number.filter(|number| (1..=GROUPS_MAX).contains(number));
                let Some(number) = number else {
                    return Err(format!(
                        "invalid thread group number '{group}', permitted range is 1..{GROUPS_MAX} \
                         in '{text}'."
                    ));
                };
                (Some(number), set)
            }
            _ => (None, text),
        };
        let max = group.map_or(THREADS_MAX, |_| GROUP_THREADS_MAX);
        let range = |first, last, step| Self {
            group,
            first,
            last,
            step,
        };
        match set {
            "all" | "" => return Ok(range(1, max, 1)),
            "odd" => return Ok(range(1, max, 2)),
            "even" => return Ok(range(2, max, 2)),
            _ => {}
        }
        let number = |text: &str| {
            let (number, rest) = parse_prefix(text)?;
            let number = usize::try_from(number).ok().filter(|_| rest.is_empty())?;
            (1..=max).contains(&number).then_some(number)
        };
        let (first, last) = match set.split_once('-') {
            Some((first, last)) => (first, Some(last)),
            None => (set, None),
        };
        let wrong = |which: &str| {
            format!(
                "invalid {which} thread number '{set}', permitted range is 1..{max}, or 'all', \
                 'odd', 'even'."
            )
        };
        let first = match first {
            "" => 1,
            first => number(first).ok_or_else(|| wrong("first"))?,
        };
        let last = match last {
            None => first,
            Some("") => max,
            Some(last) => number(last).ok_or_else(|| wrong("last"))?,
        };
        Ok(range(first.min(last), first.max(last), 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::words::CpuWords;

    /// Four threads in two groups, on two processors.
    fn resolved(text: &str) -> Result<Option<Vec<u16>>, String> {
        let mut words = CpuWords::default();
        words.nbthread(&["4"]).unwrap();
        words.thread_groups(&["2"]).unwrap();
        let layout = Layout::of(&Machine::alike(2), &words).unwrap();
        ThreadSet::parse(text)?.resolve(&layout)
    }

    #[test]
    fn sets_are_those_of_haproxy() {
        for (text, threads) in [
            ("1,2", &[1, 2][..]),
            ("1-", &[1, 2, 3, 4]),
            ("-2", &[1, 2]),
            ("2-1", &[1, 2]),
            ("odd", &[1, 3]),
            ("1-64", &[1, 2, 3, 4]),
            ("1-3,", &[1, 2, 3]),
            ("2/1", &[3]),
            ("2/odd", &[3]),
            ("2/", &[3, 4]),
            ("1/2,2/1", &[2, 3]),
            ("1/1-9", &[1, 2]),
        ] {
            assert_eq!(
                resolved(text).as_ref(),
                Ok(&Some(threads.to_vec())),
                "{text}"
            );
        }
        assert_eq!(resolved(""), Ok(None));
    }

    #[test]
    fn what_there_is_not_is_told_in_haproxys_words() {
        for (text, message) in [
            (
                "x",
                "invalid first thread number 'x', permitted range is 1..1024, or 'all', 'odd', 'even'.",
            ),
            (
                "0",
                "invalid first thread number '0', permitted range is 1..1024, or 'all', 'odd', 'even'.",
            ),
            (
                "1/65",
                "invalid first thread number '65', permitted range is 1..64, or 'all', 'odd', 'even'.",
            ),
            (
                "all/1",
                "invalid first thread number 'all/1', permitted range is 1..1024, or 'all', 'odd', 'even'.",
            ),
            (
                "33/1",
                "invalid thread group number '33', permitted range is 1..32 in '33/1'.",
            ),
            (
                "1/1,2",
                "absolute thread specification '2' is not permitted after a group-relative thread range.",
            ),
            ("5", "only references non-existing threads"),
            ("3/1", "references non-existing thread group 3"),
            ("1/3", "only references threads not belonging to group 1"),
        ] {
            assert_eq!(resolved(text), Err(message.to_owned()), "{text}");
        }
    }
}
