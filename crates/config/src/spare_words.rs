//! Keywords behind whose arguments HAProxy 3.2 reads nothing: a word too many is ignored there, and so it is here, with a
//! warning. Behind all others it is refused.

/// The keywords, sorted.
const IGNORED: &[&str] = &[
    "accepted_payload_size",
    "backing-file",
    "clitcpka-cnt",
    "clitcpka-idle",
    "clitcpka-intvl",
    "close-spread-time",
    "compression minsize-req",
    "compression minsize-res",
    "compression offload",
    "email-alert from",
    "email-alert level",
    "email-alert mailers",
    "email-alert myhostname",
    "email-alert to",
    "format",
    "grace",
    "guid",
    "hard-stop-after",
    "harden.reject-privileged-ports.quic",
    "harden.reject-privileged-ports.tcp",
    "hash-balance-factor",
    "hash-preserve-affinity",
    "hash-type",
    "hold",
    "http-check set-var",
    "http-check set-var-fmt",
    "http-check unset-var",
    "http-send-name-header",
    "load-server-state-from-file",
    "log-send-hostname",
    "max-keep-alive-queue",
    "max-session-srv-conns",
    "maxlen",
    "ocsp-update.maxdelay",
    "ocsp-update.mindelay",
    "option redispatch",
    "parse-resolv-conf",
    "rate-limit sessions",
    "resolve_retries",
    "server-state-base",
    "server-state-file",
    "srvtcpka-cnt",
    "srvtcpka-idle",
    "srvtcpka-intvl",
    "ssl-load-extra-del-ext",
    "ssl-mode-async",
    "ssl-provider-path",
    "ssl-skip-self-issued-ca",
    "stats maxconn",
    "stats realm",
    "stats refresh",
    "stats scope",
    "stats timeout",
    "stats uri",
    "stats-file",
    "tcp-check set-var",
    "tcp-check set-var-fmt",
    "tcp-check unset-var",
    "tcp-request inspect-delay",
    "tcp-response inspect-delay",
    "tune.lua.burst-timeout",
    "tune.lua.forced-yield",
    "tune.lua.maxmem",
    "tune.lua.service-timeout",
    "tune.lua.session-timeout",
    "tune.lua.task-timeout",
    "tune.ssl.ocsp-update.maxdelay",
    "tune.ssl.ocsp-update.mindelay",
    "tune.stick-counters",
    "tune.vars.check-max-size",
    "tune.vars.global-max-size",
    "tune.vars.proc-max-size",
    "tune.vars.reqres-max-size",
    "tune.vars.sess-max-size",
    "tune.vars.txn-max-size",
    "warn-blocked-traffic-after",
];

/// Whether words behind the arguments of a keyword are ignored.
pub(crate) fn are_ignored(keyword: &str) -> bool {
    IGNORED.binary_search(&keyword).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keywords_are_sorted() {
        assert!(IGNORED.is_sorted());
        assert!(are_ignored("grace") && !are_ignored("retries"));
    }
}
