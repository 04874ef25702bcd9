//! What a condition can ask about the program that reads the configuration.

use crate::{HaproxyVersion, SslVersion};

/// Answers to the predicates of `.if` about the program (and not the environment).
pub trait ProgramFacts {
    /// The HAProxy version whose configuration language is supported.
    fn version(&self) -> HaproxyVersion;

    /// Whether the feature `name` is built in, by HAProxy's names (`OPENSSL`, `THREAD` ...).
    fn has_feature(&self, name: &str) -> bool;

    /// Whether an option is enabled at run time: `POLL`, `EPOLL`, `KQUEUE`, `EVPORTS`, `SPLICE`,
    /// `GETADDRINFO`, `REUSEPORT`, `FAST-FORWARD`, `SERVER-SSL-VERIFY-NONE`.
    fn is_enabled(&self, option: &str) -> bool;

    /// The OpenSSL version offered to `openssl_version_*`; `None` makes both predicates false.
    fn openssl_version(&self) -> Option<SslVersion>;

    /// The TLS library's name for `ssllib_name_startswith`; `None` when there is none.
    fn ssl_library(&self) -> Option<&str>;

    /// The AWS-LC API version offered to `awslc_api_*`; `None` makes both predicates false.
    fn awslc_api(&self) -> Option<u64>;
}

/// Fixed answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FixedFacts {
    /// See [`ProgramFacts::version`].
    pub version: HaproxyVersion,
    /// The features built in.
    pub features: Vec<String>,
    /// The options enabled.
    pub enabled: Vec<String>,
    /// See [`ProgramFacts::openssl_version`].
    pub openssl_version: Option<SslVersion>,
    /// See [`ProgramFacts::ssl_library`].
    pub ssl_library: Option<String>,
    /// See [`ProgramFacts::awslc_api`].
    pub awslc_api: Option<u64>,
}

impl ProgramFacts for FixedFacts {
    fn version(&self) -> HaproxyVersion {
        self.version
    }

    fn has_feature(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature == name)
    }

    fn is_enabled(&self, option: &str) -> bool {
        self.enabled.iter().any(|enabled| enabled == option)
    }

    fn openssl_version(&self) -> Option<SslVersion> {
        self.openssl_version
    }

    fn ssl_library(&self) -> Option<&str> {
        self.ssl_library.as_deref()
    }

    fn awslc_api(&self) -> Option<u64> {
        self.awslc_api
    }
}
