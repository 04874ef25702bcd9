//! Which samples an index may ask once instead of many times.

use crate::acl::Condition;
use crate::effects::SideEffects;
use crate::expr::Expr;

/// Fetches whose sample is the same until a rule changes something, in alphabetical order.
#[rustfmt::skip] // A list of words.
const FETCHES: &[&str] = &[
    "base", "baseq", "capture.req.hdr", "capture.req.method", "capture.req.uri", "capture.req.ver",
    "capture.res.hdr", "capture.res.ver", "cook", "cook_cnt", "cook_val", "dst", "dst_is_local",
    "dst_port", "fc_dst", "fc_dst_port", "fc_src", "fc_src_port", "fe_id", "fe_name", "hdr",
    "hdr_cnt", "hdr_ip", "hdr_val", "int", "ipv4", "ipv6", "method", "path", "pathq", "query",
    "req.cook", "req.cook_cnt", "req.cook_val", "req.fhdr", "req.fhdr_cnt", "req.hdr",
    "req.hdr_cnt", "req.hdr_ip", "req.hdr_names", "req.hdr_val", "req.hdrs", "req.ssl_sni",
    "req.ver", "req_ver", "res.cook", "res.cook_cnt", "res.cook_val", "res.fhdr", "res.fhdr_cnt",
    "res.hdr", "res.hdr_cnt", "res.hdr_ip", "res.hdr_names", "res.hdr_val", "res.hdrs", "res.ver",
    "scook", "scook_cnt", "scook_val", "shdr", "shdr_cnt", "shdr_ip", "shdr_val", "so_id",
    "so_name", "src", "src_is_local", "src_port", "ssl_c_s_dn", "ssl_c_i_dn", "ssl_c_sha1",
    "ssl_fc_alpn", "ssl_fc_cipher", "ssl_fc_protocol", "ssl_fc_sni", "status", "str", "url",
    "url32", "url_ip", "url_param", "url_port", "urlp", "urlp_val", "var",
];

/// Converters that give the same for the same, and do nothing else, in alphabetical order. The
/// `map` family is one, too: who changes a map is a rule or a command.
#[rustfmt::skip] // A list of words.
const CONVERTERS: &[&str] = &[
    "b64dec", "base64", "bytes", "concat", "crc32", "crc32c", "djb2", "field", "hex", "host_only",
    "ipmask", "language", "length", "lower", "ltrim", "mod", "path_only", "port_only", "regsub",
    "rtrim", "sdbm", "sub", "ub64dec", "ub64enc", "upper", "url_dec", "url_enc", "urlp", "word",
    "wt6", "xxh32", "xxh3", "xxh64",
];

/// Whether a sample is the same until a rule changes something.
pub(super) fn is_stable(expr: &Expr) -> bool {
    let mut converters = expr.converters.iter().map(|step| step.converter.word);
    FETCHES.contains(&expr.fetch.word)
        && converters
            .all(|word| CONVERTERS.contains(&word) || word == "map" || word.starts_with("map_"))
}

/// Whether evaluating a condition changes samples that are stable otherwise.
pub(super) fn changes_samples(condition: &Condition) -> bool {
    let changes = SideEffects::VARIABLES.and(SideEffects::CAPTURES);
    condition.effects().intersects(changes)
}
