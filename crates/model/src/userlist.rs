//! Lists of users, which `http_auth` and its kin ask.

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
    /// The password; `None` lets nobody in.
    pub password: Option<Password>,
    /// Groups the user belongs to, from both its own line and the groups' lines.
    pub groups: Vec<String>,
}

/// A password as the configuration keeps it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Password {
    /// `password`: hashed by crypt(3).
    Hashed(String),
    /// `insecure-password`: itself.
    Clear(String),
}
