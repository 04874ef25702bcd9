//! HTTP/2: the same answers as over HTTP/1, and a table of faults.
//!
//! The `h2` crate speaks it. What it would never send is written by hand, between its frames.

mod exchange;
mod faults;
mod options;
mod raw;
mod tap;

use std::future::poll_fn;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::{Builder, Connection};
use tokio::io::{AsyncWrite as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::Server;
use crate::h2::exchange::Exchange;
pub(crate) use crate::h2::faults::{Fault, FaultCounts, faults_help};
pub(crate) use crate::h2::options::H2Options;
use crate::h2::tap::Tap;
use crate::tls::Stream;

/// What a client's connection begins with (RFC 9113 section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The window of a connection, which no fault is about.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// How much of an answer waits for the window of its stream.
const SEND_BYTES_MAX: usize = 1 << 20;

/// Whether this is the beginning of the preface, or all of it.
pub(crate) fn may_be_preface(received: &[u8]) -> bool {
    let length = received.len().min(PREFACE.len());
    received[..length] == PREFACE[..length]
}

/// What an exchange asks of its connection.
enum Command {
    /// Send these frames.
    Frames(Vec<u8>),
    /// End it in order: GOAWAY, then the streams that are open.
    Leave,
    /// End it now, after what was sent so far.
    Close,
    /// Reset it.
    Abort,
}

/// Serves one connection, of which `first` was received.
pub(crate) async fn serve(stream: Stream, first: Vec<u8>, server: Rc<Server>) -> io::Result<()> {
    let negotiated: Rc<str> = stream.negotiated().into();
    let tap = Tap::new(stream, first, server.h2.muted.clone());
    let mut builder = Builder::new();
    builder
        .initial_window_size(server.h2.window_bytes)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(server.h2.stream_count)
        .max_send_buffer_size(SEND_BYTES_MAX)
        .enable_connect_protocol();
    let connection: Connection<Tap, Bytes> =
        builder.handshake(tap.clone()).await.map_err(of_library)?;
    let (sender, commands) = mpsc::unbounded_channel();
    let exchange = Exchange {
        server,
        negotiated,
        commands: sender,
    };
    run(connection, tap, commands, exchange).await
}

async fn run(
    mut connection: Connection<Tap, Bytes>,
    mut tap: Tap,
    mut commands: mpsc::UnboundedReceiver<Command>,
    exchange: Exchange,
) -> io::Result<()> {
    loop {
        tokio::select! {
            biased;
            // The exchange here holds a sender: this does not end.
            command = commands.recv() => match command {
                Some(Command::Frames(frames)) => {
                    tap.inject(&frames);
                    // The library reads meanwhile: this does not wait.
                    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                    let _ = Pin::new(&mut tap).poll_flush(&mut cx)?;
                }
                Some(Command::Leave) => connection.graceful_shutdown(),
                Some(Command::Close) | None => return tap.shutdown().await,
                Some(Command::Abort) => {
                    tap.reset_on_close();
                    return Ok(());
                }
            },
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let exchange = exchange.clone();
                    tokio::task::spawn_local(exchange.answer(request, respond));
                }
                Some(Err(error)) => return Err(of_library(error)),
                None => return poll_fn(|cx| Pin::new(&mut tap).poll_shutdown(cx)).await,
            },
        }
    }
}

fn of_library(error: h2::Error) -> io::Error {
    io::Error::other(error)
}
