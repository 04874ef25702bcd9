//! The ACLs that need no declaration, manual 7.4.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::{Acl, Criterion};
use crate::files::PatternFileReader;
use crate::links::{LinkedAcl, Links};
use crate::pattern::Store;

/// Name and criterion of every predefined ACL, in alphabetical order.
pub const PREDEFINED: &[(&str, &[&str])] = &[
    ("FALSE", &["always_false"]),
    ("HTTP", &["req.proto_http"]),
    ("HTTP_1.0", &["req.ver", "1.0"]),
    ("HTTP_1.1", &["req.ver", "1.1"]),
    ("HTTP_2.0", &["req.ver", "2.0"]),
    ("HTTP_3.0", &["req.ver", "3.0"]),
    ("HTTP_CONTENT", &["req.hdr_val(content-length)", "gt", "0"]),
    ("HTTP_URL_ABS", &["url_reg", "^[^/:]*://"]),
    ("HTTP_URL_SLASH", &["url_beg", "/"]),
    ("HTTP_URL_STAR", &["url", "*"]),
    ("LOCALHOST", &["src", "127.0.0.1/8", "::1"]),
    ("METH_CONNECT", &["method", "CONNECT"]),
    ("METH_DELETE", &["method", "DELETE"]),
    ("METH_GET", &["method", "GET", "HEAD"]),
    ("METH_HEAD", &["method", "HEAD"]),
    ("METH_OPTIONS", &["method", "OPTIONS"]),
    ("METH_POST", &["method", "POST"]),
    ("METH_PUT", &["method", "PUT"]),
    ("METH_TRACE", &["method", "TRACE"]),
    ("RDP_COOKIE", &["req.rdp_cookie_cnt", "gt", "0"]),
    ("REQ_CONTENT", &["req.len", "gt", "0"]),
    ("TRUE", &["always_true"]),
    ("WAIT_END", &["wait_end"]),
];

/// The predefined ACL of that name, linked.
pub fn predefined(name: &str) -> Option<&'static Arc<Acl>> {
    static ALL: LazyLock<HashMap<&str, Arc<Acl>>> = LazyLock::new(|| {
        PREDEFINED
            .iter()
            .filter_map(|(name, words)| Some((*name, build(name, words)?)))
            .collect()
    });
    ALL.get(name)
}

fn build(name: &str, words: &[&str]) -> Option<Arc<Acl>> {
    let criterion = Criterion::parse(words).ok()?;
    let mut acl = Acl {
        name: name.to_owned(),
        criteria: vec![criterion],
    };
    let mut own = OwnPatterns {
        store: Store::new(),
        files: |path| Err(format!("'{path}' is not read")),
    };
    acl.link(&mut own).ok()?;
    Some(Arc::new(acl))
}

/// For ACLs that name neither files nor other ACLs.
struct OwnPatterns {
    store: Store,
    files: fn(&str) -> Result<Vec<u8>, String>,
}

impl Links for OwnPatterns {
    fn acl(&self, _: &str) -> Option<Arc<dyn LinkedAcl>> {
        None
    }

    fn lists(&mut self) -> (&Store, &mut dyn PatternFileReader) {
        (&self.store, &mut self.files)
    }
}
