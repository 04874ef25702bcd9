//! `userlist`: users, groups and passwords.
//!
//! Source: HAProxy configuration manual, section 3.4 (12.2 in newer ones).

use ballast_model::{ListedUser, Password};

use super::PlainSectionDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "group",
        Sections::USERLIST,
        "<groupname> [users <user>,<user>,(...)]",
        "a group of users",
        |draft, args, context| {
            let name = args.text("a group name")?;
            if draft.groups.iter().any(|(known, ..)| known == name) {
                let message = format!("group '{name}' is declared twice; the second is ignored");
                context.warn("duplicate-name", message, args.span());
                args.rest();
                return Ok(());
            }
            let mut users = Vec::new();
            while let Some(word) = args.next() {
                if word != "users" {
                    return Err(args.wrong(format!("'group' only supports 'users' (got '{word}')")));
                }
                let list = args.next().unwrap_or_default();
                let list = list.split(',').filter(|user| !user.is_empty());
                users.extend(list.map(str::to_owned));
            }
            draft.groups.push((name.to_owned(), users, args.span()));
            Ok(())
        },
    )
    .examples("group staff", "group staff colour red"),
    R::new(
        "user",
        Sections::USERLIST,
        "<username> [password|insecure-password <password>] [groups <group>,<group>,(...)]",
        "a user",
        |draft, args, context| {
            let name = args.text("a user name")?;
            if draft.users.iter().any(|(known, _)| known.name == name) {
                let message = format!("user '{name}' is declared twice; the second is ignored");
                context.warn("duplicate-name", message, args.span());
                args.rest();
                return Ok(());
            }
            let mut user = ListedUser {
                name: name.to_owned(),
                ..ListedUser::default()
            };
            while let Some(word) = args.next() {
                match word {
                    "password" => {
                        user.password =
                            Some(Password::Hashed(args.text("a hashed password")?.to_owned()));
                    }
                    "insecure-password" => {
                        user.password = Some(Password::Clear(args.text("a password")?.to_owned()));
                    }
                    "groups" => {
                        let list = args.text("a list of groups")?;
                        user.groups.extend(list.split(',').map(str::to_owned));
                    }
                    _ => {
                        return Err(args.wrong(format!(
                            "'user' only supports 'password', 'insecure-password' and 'groups' \
                             (got '{word}')"
                        )));
                    }
                }
            }
            draft.users.push((user, args.span()));
            Ok(())
        },
    )
    .examples("user ann insecure-password secret", "user ann colour red"),
];
