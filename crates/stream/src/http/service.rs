//! Calls a service, and sends its answer piece by piece.

use std::time::Duration;

use ballast_message::{BodyLength, Method, NoRoom, Version};
use ballast_mux::{Announcement, Duplex, ReadError, WaitLimit};
use ballast_rules::{LogStep, Service};

use super::target::origin_form;
use super::{ConnectionFate, answer, body, receive, rules};
use crate::access_log;
use crate::context::Context;
use crate::ending::{Ending, EndingCause, EndingPhase};
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::logged_bytes;
use crate::pages::default_page;
use crate::services::{ServiceCall, ServiceKind, ServiceReply, ServiceReplyBody, ServiceRequest};

/// A piece is sent once it has about this many bytes.
const PIECE_BYTES: usize = 8192;

/// How long a client may be silent within a form where no `timeout client` is configured.
const FORM_WAIT: Duration = Duration::from_secs(10);

/// Calls the service and sends its answer.
pub(crate) async fn serve(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    call: ServiceCall,
) -> Flow<ConnectionFate> {
    let exit = Exit::Service(call);
    exit.count(context, exchange);
    let form = form(context, client, exchange, call).await?;
    body::count_unread(context, client, exchange);
    let Some(reply) = ask_service(context, exchange, call, &form) else {
        return Flow::Break(Exit::NoService);
    };
    let Ending { cause, phase } = exit.outcome().ending;
    exchange.ending.note(cause, phase);
    // No server was involved: queue, connect and response took no time.
    let now = Some(ballast_worker::now());
    let times = &mut exchange.times;
    (times.slot_taken, times.connected, times.answered) = (now, now, now);
    access_log::step(context, exchange, LogStep::Connect);
    send(context, client, exchange, reply).await
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
    exchange: &mut Exchange,
    call: ServiceCall,
) -> Flow<Form> {
    let mut form = Form::default();
    if exchange.method != Method::Post || !matches!(call, ServiceCall::Statistics { .. }) {
        return Flow::Continue(form);
    }
    let time = receive::body_timeout(context, exchange);
    let mut wait = WaitLimit::until(
        &context.upward,
        time.map(|time| ballast_worker::now() + time),
    );
    wait.each = exchange.settings.client_timeout.or(Some(FORM_WAIT));
    let bytes_max = context.running.tune().buffer_bytes as usize;
    while form.bytes.len() < bytes_max {
        match client.source.piece(&wait).await {
            Ok(Some(piece)) => {
                form.bytes.extend_from_slice(piece);
                exchange.tally.bytes_in += piece.len() as u64;
            }
            Ok(None) => {
                form.is_whole = true;
                body::count_end(context, client, exchange);
                return Flow::Continue(form);
            }
            Err(error) => return form_failed(&error),
        }
    }
    Flow::Continue(form)
}

fn form_failed(error: &ReadError) -> Flow<Form> {
    Flow::Break(Exit::Request(error.into(), EndingPhase::Data))
}

/// Calls the service; `None` if none is installed.
fn ask_service(
    context: &Context<'_>,
    exchange: &Exchange,
    call: ServiceCall,
    form: &Form,
) -> Option<ServiceReply> {
    let services = context.local.services()?;
    let of = match call {
        ServiceCall::Named(Service::Metrics) => ServiceKind::Metrics,
        ServiceCall::Statistics {
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
    reply: ServiceReply,
) -> Flow<ConnectionFate> {
    let mut bytes = Vec::new();
    let mut body = reply.body;
    let length = match &body {
        ServiceReplyBody::Empty => BodyLength::Known(0),
        ServiceReplyBody::Page => {
            default_page(reply.status).append_body(&mut bytes);
            BodyLength::Known(bytes.len() as u64)
        }
        ServiceReplyBody::Pieces(_) => BodyLength::Chunked,
    };
    exchange.tally.status = i32::from(reply.status);
    let composed = compose(exchange, reply.status, &reply.fields, length);
    if let Err(NoRoom) = rules::after_response(context, exchange) {
        return Flow::Break(Exit::AnswerFailed(EndingPhase::Request));
    }
    let announcement = Announcement {
        method: exchange.method,
        version: exchange.request.version(),
        body: length,
        is_in_memory: false,
        closes: !exchange.keep_client
            || !(client.source.is_done() || answer::may_drain(exchange))
            || context.is_closing(),
    };
    let begun = composed.and_then(|()| {
        let response = &mut exchange.response;
        client.sink.begin_response(response, announcement)
    });
    let Ok(announced) = begun else {
        return Flow::Continue(ConnectionFate::Close);
    };
    // As in HAProxy, without what is said of the connection.
    let connection = exchange.response.fields().first(b"connection");
    let connection_bytes = connection.map_or(0, |value| (b"connection".len() + value.len()) as u64);
    exchange.tally.bytes_out += logged_bytes::of_response(&exchange.response) - connection_bytes;
    access_log::step(context, exchange, LogStep::Response);
    let wait = WaitLimit::each(&context.downward, exchange.settings.client_timeout);
    let sent = async {
        let mut more = announced.body != BodyLength::None;
        while more {
            more = match &mut body {
                ServiceReplyBody::Pieces(next) => next(&mut bytes),
                ServiceReplyBody::Empty | ServiceReplyBody::Page => false,
            };
            if bytes.len() >= PIECE_BYTES || !more {
                exchange.tally.bytes_out += bytes.len() as u64;
                client.sink.body(&wait, &bytes).await?;
                bytes.clear();
                if more {
                    // Other tasks of the worker run between two pieces of a long page.
                    ballast_worker::yield_now().await;
                }
            }
        }
        client.sink.end_body(&wait, None).await
    }
    .await;
    Flow::Continue(match sent {
        Err(_) => {
            exchange.ending = Ending::default();
            exchange.ending.note(EndingCause::Client, EndingPhase::Data);
            ConnectionFate::Drop
        }
        Ok(()) if announced.closes => ConnectionFate::Close,
        Ok(()) => ConnectionFate::Keep,
    })
}

/// Writes the head of a reply into the exchange's response.
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
