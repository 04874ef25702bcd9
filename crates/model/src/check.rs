//! Health checks of a backend's servers.

use ballast_expr::{Expr, LogFormat, SetCondition, VarName};

use crate::{Address, CheckTls, HttpProtocol};

/// What a check does after connecting.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CheckMethod {
    /// A connection that opens is enough.
    #[default]
    Connect,
    /// `option httpchk` and `http-check` rules.
    Http {
        /// The rules, in order. Never empty: a bare `option httpchk` sends its request and
        /// expects a 2xx or 3xx status.
        rules: Vec<CheckRule>,
        /// `http-check disable-on-404`.
        disable_on_404: bool,
        /// `http-check send-state`.
        send_state: bool,
    },
    /// `option tcp-check`, and the protocol checks that are defined by its rules.
    Tcp {
        /// The rules, in order and as written: an implied `connect` is not included, and messages
        /// count steps from the first. Empty: a connection that opens is enough.
        rules: Vec<CheckRule>,
        /// The word that selected it, for statistics and logs.
        word: &'static str,
    },
    /// A check that speaks a few steps of a protocol.
    Protocol(ProtocolCheck),
    /// `option external-check`: a program decides.
    External {
        /// `external-check command`.
        command: String,
        /// `external-check path`.
        path: Option<String>,
    },
}

impl CheckMethod {
    /// Whether a server that answers 404 takes no new clients.
    pub fn disables_on_404(&self) -> bool {
        matches!(
            self,
            Self::Http {
                disable_on_404: true,
                ..
            }
        )
    }
}

/// Checks whose request and expected response are defined by a protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProtocolCheck {
    /// `option ldap-check`.
    Ldap,
    /// `option mysql-check`.
    Mysql {
        /// `user`: the name to log in with; only the greeting is read when `None`.
        user: Option<String>,
        /// `pre-41`.
        before_41: bool,
    },
    /// `option pgsql-check user <name>`.
    Pgsql {
        /// The user to log in as.
        user: String,
    },
    /// `option redis-check`.
    Redis,
    /// `option smtpchk [<hello> <domain>]`.
    Smtp {
        /// `EHLO` or `HELO` and the domain; `HELO localhost` when `None`.
        hello: Option<(String, String)>,
    },
    /// `option spop-check`.
    Spop,
    /// `option ssl-hello-chk`.
    SslHello,
}

/// One rule of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckRule {
    /// `http-check comment` or `tcp-check comment`: reported for a later rule that fails and has no
    /// comment of its own.
    Comment(String),
    /// `http-check connect` or `tcp-check connect`.
    Connect(CheckConnect),
    /// `tcp-check send*`.
    Send(CheckSend),
    /// `http-check send`.
    HttpSend(HttpCheckSend),
    /// `http-check expect` or `tcp-check expect`.
    Expect(Box<CheckExpect>),
    /// `set-var` or `set-var-fmt`.
    SetVar(CheckVariable),
    /// `unset-var`.
    UnsetVar(VarName),
}

/// `set-var` or `set-var-fmt` of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckVariable {
    /// The variable.
    pub name: VarName,
    /// All of these must hold for it to be set.
    pub conditions: Vec<SetCondition>,
    /// Its value.
    pub value: CheckVariableValue,
}

/// Where the value of a variable of a check comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckVariableValue {
    /// `set-var`: without a value the variable stays as it is.
    Expr(Expr),
    /// `set-var-fmt`.
    Format(LogFormat),
}

/// `port` of a `connect`.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckPort {
    /// A number.
    Fixed(u16),
    /// An expression: its lower 16 bits; where they are 0, or there is no number, the port is that of
    /// the server line.
    Expr(Expr),
}

/// `connect` of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckConnect {
    /// `port`.
    pub port: Option<CheckPort>,
    /// `addr`.
    pub address: Option<Address>,
    /// `send-proxy`.
    pub send_proxy: bool,
    /// `ssl`: over TLS, with the settings of the server line; `None` leaves it to that line.
    pub tls: Option<CheckTls>,
    /// `proto`: the version of HTTP that is spoken; when `None` it is what TLS negotiated, or HTTP/1.
    pub protocol: Option<HttpProtocol>,
    /// `via-socks4`: through the SOCKS4 proxy of the server line.
    pub via_socks4: bool,
    /// `linger`: close politely instead of resetting.
    pub linger: bool,
    /// `default`: the options of the server line apply.
    pub default: bool,
    /// `comment`.
    pub comment: Option<String>,
}

/// `tcp-check send`, `send-binary` and their log-format forms.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckSend {
    /// The bytes to send.
    pub payload: CheckPayload,
    /// `comment`.
    pub comment: Option<String>,
}

/// Bytes to send in a check.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckPayload {
    /// Literal bytes.
    Bytes(Vec<u8>),
    /// A log-format string.
    Format(LogFormat),
    /// A log-format string whose result is hexadecimal.
    HexFormat(LogFormat),
}

/// `http-check send`, or the words of `option httpchk`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpCheckSend {
    /// `meth`; `OPTIONS` when `None`.
    pub method: Option<String>,
    /// `uri`; `/` when `None`.
    pub uri: Option<String>,
    /// `uri-lf`.
    pub uri_format: Option<LogFormat>,
    /// `ver`; `HTTP/1.0` when `None`.
    pub version: Option<String>,
    /// `hdr`, each of them.
    pub headers: Vec<(String, LogFormat)>,
    /// `body`.
    pub body: Option<Vec<u8>>,
    /// `body-lf`.
    pub body_format: Option<LogFormat>,
    /// `comment`.
    pub comment: Option<String>,
    /// Whether it stands for a request that no rule says: it has no number in texts.
    pub implied: bool,
}

/// `expect` of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckExpect {
    /// `!`: the match must not be found.
    pub negated: bool,
    /// What is looked for, and where.
    pub subject: ExpectSubject,
    /// `min-recv`: how many bytes must be received before a mismatch counts; -1 is no limit.
    pub receive_bytes_min: i64,
    /// `ok-status`.
    pub ok: Option<ExpectOutcome>,
    /// `error-status`.
    pub error: Option<ExpectOutcome>,
    /// `tout-status`.
    pub timeout: Option<ExpectOutcome>,
    /// `on-success`.
    pub on_success: Option<LogFormat>,
    /// `on-error`.
    pub on_error: Option<LogFormat>,
    /// `status-code`.
    pub status_code: Option<Expr>,
    /// `comment`.
    pub comment: Option<String>,
}

/// The subject of an `expect`.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectSubject {
    /// `status`: inclusive ranges.
    Status(Vec<(u16, u16)>),
    /// `rstatus`: a pattern on the status.
    StatusRegex(String),
    /// `string`: in the body of a response, or in the bytes of a TCP check.
    Text(Vec<u8>),
    /// `rstring`.
    Regex(String),
    /// `binary`.
    Binary(Vec<u8>),
    /// `rbinary`: a pattern on the hexadecimal form.
    BinaryRegex(String),
    /// `string-lf`.
    TextFormat(LogFormat),
    /// `binary-lf`.
    BinaryFormat(LogFormat),
    /// `hdr`/`fhdr`: a header by name and value.
    Header {
        /// The whole value instead of each comma-separated member.
        full: bool,
        /// `name` or `name-lf`.
        name: HeaderPattern,
        /// `value` or `value-lf`; any when `None`.
        value: Option<HeaderPattern>,
    },
}

/// A pattern of `expect hdr`.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderPattern {
    /// The method of `-m`: `str`, `beg`, `end`, `sub` or `reg`.
    pub method: &'static str,
    /// What is looked for.
    pub text: HeaderPatternText,
}

/// The text of a [`HeaderPattern`].
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderPatternText {
    /// As written.
    Literal(String),
    /// A log-format string; never with the method `reg`.
    Format(LogFormat),
}

/// The status a check reports (`L7OK`, `L7STS`, ...).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExpectOutcome(pub String);
