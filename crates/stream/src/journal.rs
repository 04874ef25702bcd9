//! The access log: one line per exchange, when and as the frontend wants it.

use ballast_engine::timings::Took;
use ballast_expr::LogFormat;
use ballast_listen::{Refusal, RefusedConnection};
use ballast_log::{Level, LineText};
use ballast_rules::LogLevel;

use crate::context::Context;
use crate::ending::{Cause, Phase};
use crate::exchange::Exchange;
use crate::exit::Exit;
use crate::view::View;

/// The status of what was cut ([`crate::ending::Cause::is_cut`]), whatever the client got.
const CUT_STATUS: u16 = 500;

/// Writes the line of an exchange that has ended, unless it was written already or is not
/// wanted.
pub(crate) fn exchange_ended(context: &Context<'_>, exchange: &mut Exchange) {
    exchange.times.ended = Some(ballast_worker::turn_now());
    if exchange.ending.cause.is_cut() {
        exchange.tally.status = i32::from(CUT_STATUS);
    }
    note_times(context, exchange);
    if let Some(row) = &context.row {
        row.ends();
    }
    if exchange.logged {
        return;
    }
    let wanted = &context.frontend.model.log;
    let silent =
        exchange.tally.bytes_in == 0 && exchange.tally.bytes_out == 0 && nothing_came(exchange);
    if wanted.skip_null && silent {
        return;
    }
    if wanted.skip_normal && is_normal(context, exchange) {
        return;
    }
    write(context, exchange, false);
}

/// Counts the status that the client got: once, and the last one, where a rule put another response
/// in the place of the server's. None at all counts as another (`hrsp_other`). Backends count a
/// request (`req_tot`) with its response, as HAProxy does.
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

/// Has server and backend note how long an exchange took that a server answered.
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
    let took = Took {
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

fn nothing_came(exchange: &Exchange) -> bool {
    !exchange.has_request && exchange.times.begun.is_none()
}

/// Whether nothing about it is worth a look (configuration manual, "option dontlog-normal"):
/// no error, timeout, retry, redispatch, nor a 5xx status.
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
    let wanted = &context.frontend.model.log;
    let error = !is_normal(context, exchange);
    let level = match exchange.settings.log_level {
        Some(LogLevel::Silent) => return,
        Some(LogLevel::Severity(number)) => {
            Level::ALL[usize::from(number).min(Level::ALL.len() - 1)]
        }
        None if wanted.separate_errors && error => Level::Err,
        None => Level::Info,
    };
    if !set.wants(level) {
        return;
    }
    exchange.tally.log_counter = context.frontend.state.next_log_number();
    let format = match &wanted.error_format {
        Some(format) if error && !exchange.ending.is_normal() => Some(format),
        _ => wanted
            .format
            .as_ref()
            .or_else(|| context.running.default_format(context.frontend.is_http())),
    };
    let view = View::for_log(context, exchange, asap);
    context.local.with_memory(|memory| {
        let Some(format) = format else { return };
        format.render(&view, &mut memory.scratch, &mut memory.text);
        memory.text.truncate(set.message_bytes_max());
        let mut log = context.local.log.borrow_mut();
        match structured(wanted.structured_data.as_ref(), &view, &mut memory.scratch) {
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

/// `option checkcache` blocks a response: the administrators hear of it, and the client gets a
/// page. Who listens to the frontend hears it, as it hears of the exchange.
pub(crate) fn cacheable_cookie(context: &Context<'_>, exchange: &Exchange) -> Exit {
    let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
    let line = format!(
        "Blocking cacheable cookie in response from instance {}, server {}.",
        name(exchange.backend.as_ref().map(|backend| backend.name())),
        name(exchange.server.as_ref().map(|server| server.name())),
    );
    say(context, Level::Alert, line.as_bytes());
    Exit::CacheableCookie
}

/// The line of a connection that was refused in a handshake: of the format for errors, else
/// short and fixed (configuration manual, section 8.2.5). None where the frontend has no format,
/// and with `option dontlognull` none of who sent nothing.
pub(crate) fn connection_refused(context: &Context<'_>, refusal: Refusal) {
    let wanted = &context.frontend.model.log;
    let has_format = wanted.format.is_some() || wanted.error_format.is_some();
    if !has_format || (wanted.skip_null && refusal.is_silent()) {
        return;
    }
    let level = if wanted.separate_errors {
        Level::Err
    } else {
        Level::Info
    };
    let Some(format) = &wanted.error_format else {
        let line = RefusedConnection {
            source: context.session.path.source,
            accepted_at: context.session.accepted_at,
            frontend: context.frontend.name(),
            bind: &context.session.admission.listening().bind,
            refusal,
        };
        return say(context, level, line.to_string().as_bytes());
    };
    let mut exchange = Exchange::new(context.running.head_limits);
    context.begin(&mut exchange);
    exchange.times.ended = Some(ballast_worker::now());
    exchange.tally.status = 0;
    exchange.ending.note(Cause::Proxy, Phase::Request);
    exchange.tally.log_counter = context.frontend.state.next_log_number();
    let view = View::for_log(context, &exchange, false);
    context.local.with_memory(|memory| {
        format.render(&view, &mut memory.scratch, &mut memory.text);
        say(context, level, &memory.text);
    });
}

/// Sends a line to who listens to the frontend.
fn say(context: &Context<'_>, level: Level, line: &[u8]) {
    if let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.place) {
        let line = &line[..line.len().min(set.message_bytes_max())];
        context.local.log.borrow_mut().emit(set, level, line);
    }
}
