//! One request over HTTP/2, and its answer.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h2::ext::Protocol;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request as Head};
use tokio::sync::mpsc;

use crate::Server;
use crate::answer::{Behaviour, INTERIM, Request, Response, TRAILER};
use crate::h2::faults::Fault;
use crate::h2::{Command, raw};
use crate::serve::ECHO_BYTES_MAX;
use crate::websocket;

/// What all exchanges of a connection have.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) server: Rc<Server>,
    /// What TLS negotiated.
    pub(super) negotiated: Rc<str>,
    pub(super) commands: mpsc::UnboundedSender<Command>,
}

impl Exchange {
    /// Answers one request. The client may leave at any time: that is not reported.
    pub(super) async fn answer(self, head: Head<RecvStream>, respond: SendResponse<Bytes>) {
        let _ = self.try_answer(head, respond).await;
    }

    async fn try_answer(
        &self,
        head: Head<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let target = head
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let protocol = head.extensions().get::<Protocol>();
        let is_connect = head.method() == Method::CONNECT;
        let is_websocket = protocol.is_some_and(|protocol| protocol.as_str() == "websocket");
        let asked = Request::read(head.method().as_str(), target, false, is_connect);
        let due = |_: &Fault| self.server.faults.is_due(target, asked.fault_count);
        let fault = asked.fault.filter(due);
        let code = asked.code;
        if let Some(fault) = fault.filter(|fault| fault.is_before_body()) {
            self.fail(fault, code, head.into_body(), respond).await;
            return Ok(());
        }
        if is_connect {
            self.count();
            return tunnel(head.into_body(), respond, is_websocket).await;
        }
        let mut text = Vec::new();
        match asked.behaviour {
            Behaviour::Echo => describe(&head, &mut text),
            Behaviour::Tls => text.extend_from_slice(self.negotiated.as_bytes()),
            _ => {}
        }
        let kept = (asked.behaviour == Behaviour::Echo).then_some(&mut text);
        read(head.into_body(), kept).await?;
        if !asked.delay.is_zero() {
            tokio::time::sleep(asked.delay).await;
        }
        for _ in 0..asked.interim {
            let (status, name, value) = INTERIM;
            let mut interim = http::Response::new(());
            *interim.status_mut() = status_of(status);
            let value = HeaderValue::from_static(value);
            interim
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
            respond.send_informational(interim)?;
        }
        self.count();
        if asked.is_closing || fault == Some(Fault::Goaway) {
            self.command(Command::Leave);
        }
        match fault.and_then(|fault| fault.frames(respond.stream_id().as_u32())) {
            Some(frames) => {
                self.command(Command::Frames(frames));
                wait(&mut respond).await;
                Ok(())
            }
            None => {
                let answer = Response::to(&asked, &self.server, text);
                self.send(&asked, &answer, fault, respond).await
            }
        }
    }

    fn count(&self) {
        self.server.requests.set(self.server.requests.get() + 1);
    }

    fn command(&self, command: Command) {
        // The connection may have ended.
        let _ = self.commands.send(command);
    }

    /// What goes wrong before the body is read, and holds it meanwhile: its window stays closed.
    async fn fail(
        &self,
        fault: Fault,
        code: Option<u32>,
        body: RecvStream,
        mut respond: SendResponse<Bytes>,
    ) {
        let stream = respond.stream_id().as_u32();
        let code = code.unwrap_or(fault.code());
        let goaway = |last: u32| {
            let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
            Command::Frames(raw::frame(raw::GOAWAY, 0, 0, &payload))
        };
        match fault {
            Fault::Refuse => return respond.send_reset(Reason::from(code)),
            Fault::GoawayBelow => self.command(goaway(stream.saturating_sub(2))),
            Fault::GoawayAbrupt => {
                self.command(goaway(stream));
                self.command(Command::Close);
            }
            Fault::Close => self.command(Command::Close),
            Fault::Abort => self.command(Command::Abort),
            _ => {}
        }
        wait(&mut respond).await;
        drop(body);
    }

    /// Sends the answer, and what goes wrong in it.
    async fn send(
        &self,
        asked: &Request,
        answer: &Response<'_>,
        fault: Option<Fault>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let reset = Reason::from(asked.code.or(fault.map(Fault::code)).unwrap_or_default());
        match fault {
            Some(Fault::ResetBeforeHead) => {
                respond.send_reset(reset);
                return Ok(());
            }
            Some(Fault::StallHead) => {
                wait(&mut respond).await;
                return Ok(());
            }
            _ => {}
        }
        let has_trailers = asked.has_trailers && answer.has_body();
        let mut left = answer.body_bytes();
        let is_whole = left == 0 && !has_trailers && fault.is_none();
        let mut stream = respond.send_response(head_of(answer), is_whole)?;
        if is_whole {
            return Ok(());
        }
        if fault == Some(Fault::ResetAfterHead) {
            stream.send_reset(reset);
            return Ok(());
        }
        let half = left / 2;
        let is_cut = matches!(fault, Some(Fault::ResetInBody | Fault::StallBody));
        while left > 0 {
            let piece = answer.piece(if is_cut { left - half } else { left });
            let sent = send_piece(&mut stream, piece, left, has_trailers).await?;
            left -= sent;
            if is_cut && left <= half {
                break;
            }
            if left > 0 && !asked.pause.is_zero() {
                tokio::time::sleep(asked.pause).await;
            }
        }
        match fault {
            Some(Fault::ResetInBody) => stream.send_reset(reset),
            Some(Fault::StallBody) => {
                // Until the client has left.
                let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
            }
            _ if has_trailers => {
                let mut trailers = HeaderMap::new();
                let (name, value) = TRAILER;
                trailers.insert(name, HeaderValue::from_static(value));
                stream.send_trailers(trailers)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Waits until the client gives the stream up, or the connection ends.
async fn wait(respond: &mut SendResponse<Bytes>) {
    let _ = poll_fn(|cx| respond.poll_reset(cx)).await;
}

fn status_of(status: u16) -> http::StatusCode {
    http::StatusCode::from_u16(status).unwrap_or_default()
}

fn head_of(answer: &Response<'_>) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = status_of(answer.status);
    for (name, value) in answer.fields() {
        // A server may have any name.
        if let Ok(value) = HeaderValue::from_str(value) {
            head.headers_mut().insert(name, value);
        }
    }
    if let Some(length) = answer.announced() {
        head.headers_mut()
            .insert(http::header::CONTENT_LENGTH, length.into());
    }
    head
}

/// Sends as much of the piece as the window allows at once, and at least one byte; returns its
/// length. The last byte of `left` ends the stream, unless trailers follow.
async fn send_piece(
    stream: &mut SendStream<Bytes>,
    mut piece: Bytes,
    left: u64,
    has_trailers: bool,
) -> Result<u64, h2::Error> {
    stream.reserve_capacity(piece.len());
    let capacity = match poll_fn(|cx| stream.poll_capacity(cx)).await {
        Some(capacity) => capacity?,
        None => return Err(Reason::CANCEL.into()),
    };
    piece.truncate(capacity);
    let length = piece.len() as u64;
    stream.send_data(piece, length == left && !has_trailers)?;
    Ok(length)
}

/// The head of the request as text: a field in a line, the pseudo-header fields first.
fn describe(head: &Head<RecvStream>, to: &mut Vec<u8>) {
    let mut line = |name: &str, value: &[u8]| {
        to.extend_from_slice(name.as_bytes());
        to.extend_from_slice(b": ");
        to.extend_from_slice(value);
        to.extend_from_slice(b"\r\n");
    };
    let uri = head.uri();
    line(":method", head.method().as_str().as_bytes());
    if let Some(scheme) = uri.scheme_str() {
        line(":scheme", scheme.as_bytes());
    }
    if let Some(authority) = uri.authority() {
        line(":authority", authority.as_str().as_bytes());
    }
    if let Some(target) = uri.path_and_query() {
        line(":path", target.as_str().as_bytes());
    }
    for (name, value) in head.headers() {
        line(name.as_str(), value.as_bytes());
    }
    to.extend_from_slice(b"\r\n");
}

/// Reads the body and its trailers, storing as much as fits in `kept`.
async fn read(mut body: RecvStream, mut kept: Option<&mut Vec<u8>>) -> Result<(), h2::Error> {
    while let Some(piece) = body.data().await {
        let piece = piece?;
        if let Some(kept) = &mut kept
            && kept.len() + piece.len() <= ECHO_BYTES_MAX
        {
            kept.extend_from_slice(&piece);
        }
        body.flow_control().release_capacity(piece.len())?;
    }
    let trailers = body.trailers().await?;
    if let (Some(kept), Some(trailers)) = (kept, trailers) {
        for (name, value) in &trailers {
            kept.extend_from_slice(format!("\r\n{name}: ").as_bytes());
            kept.extend_from_slice(value.as_bytes());
        }
    }
    Ok(())
}

/// After CONNECT: sends every byte back, or every message of a WebSocket (RFC 8441).
async fn tunnel(
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    is_websocket: bool,
) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(http::Response::new(()), false)?;
    let (mut received, mut answers, mut is_over) = (Vec::new(), Vec::new(), false);
    while let Some(piece) = body.data().await.filter(|_| !is_over) {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        received.extend_from_slice(&piece);
        if is_websocket {
            while let Some(step) = websocket::step(&received, &mut answers) {
                received.drain(..step.length);
                is_over |= step.is_last;
            }
        } else {
            answers.append(&mut received);
        }
        let mut rest = Bytes::from(std::mem::take(&mut answers));
        while !rest.is_empty() {
            let piece = rest.clone();
            let sent = send_piece(&mut stream, piece, rest.len() as u64, true).await?;
            rest = rest.slice(usize::try_from(sent).unwrap_or(rest.len())..);
        }
        if is_over {
            break;
        }
    }
    stream.send_data(Bytes::new(), true)
}
