//! The validated configuration as plain data.
//!
//! `config` lowers text into these types; `engine` compiles them into what runs. Nothing here
//! opens, listens or counts, and no run-time state is written back into it, so configurations can
//! be compared, printed and diffed without a process.
//!
//! Defaults are already applied: a value that is `None` was not set anywhere, and the doc comment
//! of the field says what applies then. A `listen` section becomes one [`Frontend`] and one
//! [`Backend`] of the same name, both marked [`ProxyCommon::listen`].

use std::sync::Arc;

mod address;
mod backend;
pub mod change;
mod check;
mod common;
mod copy_on_write;
mod frontend;
mod global;
mod h2;
mod log;
pub mod plan;
mod server;
mod stats;
mod status_set;
mod table;
mod tls;
mod userlist;

pub use address::{Address, NameFamily, Network, PortSpec};
pub use backend::{
    Backend, BackendOptions, BackendTimeouts, Balance, CookieMode, CookiePersistence, HashAffinity,
    HashFunction, HashType, HttpReuse, PersistenceAction, PersistenceRule, Redispatch, RetryOn,
    ServerStates, StickAction, StickRule, UriKey, UseServer, UseServerTarget,
};
pub use ballast_rules::{
    HttpProtocol, LogOrigin, LogProfile, LogStep, LogSteps, ProfileStep, StepLine,
};
pub use change::{Change, ChangeError};
pub use check::{
    CheckConnect, CheckExpect, CheckMethod, CheckPayload, CheckPort, CheckRule, CheckSend,
    CheckVariable, CheckVariableValue, ExpectOutcome, ExpectSubject, HeaderPattern,
    HeaderPatternText, HttpCheckSend, ProtocolCheck,
};
pub use common::{
    ConnectionMode, ErrorPage, ErrorPages, ForwardFor, ForwardedHeader, ForwardedNode, IsExplicit,
    Keepalive, Mode, OddNames, Origin, ProxyCommon, Splicing,
};
pub use copy_on_write::CopyOnWrite;
pub use frontend::{
    Bind, CaptureSlot, CookieCapture, Frontend, FrontendOptions, FrontendTimeouts, Monitor, Route,
    RouteTarget, UnixOwner,
};
pub use global::{
    CliLevel, CloseSpread, Global, ProcessVariable, SeverityOutput, StatsSocket, Tune,
    VariableLimits, VariableSource,
};
pub use h2::{H2LoggedErrors, H2SideTuning, H2Tuning, WebsocketProtocol};
pub use log::{Facility, Level, LogEndpoint, LogFormatName, LogLines, LogSample, LogTarget};
pub use server::{
    HashKey, InitAddr, InitState, Observe, OnError, OnMarkedDown, OnMarkedUp, ProxyProtocol,
    Server, ServerChecks, ServerSettings, SourceAddress, TransparentSource,
};
pub use stats::{STATS_REALM, STATS_URI, StatsAccess, StatsPage, StatsRule};
pub use status_set::{CountedStatuses, StatusSet};
pub use table::{StickTable, TableSettings};
pub use tls::{
    AuthoritySource, BindTls, CertificateList, CertificateListLine, CertificateLoad,
    CertificatePartFiles, CertificateSource, CertificateStoreSection, CheckTls, ExtraFiles,
    FileBases, GlobalTls, KeyThreads, NameFilter, OcspUpdates, ServerTls, TlsFile, TlsOptions,
    VerifyErrors,
};
pub use userlist::{ListedUser, Password, Userlist};

/// How bytes outside UTF-8 are held in the texts of the model.
pub use ballast_expr::{bytes_of_text, path_of_text};

/// A whole configuration, ready to be compiled and run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The `global` section(s), merged.
    pub global: Arc<Global>,
    /// Every `frontend` and the front half of every `listen`, in file order.
    pub frontends: Vec<Arc<Frontend>>,
    /// Every `backend` and the back half of every `listen`, in file order.
    pub backends: Vec<Arc<Backend>>,
    /// Stick tables of proxies and `peers` sections, in file order. Names are unique.
    pub tables: Vec<Arc<StickTable>>,
    /// `userlist` sections.
    pub userlists: Vec<Userlist>,
}

impl Config {
    /// The backend of that name.
    pub fn backend(&self, name: &str) -> Option<&Arc<Backend>> {
        self.backends
            .iter()
            .find(|backend| backend.common.name == name)
    }

    /// The frontend of that name.
    pub fn frontend(&self, name: &str) -> Option<&Arc<Frontend>> {
        self.frontends
            .iter()
            .find(|frontend| frontend.common.name == name)
    }
}
