//! `map` and `acl`: the entries of lists. They are handed over and written by themselves; the
//! override says that a command changed them.

use crate::object::{NameOf, ObjectKind, Setting, WriteBack};
use crate::pen::InFile;

/// `map NAME`; `#` and a number for one without a file.
pub static MAP: ObjectKind = kind("map");

/// `acl NAME`, likewise.
pub static ACL: ObjectKind = kind("acl");

const fn kind(word: &'static str) -> ObjectKind {
    ObjectKind {
        word,
        name: NameOf::Rest,
        in_config: |_, _| true,
        in_force: |_, _| true,
        connections: |_, _| 0,
        settings: &[Setting {
            has_plan_line: false,
            write_back: WriteBack::Section(|_, name, _| {
                if name.text().starts_with('#') {
                    Err("the list has no file")
                } else {
                    Ok(InFile::NothingToSay)
                }
            }),
            ..Setting::UNKNOWN
        }],
    }
}
