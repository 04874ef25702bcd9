//! Exchanges that an operator or the health of their server ends (`shutdown sessions server`,
//! `on-marked-down shutdown-sessions`).

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use ballast_engine::{CancellationReason, Server};
use ballast_model::OnMarkedDown;

use crate::context::Context;

/// Waits until the exchanges of a server are cancelled, or an operator kills this one's session.
pub(crate) async fn wait_for_cancellation(
    context: &Context<'_>,
    server: &Server,
) -> CancellationReason {
    let model = &server.model;
    // Of others only an operator can evict the exchanges, and the command wakes every connection of
    // the worker. So nothing is registered for them, which would cost a lock per exchange.
    let registers = model.on_marked_down == OnMarkedDown::ShutdownSessions || model.backup;
    let mut cancelled = pin!(server.state.cancelled());
    poll_fn(|cx| {
        if context.is_killed() || (!registers && cancelled.is_ready()) {
            Poll::Ready(CancellationReason::ByOperator)
        } else if registers {
            cancelled.as_mut().poll(cx)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Runs `work` until it completes, or until the exchanges of `server` are cancelled. Without a server
/// nothing is waited for: who ends a session without one drops its future.
///
/// # Errors
/// Why they were cancelled.
pub(crate) async fn unless_cancelled<T>(
    context: &Context<'_>,
    server: Option<&Arc<Server>>,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Result<T, CancellationReason> {
    let mut cancelled = pin!(async {
        match server {
            Some(server) => wait_for_cancellation(context, server).await,
            None => pending().await,
        }
    });
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        cancelled.as_mut().poll(cx).map(Err)
    })
    .await
}
