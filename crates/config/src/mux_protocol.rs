//! `proto`: what connections of a line are made to speak.

use ballast_model::{HttpProtocol, Mode};
use ballast_syntax::Diagnostic;

use crate::args::Args;

/// The names that `proto` knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MuxProtocol {
    /// `h1`.
    H1,
    /// `h2`.
    H2,
    /// `none`: bytes, in TCP mode.
    None,
    /// `fcgi`.
    Fcgi,
    /// `spop`.
    Spop,
    /// `quic`.
    Quic,
}

impl MuxProtocol {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::H1,
        Self::H2,
        Self::None,
        Self::Quic,
        Self::Fcgi,
        Self::Spop,
    ];

    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == name)
    }

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::None => "none",
            Self::Fcgi => "fcgi",
            Self::Spop => "spop",
            Self::Quic => "quic",
        }
    }

    /// The version of HTTP it fixes, if it is one.
    pub(crate) fn http(self) -> Option<HttpProtocol> {
        match self {
            Self::H1 => Some(HttpProtocol::Http1),
            Self::H2 => Some(HttpProtocol::Http2),
            Self::None | Self::Fcgi | Self::Spop | Self::Quic => None,
        }
    }

    /// Whether binds of a frontend in this mode may have it. `quic` is left to its own message.
    pub(crate) fn fits_bind(self, mode: Mode) -> bool {
        match self {
            Self::H1 | Self::H2 => mode == Mode::Http,
            Self::None => mode != Mode::Http,
            Self::Fcgi | Self::Spop => false,
            Self::Quic => true,
        }
    }

    /// Whether servers of a backend in this mode may have it. FastCGI and SPOE have messages of their
    /// own.
    pub(crate) fn fits_server(self, mode: Mode) -> bool {
        match self {
            Self::H1 | Self::H2 => mode == Mode::Http,
            Self::None => mode != Mode::Http,
            Self::Fcgi | Self::Spop => true,
            Self::Quic => false,
        }
    }

    /// Whether checks may have it: those that speak HTTP, or all others. SPOE has a message of its own.
    pub(crate) fn fits_check(self, is_http: bool) -> bool {
        match self {
            Self::H1 | Self::H2 | Self::Fcgi => is_http,
            Self::None => !is_http,
            Self::Spop => true,
            Self::Quic => false,
        }
    }
}

/// Reads the name after `proto`.
///
/// # Errors
/// When there is none, or it is unknown.
pub(crate) fn protocol(args: &mut Args<'_>) -> Result<MuxProtocol, Diagnostic> {
    let keyword = args.keyword();
    let choices = MuxProtocol::ALL.map(|protocol| (protocol.word(), protocol));
    args.choice_or(&choices, |text| match text {
        "" => format!("'{keyword}' : missing value"),
        text => format!("'{keyword}' :  unknown MUX protocol '{text}'"),
    })
}
