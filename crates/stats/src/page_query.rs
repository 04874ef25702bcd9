//! The query of a statistics page: the words after its address.

use crate::urlencoded::decoded;

/// Bytes of a scope at most, as in the field of the page.
const SCOPE_BYTES_MAX: usize = 20;

/// The words of a target after the prefix of the page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PageQuery {
    /// Servers that are down are left out.
    pub(crate) up: bool,
    /// Servers in maintenance are left out.
    pub(crate) no_maint: bool,
    /// The page does not load itself again.
    pub(crate) no_refresh: bool,
    /// Part of the names of proxies.
    pub(crate) scope: String,
    /// The outcome of a posted form.
    pub(crate) outcome: Option<String>,
    /// The format of the answer.
    pub(crate) format: PageFormat,
}

/// The formats of the page.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum PageFormat {
    Csv,
    #[default]
    Html,
    Json,
    Schema,
    Typed,
}

impl PageQuery {
    /// Reads what follows the prefix of a target.
    pub(crate) fn read(rest: &str) -> Self {
        let mut query = Self::default();
        for word in rest.split([';', '?', '&']) {
            match word {
                "up" => query.up = true,
                "no-maint" => query.no_maint = true,
                "norefresh" => query.no_refresh = true,
                "csv" => query.format = PageFormat::Csv,
                "json" => query.format = PageFormat::Json,
                "json-schema" => query.format = PageFormat::Schema,
                "typed" => query.format = PageFormat::Typed,
                _ => {
                    if let Some(outcome) = word.strip_prefix("st=") {
                        query.outcome = Some(outcome.to_owned());
                    } else if let Some(scope) = word.strip_prefix("scope=") {
                        query.scope = decoded(scope.as_bytes());
                        query.scope = query.scope.chars().take(SCOPE_BYTES_MAX).collect();
                    }
                }
            }
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_target_are_read_in_any_order() {
        let query = PageQuery::read(";csv;norefresh?scope=a%2Fb");
        assert_eq!((query.format, query.no_refresh), (PageFormat::Csv, true));
        assert_eq!(query.scope, "a/b");
        let query = PageQuery::read(";up;st=DONE");
        assert_eq!((query.format, query.up), (PageFormat::Html, true));
        assert_eq!(query.outcome.as_deref(), Some("DONE"));
        assert_eq!(PageQuery::read("foo;csvx"), PageQuery::default());
        let long = format!("?scope={}", "x".repeat(100));
        assert_eq!(PageQuery::read(&long).scope.len(), SCOPE_BYTES_MAX);
    }
}
