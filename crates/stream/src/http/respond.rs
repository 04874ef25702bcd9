//! The response: its head judged, changed and passed on, its body carried.

use std::cell::Cell;
use std::time::{Instant, SystemTime};

use ballast_expr::Scope;
use ballast_message::{BodyLength, Method, NoRoom, Response, Version, connection_options};
use ballast_model::ConnectionMode;
use ballast_mux::{
    Afterwards, Announced, Announcement, Malformed, Peer, ReadError, RelayError, ResponseHead,
    Sink, Source, Wait, WriteError, relay, take_connection_end,
};
use ballast_upstream::probe::Observed;

use super::reach::{Again, Plan};
use super::{cacheable, capture, invalid, rules};
use crate::context::Context;
use crate::ending::Phase;
use crate::exchange::Exchange;
use crate::exit::{Count, Exit, Flow};
use crate::journal;
use crate::live::Live;
use crate::persistence::{self, ClientCookie, ServerCookie};
use crate::volume;

/// How a response went.
pub(crate) enum Outcome {
    /// The client has all of it.
    Carried {
        /// Whether the server takes another request on this connection.
        keep_server: bool,
        /// Whether the connection itself may bear the client's identity from now on.
        private: bool,
        /// Whether the client learns of the response's end by the close only: it must not wait
        /// for the rest of the request.
        ends_by_close: bool,
    },
    /// The head was passed on, and what follows is no HTTP.
    Tunnel,
    /// The client has nothing of it, and another try is worth while.
    Again(Again),
    /// It will not be whole.
    Exit(Exit),
}

/// The way from the server to the client.
pub(crate) struct Down<'a> {
    /// The client.
    pub(crate) client: Peer<'a>,
    /// What goes to the client.
    pub(crate) sink: Sink<'a>,
    /// What comes from the server.
    pub(crate) source: Source<'a>,
    /// How far the request is.
    pub(crate) upload: &'a Upload<'a>,
}

/// How far a request is on its way, for the direction that waits for the response.
#[derive(Debug)]
pub(crate) struct Upload<'a> {
    /// When it last moved; the moment the connection stood before it did.
    pub(crate) moved: Cell<Option<Instant>>,
    /// Whether there is more of it to come.
    pub(crate) under_way: Cell<bool>,
    /// Whether the head of the final response is there.
    pub(crate) answered: Cell<bool>,
    /// Who counts each piece of the bodies, where someone does.
    pub(crate) live: Option<&'a Live<'a>>,
}

/// What may be tried again.
pub(crate) struct Chances<'a> {
    /// The connection had rested and may have been closed behind our back.
    pub(crate) reused: bool,
    /// What `retry-on` names, and how many tries are left.
    pub(crate) plan: &'a Plan,
}

/// Receives the response and carries it to the client.
pub(crate) async fn respond(
    context: &Context<'_>,
    exchange: &mut Exchange,
    mut down: Down<'_>,
    chances: Chances<'_>,
) -> Outcome {
    let answer = match head(context, exchange, &mut down, &chances).await {
        Ok(answer) => answer,
        Err(outcome) => return outcome,
    };
    if chances.plan.wants_again(exchange.response.status()) {
        return Outcome::Again(Again::Response);
    }
    if let Err(NoRoom) = take_connection_end(exchange.response.fields_mut()) {
        return Outcome::Exit(Exit::ResponseRewrite);
    }
    note(context, exchange);
    down.upload.answered.set(true);
    let private = authenticates_connection(&exchange.response);
    if let Flow::Break(exit) = rules::response(context, exchange).await {
        return Outcome::Exit(exit);
    }
    let announced = match shape(context, exchange, &answer, chances.plan, &mut down.sink) {
        Ok(announced) => announced,
        Err(Unfit::CacheableCookie) => {
            return Outcome::Exit(journal::cacheable_cookie(context, exchange));
        }
        Err(Unfit::NoRoom) => return Outcome::Exit(Exit::ResponseRewrite),
    };
    journal::response_known(context, exchange);
    let Some(announced) = announced else {
        let sent = down.sink.flush(&client_wait(context, exchange)).await;
        return match sent {
            Ok(()) => Outcome::Tunnel,
            Err(error) => untaken(&error, Phase::Data),
        };
    };
    match body(context, exchange, &mut down, &answer).await {
        Ok(keep_server) => Outcome::Carried {
            keep_server,
            private,
            ends_by_close: announced.body == BodyLength::UntilClose,
        },
        Err(outcome) => outcome,
    }
}

/// NTLM and Negotiate authenticate not a request but the connection it came on, which then must
/// serve nobody else (configuration manual, "http-reuse"). A line may hold several challenges.
/// Commas within quotes are taken for ends of challenges, too: at worst a connection is not shared.
/// As in HAProxy the first four letters tell, for there are schemes such as `Nego2`.
fn authenticates_connection(response: &Response) -> bool {
    let name: &[u8] = match response.status() {
        401 => b"www-authenticate",
        407 => b"proxy-authenticate",
        _ => return false,
    };
    let begins = |challenge: &[u8]| {
        let scheme = challenge.trim_ascii_start().get(..4);
        scheme.is_some_and(|scheme| {
            scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"nego")
        })
    };
    let mut lines = response.fields().find(name);
    lines.any(|line| line.split(|byte| *byte == b',').any(begins))
}

fn client_wait<'c>(context: &'c Context<'_>, exchange: &Exchange) -> Wait<'c> {
    Wait::each(&context.downward, exchange.settings.client_timeout)
}

/// Waits for the final head; interim ones are passed on.
async fn head(
    context: &Context<'_>,
    exchange: &mut Exchange,
    down: &mut Down<'_>,
    chances: &Chances<'_>,
) -> Result<ResponseHead, Outcome> {
    let received_before = down.source.received_bytes();
    let patience = exchange.settings.server_timeout;
    // A server need not answer before it has the request: its time runs from the last byte sent.
    let mut since = down.upload.moved.get();
    loop {
        // A head that comes in drops has no more time than one that comes whole.
        let from = since.unwrap_or_else(ballast_worker::turn_now);
        let wait = Wait::until(&context.downward, patience.map(|patience| from + patience));
        let answer = await_head(context, exchange, down, &wait).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(gone) => {
                // One that is broken is told from one that ended, which could still be read.
                let phase = match gone {
                    ClientGone::Broken => Phase::Data,
                    ClientGone::Ended => Phase::Headers,
                };
                return Err(Outcome::Exit(Exit::ClientGaveUp(phase)));
            }
        };
        match answer {
            Ok(answer) if answer.interim => {
                count_response(context, exchange);
                if exchange.request.version() >= Version::Http11 {
                    exchange.tally.bytes_out += volume::of_response(&exchange.response);
                    down.sink.bodiless_response(&exchange.response);
                    let sent = down.sink.flush(&client_wait(context, exchange)).await;
                    sent.map_err(|error| untaken(&error, Phase::Headers))?;
                }
                since = Some(ballast_worker::now());
            }
            Ok(answer) if is_unfit_upgrade(exchange, down, &answer) => {
                let error = ReadError::Malformed(Malformed::StatusInvalid);
                return Err(unusable(context, exchange, down, chances, &error));
            }
            // What of the body came with the head is judged before the client hears of it.
            Ok(answer) => match down.source.check_ahead() {
                Ok(_) => return Ok(answer),
                Err(error) => return Err(unusable(context, exchange, down, chances, &error)),
            },
            // While the request is on its way its own clocks run.
            Err(ReadError::TimedOut) if down.upload.under_way.get() => {
                since = Some(ballast_worker::now());
            }
            Err(ReadError::TimedOut) if down.upload.moved.get() > since => {
                since = down.upload.moved.get();
            }
            Err(error) => {
                let silent = down.source.received_bytes() == received_before;
                return Err(match silent {
                    true => failed(context, exchange, chances, &error, Came::Nothing),
                    false => unusable(context, exchange, down, chances, &error),
                });
            }
        }
    }
}

/// A 101 to a request that asked for no other protocol: were it believed, the client's next
/// requests would pass unseen. Or one whose `Connection` does not say so (RFC 9110, section 7.8), or before
/// the body is through: its rest would be the tunnel's.
fn is_unfit_upgrade(exchange: &Exchange, down: &Down<'_>, answer: &ResponseHead) -> bool {
    let asked = || {
        connection_options(exchange.request.fields()).upgrade
            && exchange.request.fields().contains(b"upgrade")
    };
    answer.body == BodyLength::Tunnel
        && exchange.response.status() == 101
        && (down.upload.under_way.get() || !answer.options.upgrade || !asked())
}

/// How a client left that gives up its request with that.
enum ClientGone {
    /// It ended its side.
    Ended,
    /// The connection broke.
    Broken,
}

/// One head from the server, or what became of the client meanwhile, where that matters.
async fn await_head(
    context: &Context<'_>,
    exchange: &mut Exchange,
    down: &mut Down<'_>,
    wait: &Wait<'_>,
) -> Result<Result<ResponseHead, ReadError>, ClientGone> {
    let gives_up = exchange
        .backend
        .as_ref()
        .is_some_and(|backend| super::leaving::gives_up(context, backend));
    // What the server was asked with: a rule may have changed the client's.
    let method = exchange.request.method();
    let answer = down.source.response(wait, method, &mut exchange.response);
    if !gives_up {
        return Ok(answer.await);
    }
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|cx| {
        if let std::task::Poll::Ready(done) = answer.as_mut().poll(cx) {
            return std::task::Poll::Ready(Ok(done));
        }
        if down.upload.under_way.get() {
            // While the body comes the other direction notices.
            return std::task::Poll::Pending;
        }
        down.client.poll_ended(cx).map(|ended| match ended {
            Ok(()) => Err(ClientGone::Ended),
            Err(_) => Err(ClientGone::Broken),
        })
    })
    .await
}

/// What a server sent before it failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Came {
    /// Not a byte.
    Nothing,
    /// Whole interim responses, as good as none.
    Interim,
    /// A part of a response, or a broken one.
    Part,
}

/// A broken response came, or a part of one.
fn unusable(
    context: &Context<'_>,
    exchange: &mut Exchange,
    down: &Down<'_>,
    chances: &Chances<'_>,
    error: &ReadError,
) -> Outcome {
    if let ReadError::Malformed(rule) = error {
        invalid::response(context, exchange, down.source.offence(), rule);
    }
    let came = match down.source.is_empty() {
        true => Came::Interim,
        false => Came::Part,
    };
    failed(context, exchange, chances, error, came)
}

/// No response came, or a broken one. What to make of it.
fn failed(
    context: &Context<'_>,
    exchange: &mut Exchange,
    chances: &Chances<'_>,
    error: &ReadError,
    came: Came,
) -> Outcome {
    let silent = came == Came::Nothing;
    let closed = matches!(error, ReadError::Closed | ReadError::Broken(_));
    if chances.reused && closed && silent && chances.plan.may_resend(exchange) {
        return Outcome::Again(Again::Stale);
    }
    if chances.plan.wants_again_after(error, silent) {
        if !matches!(error, ReadError::TimedOut) {
            Count::FailedResponses.increment(context, exchange);
        }
        return Outcome::Again(Again::Response);
    }
    if (chances.reused || chances.plan.stale) && closed && silent && !exchange.first {
        // The client is to try again on another connection, as it may when a connection it
        // reuses is closed (RFC 9112, section 9.3.1): it gets no answer, and no line is written.
        return Outcome::Exit(Exit::StaleConnection(Phase::Headers));
    }
    exchange.observed = Some(match error {
        ReadError::TimedOut => Observed::ReadTimeout,
        ReadError::Closed => Observed::BrokenPipe,
        ReadError::Broken(_) => Observed::ReadError,
        ReadError::Malformed(_) => Observed::InvalidResponse,
    });
    Outcome::Exit(match error {
        ReadError::TimedOut => Exit::ResponseTimeout,
        ReadError::Closed | ReadError::Broken(_) if came != Came::Part => Exit::ResponseMissing,
        // A part of a head is no better than a wrong one.
        _ => Exit::ResponseMalformed,
    })
}

/// Counts a final response at its server, and captures it.
fn note(context: &Context<'_>, exchange: &mut Exchange) {
    exchange.times.answered = Some(ballast_worker::turn_now());
    exchange.has_response = true;
    exchange.tally.bytes_out += volume::of_response(&exchange.response);
    exchange.variables.forget(Scope::Req);
    let status = exchange.response.status();
    exchange.observed = Some(Observed::from_status(status));
    exchange.tally.status = i32::from(status);
    count_response(context, exchange);
    capture::response(context, exchange);
}

/// Counts a response at its server, be it interim; and a request with it, as HAProxy does.
fn count_response(context: &Context<'_>, exchange: &Exchange) {
    if let Some(counters) = exchange.server_counters(context.local.worker) {
        counters.requests.increment();
        counters.count_status(exchange.response.status());
    }
}

/// Why a response is not passed on.
enum Unfit {
    /// Its head would grow beyond the limit.
    NoRoom,
    /// `option checkcache`: a cache could keep its cookie.
    CacheableCookie,
}

impl From<NoRoom> for Unfit {
    fn from(NoRoom: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Makes the response what the client shall see, and begins it; `None` when what follows is no HTTP.
fn shape(
    context: &Context<'_>,
    exchange: &mut Exchange,
    answer: &ResponseHead,
    plan: &Plan,
    sink: &mut Sink<'_>,
) -> Result<Option<Announced>, Unfit> {
    // The server's own cookie counts, before ours is there.
    let leaks = checks_cache(exchange)
        && cacheable::leaks_cookie(exchange.request.method(), &exchange.response);
    let hidden_from_caches = cookie(context, exchange, plan)?;
    if leaks && !hidden_from_caches {
        return Err(Unfit::CacheableCookie);
    }
    if exchange.response.reason().is_empty() {
        let status = exchange.response.status();
        exchange.response.set_status(status)?;
    }
    if answer.body == BodyLength::Tunnel {
        sink.bodiless_response(&exchange.response);
        return Ok(None);
    }
    rules::after_response(context, exchange);
    let announcement = Announcement {
        asked: exchange.method,
        version: exchange.request.version(),
        body: answer.body,
        is_at_hand: false,
        closes: !exchange.keep_client
            || context.frontend.model.common.connection_mode == ConnectionMode::Close
            || context.is_closing(),
    };
    let announced = sink.begin_response(&mut exchange.response, announcement)?;
    exchange.keep_client = !announced.closes;
    Ok(Some(announced))
}

fn checks_cache(exchange: &Exchange) -> bool {
    let backend = exchange.backend.as_ref();
    backend.is_some_and(|backend| backend.model.options.check_cache)
}

/// The persistence cookie; whether caches were told to leave the response alone for its sake.
fn cookie(context: &Context<'_>, exchange: &mut Exchange, plan: &Plan) -> Result<bool, NoRoom> {
    let backend = context.backend_of(exchange);
    let Some(backend) = backend.filter(|_| !plan.ignores_cookies()) else {
        return Ok(false);
    };
    let Some(rules) = &backend.model.cookie else {
        return Ok(false);
    };
    let server = exchange.server.clone();
    let value = server.as_ref().map(|server| server.cookie());
    let value = value.as_ref().and_then(|value| value.as_deref());
    let answer = persistence::CookieEdit {
        server: value.map(String::as_bytes),
        same_server: plan.tells_no_server(),
        refresh: exchange.cookie_needs_refresh && exchange.client_cookie == ClientCookie::Valid,
        first_given: exchange.cookie_first_given,
        post: exchange.method == Method::Post,
        now: crate::local::time_of(SystemTime::now()).secs.unsigned_abs(),
    };
    let done = persistence::answer(rules, &answer, exchange.response.fields_mut())?;
    exchange.server_cookie = done;
    let given = matches!(done, ServerCookie::Inserted | ServerCookie::Updated);
    Ok(given && rules.nocache)
}

/// Carries the body; whether the server's connection may be used again.
async fn body(
    context: &Context<'_>,
    exchange: &mut Exchange,
    down: &mut Down<'_>,
    answer: &ResponseHead,
) -> Result<bool, Outcome> {
    // The clock was read when the head was there; what passed since is microseconds.
    let from_wait = Wait::each(&context.downward, exchange.settings.server_timeout)
        .beginning(exchange.times.answered);
    let to_wait = client_wait(context, exchange);
    let then = if exchange.keep_client {
        Afterwards::Listens
    } else if down.upload.under_way.get() || context.frontend.model.common.no_linger {
        // The close does not follow at once, or would throw away what has not left.
        Afterwards::Goes
    } else {
        Afterwards::Closes
    };
    let (bytes_out, live) = (&mut exchange.tally.bytes_out, down.upload.live);
    let result = relay(
        (&mut down.source, &from_wait),
        (&mut down.sink, &to_wait),
        then,
        |bytes| {
            *bytes_out += bytes as u64;
            if let Some(live) = live {
                live.sent_down(bytes);
            }
        },
    )
    .await;
    match result {
        Ok(()) => {
            exchange.tally.bytes_out += volume::of_end(answer.body, down.source.trailers());
            Ok(answer.persistent && !exchange.closes_server && server_stays(context, exchange))
        }
        Err(RelayError::From(error)) => Err(Outcome::Exit(Exit::ResponseCut((&error).into()))),
        Err(RelayError::To(error)) => {
            let phase = if down.source.is_done() {
                Phase::Last
            } else {
                Phase::Data
            };
            Err(untaken(&error, phase))
        }
    }
}

/// Whether the mode of the two proxies lets the server's connection live: `option httpclose` of a
/// frontend is about its clients alone.
pub(crate) fn server_stays(context: &Context<'_>, exchange: &Exchange) -> bool {
    let front = context.frontend.model.common.connection_mode;
    let back = exchange
        .backend
        .as_ref()
        .map_or(ConnectionMode::KeepAlive, |backend| {
            backend.model.common.connection_mode
        });
    back == ConnectionMode::KeepAlive && front != ConnectionMode::ServerClose
}

/// The client takes no more of a response.
fn untaken(error: &WriteError, phase: Phase) -> Outcome {
    Outcome::Exit(Exit::ResponseUntaken {
        timed_out: matches!(error, WriteError::TimedOut),
        phase,
    })
}
