//! Services: what answers in place of a server, the statistics page and the metrics exporter.
//!
//! Nothing of what they say is known here: the program installs [`Services`] in each worker's
//! [`Local`](crate::Local), and this file asks them, and sends what they answer piece by piece.

use std::fmt;
use std::time::Duration;

use ballast_expr::Condition;
use ballast_message::{BodyLength, Fields, Method, NoRoom, Version};
use ballast_model::{Common, ConnectionMode, StatsAccess, StatsPage};
use ballast_mux::{Announcement, Duplex, ReadError, Wait};
use ballast_rules::Service;

use crate::context::Context;
use crate::ending::{Cause, Ending, Phase};
use crate::exchange::{Exchange, Given};
use crate::exit::{Exit, Flow};
use crate::http::{Next, answer, rules};
use crate::pages::default_page;
use crate::view::View;
use crate::volume;

/// A piece is sent once it has about this many bytes.
const PIECE_BYTES: usize = 8192;

/// A form is waited for this long where no timeout says otherwise.
const FORM_WAIT: Duration = Duration::from_secs(10);

/// What answers requests that no server is asked for.
pub trait Services: fmt::Debug {
    /// The answer to a request.
    fn answer(&self, asked: &ServiceRequest<'_>) -> Reply;
}

/// A request for a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceRequest<'a> {
    /// Which service.
    pub of: ServiceKind<'a>,
    /// The request's method.
    pub method: Method,
    /// Path and query as received, with nothing before the path.
    pub target: &'a [u8],
    /// What the client would like to be answered with: its `Accept` field, empty without one.
    pub accept: &'a [u8],
    /// The request's body, as far as it was asked for.
    pub body: &'a [u8],
    /// Whether that is all of it: a body that no buffer holds is cut.
    pub body_is_whole: bool,
}

/// The service that is asked.
#[derive(Clone, Copy, Debug)]
pub enum ServiceKind<'a> {
    /// `http-request use-service prometheus-exporter`.
    Metrics,
    /// The statistics page of a proxy.
    Statistics {
        /// How the proxy wants it.
        page: &'a StatsPage,
        /// The name of the proxy.
        proxy: &'a str,
        /// Whether servers may be changed.
        may_admin: bool,
    },
}

/// What a service answers.
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Fields besides those about the body.
    pub fields: Vec<(&'static str, String)>,
    /// What follows.
    pub body: ReplyBody,
}

/// What follows the head of a reply.
pub enum ReplyBody {
    /// Nothing.
    Empty,
    /// The default page of the status.
    Page,
    /// Pieces.
    Pieces(ReplyPieces),
}

/// Each call appends a piece; false when there was none left.
pub type ReplyPieces = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// Which service an exchange is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Called {
    /// `use-service`.
    Named(Service),
    /// The statistics page of the frontend, or of the backend.
    Statistics {
        /// Whose.
        of_backend: bool,
        /// Whether servers may be changed.
        may_admin: bool,
    },
}

impl Called {
    /// What stands in the place of a server's name in the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Named(Service::Metrics) => "<PROMEX>",
            Self::Statistics { .. } => "<STATS>",
        }
    }
}

/// Has a service answer the exchange, which leaves the way with that.
pub(crate) fn call(exchange: &mut Exchange, called: Called) -> Exit {
    exchange.applet = Some(called.name());
    Exit::Service(called)
}

/// Whether the request is for the statistics page of a proxy, and may see it.
///
/// # Errors
/// A client that may not leaves with a refusal, or a question who it is.
pub(crate) fn statistics(
    context: &Context<'_>,
    exchange: &mut Exchange,
    common: &Common,
) -> Flow<Option<Called>> {
    let Some(page) = &common.stats else {
        return Flow::Continue(None);
    };
    let asks = matches!(exchange.method, Method::Get | Method::Head | Method::Post);
    let target = origin_form(exchange.request.target());
    if !asks || !target.starts_with(page.prefix().as_bytes()) {
        return Flow::Continue(None);
    }
    let access = access(context, exchange, page);
    match access {
        Access::Seen => {}
        Access::Denied => return Flow::Break(Exit::StatisticsDenied),
        Access::Unknown(realm) => {
            exchange.applet = Some("<STATS>");
            challenge(exchange, &realm);
            return Flow::Break(Exit::StatisticsChallenge);
        }
    }
    let mut admin = page.admin.iter();
    let may_admin = admin.any(|condition| holds(context, exchange, condition.as_ref()));
    let of_backend = exchange.backend.is_some();
    Flow::Continue(Some(Called::Statistics {
        of_backend,
        may_admin,
    }))
}

enum Access {
    Denied,
    Seen,
    /// Asked for a name and a password, for this realm.
    Unknown(String),
}

fn access(context: &Context<'_>, exchange: &Exchange, page: &StatsPage) -> Access {
    if !page.credentials.is_empty() {
        return match is_known(exchange.request.fields(), &page.credentials) {
            true => Access::Seen,
            false => Access::Unknown(page.realm().to_owned()),
        };
    }
    let mut rules = page.rules.iter();
    match rules.find(|rule| holds(context, exchange, rule.condition.as_ref())) {
        None => Access::Seen,
        Some(rule) => match &rule.access {
            StatsAccess::Allow => Access::Seen,
            StatsAccess::Deny => Access::Denied,
            StatsAccess::Auth(realm) => {
                Access::Unknown(realm.clone().unwrap_or_else(|| page.realm().to_owned()))
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
/// compared whole, so that the time it takes tells nothing of where they differ.
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
            known | is_same(base64(credential.as_bytes()).as_bytes(), token)
        })
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one
        .iter()
        .zip(other)
        .fold(0_u8, |found, (one, other)| found | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

/// Puts the answer that asks for a name and a password in the exchange.
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
            fields.add(b"www-authenticate", value.as_bytes())
        });
    exchange.answer_body = body;
    // Without room for it the page goes without the field that asks: still a refusal.
    if made.is_ok() {
        exchange.given = Some(Given::Made);
    }
}

/// Path and query of a target: what stands before the path of an absolute one is left out.
fn origin_form(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') {
        return target;
    }
    let Some(authority) = target.windows(3).position(|three| three == b"://") else {
        return target;
    };
    let rest = &target[authority + 3..];
    match rest.iter().position(|byte| *byte == b'/') {
        Some(path) => &rest[path..],
        None => b"/",
    }
}

/// Has the service answer, and sends what it says.
pub(crate) async fn serve(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    called: Called,
) -> Flow<Next> {
    let exit = Exit::Service(called);
    exit.count(context, exchange);
    let form = form(context, client, exchange, called).await?;
    let Some(reply) = ask(context, exchange, called, &form) else {
        return Flow::Break(Exit::NoService);
    };
    let Ending { cause, phase } = exit.outcome().ending;
    exchange.ending.note(cause, phase);
    // Nobody was waited for.
    let now = Some(ballast_worker::now());
    let times = &mut exchange.times;
    (times.seated, times.connected, times.answered) = (now, now, now);
    exchange.tally.status = i32::from(reply.status);
    let before = client.sink.sent_bytes();
    let next = send(context, client, exchange, reply).await;
    let bytes = client.sink.sent_bytes() - before;
    context.count(|counters| counters.bytes_out.add(bytes));
    if let Some(counters) = exchange.backend_counters(context.local.worker) {
        counters.bytes_out.add(bytes);
    }
    Flow::Continue(next)
}

/// A form that was posted.
#[derive(Default)]
struct Form {
    bytes: Vec<u8>,
    is_whole: bool,
}

/// Receives a form, as much of it as a buffer holds.
async fn form(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
    called: Called,
) -> Flow<Form> {
    let mut form = Form::default();
    if exchange.method != Method::Post || !matches!(called, Called::Statistics { .. }) {
        return Flow::Continue(form);
    }
    let timeouts = &context.frontend.model.timeouts;
    let wait = timeouts.http_request.or(timeouts.client);
    let until = ballast_worker::now() + wait.unwrap_or(FORM_WAIT);
    let wait = Wait::until(&context.upward, Some(until));
    let bytes_max = context.running.tune().buffer_bytes as usize;
    while form.bytes.len() < bytes_max {
        match client.source.piece(&wait).await {
            Ok(Some(piece)) => form.bytes.extend_from_slice(piece),
            Ok(None) => {
                form.is_whole = true;
                return Flow::Continue(form);
            }
            Err(error) => return broken(&error),
        }
    }
    Flow::Continue(form)
}

fn broken(error: &ReadError) -> Flow<Form> {
    Flow::Break(Exit::Request(error.into(), Phase::Data))
}

/// Asks the service; `None` where there is none.
fn ask(context: &Context<'_>, exchange: &Exchange, called: Called, form: &Form) -> Option<Reply> {
    let services = context.local.services()?;
    let of = match called {
        Called::Named(Service::Metrics) => ServiceKind::Metrics,
        Called::Statistics {
            of_backend,
            may_admin,
        } => {
            let common = match exchange.backend.as_ref().filter(|_| of_backend) {
                Some(backend) => &backend.model.common,
                None => &context.frontend.model.common,
            };
            ServiceKind::Statistics {
                page: common.stats.as_deref()?,
                proxy: &common.name,
                may_admin,
            }
        }
    };
    Some(
        services.answer(&ServiceRequest {
            of,
            method: exchange.method,
            target: origin_form(exchange.request.target()),
            accept: exchange
                .request
                .fields()
                .first(b"accept")
                .unwrap_or_default(),
            body: &form.bytes,
            body_is_whole: form.is_whole,
        }),
    )
}

/// Sends head and pieces, each as it is made.
async fn send(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    reply: Reply,
) -> Next {
    let mut bytes = Vec::new();
    let mut body = reply.body;
    let length = match &body {
        ReplyBody::Empty => BodyLength::Known(0),
        ReplyBody::Page => {
            default_page(reply.status).append_body(&mut bytes);
            BodyLength::Known(bytes.len() as u64)
        }
        ReplyBody::Pieces(_) => BodyLength::Chunked,
    };
    let composed = compose(exchange, reply.status, &reply.fields, length);
    rules::after_response(context, exchange);
    let announcement = Announcement {
        asked: exchange.method,
        version: exchange.request.version(),
        body: length,
        is_at_hand: false,
        closes: !exchange.keep_client
            || !(client.source.is_done() || answer::may_drain(exchange))
            || context.frontend.model.common.connection_mode == ConnectionMode::Close,
    };
    let begun = composed.and_then(|()| {
        let response = &mut exchange.response;
        client.sink.begin_response(response, announcement)
    });
    let Ok(announced) = begun else {
        return Next::Close;
    };
    exchange.tally.bytes_out += volume::of_response(&exchange.response);
    let wait = Wait::each(&context.downward, exchange.settings.client_timeout);
    let sent = async {
        let mut more = announced.body != BodyLength::None;
        while more {
            more = match &mut body {
                ReplyBody::Pieces(next) => next(&mut bytes),
                ReplyBody::Empty | ReplyBody::Page => false,
            };
            if bytes.len() >= PIECE_BYTES || !more {
                exchange.tally.bytes_out += bytes.len() as u64;
                client.sink.body(&wait, &bytes).await?;
                bytes.clear();
                if more {
                    // A long page is for nobody more urgent than the others' requests.
                    ballast_worker::yield_now().await;
                }
            }
        }
        client.sink.end_body(&wait, None).await
    }
    .await;
    match sent {
        Err(_) => {
            exchange.ending = Ending::default();
            exchange.ending.note(Cause::Client, Phase::Data);
            Next::Drop
        }
        Ok(()) if announced.closes => Next::Close,
        Ok(()) => Next::Keep,
    }
}

/// Puts the head of a reply in the exchange.
fn compose(
    exchange: &mut Exchange,
    status: u16,
    fields: &[(&'static str, String)],
    length: BodyLength,
) -> Result<(), NoRoom> {
    let response = &mut exchange.response;
    response.clear();
    response.set_version(Version::Http11);
    response.set_status(status)?;
    for (name, value) in fields {
        response
            .fields_mut()
            .add(name.as_bytes(), value.as_bytes())?;
    }
    if let BodyLength::Known(bytes) = length {
        let mut number = itoa::Buffer::new();
        let number = number.format(bytes);
        let fields = response.fields_mut();
        fields.add(b"content-length", number.as_bytes())?;
    }
    Ok(())
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

    #[test]
    fn what_stands_before_the_path_is_left_out() {
        assert_eq!(origin_form(b"/a?b://c"), b"/a?b://c");
        assert_eq!(origin_form(b"http://host:1/a?b"), b"/a?b");
        assert_eq!(origin_form(b"http://host"), b"/");
        assert_eq!(origin_form(b"*"), b"*");
    }
}
