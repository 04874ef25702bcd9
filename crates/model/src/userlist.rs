//! Lists of users, for `http_auth` and related samples.

/// A `userlist` section (configuration manual, section 3.4).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Userlist {
    /// Section name.
    pub name: String,
    /// Users in file order.
    pub users: Vec<ListedUser>,
    /// Groups in file order.
    pub groups: Vec<String>,
}

/// One `user` line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListedUser {
    /// The name.
    pub name: String,
    /// The password; `None` never matches.
    pub password: Option<Password>,
    /// The user's groups, from its own line and from the groups' lines.
    pub groups: Vec<String>,
}

/// A configured password.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Password {
    /// `password`: hashed by crypt(3).
    Hashed(String),
    /// `insecure-password`: in plain text.
    Clear(String),
}
