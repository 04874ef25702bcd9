//! Writing a format out: HAProxy`s escaping and number forms.
