//! What a condition may ask about the program that reads the configuration.

use crate::{SslVersion, Version};

/// Answers to the predicates of `.if` that are about the program, not the environment.
pub trait Facts {
    /// The HAProxy version whose language is spoken.
    fn version(&self) -> Version;

    /// Whether `name` is a feature built in, by HAProxy's names (`OPENSSL`, `THREAD` ...).
    fn has_feature(&self, name: &str) -> bool;

    /// Whether an option is enabled at run time: `POLL`, `EPOLL`, `KQUEUE`, `EVPORTS`, `SPLICE`,
    /// `GETADDRINFO`, `REUSEPORT`, `FAST-FORWARD`, `SERVER-SSL-VERIFY-NONE`.
    fn is_enabled(&self, option: &str) -> bool;

    /// The OpenSSL version offered to `openssl_version_*`; `None` makes both predicates false.
    fn openssl_version(&self) -> Option<SslVersion>;

    /// The TLS library's name as `ssllib_name_startswith` sees it; `None` when there is none.
    fn ssl_library(&self) -> Option<&str>;

    /// The AWS-LC API version offered to `awslc_api_*`; `None` makes both predicates false.
    fn awslc_api(&self) -> Option<u64>;
}

/// Facts written down beforehand.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FixedFacts {
    /// See [`Facts::version`].
    pub version: Version,
    /// The features built in.
    pub features: Vec<String>,
    /// The options enabled.
    pub enabled: Vec<String>,
    /// See [`Facts::openssl_version`].
    pub openssl_version: Option<SslVersion>,
    /// See [`Facts::ssl_library`].
    pub ssl_library: Option<String>,
    /// See [`Facts::awslc_api`].
    pub awslc_api: Option<u64>,
}

impl Facts for FixedFacts {
    fn version(&self) -> Version {
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
