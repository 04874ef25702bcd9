//! The columns after `-`: what each protocol counts.
//!
//! HTTP/2 counts on its connections; HTTP/1 and TLS are told from the proxy's own numbers. The others
//! are not spoken yet: their columns stand where tools expect them, and nothing ever happened in them.

use ballast_model::Mode;

use crate::metric::Metric;
use crate::row::{BackendRow, FrontendRow};
use crate::value::{MCP, MGP, MetricValue, Tags};

/// A column that all rows have.
macro_rules! everywhere {
    ($name:literal $help:literal) => {
        none($name, $help, MCP)
            .listener(|_| MetricValue::U64(0))
            .server(|_| MetricValue::U64(0))
            .backend(|_| MetricValue::U64(0))
    };
}

/// A column of TLS handshakes, by the name of its counter.
macro_rules! handshakes {
    ($name:literal $help:literal $counter:ident) => {
        Metric::new($name, $help, MCP)
            .frontend(|row| MetricValue::U64(row.sums.$counter))
            .listener(|row| MetricValue::U64(row.numbers.sums.$counter))
            .server(|row| MetricValue::U64(row.sums.$counter))
            .backend(|row| MetricValue::U64(row.sums.$counter))
    };
}

/// A column of connections of HTTP/2, by the name of its counter.
macro_rules! h2 {
    ($name:literal $help:literal $counter:ident) => {
        Metric::new($name, $help, MCP)
            .frontend(|row| MetricValue::U64(row.h2.$counter))
            .backend(|row| MetricValue::U64(row.h2.$counter))
    };
}

/// A column that frontends alone have.
macro_rules! front {
    ($name:literal $help:literal) => {
        none($name, $help, MCP)
    };
    ($name:literal $help:literal $tags:ident) => {
        none($name, $help, $tags)
    };
}

pub(crate) static PROTOCOLS: &[Metric] = &[
    handshakes!("ssl_sess" "TLS handshakes that resumed no session" tls_full_handshakes),
    handshakes!("ssl_reused_sess" "TLS sessions resumed" tls_resumed_handshakes),
    handshakes!("ssl_failed_handshake" "TLS handshakes failed" tls_failed_handshakes),
    everywhere!("ssl_ocsp_staple" "OCSP answers sent or received"),
    everywhere!("ssl_failed_ocsp_staple" "OCSP answers that were no good"),
    front!("h3_data" "DATA frames received"),
    front!("h3_headers" "HEADERS frames received"),
    front!("h3_cancel_push" "CANCEL_PUSH frames received"),
    front!("h3_push_promise" "PUSH_PROMISE frames received"),
    front!("h3_max_push_id" "MAX_PUSH_ID frames received"),
    front!("h3_goaway" "GOAWAY frames received"),
    front!("h3_settings" "SETTINGS frames received"),
    front!("h3_no_error" "Closed with H3_NO_ERROR"),
    front!("h3_general_protocol_error" "Closed with H3_GENERAL_PROTOCOL_ERROR"),
    front!("h3_internal_error" "Closed with H3_INTERNAL_ERROR"),
    front!("h3_stream_creation_error" "Closed with H3_STREAM_CREATION_ERROR"),
    front!("h3_closed_critical_stream" "Closed with H3_CLOSED_CRITICAL_STREAM"),
    front!("h3_frame_unexpected" "Closed with H3_FRAME_UNEXPECTED"),
    front!("h3_frame_error" "Closed with H3_FRAME_ERROR"),
    front!("h3_excessive_load" "Closed with H3_EXCESSIVE_LOAD"),
    front!("h3_id_error" "Closed with H3_ID_ERROR"),
    front!("h3_settings_error" "Closed with H3_SETTINGS_ERROR"),
    front!("h3_missing_settings" "Closed with H3_MISSING_SETTINGS"),
    front!("h3_request_rejected" "Closed with H3_REQUEST_REJECTED"),
    front!("h3_request_cancelled" "Closed with H3_REQUEST_CANCELLED"),
    front!("h3_request_incomplete" "Closed with H3_REQUEST_INCOMPLETE"),
    front!("h3_message_error" "Closed with H3_MESSAGE_ERROR"),
    front!("h3_connect_error" "Closed with H3_CONNECT_ERROR"),
    front!("h3_version_fallback" "Closed with H3_VERSION_FALLBACK"),
    front!("pack_decompression_failed" "Header blocks that could not be read"),
    front!("qpack_encoder_stream_error" "Errors on QPACK encoder streams"),
    front!("qpack_decoder_stream_error" "Errors on QPACK decoder streams"),
    front!("quic_rxbuf_full" "Datagrams dropped for a full receive buffer"),
    front!("quic_dropped_pkt" "Packets dropped"),
    front!("quic_dropped_pkt_bufoverrun" "Packets dropped for want of a buffer"),
    front!("quic_dropped_parsing_pkt" "Packets dropped because they could not be read"),
    front!("quic_socket_full" "Sends put off by a full socket"),
    front!("quic_sendto_err" "Sends that failed"),
    front!("quic_sendto_err_unknwn" "Sends that failed for a reason not known"),
    front!("quic_sent_pkt" "Packets sent"),
    front!("quic_lost_pkt" "Packets lost"),
    front!("quic_too_short_dgram" "Datagrams too short to be one"),
    front!("quic_retry_sent" "Retry packets sent"),
    front!("quic_retry_validated" "Retry tokens that were good"),
    front!("quic_retry_error" "Retry tokens that were no good"),
    front!("quic_half_open_conn" "Connections in their handshake now" MGP),
    front!("quic_hdshk_fail" "Handshakes failed"),
    front!("quic_stless_rst_sent" "Stateless resets sent"),
    front!("quic_conn_migration_done" "Connections that changed their address"),
    front!("quic_transp_err_no_error" "Closed with NO_ERROR"),
    front!("quic_transp_err_internal_error" "Closed with INTERNAL_ERROR"),
    front!("quic_transp_err_connection_refused" "Closed with CONNECTION_REFUSED"),
    front!("quic_transp_err_flow_control_error" "Closed with FLOW_CONTROL_ERROR"),
    front!("quic_transp_err_stream_limit_error" "Closed with STREAM_LIMIT_ERROR"),
    front!("quic_transp_err_stream_state_error" "Closed with STREAM_STATE_ERROR"),
    front!("quic_transp_err_final_size_error" "Closed with FINAL_SIZE_ERROR"),
    front!("quic_transp_err_frame_encoding_error" "Closed with FRAME_ENCODING_ERROR"),
    front!("quic_transp_err_transport_parameter_error" "Closed with TRANSPORT_PARAMETER_ERROR"),
    front!("quic_transp_err_connection_id_limit" "Closed with CONNECTION_ID_LIMIT_ERROR"),
    front!("quic_transp_err_protocol_violation_error" "Closed with PROTOCOL_VIOLATION"),
    front!("quic_transp_err_invalid_token" "Closed with INVALID_TOKEN"),
    front!("quic_transp_err_application_error" "Closed with APPLICATION_ERROR"),
    front!("quic_transp_err_crypto_buffer_exceeded" "Closed with CRYPTO_BUFFER_EXCEEDED"),
    front!("quic_transp_err_key_update_error" "Closed with KEY_UPDATE_ERROR"),
    front!("quic_transp_err_aead_limit_reached" "Closed with AEAD_LIMIT_REACHED"),
    front!("quic_transp_err_no_viable_path" "Closed with NO_VIABLE_PATH"),
    front!("quic_transp_err_crypto_error" "Closed with CRYPTO_ERROR"),
    front!("quic_transp_err_unknown_error" "Closed with an error of no known name"),
    front!("quic_data_blocked" "DATA_BLOCKED frames received"),
    front!("quic_stream_data_blocked" "STREAM_DATA_BLOCKED frames received"),
    front!("quic_streams_blocked_bidi" "STREAMS_BLOCKED frames received, both ways"),
    front!("quic_streams_blocked_uni" "STREAMS_BLOCKED frames received, one way"),
    h2!("h2_headers_rcvd" "HEADERS frames received" headers_received),
    h2!("h2_data_rcvd" "DATA frames received" data_received),
    h2!("h2_settings_rcvd" "SETTINGS frames received" settings_received),
    h2!("h2_rst_stream_rcvd" "RST_STREAM frames received" resets_received),
    h2!("h2_goaway_rcvd" "GOAWAY frames received" go_aways_received),
    h2!("h2_detected_conn_protocol_errors" "Connections that broke the protocol" connection_errors),
    h2!("h2_detected_strm_protocol_errors" "Streams that broke the protocol" stream_errors),
    h2!("h2_rst_stream_resp" "RST_STREAM frames sent" resets_sent),
    h2!("h2_goaway_resp" "GOAWAY frames sent for an error" go_aways_sent),
    Metric::new("h2_open_connections", "HTTP/2 connections now", MGP)
        .frontend(|row| MetricValue::U64(row.frontend.state.h2.connections()))
        .backend(|row| MetricValue::U64(row.backend.state.h2.connections())),
    // The names are HAProxy's: frontends count the streams of their clients in them.
    Metric::new("h2_backend_open_streams", "HTTP/2 streams now", MGP)
        .frontend(|row| MetricValue::U64(row.frontend.state.h2.streams()))
        .backend(|row| MetricValue::U64(row.backend.state.h2.streams())),
    h2!("h2_total_connections" "HTTP/2 connections in all" connections),
    h2!("h2_backend_total_streams" "HTTP/2 streams in all" streams),
    Metric::new("h1_open_connections", "HTTP/1 connections now", MGP)
        .frontend(|row| front(row, http1_connections))
        .backend(|row| {
            back(row, |row| {
                row.connections()
                    .saturating_sub(row.backend.state.h2.connections())
            })
        }),
    Metric::new("h1_open_streams", "HTTP/1 exchanges now", MGP)
        .frontend(|row| front(row, http1_connections))
        .backend(|row| {
            back(row, |row| {
                let served = u64::from(row.backend.state.served.current());
                served.saturating_sub(row.backend.state.h2.streams())
            })
        }),
    Metric::new("h1_total_connections", "HTTP/1 connections in all", MCP)
        .frontend(|row| front(row, FrontendRow::http1_sessions))
        .backend(|row| {
            back(row, |row| {
                row.sums.connects.saturating_sub(row.h2.connections)
            })
        }),
    Metric::new("h1_total_streams", "HTTP/1 exchanges in all", MCP)
        .frontend(|row| front(row, FrontendRow::http1_requests))
        .backend(|row| back(row, |row| row.sums.requests.saturating_sub(row.h2.streams))),
    // Bytes are counted for the proxy, whatever the version.
    Metric::new("h1_bytes_in", "Bytes received over HTTP", MCP)
        .frontend(|row| front(row, |row| row.sums.bytes_in))
        .backend(|row| back(row, |row| row.sums.bytes_out)),
    Metric::new("h1_bytes_out", "Bytes sent over HTTP", MCP)
        .frontend(|row| front(row, |row| row.sums.bytes_out))
        .backend(|row| back(row, |row| row.sums.bytes_in)),
    Metric::new(
        "h1_spliced_bytes_in",
        "Of h1_bytes_in, those that the kernel moved alone",
        MCP,
    )
    .frontend(|row| front(row, |row| row.sums.spliced_bytes_in))
    .backend(|row| back(row, |row| row.sums.spliced_bytes_out)),
    Metric::new(
        "h1_spliced_bytes_out",
        "Of h1_bytes_out, those that the kernel moved alone",
        MCP,
    )
    .frontend(|row| front(row, |row| row.sums.spliced_bytes_out))
    .backend(|row| back(row, |row| row.sums.spliced_bytes_in)),
];

const fn none(name: &'static str, help: &'static str, tags: Tags) -> Metric {
    Metric::new(name, help, tags).frontend(|_| MetricValue::U64(0))
}

fn http1_connections(row: &FrontendRow) -> u64 {
    let state = &row.frontend.state;
    u64::from(state.sessions.current()).saturating_sub(state.h2.connections())
}

fn front(row: &FrontendRow, read: fn(&FrontendRow) -> u64) -> MetricValue<'static> {
    match row.frontend.model.common.mode {
        Mode::Http => MetricValue::U64(read(row)),
        _ => MetricValue::U64(0),
    }
}

fn back(row: &BackendRow, read: fn(&BackendRow) -> u64) -> MetricValue<'static> {
    match row.backend.model.common.mode {
        Mode::Http => MetricValue::U64(read(row)),
        _ => MetricValue::U64(0),
    }
}
