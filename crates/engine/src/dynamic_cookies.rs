//! What commands changed of the cookies that are computed from a key (`cookie ... dynamic`).

/// What commands changed of a backend's dynamic cookies; `None` means as written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DynamicCookies {
    /// `enable|disable dynamic-cookie backend`.
    pub on: Option<bool>,
    /// `set dynamic-cookie-key backend`.
    pub key: Option<String>,
}
