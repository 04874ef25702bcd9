//! Proxies while their sections are read: the model's types, and what can be decided only after
//! every section is read.

use ballast_expr::AclSet;
use ballast_model::{
    Backend, Bind, CertificateList, CheckMethod, CopyOnWrite, Frontend, LogTarget, Origin,
    ProxyCommon, ProxyProtocol, Server,
};
use ballast_rules::RuleSets;
use ballast_syntax::{SectionKind, Span};
use ballast_topology::ThreadSet;

use crate::keyword::Sections;
use crate::mux_protocol::MuxProtocol;
use crate::tls::words::{BindWords, ServerWords};

/// A `defaults`, `frontend`, `backend` or `listen` section being read. `defaults` begin with
/// [`ProxyDraft::base`]; every other proxy is made from its defaults by [`ProxyDraft::inherit`].
///
/// Words that both halves of a `listen` share go to [`ProxyDraft::common`]; `front.common` and
/// `back.common` are filled from it at the end and must not be written before.
#[derive(Clone, Debug)]
pub(crate) struct ProxyDraft {
    /// Which of the four kinds.
    pub kind: SectionKind,
    /// Its name; empty for anonymous defaults.
    pub name: String,
    /// The words that open the section.
    pub span: Option<Span>,
    /// Options of both halves.
    pub common: ProxyCommon,
    /// Options of the client side.
    pub front: Frontend,
    /// Options of the server side.
    pub back: Backend,
    /// ACLs declared here; not inherited.
    pub acls: AclSet,
    /// Rules of the defaults, already linked to their ACLs; they run first.
    pub inherited_rules: RuleSets,
    /// `log` lines in order.
    pub logs: Vec<LogLine>,
    /// `errorfiles` lines in order: their groups may be declared later.
    pub error_groups: Vec<ErrorGroupUse>,
    /// `default-server` words.
    pub default_server: ServerDraft,
    /// `server` and `server-template` lines, templates not yet expanded.
    pub servers: Vec<ServerDraft>,
    /// `bind` lines, port ranges expanded.
    pub binds: Vec<BindDraft>,
    /// `ssl-f-use` lines, for all binds with `ssl`.
    pub certificates: CertificateList,
    /// `id`.
    pub id: Option<(u32, Span)>,
    /// The place of each of `front.routes`.
    pub route_spans: Vec<Span>,
    /// The place of `default_backend`.
    pub default_backend_span: Option<Span>,
    /// The place of each of `back.use_servers`.
    pub use_server_spans: Vec<Span>,
    /// Words used that need `mode http`, and their places. Those of defaults are left out.
    pub http_words: Vec<(&'static str, Span)>,
    /// The word that selected the format of log lines (`option httplog` ...), and its place.
    pub log_word: Option<(&'static str, Option<Span>)>,
    /// The place of `balance`.
    pub balance_span: Option<Span>,
    /// State of the proxy's words while the section is read.
    pub section_state: crate::proxy::ProxySectionState,
    /// The name of the defaults it uses.
    pub defaults_name: Option<String>,
}

/// One `log` line of a proxy.
#[derive(Clone, Debug)]
pub(crate) enum LogLine {
    /// `log global`: the targets of the global section.
    Global(Span),
    /// A target.
    Target(LogTarget),
}

/// One `errorfiles` line.
#[derive(Clone, Debug)]
pub(crate) struct ErrorGroupUse {
    /// The `http-errors` section.
    pub group: String,
    /// The statuses taken from it; all of them when empty.
    pub statuses: Vec<u16>,
    /// Statuses that later lines set themselves.
    pub except: Vec<u16>,
    /// Its place.
    pub span: Span,
}

/// A `server` line while it is read, or the words of `default-server`.
#[derive(Clone, Debug)]
pub(crate) struct ServerDraft {
    /// What was read so far.
    pub server: Server,
    /// The whole line; `None` for built-in defaults.
    pub span: Option<Span>,
    /// The place of the address.
    pub address_span: Option<Span>,
    /// Whether the address came with a port.
    pub has_port: bool,
    /// Whether `port` says where checks go: it stands above the port of `addr`, wherever it stands.
    pub has_check_port: bool,
    /// `healthcheck`: the section that says what checks do.
    pub healthcheck: Option<String>,
    /// First and last number of a `server-template`.
    pub template: Option<(u32, u32)>,
    /// The place of `id`.
    pub id_span: Option<Span>,
    /// The place of `track`.
    pub track_span: Option<Span>,
    /// `resolvers`: the section that keeps the address up to date.
    pub resolvers: Option<String>,
    /// TLS words.
    pub tls: CopyOnWrite<ServerWords>,
    /// `proto`.
    pub protocol: Option<MuxProtocol>,
    /// `check-proto`.
    pub check_protocol: Option<MuxProtocol>,
    /// The place of `crt`.
    pub crt_span: Option<Span>,
    /// Words of the PROXY header.
    pub proxy_protocol: ProxyProtocolWords,
}

/// Which PROXY header a `server` line asks for. Its words are switches: what one turned on stays until
/// another turns it off, and version 2 wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProxyProtocolWords {
    /// `send-proxy`.
    pub v1: bool,
    /// `send-proxy-v2` and its siblings.
    pub v2: bool,
    /// What a header of version 2 has.
    pub options: ProxyProtocol,
}

impl ProxyProtocolWords {
    /// The header that is sent, if any.
    pub(crate) fn header(&self) -> Option<ProxyProtocol> {
        let version = match (self.v1, self.v2) {
            (_, true) => 2,
            (true, false) => 1,
            (false, false) => return None,
        };
        Some(ProxyProtocol {
            version,
            ..self.options.clone()
        })
    }
}

impl Default for ServerDraft {
    fn default() -> Self {
        Self {
            server: Server::new(String::new(), ballast_model::Address::Unix(String::new())),
            span: None,
            address_span: None,
            has_port: false,
            has_check_port: false,
            healthcheck: None,
            template: None,
            id_span: None,
            track_span: None,
            resolvers: None,
            tls: CopyOnWrite::default(),
            protocol: None,
            check_protocol: None,
            crt_span: None,
            proxy_protocol: ProxyProtocolWords::default(),
        }
    }
}

/// A `bind` or `stats socket` line while it is read.
#[derive(Clone, Debug)]
pub(crate) struct BindDraft {
    /// What was read so far, for one of the addresses.
    pub bind: Bind,
    /// The whole line.
    pub span: Span,
    /// `id`, of the first address.
    pub id: Option<u32>,
    /// `thread`.
    pub threads: ThreadSet,
    /// `shards`.
    pub shards: ShardWord,
    /// TLS words.
    pub tls: BindWords,
    /// `proto`, and its place.
    pub protocol: Option<(MuxProtocol, Span)>,
    /// `level` and related words, which only command sockets use.
    pub socket: ballast_model::StatsSocket,
}

/// `shards` of a bind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ShardWord {
    /// So many.
    Count(u16),
    /// One for each thread that serves the bind.
    ByThread,
    /// One for each thread group that serves it.
    ByGroup,
}

impl ProxyDraft {
    /// A proxy with all documented defaults.
    #[must_use]
    pub(crate) fn base(kind: SectionKind) -> Self {
        let back = Backend {
            retry_count_max: 3,
            ..Backend::default()
        };
        Self {
            kind,
            name: String::new(),
            span: None,
            common: ProxyCommon::default(),
            front: Frontend::default(),
            back,
            acls: AclSet::new(),
            inherited_rules: RuleSets::default(),
            logs: Vec::new(),
            error_groups: Vec::new(),
            default_server: ServerDraft::default(),
            servers: Vec::new(),
            binds: Vec::new(),
            certificates: CertificateList::default(),
            id: None,
            route_spans: Vec::new(),
            default_backend_span: None,
            use_server_spans: Vec::new(),
            http_words: Vec::new(),
            log_word: None,
            balance_span: None,
            section_state: crate::proxy::ProxySectionState::default(),
            defaults_name: None,
        }
    }

    /// A proxy that starts with the settings of `defaults`, or with the documented ones.
    #[must_use]
    pub(crate) fn inherit(defaults: Option<&ProxyDraft>, kind: SectionKind, name: &str) -> Self {
        let mut draft = match defaults {
            Some(defaults) => defaults.clone(),
            None => Self::base(kind),
        };
        let own = std::mem::take(&mut draft.common.rules);
        draft.inherited_rules.append(own);
        draft.kind = kind;
        draft.defaults_name = defaults.map(|defaults| defaults.name.clone());
        name.clone_into(&mut draft.name);
        name.clone_into(&mut draft.common.name);
        draft.acls = AclSet::new();
        draft.http_words.clear();
        draft.log_word = draft.log_word.map(|(word, _)| (word, None));
        draft.balance_span = None;
        draft.section_state.begin();
        draft.section_state.defaults = defaults.and_then(|defaults| defaults.span);
        draft.common.listen = kind == SectionKind::Listen;
        draft.common.origin = Origin::default();
        draft
    }

    /// The kind of section of its lines.
    #[must_use]
    pub(crate) fn section(&self) -> Sections {
        Sections::of(self.kind)
    }

    /// Whether it has a client side.
    #[must_use]
    pub(crate) fn is_front(&self) -> bool {
        matches!(self.kind, SectionKind::Frontend | SectionKind::Listen)
    }

    /// Whether it has a server side.
    #[must_use]
    pub(crate) fn is_back(&self) -> bool {
        matches!(self.kind, SectionKind::Backend | SectionKind::Listen)
    }

    /// What checks of one of its servers do.
    pub(crate) fn check_of<'c>(&'c self, server: &'c Server) -> &'c CheckMethod {
        server.checks.method.as_deref().unwrap_or(&self.back.check)
    }

    /// `frontend 'name'`, for messages.
    #[must_use]
    pub(crate) fn title(&self) -> String {
        // A `listen` section is called a proxy.
        let word = match self.kind {
            SectionKind::Listen => "proxy",
            kind => kind.word(),
        };
        format!("{word} '{}'", self.name)
    }
}
