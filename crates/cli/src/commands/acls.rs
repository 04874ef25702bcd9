//! Commands that show and change the lists of ACLs: those of maps under another word.

use super::maps::{self, ACL};
use crate::change_record::ChangeScope;
use crate::command::Command;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["add", "acl"],
        "add acl [@<ver>] <acl> <pattern>",
        "add a pattern to an ACL; a payload holds a pattern a line",
        maps::add_acl,
    )
    .changing(ChangeScope::State),
    Command::new(
        &["clear", "acl"],
        "clear acl [@<ver>] <acl>",
        "remove all patterns of an ACL",
        |call| maps::clear(call, ACL),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["commit", "acl"],
        "commit acl @<ver> <acl>",
        "make a prepared version of an ACL the one in force",
        |call| maps::commit(call, ACL),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["del", "acl"],
        "del acl <acl> [<key>|#<ref>]",
        "remove patterns from an ACL",
        |call| maps::del(call, ACL),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["get", "acl"],
        "get acl <acl> <value>",
        "tell which pattern of an ACL matches a value",
        |call| maps::get(call, ACL),
    ),
    Command::new(
        &["prepare", "acl"],
        "prepare acl <acl>",
        "open a new version of an ACL, to be filled and committed",
        |call| maps::prepare(call, ACL),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["show", "acl"],
        "show acl [@<ver>] [<acl>]",
        "list the ACLs, or the patterns of one",
        |call| maps::show(call, ACL),
    ),
];
