//! Which thread is in which group: `thread-group` lines, and what becomes of the other threads.

use std::collections::BTreeMap;

use crate::limits::{GROUP_THREADS_MAX, GROUPS_MAX, THREADS_MAX};
use crate::numbers::parse_prefix;

/// A line gives no more warnings than this.
const WARNINGS_MAX: usize = THREADS_MAX;

/// The threads of a group: the first one, and how many there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Group {
    /// The first thread of the process, from 0.
    pub first: usize,
    /// How many threads it has.
    pub count: usize,
}

/// `thread-group` lines.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GroupLines {
    /// The groups that lines name, by their number from 0.
    groups: BTreeMap<usize, Group>,
    /// The group of each thread that lines name.
    threads: BTreeMap<usize, usize>,
}

impl GroupLines {
    /// Whether no line was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The group that a line names for a thread, and the number of the thread in it; both, and the
    /// argument, count from 0.
    pub(crate) fn place_of(&self, thread: usize) -> Option<(usize, usize)> {
        let group = *self.threads.get(&thread)?;
        let first = self.groups.get(&group).map_or(thread, |group| group.first);
        Some((group, thread.saturating_sub(first)))
    }

    /// Reads a line. Returns warnings.
    ///
    /// # Errors
    /// HAProxy's message when the words are no such numbers.
    pub(crate) fn line(&mut self, args: &[&str]) -> Result<Vec<String>, String> {
        let text = args.first().copied().unwrap_or_default();
        let Some((number, "")) = parse_prefix(text) else {
            return Err(format!(
                "'thread-group' passed a missing or unparsable integer value in '{text}'"
            ));
        };
        let named = usize::try_from(number)
            .ok()
            .filter(|number| (1..=GROUPS_MAX).contains(number));
        let Some(name) = named else {
            return Err(format!(
                "'thread-group' thread-group number must be between 1 and {GROUPS_MAX} (was {number})"
            ));
        };
        let mut warnings = Vec::new();
        self.forget(name, &mut warnings);
        let (mut first, mut last, mut count) = (THREADS_MAX, 0, 0);
        for text in &args[1..] {
            let (from, to) = threads(name, text)?;
            for thread in from..=to {
                self.assign(thread, name, &mut warnings);
                (first, last, count) = (first.min(thread), last.max(thread), count + 1);
            }
        }
        if count == 0 {
            return Ok(warnings);
        }
        if last - first + 1 > count {
            return Err(format!(
                "'thread-group {name}' assigned sparse threads, only contiguous supported"
            ));
        }
        if count > GROUP_THREADS_MAX {
            return Err(format!(
                "'thread-group {name}' assigned too many threads ({count}, max={GROUP_THREADS_MAX})"
            ));
        }
        let count = last - first + 1;
        self.groups.insert(name - 1, Group { first, count });
        Ok(warnings)
    }

    /// Forgets what a former line said of a group. HAProxy leaves the last thread there.
    fn forget(&mut self, name: usize, warnings: &mut Vec<String>) {
        let Some(former) = self.groups.remove(&(name - 1)) else {
            return;
        };
        warnings.push(format!(
            "'thread-group {name}' was already defined and will be overridden."
        ));
        for thread in former.first..(former.first + former.count).saturating_sub(1) {
            if self.threads.get(&thread) == Some(&(name - 1)) {
                self.threads.remove(&thread);
            }
        }
    }

    fn assign(&mut self, thread: usize, name: usize, warnings: &mut Vec<String>) {
        let former = self.threads.insert(thread, name - 1);
        if warnings.len() >= WARNINGS_MAX {
            return;
        }
        let shown = thread + 1;
        match former {
            Some(former) if former == name - 1 => warnings.push(format!(
                "'thread-group {name}': thread {shown} assigned more than once on the same line."
            )),
            Some(former) => warnings.push(format!(
                "'thread-group {name}': thread {shown} was previously assigned to thread group {} \
                 and will be overridden.",
                former + 1
            )),
            None => {}
        }
    }

    /// The groups of a process with so many threads and groups, with warnings.
    ///
    /// # Errors
    /// When threads or groups are left over.
    pub(crate) fn distribute(
        &self,
        thread_count: usize,
        group_count: usize,
    ) -> Result<(Vec<Group>, Vec<String>), String> {
        let mut groups: Vec<Group> = (0..group_count)
            .map(|group| self.groups.get(&group).copied().unwrap_or_default())
            .collect();
        let mut left: Vec<usize> = (0..thread_count)
            .filter(|thread| !self.threads.contains_key(thread))
            .collect();
        let mut open = groups.iter().filter(|group| group.count == 0).count();
        if open > left.len() {
            return Err(format!(
                "More unassigned thread-groups ({open}) than threads ({}). Please reduce thread-groups",
                left.len()
            ));
        }
        for group in groups.iter_mut().filter(|group| group.count == 0) {
            let wanted = left.len().div_ceil(open);
            let first = left[0];
            let fits = (first..)
                .zip(&left)
                .take_while(|(next, left)| next == *left);
            let count = fits.take(wanted.min(GROUP_THREADS_MAX)).count();
            left.drain(..count);
            *group = Group { first, count };
            open -= 1;
            if left.len() < open {
                return Err(format!(
                    "More unassigned thread-groups ({open}) than threads ({}). Please reduce thread-groups",
                    left.len()
                ));
            }
        }
        if !left.is_empty() {
            return Err(format!(
                "Remaining unassigned threads found ({}) because all groups are in use. Please \
                 increase 'thread-groups', reduce 'nbthreads' or remove or extend 'thread-group' \
                 enumerations.",
                left.len()
            ));
        }
        let warnings = reduce(&mut groups, thread_count)?;
        Ok((groups, warnings))
    }
}

/// Takes away the threads that a process does not have. A group that has no other is an error.
fn reduce(groups: &mut [Group], thread_count: usize) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    for (group, number) in groups.iter_mut().zip(1..) {
        let fits = thread_count.saturating_sub(group.first).min(group.count);
        if fits == 0 {
            return Err(format!(
                "Thread-group {number} only references non-existing threads (max={thread_count}, \
                 requested {}-{})",
                group.first + 1,
                group.first + group.count
            ));
        }
        if fits < group.count {
            let shown = group.first + 1;
            warnings.push(format!(
                "Reducing thread-group {number} to {fits} threads (requested {shown}-{}, using \
                 {shown}-{})",
                group.first + group.count,
                group.first + fits
            ));
            group.count = fits;
        }
    }
    Ok(warnings)
}

/// A thread, or a range of them, from 0.
fn threads(name: usize, text: &str) -> Result<(usize, usize), String> {
    let valid = |number: i64| {
        let number = usize::try_from(number).ok()?;
        number.checked_sub(1).filter(|&thread| thread < THREADS_MAX)
    };
    let range = match parse_prefix(text) {
        Some((one, "")) => valid(one).map(|thread| (thread, thread)),
        Some((first, rest)) => rest
            .strip_prefix('-')
            .and_then(parse_prefix)
            .filter(|(_, rest)| rest.is_empty())
            .and_then(|(last, _)| Some((valid(first)?, valid(last)?))),
        None => None,
    };
    range.ok_or_else(|| {
        format!(
            "'thread-group {name}' passed an unparsable or invalid thread number '{text}' (valid \
             range is 1 to {THREADS_MAX})"
        )
    })
}
