//! Giving up privileges: `chroot`, `user`, `group`, `set-dumpable`.

use std::path::Path;

use ballast_model::Global;
use ballast_net::{become_user, change_root, group_by_name, is_root, set_dumpable, user_by_name};

use crate::console;

/// The user and group of the process. Looked up before `chroot`, which hides their files.
#[derive(Debug, Default)]
pub(crate) struct ProcessIdentity {
    chroot: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
    user: Option<String>,
    dumpable: bool,
}

impl ProcessIdentity {
    /// Looks up the names of the global section. `Err` is the exit code; the message is printed.
    pub(crate) fn of(global: &Global) -> Result<Self, u8> {
        let mut identity = Self {
            chroot: global.chroot.clone(),
            dumpable: global.dumpable,
            ..Self::default()
        };
        if let Some(name) = &global.user {
            match user_by_name(name).ok().flatten() {
                Some(user) => {
                    identity.uid = Some(user.uid);
                    identity.user = Some(user.name);
                }
                None => identity.uid = Some(number("user", name)?),
            }
        }
        if let Some(name) = &global.group {
            identity.gid = match group_by_name(name).ok().flatten() {
                Some(group) => Some(group.gid),
                None => Some(number("group", name)?),
            };
        }
        Ok(identity)
    }

    /// Whether a process that becomes this can no longer open what it could before.
    pub(crate) fn gives_up_rights(&self) -> bool {
        self.has_chroot() || (is_root() && self.uid.is_some_and(|uid| uid != 0))
    }

    /// Whether it gets another root directory.
    pub(crate) fn has_chroot(&self) -> bool {
        self.chroot.is_some()
    }

    /// The user it becomes.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// The numbers of its user and group, for [`Self::of_text`] in another process.
    pub(crate) fn to_text(&self) -> String {
        let number = |id: Option<u32>| id.map(|id| id.to_string()).unwrap_or_default();
        format!("{} {}", number(self.uid), number(self.gid))
    }

    /// An identity of these numbers.
    pub(crate) fn of_text(text: &str) -> Self {
        let (uid, gid) = text.split_once(' ').unwrap_or_default();
        Self {
            uid: uid.parse().ok(),
            gid: gid.parse().ok(),
            ..Self::default()
        }
    }

    /// Becomes this user and group, with no other groups, and keeps the root directory.
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn become_user(&self) -> Result<(), String> {
        become_user(self.uid, self.gid, None).map_err(|error| error.to_string())
    }

    /// Changes the process to this root, user and group, for good. `Err` is the exit code; the message
    /// is printed.
    pub(crate) fn apply(&self) -> Result<(), u8> {
        if let Some(path) = &self.chroot
            && let Err(error) = change_root(Path::new(path))
        {
            return Err(refuse(&format!("Cannot chroot({path}): {error}.")));
        }
        // The groups of a user are read from files that may be gone behind the new root: then
        // it has its own group and no other.
        let user = self.user.as_deref().filter(|_| self.chroot.is_none());
        if let Err(error) = become_user(self.uid, self.gid, user) {
            return Err(refuse(&format!("Cannot change identity: {error}.")));
        }
        if self.dumpable
            && let Err(error) = set_dumpable(true)
        {
            console::warn(&format!("[haproxy.main()] set-dumpable: {error}."));
        }
        Ok(())
    }
}

fn number(kind: &str, name: &str) -> Result<u32, u8> {
    name.parse()
        .map_err(|_| refuse(&format!("cannot find {kind} id for '{name}'.")))
}

fn refuse(text: &str) -> u8 {
    console::alert(&format!("[haproxy.main()] {text}"));
    1
}
