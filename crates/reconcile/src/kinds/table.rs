//! `table`: stick tables. What is remembered of keys is no setting: commands change it, and no
//! override knows it.

use crate::object::{NameForm, ObjectKind};

/// `table`.
pub static TABLE: ObjectKind = ObjectKind {
    word: "table",
    name_form: NameForm::Word,
    ..ObjectKind::BASE
};
