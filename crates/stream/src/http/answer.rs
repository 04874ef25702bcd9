//! Answers of our own: error pages, answers of rules, and the polite end of a connection.

use std::time::Duration;

use ballast_message::{BodyLength, Method, NoRoom, Response, Version};
use ballast_model::{ConnectionMode, ErrorPage};
use ballast_mux::{ClientConnection, Piece, Wait, read_page};
use ballast_worker::{Work, take_turns};

use super::{Next, framing, hop, rules};
use crate::context::Context;
use crate::ending::Phase;
use crate::exchange::{Exchange, Given};
use crate::pages::default_page;
use crate::volume;

/// How long a closing connection is read on, so that the peer gets what was written instead
/// of a reset.
const LINGER: Duration = Duration::from_secs(1);
/// How much a closing connection is read on.
const LINGER_BYTES_MAX: u64 = 1 << 20;

/// Sends the page of a status, as the backend or the frontend has it.
pub(crate) async fn page(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    status: u16,
) -> Next {
    let common = &context.frontend.model.common;
    let closes = default_page(status).closes
        || !exchange.keep_client
        || !(client.inbound.body_is_done() || may_drain(exchange))
        || common.connection_mode == ConnectionMode::Close;
    let mut body = std::mem::take(&mut exchange.answer_body);
    let composed = compose(context, exchange, status, &mut body);
    if matches!(composed, Ok(Composed::Nothing)) {
        return Next::Close;
    }
    rules::after_response(context, exchange);
    let counted = volume::of_response(&exchange.response) + body.len() as u64;
    let before = client.outbound.total_bytes();
    let version = exchange.request.version();
    let response = &mut exchange.response;
    let asked = if exchange.has_request {
        exchange.method
    } else {
        Method::Get
    };
    let ready = composed
        .and_then(|_| connection_field(response, version, closes))
        .and_then(|closes| {
            let length = BodyLength::Known(body.len() as u64);
            // Our own pages have their length at hand: no client need learn of chunks for it.
            let length = framing::of_response(response, asked, Version::Http10, length)?;
            Ok((length, closes))
        });
    let Ok((length, closes)) = ready else {
        return Next::Close;
    };
    client.outbound.begin_response(response, length);
    let wait = Wait::each(&context.downward, exchange.settings.client_timeout);
    let sent = async {
        client
            .outbound
            .body(&client.transport, &wait, &body)
            .await?;
        client.outbound.end_body(None);
        client.outbound.flush(&client.transport, &wait).await
    }
    .await;
    let bytes = client.outbound.total_bytes() - before;
    if exchange.has_request {
        // A request that never was one has its page sent uncounted, as HAProxy does it.
        exchange.tally.bytes_out += counted;
        context.count(|counters| counters.bytes_out.add(bytes));
        if let Some(counters) = exchange.backend_counters(context.local.worker) {
            counters.bytes_out.add(bytes);
        }
    }
    match sent {
        Err(_) => Next::Drop,
        Ok(()) if closes => Next::Close,
        Ok(()) => Next::Keep,
    }
}

/// Whether what is still to come of a request's body can be read past: it was answered before
/// anything of it went anywhere, and is well-formed so far.
pub(crate) fn may_drain(exchange: &Exchange) -> bool {
    exchange.has_request && exchange.ending.phase == Phase::Request
}

/// Reads past the rest of a body that nobody wants, so that the next request is found; false when
/// it does not come to its end.
pub(crate) async fn drain(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &Exchange,
) -> bool {
    let patience = exchange.settings.client_timeout;
    let wait = Wait::each(&context.upward, patience);
    let ClientConnection {
        inbound, transport, ..
    } = client;
    loop {
        match inbound.piece() {
            Ok(Piece::End) => {
                inbound.rest();
                return true;
            }
            Ok(Piece::Data(_, consumed)) => {
                inbound.consume(consumed);
                take_turns(Work::Piece).await;
            }
            // Their end is told by the next look.
            Ok(Piece::More) if inbound.receive_rest(transport, &wait, || {}).await.is_ok() => {}
            Ok(Piece::More) | Err(_) => return false,
        }
    }
}

/// What an answer became.
enum Composed {
    /// A head in the exchange's response, and a body.
    Response,
    /// An empty `errorfile`: nothing is sent and the connection closes.
    Nothing,
}

/// Makes the answer: the one a rule gave, the page the configuration has, or the default one.
fn compose(
    context: &Context<'_>,
    exchange: &mut Exchange,
    status: u16,
    body: &mut Vec<u8>,
) -> Result<Composed, NoRoom> {
    let made = |()| Composed::Response;
    match exchange.given.take() {
        Some(Given::Made) => return Ok(Composed::Response),
        Some(Given::Raw(bytes)) if bytes.is_empty() => return Ok(Composed::Nothing),
        Some(Given::Raw(bytes)) => return raw(&bytes, &mut exchange.response, body).map(made),
        None => body.clear(),
    }
    let backend = exchange.backend.clone();
    let configured = backend
        .as_ref()
        .and_then(|backend| backend.model.common.error_pages.page(status))
        .or_else(|| context.frontend.model.common.error_pages.page(status));
    let response = &mut exchange.response;
    match configured {
        Some(ErrorPage::Raw { bytes, .. }) if bytes.is_empty() => Ok(Composed::Nothing),
        Some(ErrorPage::Raw { bytes, .. }) => raw(bytes, response, body).map(made),
        Some(ErrorPage::Location { status, location }) => {
            location_page(*status, location, response).map(made)
        }
        None => built_in(status, response, body).map(made),
    }
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
    fields.add(b"location", location.as_bytes())
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
        // It will be said once more in any case; here it counts.
        fields.add(b"connection", b"close")?;
    }
    Ok(())
}

/// Says what becomes of the connection, where that has to be said; whether it closes, because it must
/// or because a rule or a page of the configuration says `Connection: close`.
pub(crate) fn connection_field(
    response: &mut Response,
    request_version: Version,
    must_close: bool,
) -> Result<bool, NoRoom> {
    let closes = hop::take(response.fields_mut())?.close || must_close;
    if closes {
        response.fields_mut().add(b"connection", b"close")?;
    } else if request_version < Version::Http11 || response.version() < Version::Http11 {
        response.fields_mut().add(b"connection", b"keep-alive")?;
    }
    Ok(closes)
}

/// Closes a client's connection so that what was written arrives: our side first, then what
/// the client still sends is read for a moment and thrown away.
///
/// A client that said it would say no more is believed: nothing is on its way that a close could
/// answer with a reset (RFC 9112, section 9.6).
pub(crate) async fn close(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &Exchange,
) {
    if context.frontend.model.common.no_linger {
        // A reset is what was asked for; when it cannot be arranged a plain close follows.
        let _ = client.transport.reset_on_close();
        return;
    }
    let timeout = exchange.settings.client_timeout;
    let wait = Wait::each(&context.downward, timeout);
    let flushed = client.outbound.flush(&client.transport, &wait).await;
    if flushed.is_err() || is_last_word(client, exchange) {
        return;
    }
    if client.transport.shutdown_write().is_err() || client.inbound.peer_closed() {
        return;
    }
    let until = ballast_worker::now() + LINGER;
    let wait = Wait::until(&context.upward, Some(until));
    let start = client.inbound.total_bytes();
    loop {
        let unread = client.inbound.bytes().len();
        client.inbound.consume(unread);
        client.inbound.rest();
        match client.inbound.receive(&client.transport, &wait).await {
            Ok(0) | Err(_) => return,
            Ok(_) if client.inbound.total_bytes() - start > LINGER_BYTES_MAX => return,
            Ok(_) => {}
        }
    }
}

/// Whether the client has said all it will say on its connection: one request without a body,
/// with which it asked for the close itself.
fn is_last_word(client: &ClientConnection, exchange: &Exchange) -> bool {
    let options = exchange.client_options;
    let asked =
        options.close || (exchange.request.version() < Version::Http11 && !options.keep_alive);
    exchange.has_request
        && asked
        && exchange.request_body == BodyLength::None
        && client.inbound.bytes().is_empty()
        && client.transport.is_quiet()
}
