//! What the fuzz target runs: any files, any edits, and what must hold of them.

use std::sync::Arc;

use ballast_config::EmptyMachine;
use ballast_syntax::parse_str;

use crate::{
    EditCommand, FileText, InsertPosition, NO_FILE, SectionEdit, SectionMap, SectionName,
    SectionOperation, SectionWord, excerpt,
};

/// Edits `data` as a file of a configuration: each section in every way, each line of the file.
///
/// # Panics
///
/// When something does not hold.
pub fn fuzz_one(data: &[u8]) {
    let files = vec![("fuzz.cfg".to_owned(), data.to_vec())];
    let map = SectionMap::read(Arc::new(files.clone()), &EmptyMachine);
    let plain = map.with_edits(&[], InsertPosition::Beside);
    assert_eq!(plain.files, files, "without edits nothing changes");
    let titles: Vec<String> = map
        .sections(&[])
        .map(|(title, _)| title.to_owned())
        .collect();
    for title in titles.iter().take(8) {
        let Some((kind, name)) = title.split_once(' ') else {
            continue;
        };
        let kind = match kind {
            "frontend" => SectionWord::Frontend,
            "backend" => SectionWord::Backend,
            _ => SectionWord::Listen,
        };
        let section = SectionName {
            kind,
            name: name.to_owned(),
        };
        edit_section(&map, &section);
        let _ = excerpt::is_mentioned(&map, &[], title);
        let _ =
            excerpt::files_with_new_section(&map, &[], title, &ballast_model::Config::default());
    }
    edit_lines(data);
}

fn edit_section(map: &SectionMap, section: &SectionName) {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let edits = [
        SectionOperation::Write("  mode tcp\n".to_owned()),
        SectionOperation::Remove,
        SectionOperation::Set(words("timeout client 5s")),
        SectionOperation::AddBind(words(":0 name fuzz")),
        SectionOperation::SetBind("2".to_owned(), words(":1")),
        SectionOperation::RemoveBind("1".to_owned()),
        SectionOperation::RenameServer("s".to_owned(), "it's".to_owned()),
        SectionOperation::AddRule(None, words("acl a path /a")),
        SectionOperation::AddRule(Some(1), words("http-request deny")),
        SectionOperation::SetRule(1, words("http-request deny")),
        SectionOperation::RemoveRule(1),
    ];
    for edit in edits {
        let command = EditCommand {
            section,
            edit,
            command: "fuzz",
            at_unix_s: 0,
        };
        let Ok((section_edits, title)) = map.edited(&[], command, &EmptyMachine) else {
            continue;
        };
        for insert_position in [InsertPosition::Beside, InsertPosition::Last] {
            let edited = map.with_edits(&section_edits, insert_position);
            assert_eq!(edited.kept, section_edits, "nobody else wrote the section");
            let text = section_edits.iter().find(|one| one.title == title);
            let text = text.and_then(|one| one.text.as_deref());
            let stands = edited.position_of(&title);
            let stands = stands.map(|(file, range)| &edited.files[file].1[range]);
            assert_eq!(stands, text.map(str::as_bytes), "the section stands whole");
        }
    }
    let new = SectionEdit {
        title: "backend fuzz new".to_owned(),
        text: Some("backend fuzz\n".to_owned()),
        base: None,
        at_unix_s: 0,
        command: String::new(),
    };
    let edited = map.with_edits(&[new], InsertPosition::Beside);
    assert!(edited.files.iter().any(|(name, _)| name == NO_FILE));
}

fn edit_lines(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let numbers: Vec<u32> = parse_str("fuzz.cfg", &text)
        .lines()
        .map(|line| line.number)
        .collect();
    let mut file = FileText::of("fuzz.cfg", text.as_bytes());
    assert_eq!(
        file.edited(),
        text.as_bytes(),
        "without edits nothing changes"
    );
    for number in numbers.into_iter().take(64) {
        assert!(file.set(number, 1, "weight", "5"), "the line is there");
        assert!(file.switch(number, 1, "disabled", number % 2 == 0));
        assert!(file.add_after(number, "server s :1"));
        let _ = file.replace_word(number, 1, "x");
        if number % 3 == 0 {
            assert!(file.remove(number));
        }
    }
    let _ = file.set_line(1, "maxconn", "5");
    let _ = file.edited();
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_hold() {
        super::fuzz_one(include_bytes!("../../../fuzz/seeds/edit/web.cfg"));
        super::fuzz_one(include_bytes!("../../../fuzz/seeds/edit/sections.cfg"));
        super::fuzz_one(b"");
        super::fuzz_one(b"backend a\r\nserver s :1\n\xff\nlisten a\nfrontend ''\nbackend a");
    }
}
