//! The access log: one line per exchange, when and as the frontend wants it.

use std::time::{Duration, Instant};

use ballast_engine::Backend;
use ballast_engine::timings::ExchangeTimes;
use ballast_listen::{HandshakeError, RefusedConnection};
use ballast_log::Level;
use ballast_net::SystemCallError;
use ballast_rules::{LogLevel, LogOrigin, LogProfile, LogStep};

use crate::context::Context;
use crate::ending::{Ending, EndingCause, EndingPhase};
use crate::exchange::Exchange;
use crate::exit::Exit;
use crate::log_line::LogLine;
use crate::log_plan::LogPlan;
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
    let plan = context.running.log_plan(context.frontend.index);
    if !has_failed_early(context, exchange) {
        let is_wanted = match plan.is_single {
            true => !exchange.logged && !plan.is_default_line,
            false => !exchange.logged && plan.steps.has(LogStep::Close),
        };
        if !is_wanted {
            return;
        }
    }
    let options = &context.frontend.model.log;
    // What a server said counts for nothing: the probe of a monitor may be greeted.
    let silent = exchange.tally.bytes_in == 0 && received_nothing(exchange);
    if options.skip_null && silent {
        return;
    }
    if options.skip_normal && is_normal(context, exchange, LogStep::Close) {
        return;
    }
    write(context, exchange, LogStep::Close, plan);
}

/// Whether the session has failed before there was a request. HAProxy has no transaction then.
fn has_failed_early(context: &Context<'_>, exchange: &Exchange) -> bool {
    context.frontend.is_http() && !exchange.has_request
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

/// From one moment to a later one. Both are often the same: the clock was not read in between.
fn elapsed(from: Instant, to: Instant) -> Duration {
    match from == to {
        true => Duration::ZERO,
        false => to.saturating_duration_since(from),
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
    let total = elapsed(times.begun.unwrap_or(received), ended);
    let took = ExchangeTimes::new(
        elapsed(received, slot_taken),
        elapsed(slot_taken, connected),
        elapsed(connected, answered),
        total,
    );
    let worker = context.local.worker;
    server.state.timings.of(worker).note(&took);
    backend.state.timings.of(worker).note(&took);
    backend.state.durations.of(worker).note(total);
}

/// Writes the line of a step, where the frontend wants one: because of `log-steps`, or because all
/// that its line shows is known.
pub(crate) fn step(context: &Context<'_>, exchange: &mut Exchange, step: LogStep) {
    let plan = context.running.log_plan(context.frontend.index);
    if plan.steps.has(step) {
        write_step(context, exchange, step, plan);
    }
}

/// Whether a line at the accept may show the unique id.
pub(crate) fn accept_shows_id(context: &Context<'_>) -> bool {
    let plan = context.running.log_plan(context.frontend.index);
    !plan.is_single && plan.steps.has(LogStep::Accept)
}

fn write_step(context: &Context<'_>, exchange: &mut Exchange, step: LogStep, plan: LogPlan) {
    if plan.is_single && exchange.logged {
        return;
    }
    if plan.is_default_line {
        exchange.logged = true;
        return write_default_line(context, exchange);
    }
    if context.frontend.model.log.skip_normal && is_normal(context, exchange, step) {
        return;
    }
    if step != LogStep::Accept {
        return write(context, exchange, step, plan);
    }
    // The connection is all that is known: HAProxy has not looked at the request yet.
    let line = std::mem::take(&mut exchange.request_line);
    let kept = (exchange.has_request, exchange.tally.status);
    (exchange.has_request, exchange.tally.status) = (false, 0);
    write(context, exchange, step, plan);
    (exchange.has_request, exchange.tally.status) = kept;
    exchange.request_line = line;
}

/// The short line of frontends without a format. Profiles do not change it.
fn write_default_line(context: &Context<'_>, exchange: &Exchange) {
    let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.index) else {
        return;
    };
    let Some(format) = context.running.default_format(context.frontend.is_http()) else {
        return;
    };
    if !set.wants(Level::Info) {
        return;
    }
    let view = View::for_log(context, exchange, None);
    context.local.with_memory(|memory| {
        format.render(&view, &mut memory.scratch, &mut memory.text);
        let mut log = context.local.log.borrow_mut();
        log.emit(set, Level::Info, &memory.text);
    });
}

fn received_nothing(exchange: &Exchange) -> bool {
    !exchange.has_request && exchange.times.begun.is_none()
}

/// Whether nothing went wrong (configuration manual, "option dontlog-normal"): no error, timeout,
/// retry, redispatch, nor a 5xx status. The end without a status is an error; before it there may be
/// none yet.
fn is_normal(context: &Context<'_>, exchange: &Exchange, step: LogStep) -> bool {
    let status = exchange.tally.status;
    let lacks_status = status < 0 && step == LogStep::Close;
    let failed = context.frontend.is_http() && (lacks_status || status >= 500);
    exchange.ending.is_normal() && !failed && exchange.tally.retries == 0
}

/// Writes a line about an exchange, at a step of it.
fn write(context: &Context<'_>, exchange: &mut Exchange, step: LogStep, plan: LogPlan) {
    exchange.logged |= plan.is_single;
    let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.index) else {
        return;
    };
    let options = &context.frontend.model.log;
    let error = !is_normal(context, exchange, step);
    let usual = match options.separate_errors && error {
        true => Level::Err,
        false => Level::Info,
    };
    let Some(level) = level(exchange, usual).filter(|level| set.wants(*level)) else {
        return;
    };
    exchange.tally.log_counter = context.frontend.state.next_log_number();
    let has_failed = step == LogStep::Close && has_failed_early(context, exchange);
    if has_failed {
        // As in HAProxy: a request that is not received whole has a number for its line only.
        exchange.tally.request_number = context.local.next_request_number();
    }
    let own = options.format.as_ref();
    let (origin, format) = match has_failed {
        true => (
            LogOrigin::SessionError,
            options.error_format.as_ref().or(own),
        ),
        false => (LogOrigin::Step(step), own),
    };
    let view = View::for_log(context, exchange, Some(origin));
    let line = LogLine {
        set,
        level,
        origin,
        format,
        structured_data: options.structured_data.as_ref(),
        profile: None,
    };
    line.write(context, &view);
}

/// The level that a rule has set, or else the usual one; `None` where nothing is to be logged.
fn level(exchange: &Exchange, usual: Level) -> Option<Level> {
    match exchange.settings.log_level {
        Some(LogLevel::Silent) => None,
        Some(LogLevel::Severity(number)) => {
            Some(Level::ALL[usize::from(number).min(Level::ALL.len() - 1)])
        }
        None => Some(usual),
    }
}

/// Writes a line because a rule asks for it (`do-log`), beside the line of the exchange and without
/// a number of its own.
pub(crate) fn write_line_for_rule(
    context: &Context<'_>,
    exchange: &mut Exchange,
    (step, profile): (LogStep, Option<&LogProfile>),
) {
    let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.index) else {
        return;
    };
    let level = level(exchange, Level::Info).filter(|level| set.wants(*level));
    let Some(level) = level else { return };
    exchange.tally.log_counter = context.frontend.state.log_number();
    // Before there is a transaction, lines show what they would show of a session that fails.
    let kept = (exchange.tally.status, exchange.ending);
    if matches!(step, LogStep::TcpConnection | LogStep::TcpSession) {
        exchange.tally.status = 0;
        exchange
            .ending
            .note(EndingCause::Proxy, EndingPhase::Request);
    }
    // A page that asks for credentials is an ending once it is made, in HAProxy.
    if step == LogStep::HttpAfterResponse && exchange.challenge.is_some() {
        exchange.ending = Ending::default();
    }
    // HAProxy keeps the request line for logs only after the content rules of TCP.
    let hidden_line = match step {
        LogStep::TcpContent => Some(std::mem::take(&mut exchange.request_line)),
        _ => None,
    };
    let origin = LogOrigin::Step(step);
    let view = View::for_log(context, exchange, Some(origin));
    let line = LogLine {
        set,
        level,
        origin,
        format: context.frontend.model.log.format.as_ref(),
        structured_data: context.frontend.model.log.structured_data.as_ref(),
        profile,
    };
    line.write(context, &view);
    drop(view);
    if let Some(line) = hidden_line {
        exchange.request_line = line;
    }
    (exchange.tally.status, exchange.ending) = kept;
}

/// Logs that a client broke the rules of HTTP/2 outside of any exchange (`tune.h2.log-errors`).
pub(crate) fn protocol_broken(context: &Context<'_>) {
    let plan = context.running.log_plan(context.frontend.index);
    let mut exchange = Exchange::new(context.running.head_limits);
    context.begin(&mut exchange);
    exchange.times.idle_from = context.session.idle_from.get();
    exchange.first = exchange.times.idle_from == context.session.established();
    exchange.times.ended = Some(ballast_worker::now());
    exchange.tally.status = 0;
    exchange
        .ending
        .note(EndingCause::Proxy, EndingPhase::Request);
    write(context, &mut exchange, LogStep::Close, plan);
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
    let is_wanted =
        options.format.is_some() || options.error_format.is_some() || options.steps.is_some();
    if !is_wanted || (options.skip_null && refusal.is_silent()) {
        return;
    }
    let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.index) else {
        return;
    };
    let level = if options.separate_errors {
        Level::Err
    } else {
        Level::Info
    };
    let fixed = options.error_format.is_none().then(|| RefusedConnection {
        source: context.session.addresses.source,
        accepted_at: context.session.accepted_at,
        frontend: context.frontend.name(),
        bind: &context.session.admission.listening().bind,
        refusal,
        tls_error: context.session.tls.as_ref().and_then(|tls| tls.failure()),
    });
    let fixed = fixed.map(|line| line.to_string());
    let mut exchange = Exchange::new(context.running.head_limits);
    context.begin(&mut exchange);
    exchange.times.ended = Some(ballast_worker::now());
    exchange.tally.status = 0;
    exchange
        .ending
        .note(EndingCause::Proxy, EndingPhase::Request);
    exchange.tally.log_counter = context.frontend.state.next_log_number();
    let origin = LogOrigin::SessionKilled;
    let view = View::for_log(context, &exchange, Some(origin)).of_connection();
    let line = LogLine {
        set,
        level,
        origin,
        format: options.error_format.as_ref(),
        structured_data: options.structured_data.as_ref(),
        profile: None,
    };
    line.write_or(context, &view, fixed.as_deref());
}

/// Says that a connection to a server could not be opened because this process or this machine has no
/// descriptor, port or memory for it. Lines of exchanges name no reason.
pub(crate) fn shortage(context: &Context<'_>, backend: &Backend, error: &SystemCallError) {
    if context.local.reports_shortage() {
        let line = format!(
            "Proxy {} cannot connect to its servers for now: {error}. Please check 'ulimit-n' and 'maxconn'.",
            backend.model.common.name
        );
        emit(context, Level::Emerg, line.as_bytes());
    }
}

/// Sends a line to the log targets of the frontend.
fn emit(context: &Context<'_>, level: Level, line: &[u8]) {
    if let Some(Some(set)) = context.running.frontend_logs.get(context.frontend.index) {
        let line = &line[..line.len().min(set.message_bytes_max())];
        context.local.log.borrow_mut().emit(set, level, line);
    }
}
