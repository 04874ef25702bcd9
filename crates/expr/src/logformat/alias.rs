//! The catalogue of log-format aliases (`%ci`, `%ST`...), manual 8.2.6.

use crate::needs::Needs;

/// What an alias stands for. Variants carry the alias's own letters.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[allow(missing_docs, reason = "the rows below say what each one is")]
pub enum AliasId {
    AcceptDateGmt,
    AcceptDateLocal,
    AcceptStamp,
    AcceptDate,
    AcceptMillis,
    RequestDate,
    RequestDateGmt,
    RequestDateLocal,
    ActiveTime,
    ConnectTime,
    DataTime,
    HandshakeTime,
    IdleTime,
    TimeToQueue,
    RequestTime,
    ResponseTime,
    TotalTime,
    UserTime,
    QueueTime,
    BytesOut,
    BytesIn,
    RequestCookie,
    ResponseCookie,
    Hostname,
    Method,
    Uri,
    Path,
    PathOnly,
    Query,
    HttpVersion,
    UniqueId,
    Status,
    ProcessConnections,
    Backend,
    BackendConnections,
    SourceIp,
    SourcePort,
    BackendQueue,
    ClientIp,
    ClientPort,
    Frontend,
    FrontendConnections,
    FrontendIp,
    FrontendPort,
    FrontendTransport,
    LogCounter,
    RequestCaptures,
    RequestCapturesClf,
    ResponseCaptures,
    ResponseCapturesClf,
    Origin,
    Pid,
    RequestLine,
    Retries,
    RequestCounter,
    Server,
    ServerConnections,
    ServerIp,
    ServerPort,
    ServerQueue,
    Termination,
    TerminationCookie,
    TlsCipher,
    TlsVersion,
    Options,
}

/// One alias with all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The letters after the percent sign.
    pub word: &'static str,
    /// What it stands for.
    pub id: AliasId,
    /// What it prints, in a few words.
    pub help: &'static str,
    /// What must be fetched for it beside the record of the exchange.
    pub needs: Needs,
}

impl Alias {
    const fn needs(self, needs: Needs) -> Alias {
        Alias { needs, ..self }
    }

    /// Whether HAProxy waits for the end of the exchange before it writes a line that has it: times,
    /// bytes and numbers of connections, but not `%tsc`.
    pub fn tells_of_the_end(&self) -> bool {
        const WORDS: [&str; 22] = [
            "B", "ID", "TR", "Ta", "Tc", "Td", "Th", "Ti", "Tq", "Tr", "Tt", "Tu", "Tw", "U", "ac",
            "bc", "bq", "fc", "rc", "sc", "sq", "ts",
        ];
        WORDS.contains(&self.word)
    }
}

impl PartialEq for Alias {
    fn eq(&self, other: &Alias) -> bool {
        self.id == other.id
    }
}

const fn any(word: &'static str, id: AliasId, help: &'static str) -> Alias {
    Alias {
        word,
        id,
        help,
        needs: Needs::NONE,
    }
}

/// Every alias.
pub const ALIASES: &[Alias] = &[
    any("B", AliasId::BytesOut, "bytes from server to client"),
    any("CC", AliasId::RequestCookie, "captured request cookie"),
    any("CS", AliasId::ResponseCookie, "captured response cookie"),
    any("H", AliasId::Hostname, "host name"),
    any("HM", AliasId::Method, "HTTP method"),
    any("HP", AliasId::Path, "request URI without query string"),
    any("HPO", AliasId::PathOnly, "request path only"),
    any("HQ", AliasId::Query, "query string with its question mark"),
    any("HU", AliasId::Uri, "request URI"),
    any("HV", AliasId::HttpVersion, "HTTP version"),
    any("ID", AliasId::UniqueId, "unique id"),
    any("OG", AliasId::Origin, "why the line is written"),
    any("ST", AliasId::Status, "status code"),
    any("T", AliasId::AcceptDateGmt, "accept date, GMT"),
    any("TR", AliasId::RequestTime, "receiving the request, ms"),
    any("Ta", AliasId::ActiveTime, "active time, ms"),
    any("Tc", AliasId::ConnectTime, "connecting to the server, ms"),
    any("Td", AliasId::DataTime, "transferring data, ms"),
    any("Th", AliasId::HandshakeTime, "handshakes, ms"),
    any("Ti", AliasId::IdleTime, "idle before the request, ms"),
    any("Tl", AliasId::AcceptDateLocal, "accept date, local time"),
    any("Tq", AliasId::TimeToQueue, "Th + Ti + TR, ms"),
    any("Tr", AliasId::ResponseTime, "waiting for the response, ms"),
    any(
        "Ts",
        AliasId::AcceptStamp,
        "accept date, seconds since 1970",
    ),
    any("Tt", AliasId::TotalTime, "whole session, ms"),
    any("Tu", AliasId::UserTime, "what the client waited, ms"),
    any("Tw", AliasId::QueueTime, "waiting in queues, ms"),
    any("U", AliasId::BytesIn, "bytes from client to server"),
    any(
        "ac",
        AliasId::ProcessConnections,
        "connections of the process",
    ),
    any("b", AliasId::Backend, "backend name"),
    any(
        "bc",
        AliasId::BackendConnections,
        "connections of the backend",
    ),
    any("bi", AliasId::SourceIp, "our address towards the server").needs(Needs::SERVER_ADDRESSES),
    any("bp", AliasId::SourcePort, "our port towards the server").needs(Needs::SERVER_ADDRESSES),
    any("bq", AliasId::BackendQueue, "place in the backend's queue"),
    any("ci", AliasId::ClientIp, "client address"),
    any("cp", AliasId::ClientPort, "client port"),
    any("f", AliasId::Frontend, "frontend name"),
    any(
        "fc",
        AliasId::FrontendConnections,
        "connections of the frontend",
    ),
    any("fi", AliasId::FrontendIp, "accepting address"),
    any("fp", AliasId::FrontendPort, "accepting port"),
    any(
        "ft",
        AliasId::FrontendTransport,
        "frontend name, with ~ over TLS",
    ),
    any("hr", AliasId::RequestCaptures, "captured request headers"),
    any(
        "hrl",
        AliasId::RequestCapturesClf,
        "captured request headers, CLF style",
    ),
    any("hs", AliasId::ResponseCaptures, "captured response headers"),
    any(
        "hsl",
        AliasId::ResponseCapturesClf,
        "captured response headers, CLF style",
    ),
    any("lc", AliasId::LogCounter, "log lines of the frontend"),
    any(
        "ms",
        AliasId::AcceptMillis,
        "milliseconds of the accept date",
    ),
    any("o", AliasId::Options, "sets the flags of what follows"),
    any("pid", AliasId::Pid, "process id"),
    any("r", AliasId::RequestLine, "request line"),
    any("rc", AliasId::Retries, "connection retries"),
    any(
        "rt",
        AliasId::RequestCounter,
        "requests or sessions of the process",
    ),
    any("s", AliasId::Server, "server name"),
    any(
        "sc",
        AliasId::ServerConnections,
        "connections of the server",
    ),
    any("si", AliasId::ServerIp, "server address").needs(Needs::SERVER_ADDRESSES),
    any("sp", AliasId::ServerPort, "server port").needs(Needs::SERVER_ADDRESSES),
    any("sq", AliasId::ServerQueue, "place in the server's queue"),
    any("sslc", AliasId::TlsCipher, "TLS cipher"),
    any("sslv", AliasId::TlsVersion, "TLS version"),
    any("t", AliasId::AcceptDate, "accept date with milliseconds"),
    any("tr", AliasId::RequestDate, "request date with milliseconds"),
    any("trg", AliasId::RequestDateGmt, "request date, GMT"),
    any("trl", AliasId::RequestDateLocal, "request date, local time"),
    any("ts", AliasId::Termination, "termination state"),
    any(
        "tsc",
        AliasId::TerminationCookie,
        "termination state with cookie status",
    ),
];

/// The alias of these letters.
pub fn alias(word: &str) -> Option<&'static Alias> {
    ALIASES.iter().find(|row| row.word == word)
}
