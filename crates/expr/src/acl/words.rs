//! ACL words: a sample with a matching method of its own, manual 7.1.

use crate::pattern::Method;

/// An ACL word: the sample it stands for and the way it matches.
#[derive(Clone, Copy, Debug)]
pub struct AclWord {
    /// The word as written in a criterion.
    pub word: &'static str,
    /// The sample fetch it stands for.
    pub fetch: &'static str,
    /// How the sample is matched when `-m` says nothing.
    pub method: Method,
}

const fn row(word: &'static str, fetch: &'static str, method: Method) -> AclWord {
    AclWord {
        word,
        fetch,
        method,
    }
}

/// Every ACL word, in alphabetical order.
pub const ACL_WORDS: &[AclWord] = &[
    row("base", "base", Method::Str),
    row("base_beg", "base", Method::Beg),
    row("base_dir", "base", Method::Dir),
    row("base_dom", "base", Method::Dom),
    row("base_end", "base", Method::End),
    row("base_len", "base", Method::Len),
    row("base_reg", "base", Method::Reg),
    row("base_sub", "base", Method::Sub),
    row("cook", "req.cook", Method::Str),
    row("cook_beg", "req.cook", Method::Beg),
    row("cook_dir", "req.cook", Method::Dir),
    row("cook_dom", "req.cook", Method::Dom),
    row("cook_end", "req.cook", Method::End),
    row("cook_len", "req.cook", Method::Len),
    row("cook_reg", "req.cook", Method::Reg),
    row("cook_sub", "req.cook", Method::Sub),
    row("hdr", "req.hdr", Method::Str),
    row("hdr_beg", "req.hdr", Method::Beg),
    row("hdr_dir", "req.hdr", Method::Dir),
    row("hdr_dom", "req.hdr", Method::Dom),
    row("hdr_end", "req.hdr", Method::End),
    row("hdr_len", "req.hdr", Method::Len),
    row("hdr_reg", "req.hdr", Method::Reg),
    row("hdr_sub", "req.hdr", Method::Sub),
    row("http_auth_group", "http_auth_group", Method::Str),
    row("method", "method", Method::Str),
    row("path", "path", Method::Str),
    row("path_beg", "path", Method::Beg),
    row("path_dir", "path", Method::Dir),
    row("path_dom", "path", Method::Dom),
    row("path_end", "path", Method::End),
    row("path_len", "path", Method::Len),
    row("path_reg", "path", Method::Reg),
    row("path_sub", "path", Method::Sub),
    row("payload", "req.payload", Method::Bin),
    row("payload_lv", "req.payload_lv", Method::Bin),
    row("req.ssl_ver", "req.ssl_ver", Method::Int),
    row("req_rdp_cookie", "req.rdp_cookie", Method::Str),
    row("req_rdp_cookie_cnt", "req.rdp_cookie_cnt", Method::Int),
    row("req_ssl_sni", "req.ssl_sni", Method::Str),
    row("req_ssl_ver", "req.ssl_ver", Method::Int),
    row("req_ver", "req.ver", Method::Str),
    row("resp_ver", "res.ver", Method::Str),
    row("scook", "res.cook", Method::Str),
    row("scook_beg", "res.cook", Method::Beg),
    row("scook_dir", "res.cook", Method::Dir),
    row("scook_dom", "res.cook", Method::Dom),
    row("scook_end", "res.cook", Method::End),
    row("scook_len", "res.cook", Method::Len),
    row("scook_reg", "res.cook", Method::Reg),
    row("scook_sub", "res.cook", Method::Sub),
    row("shdr", "res.hdr", Method::Str),
    row("shdr_beg", "res.hdr", Method::Beg),
    row("shdr_dir", "res.hdr", Method::Dir),
    row("shdr_dom", "res.hdr", Method::Dom),
    row("shdr_end", "res.hdr", Method::End),
    row("shdr_len", "res.hdr", Method::Len),
    row("shdr_reg", "res.hdr", Method::Reg),
    row("shdr_sub", "res.hdr", Method::Sub),
    row("ssl_fc_sni_end", "ssl_fc_sni", Method::End),
    row("ssl_fc_sni_reg", "ssl_fc_sni", Method::Reg),
    row("url", "url", Method::Str),
    row("url_beg", "url", Method::Beg),
    row("url_dir", "url", Method::Dir),
    row("url_dom", "url", Method::Dom),
    row("url_end", "url", Method::End),
    row("url_len", "url", Method::Len),
    row("url_reg", "url", Method::Reg),
    row("url_sub", "url", Method::Sub),
    row("urlp", "urlp", Method::Str),
    row("urlp_beg", "urlp", Method::Beg),
    row("urlp_dir", "urlp", Method::Dir),
    row("urlp_dom", "urlp", Method::Dom),
    row("urlp_end", "urlp", Method::End),
    row("urlp_len", "urlp", Method::Len),
    row("urlp_reg", "urlp", Method::Reg),
    row("urlp_sub", "urlp", Method::Sub),
];
