//! The lists of users (configuration manual, section 12.2).

/// The lists of users, as an exchange asks them.
pub trait UserFacts {
    /// Whether this is the password of a user of the list. A hashed password takes time: with
    /// `may_wait` the answer may be [`PasswordCheck::Pending`].
    fn check_password(
        &self,
        _list: &str,
        _user: &[u8],
        _password: &[u8],
        _may_wait: bool,
    ) -> PasswordCheck {
        PasswordCheck::Wrong
    }

    /// A group of a user of the list, by its index among the user's groups, from 0.
    fn group(&self, _list: &str, _user: &[u8], _place: usize) -> Option<&str> {
        None
    }
}

/// What is known of a password.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PasswordCheck {
    /// It is being hashed: ask again when [`Needs::PASSWORD`](crate::Needs::PASSWORD) has arrived.
    Pending,
    /// It is the user's.
    Right,
    /// It is not, or there is no such user.
    Wrong,
}
