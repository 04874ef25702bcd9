//! Which rows are wanted: `show stat {<iid>|<proxy>} <type> <sid>`, `up`, `no-maint`, and the
//! scope of a statistics page.

/// Which rows `show stat` writes. The default is all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Filter {
    /// Only the proxy with this `id`.
    pub proxy: Option<u32>,
    /// Only these types, as bits: 1 frontends, 2 backends, 4 servers, 8 listeners.
    pub types: Option<u32>,
    /// Only the servers and listeners with this `id`.
    pub id: Option<u32>,
    /// `up`: only servers that are not down.
    pub up: bool,
    /// `no-maint`: only servers that are not in maintenance.
    pub no_maint: bool,
    /// `stats scope`: only the proxies of these names; all when it is empty.
    pub names: Vec<String>,
    /// `scope=`: only proxies whose names contain this.
    pub name_part: String,
}

impl Filter {
    /// Reads `<iid> <type> <sid>`; numbers below zero are "any", words are zero, as HAProxy
    /// takes them.
    #[must_use]
    pub fn with_numbers(mut self, proxy: Option<u32>, types: &str, id: &str) -> Self {
        self.proxy = proxy;
        self.types = number(types);
        self.id = number(id);
        self
    }

    /// Whether rows of a type (a bit) are wanted.
    pub(crate) fn wants_type(&self, bit: u32) -> bool {
        self.types.is_none_or(|types| types & bit != 0)
    }

    /// Whether a server or listener with this number is wanted.
    pub(crate) fn wants_id(&self, id: u32) -> bool {
        self.id.is_none_or(|wanted| wanted == id)
    }

    /// Whether a proxy with this number is wanted.
    pub(crate) fn wants_proxy(&self, id: u32, name: &str) -> bool {
        self.proxy.is_none_or(|wanted| wanted == id)
            && (self.names.is_empty() || self.names.iter().any(|wanted| wanted == name))
            && name.contains(&self.name_part)
    }
}

fn number(text: &str) -> Option<u32> {
    let parsed = text.parse::<i64>().unwrap_or(0);
    u32::try_from(parsed).ok()
}
