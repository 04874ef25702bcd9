//! The lists of users as requests look them up.

use std::collections::HashMap;
use std::sync::Arc;

use ballast_model as model;

/// The lists of users of a configuration.
#[derive(Debug, Default)]
pub struct Userlists(HashMap<String, HashMap<Box<[u8]>, User>>);

/// A user of a list.
#[derive(Debug)]
pub struct User {
    /// `None` matches no password.
    pub password: Option<UserPassword>,
    /// The groups that the user is in.
    pub groups: Vec<String>,
}

/// The password of a user.
#[derive(Clone, Debug)]
pub enum UserPassword {
    /// As `crypt(3)` has hashed it.
    Hashed(Arc<str>),
    /// In plain text.
    Clear(Arc<str>),
}

impl Userlists {
    /// Indexes lists; of two users of one name the first counts.
    pub(crate) fn of(lists: &[model::Userlist]) -> Self {
        let index = |list: &model::Userlist| {
            let mut users = HashMap::with_capacity(list.users.len());
            for user in &list.users {
                let password = user.password.as_ref().map(|password| match password {
                    model::Password::Hashed(hash) => UserPassword::Hashed(hash.as_str().into()),
                    model::Password::Clear(text) => UserPassword::Clear(text.as_str().into()),
                });
                users.entry(user.name.as_bytes().into()).or_insert(User {
                    password,
                    groups: user.groups.clone(),
                });
            }
            (list.name.clone(), users)
        };
        Self(lists.iter().map(index).collect())
    }

    /// A user of a list.
    pub fn user(&self, list: &str, user: &[u8]) -> Option<&User> {
        self.0.get(list)?.get(user)
    }
}
