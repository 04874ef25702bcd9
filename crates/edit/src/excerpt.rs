//! The part of a configuration that is read in place of the whole, where a section is added or removed.
//!
//! To read a hundred thousand servers for one new frontend takes a core half a second. The part has
//! all sections that are not proxies, and the proxies that the new section names, directly or through
//! others. The other proxies are there by name and mode, so that rules may name them.

use std::collections::{HashMap, HashSet};

use ballast_model::{Config, Mode, ProxyCommon};

use crate::{ConfigFiles, NO_FILE, SectionEdit, SectionMap};

/// What may stand in a name.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte)
}

/// The words of a text that may be names.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !u8::try_from(one).is_ok_and(is_name_byte))
}

/// Whether a text has a name in it, on its own.
fn contains_name(text: &str, name: &str) -> bool {
    let is_alone = |at: usize| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let after = bytes.get(at + name.len()).copied();
        !before.is_some_and(is_name_byte) && !after.is_some_and(is_name_byte)
    };
    text.match_indices(name).any(|(at, _)| is_alone(at))
}

fn name_of(title: &str) -> &str {
    title.split_once(' ').map_or("", |(_, name)| name)
}

/// The sides that a section has: client side (frontend), server side (backend).
fn sides(title: &str) -> (bool, bool) {
    (
        !title.starts_with("backend "),
        !title.starts_with("frontend "),
    )
}

/// Whether any other section may speak of this one.
pub fn is_mentioned(texts: &SectionMap, section_edits: &[SectionEdit], title: &str) -> bool {
    let name = name_of(title);
    texts.sections(section_edits).any(|(other, text)| {
        // Its own opening line is there to be a section of that name.
        let own = text.split_once('\n').map_or("", |(_, rest)| rest);
        other != title && (text.is_empty() || contains_name(own, name))
    })
}

/// The files to read a new section with: the new section is the last of them.
pub fn files_with_new_section(
    texts: &SectionMap,
    section_edits: &[SectionEdit],
    title: &str,
    current: &Config,
) -> Option<ConfigFiles> {
    let sections: HashMap<&str, &str> = texts.sections(section_edits).collect();
    if sections.values().any(|text| text.is_empty()) {
        // A section without text (not UTF-8) may name anything.
        return None;
    }
    let new = *sections.get(title)?;
    let mut titles: HashMap<&str, Vec<&str>> = HashMap::new();
    for &other in sections.keys() {
        titles.entry(name_of(other)).or_default().push(other);
    }
    let mut whole: HashSet<&str> = HashSet::from([title]);
    let mut unseen = vec![new];
    while let Some(text) = unseen.pop() {
        for other in names(text).filter_map(|name| titles.get(name)).flatten() {
            if whole.insert(other) {
                unseen.extend(sections.get(other));
            }
        }
    }
    let shown = |other: &str| {
        let text = sections.get(other).copied().unwrap_or_default();
        match whole.contains(other) {
            true => text.to_owned(),
            false => empty_proxy(other, text, current),
        }
    };
    let mut files = texts.files_with(shown);
    let beside = section_edits.iter().filter(|one| one.base.is_none());
    let beside: String = beside
        .filter(|one| one.title != title && one.text.is_some())
        .map(|one| shown(&one.title))
        .collect();
    files.push((NO_FILE.to_owned(), beside.into_bytes()));
    files.push((NO_FILE.to_owned(), new.as_bytes().to_vec()));
    Some(files)
}

/// A proxy of that name and mode.
fn empty_proxy(title: &str, text: &str, current: &Config) -> String {
    let head = text.lines().next().unwrap_or_default();
    let name = name_of(title);
    let front = current.frontend(name).map(|one| &one.common);
    let back = current.backend(name).map(|one| &one.common);
    let common: Option<&ProxyCommon> = match sides(title) {
        (true, _) => front,
        (false, _) => back,
    };
    let mode = match common.map(|common| common.mode) {
        Some(Mode::Tcp) => "tcp",
        _ => "http",
    };
    format!("{head}\n mode {mode}\n")
}

/// A configuration with the section of `read` at its end.
pub fn with_section(config: &Config, read: &Config, title: &str) -> Config {
    let mut next = without_section(config, title);
    let name = name_of(title);
    let (front, back) = sides(title);
    next.frontends
        .extend(read.frontend(name).filter(|_| front).cloned());
    next.backends
        .extend(read.backend(name).filter(|_| back).cloned());
    next
}

/// A configuration without a section.
pub fn without_section(config: &Config, title: &str) -> Config {
    let mut next = config.clone();
    let name = name_of(title);
    let (front, back) = sides(title);
    next.frontends
        .retain(|one| !(front && is_of_section(&one.common, title, name)));
    next.backends
        .retain(|one| !(back && is_of_section(&one.common, title, name)));
    next
}

fn is_of_section(common: &ProxyCommon, title: &str, name: &str) -> bool {
    common.name == name && common.listen == title.starts_with("listen ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_config::EmptyMachine;

    use super::*;

    #[test]
    fn only_what_is_named_is_read() {
        let file = "\
global
 maxconn 5
defaults
 mode http
backend a
 server s 127.0.0.1:1 track b/s
backend b from x # why
 server s 127.0.0.1:1 check
backend ab
 mode tcp
 server s 127.0.0.1:1
# the end
";
        let files = vec![("f".to_owned(), file.as_bytes().to_vec())];
        let texts = SectionMap::read(Arc::new(files), &EmptyMachine);
        let section_edits = [SectionEdit {
            title: "frontend new".into(),
            text: Some("frontend new\n default_backend a\n".into()),
            base: None,
            at_unix_s: 0,
            command: String::new(),
        }];
        let read =
            files_with_new_section(&texts, &section_edits, "frontend new", &Config::default())
                .unwrap();
        let text = |at: usize| String::from_utf8_lossy(&read[at].1).into_owned();
        let stubbed = file.replace(
            " mode tcp\n server s 127.0.0.1:1\n# the",
            " mode http\n# the",
        );
        assert_eq!(text(0), stubbed);
        assert_eq!(text(2), "frontend new\n default_backend a\n");
        assert!(is_mentioned(&texts, &[], "backend b"));
        assert!(!is_mentioned(&texts, &[], "backend ab"));
    }
}
