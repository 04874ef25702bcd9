//! The access log: one line per exchange, when and as the frontend wants it.

use ballast_engine::timings::ExchangeTimes;
use ballast_expr::LogFormat;
use ballast_listen::{HandshakeError, RefusedConnection};
use ballast_log::{Level, LineText, LogSet};
use ballast_rules::LogLevel;

use crate::context::Context;
use crate::ending::{EndingCause, EndingPhase};
use crate::exchange::Exchange;
use crate::exit::Exit;
use crate::tracking;
use crate::view::View;

/// The logged status of an exchange that was cut ([`crate::ending::EndingCause::is_cut`]), whatever the
/// client got.
const CUT_STATUS: u16 = 500;

/// Writes the line of an exchange that has ended, unless it was written already or the frontend
/// does not want it.
pub(crate) fn exchange_ended(context: &Context<'_>, exchange: &mut Exchange) {
    exchange.times.ended = Some(ballast_worker::approximate_now());
    if exchange.ending.cause.is_cut() {
        exchange.tally.status = i32::from(CUT_STATUS);
    }
    note_times(context, exchange);
    tracking::count_bytes(context, exchange);
    if let Some(row) = &context.row {
        row.end_exchange();
    }
    log(context, exchange);
    // The log line may show what was tracked.
    exchange.tracked.release();
}

/// Writes the line of an exchange that has ended.
fn log(context: &Context<'_>, exchange: &mut Exchange) {
    if exchange.logged {
        return;
    }
    let options = &context.frontend.model.log;
    let silent =
        exchange.tally.bytes_in == 0 && exchange.tally.bytes_out == 0 && received_nothing(exchange);
    if options.skip_null && silent {
        return;
    }
    if options.skip_normal && is_normal(context, exchange) {
        return;
    }
    write(context, exchange, false);
}

/// Counts the status that the client got, once per exchange. Where a rule replaced the server's
/// response, the replacement's status counts. No status at all counts as `hrsp_other`. Backends
/// count a request (`req_tot`) with its response, as HAProxy does.
pub(crate) fn count_status(context: &Context<'_>, exchange: &Exchange) {
    let status = match exchange.ending.cause.is_cut() {
        true => CUT_STATUS,
        false => u16::try_from(exchange.tally.status).unwrap_or(0),
    };
    context.count(|counters| counters.count_status(status));
    if let Some(counters) = exchange.backend_counters(context.local.worker) {
        counters.requests.increment();
        counters.count_status(status);
    }
}

/// Adds the times of an exchange that a server answered to those of the server and the backend.
fn note_times(context: &Context<'_>, exchange: &Exchange) {
    let times = &exchange.times;
    let (Some(backend), Some(server)) = (&exchange.backend, &exchange.server) else {
        return;
    };
    let (Some(received), Some(slot_taken), Some(connected), Some(answered), Some(ended)) = (
        times.received,
        times.slot_taken,
        times.connected,
        times.answered,
        times.ended,
    ) else {
        return;
    };
    let took = ExchangeTimes {
        queue: slot_taken.saturating_duration_since(received),
        connect: connected.saturating_duration_since(slot_taken),
        response: answered.saturating_duration_since(connected),
        total: ended.saturating_duration_since(times.begun.unwrap_or(received)),
    };
    let worker = context.local.worker;
    server.state.timings.of(worker).note(&took);
    backend.state.timings.of(worker).note(&took);
    backend.state.durations.of(worker).note(took.total);
}

/// Writes the line early, as soon as the response is known (`option logasap`).
pub(crate) fn response_known(context: &Context<'_>, exchange: &mut Exchange) {
    if context.frontend.model.log.as_soon_as_possible && !exchange.logged {
        write(context, exchange, true);
    }
}

fn received_nothing(exchange: &Exchange) -> bool {
    !exchange.has_request && exchange.times.begun.is_none()
}

/// Whether nothing went wrong (configuration manual, "option dontlog-normal"): no error, timeout,
/// retry, redispatch, nor a 5xx status.
fn is_normal(context: &Context<'_>, exchange: &Exchange) -> bool {
    let failed = if context.frontend.is_http() {
        exchange.tally.status < 0 || exchange.tally.status >= 500
    } else {
        false
    };
    exchange.ending.is_normal() && !failed && exchange.tally.retries == 0
}

fn write(context: &Context<'_>, exchange: &mut Exchange, asap: bool) {
    exchange.logged = true;
    let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.place) else {
        return;
    };
    let options = &context.frontend.model.log;
    let error = !is_normal(context, exchange);
    let level = match exchange.settings.log_level {
        Some(LogLevel::Silent) => return,
        Some(LogLevel::Severity(number)) => {
            Level::ALL[usize::from(number).min(Level::ALL.len() - 1)]
        }
        None if options.separate_errors && error => Level::Err,
        None => Level::Info,
    };
    if !set.wants(level) {
        return;
    }
    exchange.tally.log_counter = context.frontend.state.next_log_number();
    let is_http = context.frontend.is_http();
    // HAProxy has no transaction, only a session, before there is a request.
    let has_failed_early = is_http && !exchange.has_request;
    let format = match &options.error_format {
        Some(format) if has_failed_early => Some(format),
        _ => usual_format(context),
    };
    let origin = match (has_failed_early, asap) {
        (true, _) => "sess_error",
        (false, true) if is_http => "txn_response",
        (false, true) => "txn_connect",
        (false, false) => "txn_close",
    };
    let view = View::for_log(context, exchange, asap, origin);
    send(context, (set, level), format, &view);
}

/// The format of the frontend's lines.
fn usual_format<'a>(context: &'a Context<'_>) -> Option<&'a LogFormat> {
    let own = context.frontend.model.log.format.as_ref();
    own.or_else(|| context.running.default_format(context.frontend.is_http()))
}

/// Writes a line because a rule asks for it (`do-log`), beside the line of the exchange and without
/// a number of its own.
pub(crate) fn rule_asks(context: &Context<'_>, exchange: &mut Exchange, origin: &'static str) {
    let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.place) else {
        return;
    };
    let level = match exchange.settings.log_level {
        Some(LogLevel::Silent) => return,
        Some(LogLevel::Severity(number)) => {
            Level::ALL[usize::from(number).min(Level::ALL.len() - 1)]
        }
        None => Level::Info,
    };
    if !set.wants(level) {
        return;
    }
    exchange.tally.log_counter = context.frontend.state.log_number();
    // Before there is a transaction, lines show what they would show of a session that fails.
    let kept = (exchange.tally.status, exchange.ending);
    if matches!(origin, "tcp-req-conn" | "tcp-req-sess") {
        exchange.tally.status = 0;
        exchange
            .ending
            .note(EndingCause::Proxy, EndingPhase::Request);
    }
    // HAProxy keeps the request line for logs only after the content rules of TCP.
    let hidden_line = match origin {
        "tcp-req-cont" => Some(std::mem::take(&mut exchange.request_line)),
        _ => None,
    };
    let view = View::for_log(context, exchange, false, origin);
    send(context, (set, level), usual_format(context), &view);
    drop(view);
    if let Some(line) = hidden_line {
        exchange.request_line = line;
    }
    (exchange.tally.status, exchange.ending) = kept;
}

fn send(
    context: &Context<'_>,
    (set, level): (&LogSet, Level),
    format: Option<&LogFormat>,
    view: &View<'_>,
) {
    let options = &context.frontend.model.log;
    context.local.with_memory(|memory| {
        let Some(format) = format else { return };
        format.render(view, &mut memory.scratch, &mut memory.text);
        memory.text.truncate(set.message_bytes_max());
        let mut log = context.local.log.borrow_mut();
        match structured(options.structured_data.as_ref(), view, &mut memory.scratch) {
            Some(data) => {
                let text = LineText {
                    structured_data: &data,
                    message: &memory.text,
                };
                log.emit_structured(set, level, text);
            }
            None => log.emit(set, level, &memory.text),
        }
    });
}

fn structured(
    format: Option<&LogFormat>,
    view: &View<'_>,
    scratch: &mut ballast_expr::Scratch,
) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    format?.render(view, scratch, &mut data);
    Some(data)
}

/// Logs that `option checkcache` blocks a response, as an alert to the log targets of the
/// frontend. The client gets an error page.
pub(crate) fn cacheable_cookie(context: &Context<'_>, exchange: &Exchange) -> Exit {
    let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
    let line = format!(
        "Blocking cacheable cookie in response from instance {}, server {}.",
        name(exchange.backend.as_ref().map(|backend| backend.name())),
        name(exchange.server.as_ref().map(|server| server.name())),
    );
    emit(context, Level::Alert, line.as_bytes());
    Exit::CacheableCookie
}

/// Logs a connection that was refused in a handshake: in the frontend's error format, or else in a
/// short fixed one (configuration manual, section 8.2.5). Nothing is logged if the frontend has no
/// log format nor, with `option dontlognull`, for a client that sent nothing.
pub(crate) fn connection_refused(context: &Context<'_>, refusal: HandshakeError) {
    let options = &context.frontend.model.log;
    let has_format = options.format.is_some() || options.error_format.is_some();
    if !has_format || (options.skip_null && refusal.is_silent()) {
        return;
    }
    let level = if options.separate_errors {
        Level::Err
    } else {
        Level::Info
    };
    let Some(format) = &options.error_format else {
        let line = RefusedConnection {
            source: context.session.addresses.source,
            accepted_at: context.session.accepted_at,
            frontend: context.frontend.name(),
            bind: &context.session.admission.listening().bind,
            refusal,
            tls_error: context.session.tls.as_ref().and_then(|tls| tls.failure()),
        };
        return emit(context, level, line.to_string().as_bytes());
    };
    let mut exchange = Exchange::new(context.running.head_limits);
    context.begin(&mut exchange);
    exchange.times.ended = Some(ballast_worker::now());
    exchange.tally.status = 0;
    exchange
        .ending
        .note(EndingCause::Proxy, EndingPhase::Request);
    exchange.tally.log_counter = context.frontend.state.next_log_number();
    let view = View::for_log(context, &exchange, false, "sess_error");
    context.local.with_memory(|memory| {
        format.render(&view, &mut memory.scratch, &mut memory.text);
        emit(context, level, &memory.text);
    });
}

/// Sends a line to the log targets of the frontend.
fn emit(context: &Context<'_>, level: Level, line: &[u8]) {
    if let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.place) {
        let line = &line[..line.len().min(set.message_bytes_max())];
        context.local.log.borrow_mut().emit(set, level, line);
    }
}
