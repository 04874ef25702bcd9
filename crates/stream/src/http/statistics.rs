//! Who may see the statistics page: `stats auth`, `stats http-request` and `stats admin`.

use ballast_expr::{Condition, bytes_of_text};
use ballast_message::{Fields, Method, Version, url_host};
use ballast_model::{ProxyCommon, StatsAccess, StatsPage};
use ballast_net::equal_in_constant_time;

use super::target::origin_form;
use crate::context::Context;
use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::{Exit, Flow};
use crate::pages::default_page;
use crate::services::ServiceCall;
use crate::view::View;

/// The exit of an exchange that a service answers.
pub(super) fn exit_to_service(exchange: &mut Exchange, call: ServiceCall) -> Exit {
    exchange.applet = Some(call.name());
    Exit::Service(call)
}

/// Whether the request is for the statistics page of a proxy; then the call of it.
///
/// # Errors
/// [`Exit::StatisticsDenied`] or [`Exit::StatisticsChallenge`] when the client may not see it.
pub(super) fn statistics(
    context: &Context<'_>,
    exchange: &mut Exchange,
    common: &ProxyCommon,
) -> Flow<Option<ServiceCall>> {
    let Some(page) = page_of(exchange, common) else {
        return Flow::Continue(None);
    };
    let (access, may_admin) = rights(context, exchange, page);
    match access {
        PageAccess::Granted => {}
        PageAccess::Denied => {
            exchange.applet = Some("<STATS>");
            return Flow::Break(Exit::StatisticsDenied);
        }
        PageAccess::Challenge(realm) => {
            exchange.applet = Some("<STATS>");
            challenge(exchange, &realm);
            return Flow::Break(Exit::StatisticsChallenge);
        }
    }
    let of_backend = exchange.backend.is_some();
    Flow::Continue(Some(ServiceCall::Statistics {
        of_backend,
        may_admin,
    }))
}

/// The statistics page of the proxy, where the request is for it.
pub(super) fn page_of<'p>(exchange: &Exchange, common: &'p ProxyCommon) -> Option<&'p StatsPage> {
    let page = common.stats.as_deref()?;
    let asks = matches!(exchange.method, Method::Get | Method::Head | Method::Post);
    let target = origin_form(exchange.request.target());
    (asks && target.starts_with(page.prefix().as_bytes())).then_some(page)
}

/// Whether the client may see the page, and whether it may change anything there.
pub(super) fn rights(
    context: &Context<'_>,
    exchange: &Exchange,
    page: &StatsPage,
) -> (PageAccess, bool) {
    let mut admin = page.admin.iter();
    let may_admin = admin.any(|condition| holds(context, exchange, condition.as_ref()))
        && !(exchange.method == Method::Post && comes_from_elsewhere(exchange.request.fields()));
    (access(context, exchange, page), may_admin)
}

/// Whether a page of another site has made the browser send the request: its `Origin`, or else its
/// `Referer`, names another host than it is sent to. Programs that are no browser send neither.
fn comes_from_elsewhere(fields: &Fields) -> bool {
    let from = fields.first(b"origin").or_else(|| fields.first(b"referer"));
    let host = fields.first(b"host").unwrap_or_default();
    from.is_some_and(|url| !url_host(url).is_some_and(|from| from.eq_ignore_ascii_case(host)))
}

/// What a client gets that asks for the page.
pub(super) enum PageAccess {
    Denied,
    Granted,
    /// The client must send a user and a password, for this realm.
    Challenge(String),
}

fn access(context: &Context<'_>, exchange: &Exchange, page: &StatsPage) -> PageAccess {
    if !page.credentials.is_empty() {
        return match is_known(exchange.request.fields(), &page.credentials) {
            true => PageAccess::Granted,
            false => PageAccess::Challenge(page.realm().to_owned()),
        };
    }
    let mut rules = page.rules.iter();
    match rules.find(|rule| holds(context, exchange, rule.condition.as_ref())) {
        None => PageAccess::Granted,
        Some(rule) => match &rule.access {
            StatsAccess::Allow => PageAccess::Granted,
            StatsAccess::Deny => PageAccess::Denied,
            StatsAccess::Auth(realm) => {
                PageAccess::Challenge(realm.clone().unwrap_or_else(|| page.realm().to_owned()))
            }
        },
    }
}

fn holds(context: &Context<'_>, exchange: &Exchange, condition: Option<&Condition>) -> bool {
    let Some(condition) = condition else {
        return true;
    };
    let view = View::new(context, exchange);
    context
        .local
        .with_memory(|memory| condition.holds(&view, &mut memory.scratch))
}

/// Whether the client's `Authorization` is one of these, `user:password` (RFC 7617). Each is
/// compared to its end, so that the time it takes does not reveal where they differ.
fn is_known(fields: &Fields, credentials: &[String]) -> bool {
    let Some(line) = fields.first(b"authorization") else {
        return false;
    };
    let Some(space) = line.iter().position(|byte| *byte == b' ') else {
        return false;
    };
    let (scheme, token) = line.split_at(space);
    let token = token.trim_ascii();
    scheme.eq_ignore_ascii_case(b"basic")
        && credentials.iter().fold(false, |known, credential| {
            known | equal_in_constant_time(base64(credential.as_bytes()).as_bytes(), token)
        })
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * index)) as usize & 63];
            text.push(if index <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

/// Prepares the answer that asks for a user and a password.
fn challenge(exchange: &mut Exchange, realm: &str) {
    let page = default_page(401);
    let mut body = std::mem::take(&mut exchange.answer_body);
    body.clear();
    page.append_body(&mut body);
    let response = &mut exchange.response;
    response.clear();
    response.set_version(Version::Http11);
    let value = format!("Basic realm=\"{}\"", realm.replace('"', ""));
    let length = body.len().to_string();
    let made = response
        .set_status_and_reason(page.status, page.reason.as_bytes())
        .and_then(|()| {
            let fields = response.fields_mut();
            fields.add(b"content-length", length.as_bytes())?;
            fields.add(b"cache-control", b"no-cache")?;
            fields.add(b"content-type", b"text/html")?;
            fields.add(b"www-authenticate", &bytes_of_text(&value))
        });
    exchange.answer_body = body;
    // Without room for `WWW-Authenticate` the error page is sent: still a refusal.
    if made.is_ok() {
        exchange.prepared_answer = Some(PreparedAnswer::InExchange);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_compared_as_base64() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(b"admin:secret"), "YWRtaW46c2VjcmV0");
        let mut fields = Fields::default();
        let known = ["u:p".to_owned(), "admin:secret".to_owned()];
        assert!(!is_known(&fields, &known));
        fields
            .add(b"authorization", b"basic  YWRtaW46c2VjcmV0")
            .unwrap();
        assert!(is_known(&fields, &known));
        assert!(!is_known(&fields, &known[..1]));
        fields
            .set(b"authorization", b"Bearer YWRtaW46c2VjcmV0")
            .unwrap();
        assert!(!is_known(&fields, &known));
    }
}
