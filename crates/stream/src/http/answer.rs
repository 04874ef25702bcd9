//! Answers of our own: error pages and the answers of rules.

use ballast_expr::bytes_of_text;
use ballast_message::{BodyLength, Method, NoRoom, Response, Version};
use ballast_model::{ErrorPage, ProxyCommon};
use ballast_mux::{Announcement, Duplex, WaitLimit, read_page};
use ballast_rules::{ResponseContent, Verdict};

use super::{ConnectionFate, rules};
use crate::context::Context;
use crate::ending::EndingCause;
use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::Exit;
use crate::logged_bytes;
use crate::pages::default_page;
use crate::run_rules::{self, MessageScope};

/// Sends the answer of an exit, and counts the exit: the prepared answer, or else the error page of a
/// status.
pub(crate) async fn page(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (exit, status): (Exit, u16),
) -> ConnectionFate {
    exchange.tally.status = i32::from(status);
    // A client that broke off in the middle of its request gets nothing, not even a rule's answer.
    let is_unsent =
        exchange.is_cut_short || matches!(exchange.prepared_answer, Some(PreparedAnswer::Unsent));
    let mut body = std::mem::take(&mut exchange.answer_body);
    let made = make(context, exchange, (exit, status), &mut body);
    let Ok(ComposedAnswer::Response { closes }) = made else {
        return ConnectionFate::Close;
    };
    let closes = closes
        || !exchange.keep_client
        || !(client.source.is_done() || may_drain(exchange))
        || context.is_closing();
    let method = match exchange.has_request {
        true => exchange.method,
        false => Method::Get,
    };
    let body_bytes = match method {
        Method::Head => 0,
        _ => body.len() as u64,
    };
    let counted = logged_bytes::of_response(&exchange.response) + body_bytes;
    if is_unsent {
        exchange.tally.bytes_out += counted;
        return ConnectionFate::Close;
    }
    let announcement = Announcement {
        method,
        version: exchange.request.version(),
        body: BodyLength::Known(body.len() as u64),
        is_in_memory: true,
        closes,
    };
    let response = &mut exchange.response;
    let Ok(announced) = client.sink.begin_response(response, announcement) else {
        return ConnectionFate::Close;
    };
    if exchange.has_request {
        // As in HAProxy, the error page for an invalid request is not counted.
        exchange.tally.bytes_out += counted;
    }
    let wait = WaitLimit::each(&context.downward, exchange.settings.client_timeout);
    let sent = async {
        client.sink.body(&wait, &body).await?;
        client.sink.end_body(&wait, None).await
    }
    .await;
    match sent {
        Err(_) => ConnectionFate::Drop,
        Ok(()) if announced.closes => ConnectionFate::Close,
        Ok(()) => ConnectionFate::Keep,
    }
}

/// Makes the answer of an exit, has `http-after-response` change it, and counts the exit. An answer that
/// these rules could not change as they must gives place to the page for 500, which they may change;
/// one that they cannot change either is sent as it is.
fn make(
    context: &Context<'_>,
    exchange: &mut Exchange,
    (exit, status): (Exit, u16),
    body: &mut Vec<u8>,
) -> Result<ComposedAnswer, NoRoom> {
    let composed = compose(context, exchange, status, body);
    if matches!(composed, Ok(ComposedAnswer::Nothing)) {
        exit.count(context, exchange);
        return composed;
    }
    let composed = composed.and_then(|composed| {
        set_challenge(exchange)?;
        Ok(composed)
    });
    let is_of_rule = matches!(exit, Exit::Answered(..)) || exchange.challenge.is_some();
    let last_rule = exchange.last_rule.filter(|_| is_of_rule);
    // As in HAProxy, what is no request is answered before any rule.
    if !exchange.has_request || rules::after_response(context, exchange).is_ok() {
        // As in HAProxy, a rule that answers ends its set behind those that change its answer.
        exchange.last_rule = last_rule.or(exchange.last_rule);
        exit.count(context, exchange);
        return composed;
    }
    exit.count_failed_answer(context, exchange);
    exchange.tally.status = 500;
    if exchange.challenge.is_some() {
        exchange.ending.cause = EndingCause::Proxy;
    }
    let composed = compose(context, exchange, 500, body)?;
    if matches!(composed, ComposedAnswer::Nothing)
        || (status != 500 && rules::after_response(context, exchange).is_ok())
    {
        return Ok(composed);
    }
    compose(context, exchange, 500, body)
}

/// Whether the rest of a request's body can be read and dropped, so that the client can send another
/// request: it did not fail in the middle of this one. As in HAProxy, this does not depend on how far the
/// exchange came: a client that is cut off while it sends would report that, and not its answer.
pub(crate) fn may_drain(exchange: &Exchange) -> bool {
    let cause = exchange.ending.cause;
    exchange.has_request && !matches!(cause, EndingCause::Client | EndingCause::ClientTimeout)
}

/// What there is to send.
enum ComposedAnswer {
    /// A head in the exchange's response, and a body.
    Response {
        /// Whether the connection closes behind it.
        closes: bool,
    },
    /// An empty `errorfile`: nothing is sent and the connection closes.
    Nothing,
}

/// Composes the answer: the prepared one, else the configured error page, else the default page.
fn compose(
    context: &Context<'_>,
    exchange: &mut Exchange,
    status: u16,
    body: &mut Vec<u8>,
) -> Result<ComposedAnswer, NoRoom> {
    let closes = default_page(status).closes;
    let to_response = |()| ComposedAnswer::Response { closes };
    match exchange.prepared_answer.take() {
        Some(PreparedAnswer::InExchange) => {
            return Ok(ComposedAnswer::Response { closes: false });
        }
        Some(PreparedAnswer::Raw(bytes)) if bytes.is_empty() => return Ok(ComposedAnswer::Nothing),
        Some(PreparedAnswer::Raw(bytes)) => {
            return raw(&bytes, &mut exchange.response, body).map(to_response);
        }
        Some(PreparedAnswer::Unsent) | None => body.clear(),
    }
    let backend = exchange.backend.clone();
    let proxies = backend.iter().map(|backend| &backend.model.common);
    let mut pages = proxies
        .chain([&context.frontend.model.common])
        .filter_map(|common| Some((common, common.error_pages.page(status)?)));
    let configured = match pages.next() {
        Some((common, ErrorPage::Reply(number))) => {
            return reply(context, exchange, common, *number, body).map(to_response);
        }
        other => other.map(|(_, page)| page),
    };
    let response = &mut exchange.response;
    match configured {
        Some(ErrorPage::Raw { bytes, .. }) if bytes.is_empty() => Ok(ComposedAnswer::Nothing),
        Some(ErrorPage::Raw { bytes, .. }) => raw(bytes, response, body).map(to_response),
        Some(ErrorPage::Location { status, location }) => {
            location_page(*status, location, response).map(to_response)
        }
        // Pages with log formats are made above.
        Some(ErrorPage::Reply(_)) | None => built_in(status, response, body).map(to_response),
    }
}

/// Makes the page of an `http-error` line that has log formats.
fn reply(
    context: &Context<'_>,
    exchange: &mut Exchange,
    common: &ProxyCommon,
    number: usize,
    body: &mut Vec<u8>,
) -> Result<(), NoRoom> {
    let rule = common.rules.error_replies.get(number).ok_or(NoRoom)?;
    let last_rule = exchange.last_rule;
    std::mem::swap(&mut exchange.answer_body, body);
    let rules = std::slice::from_ref(rule);
    let verdict = run_rules::run_once(context, exchange, MessageScope::Request, rules);
    std::mem::swap(&mut exchange.answer_body, body);
    // A page is no rule of the traffic.
    exchange.last_rule = last_rule;
    match verdict {
        Verdict::Respond(answer) if answer.page == ResponseContent::Made => Ok(()),
        _ => Err(NoRoom),
    }
}

/// Writes the challenge of `auth` into a page, in place of those that are there (manual, "auth").
fn set_challenge(exchange: &mut Exchange) -> Result<(), NoRoom> {
    let Some(realm) = &exchange.challenge else {
        return Ok(());
    };
    let name: &[u8] = match exchange.response.status() {
        401 => b"www-authenticate",
        407 => b"proxy-authenticate",
        _ => return Ok(()),
    };
    let value = format!("Basic realm=\"{realm}\"");
    exchange
        .response
        .fields_mut()
        .set(name, &bytes_of_text(&value))
}

fn raw(bytes: &[u8], response: &mut Response, body: &mut Vec<u8>) -> Result<(), NoRoom> {
    let start = read_page(bytes, response).ok_or(NoRoom)?;
    body.extend_from_slice(&bytes[start..]);
    let fields = response.fields_mut();
    fields.remove(b"transfer-encoding");
    let mut number = itoa::Buffer::new();
    fields.set(b"content-length", number.format(body.len()).as_bytes())
}

fn location_page(status: u16, location: &str, response: &mut Response) -> Result<(), NoRoom> {
    response.clear();
    response.set_version(Version::Http11);
    response.set_status(status)?;
    let fields = response.fields_mut();
    fields.add(b"cache-control", b"no-cache")?;
    fields.add(b"content-length", b"0")?;
    fields.add(b"location", &bytes_of_text(location))
}

fn built_in(status: u16, response: &mut Response, body: &mut Vec<u8>) -> Result<(), NoRoom> {
    let page = default_page(status);
    page.append_body(body);
    response.clear();
    response.set_version(Version::Http11);
    response.set_status_and_reason(page.status, page.reason.as_bytes())?;
    let fields = response.fields_mut();
    let mut number = itoa::Buffer::new();
    fields.add(b"content-length", number.format(body.len()).as_bytes())?;
    fields.add(b"cache-control", b"no-cache")?;
    fields.add(b"content-type", b"text/html")?;
    if page.closes {
        // It is announced again when the answer is sent; added here, it counts in the answer's
        // size.
        fields.add(b"connection", b"close")?;
    }
    Ok(())
}
