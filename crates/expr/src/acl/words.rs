//! ACL words: a sample with a matching method of its own, manual 7.1.

use crate::pattern::MatchMethod;

/// An ACL word: the sample it stands for and the way it matches.
#[derive(Clone, Copy, Debug)]
pub struct AclWord {
    /// The word as written in a criterion.
    pub word: &'static str,
    /// The sample fetch it stands for.
    pub fetch: &'static str,
    /// How the sample is matched when `-m` says nothing.
    pub method: MatchMethod,
}

const fn row(word: &'static str, fetch: &'static str, method: MatchMethod) -> AclWord {
    AclWord {
        word,
        fetch,
        method,
    }
}

/// Every ACL word, in alphabetical order.
pub const ACL_WORDS: &[AclWord] = &[
    row("base", "base", MatchMethod::Str),
    row("base_beg", "base", MatchMethod::Beg),
    row("base_dir", "base", MatchMethod::Dir),
    row("base_dom", "base", MatchMethod::Dom),
    row("base_end", "base", MatchMethod::End),
    row("base_len", "base", MatchMethod::Len),
    row("base_reg", "base", MatchMethod::Reg),
    row("base_sub", "base", MatchMethod::Sub),
    row("cook", "req.cook", MatchMethod::Str),
    row("cook_beg", "req.cook", MatchMethod::Beg),
    row("cook_dir", "req.cook", MatchMethod::Dir),
    row("cook_dom", "req.cook", MatchMethod::Dom),
    row("cook_end", "req.cook", MatchMethod::End),
    row("cook_len", "req.cook", MatchMethod::Len),
    row("cook_reg", "req.cook", MatchMethod::Reg),
    row("cook_sub", "req.cook", MatchMethod::Sub),
    row("hdr", "req.hdr", MatchMethod::Str),
    row("hdr_beg", "req.hdr", MatchMethod::Beg),
    row("hdr_dir", "req.hdr", MatchMethod::Dir),
    row("hdr_dom", "req.hdr", MatchMethod::Dom),
    row("hdr_end", "req.hdr", MatchMethod::End),
    row("hdr_len", "req.hdr", MatchMethod::Len),
    row("hdr_reg", "req.hdr", MatchMethod::Reg),
    row("hdr_sub", "req.hdr", MatchMethod::Sub),
    row("http_auth_group", "http_auth_group", MatchMethod::Str),
    row("method", "method", MatchMethod::Str),
    row("path", "path", MatchMethod::Str),
    row("path_beg", "path", MatchMethod::Beg),
    row("path_dir", "path", MatchMethod::Dir),
    row("path_dom", "path", MatchMethod::Dom),
    row("path_end", "path", MatchMethod::End),
    row("path_len", "path", MatchMethod::Len),
    row("path_reg", "path", MatchMethod::Reg),
    row("path_sub", "path", MatchMethod::Sub),
    row("payload", "payload", MatchMethod::Bin),
    row("payload_lv", "payload_lv", MatchMethod::Bin),
    row("req.ssl_ver", "req.ssl_ver", MatchMethod::Int),
    row("req_rdp_cookie", "req.rdp_cookie", MatchMethod::Str),
    row("req_rdp_cookie_cnt", "req.rdp_cookie_cnt", MatchMethod::Int),
    row("req_ssl_sni", "req.ssl_sni", MatchMethod::Str),
    row("req_ssl_ver", "req.ssl_ver", MatchMethod::Int),
    row("req_ver", "req.ver", MatchMethod::Str),
    row("resp_ver", "res.ver", MatchMethod::Str),
    row("scook", "res.cook", MatchMethod::Str),
    row("scook_beg", "res.cook", MatchMethod::Beg),
    row("scook_dir", "res.cook", MatchMethod::Dir),
    row("scook_dom", "res.cook", MatchMethod::Dom),
    row("scook_end", "res.cook", MatchMethod::End),
    row("scook_len", "res.cook", MatchMethod::Len),
    row("scook_reg", "res.cook", MatchMethod::Reg),
    row("scook_sub", "res.cook", MatchMethod::Sub),
    row("shdr", "res.hdr", MatchMethod::Str),
    row("shdr_beg", "res.hdr", MatchMethod::Beg),
    row("shdr_dir", "res.hdr", MatchMethod::Dir),
    row("shdr_dom", "res.hdr", MatchMethod::Dom),
    row("shdr_end", "res.hdr", MatchMethod::End),
    row("shdr_len", "res.hdr", MatchMethod::Len),
    row("shdr_reg", "res.hdr", MatchMethod::Reg),
    row("shdr_sub", "res.hdr", MatchMethod::Sub),
    row("ssl_fc_sni_end", "ssl_fc_sni", MatchMethod::End),
    row("ssl_fc_sni_reg", "ssl_fc_sni", MatchMethod::Reg),
    row("url", "url", MatchMethod::Str),
    row("url_beg", "url", MatchMethod::Beg),
    row("url_dir", "url", MatchMethod::Dir),
    row("url_dom", "url", MatchMethod::Dom),
    row("url_end", "url", MatchMethod::End),
    row("url_len", "url", MatchMethod::Len),
    row("url_reg", "url", MatchMethod::Reg),
    row("url_sub", "url", MatchMethod::Sub),
    row("urlp", "urlp", MatchMethod::Str),
    row("urlp_beg", "urlp", MatchMethod::Beg),
    row("urlp_dir", "urlp", MatchMethod::Dir),
    row("urlp_dom", "urlp", MatchMethod::Dom),
    row("urlp_end", "urlp", MatchMethod::End),
    row("urlp_len", "urlp", MatchMethod::Len),
    row("urlp_reg", "urlp", MatchMethod::Reg),
    row("urlp_sub", "urlp", MatchMethod::Sub),
];
