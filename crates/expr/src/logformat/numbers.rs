//! Which numbers of an exchange aliases stand for.

use super::AliasId;
use crate::facts::ExchangeNumbers;

/// A number of the exchange before which nothing is ever written.
#[inline]
pub(super) fn bare_number(record: &ExchangeNumbers, id: AliasId) -> Option<i64> {
    Some(match id {
        AliasId::DataTime => record.data_ms,
        AliasId::ConnectTime => record.connect_ms,
        AliasId::HandshakeTime => record.handshake_ms,
        AliasId::IdleTime => record.idle_ms,
        AliasId::TimeToQueue => record.tq_ms(),
        AliasId::RequestTime => record.request_ms,
        AliasId::ResponseTime => record.response_ms,
        AliasId::QueueTime => record.queue_ms,
        AliasId::BytesIn => wide(record.bytes_in),
        AliasId::Status => i64::from(record.status),
        AliasId::ProcessConnections => wide(record.process_connections),
        AliasId::BackendConnections => wide(record.backend_connections),
        AliasId::FrontendConnections => wide(record.frontend_connections),
        AliasId::ServerConnections => wide(record.server_connections),
        AliasId::ServerQueue => wide(record.server_queue),
        AliasId::BackendQueue => wide(record.backend_queue),
        AliasId::LogCounter => wide(record.log_counter),
        _ => return None,
    })
}

/// A count as a signed number.
pub(super) fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Whether an alias is a number before which nothing is ever written.
pub(super) fn is_bare_number(id: AliasId) -> bool {
    bare_number(&ExchangeNumbers::UNKNOWN, id).is_some()
}
