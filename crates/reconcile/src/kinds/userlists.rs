//! `userlists`: the lists of users, which change as one.

use crate::object::{NameForm, ObjectKind};

/// `userlists`.
pub static USERLISTS: ObjectKind = ObjectKind {
    word: "userlists",
    name_form: NameForm::None,
    ..ObjectKind::BASE
};
