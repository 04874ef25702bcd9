//! What expressions may ask about the users of user lists.

use ballast_engine::UserPassword;
use ballast_expr::{PasswordCheck, UserFacts};
use ballast_net::equal_in_constant_time;

use crate::password_results::password_check;
use crate::view::View;

impl UserFacts for View<'_> {
    fn check_password(
        &self,
        list: &str,
        user: &[u8],
        password: &[u8],
        may_wait: bool,
    ) -> PasswordCheck {
        let users = self.userlists();
        let known = users.user(list, user);
        match known.and_then(|user| user.password.as_ref()) {
            None => PasswordCheck::Wrong,
            Some(UserPassword::Clear(text)) => {
                password_check(equal_in_constant_time(text.as_bytes(), password))
            }
            Some(UserPassword::Hashed(hash)) => {
                self.password_results().check(hash, password, may_wait)
            }
        }
    }

    fn group(&self, list: &str, user: &[u8], index: usize) -> Option<&str> {
        let user = self.userlists().user(list, user)?;
        user.groups.get(index).map(String::as_str)
    }
}
