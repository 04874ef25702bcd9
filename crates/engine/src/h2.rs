//! Where HTTP/2 is spoken, and what its connections are held to: `tune.h2.*` in the form in which the
//! codec takes it.

use std::num::NonZeroU32;

use ballast_h2::H2Settings;
use ballast_model::{
    Bind, FrontendOptions, H2SideTuning, HttpProtocol, Server, Tune, WebsocketProtocol,
};

/// The names of the versions in ALPN.
const ALPN_HTTP1: &str = "http/1.1";
const ALPN_HTTP2: &str = "h2";

/// What a connection of HTTP/2 is held to, from the configuration that is in force when it begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H2Terms {
    /// For the codec.
    pub settings: H2Settings,
    /// `glitches-threshold`: the connection ends when the codec has counted as many odd frames;
    /// `None` is no limit.
    pub glitch_count_max: Option<NonZeroU32>,
}

impl H2Terms {
    /// Streams whose buffers `rxbuf` holds by default.
    const BUFFERED_STREAMS: u32 = 100;
    /// The smallest default of a window, in bytes.
    const WINDOW_BYTES_MIN: u32 = 16_384;
    /// What HAProxy 3.2 was seen to keep of a buffer when it derives the window from it.
    const WINDOW_RESERVE_BYTES: u32 = 56;

    /// For a connection of a client.
    #[must_use]
    pub fn for_clients(tune: &Tune) -> Self {
        let mut terms = Self::of_side(tune, &tune.h2.front);
        terms.settings.stream_total_max = tune.h2.stream_total_max;
        terms.settings.reset_count_max = tune.h2.reset_count_max;
        terms
    }

    /// For a connection to a server.
    #[must_use]
    pub fn for_servers(tune: &Tune) -> Self {
        Self::of_side(tune, &tune.h2.back)
    }

    fn of_side(tune: &Tune, side: &H2SideTuning) -> Self {
        let (h2, buffer_bytes) = (&tune.h2, tune.buffer_bytes.max(1));
        let stream_count_max = side.stream_count_max.unwrap_or(h2.stream_count_max);
        let of_buffer = buffer_bytes.saturating_sub(Self::WINDOW_RESERVE_BYTES);
        let window_bytes = side.window_bytes.or(h2.window_bytes);
        // Each stream has a buffer at least.
        let buffer_count = side
            .receive_bytes
            .map_or(Self::BUFFERED_STREAMS, |bytes| bytes.div_ceil(buffer_bytes))
            .max(stream_count_max);
        let settings = H2Settings {
            header_table_bytes_max: h2.header_table_bytes,
            initial_window_bytes: window_bytes.unwrap_or(of_buffer.max(Self::WINDOW_BYTES_MIN)),
            stream_count_max,
            stream_total_max: 0,
            frame_bytes_max: h2.frame_bytes.unwrap_or(buffer_bytes).min(buffer_bytes),
            receive_bytes_max: buffer_count.saturating_mul(buffer_bytes),
            buffer_bytes,
            head_bytes_max: buffer_bytes.saturating_sub(tune.rewrite_bytes),
            header_block_bytes_max: buffer_bytes,
            frame_count_max: side.frame_count_max,
            reset_count_max: 0,
            offers_connect_protocol: h2.offers_websocket,
        };
        Self {
            settings,
            glitch_count_max: NonZeroU32::new(side.glitch_count_max),
        }
    }
}

/// How the connection of a client to an HTTP frontend begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientProtocol {
    /// HTTP/1.
    Http1 {
        /// Whether the preface of HTTP/2 in place of the first request makes it HTTP/2.
        takes_preface: bool,
    },
    /// HTTP/2, from its preface on.
    Http2,
}

impl ClientProtocol {
    /// For a connection that TLS negotiated a protocol for, or none. As in HAProxy 3.2, `proto` wins
    /// over what was negotiated, and the preface is taken over TLS too.
    #[must_use]
    pub fn of(bind: &Bind, frontend: &FrontendOptions, negotiated: Option<&[u8]>) -> Self {
        match bind.protocol {
            Some(HttpProtocol::Http1) => Self::Http1 {
                takes_preface: false,
            },
            Some(HttpProtocol::Http2) => Self::Http2,
            None if negotiated == Some(ALPN_HTTP2.as_bytes()) => Self::Http2,
            None => Self::Http1 {
                takes_preface: !frontend.disable_h2_upgrade,
            },
        }
    }
}

/// The version of HTTP that a connection to `server` speaks, when TLS negotiated a protocol for it,
/// or none.
#[must_use]
pub fn server_protocol(
    server: &Server,
    is_websocket: bool,
    negotiated: Option<&[u8]>,
) -> HttpProtocol {
    match server.websocket_protocol {
        WebsocketProtocol::Http1 if is_websocket => return HttpProtocol::Http1,
        WebsocketProtocol::Http2 if is_websocket => return HttpProtocol::Http2,
        _ => {}
    }
    match server.protocol {
        Some(protocol) => protocol,
        None if negotiated == Some(ALPN_HTTP2.as_bytes()) => HttpProtocol::Http2,
        None => HttpProtocol::Http1,
    }
}

/// The only protocol that a server with `alpn` is offered for WebSocket; `None` leaves its list.
#[must_use]
pub fn websocket_alpn(server: &Server) -> Option<&'static str> {
    let offered = &server.tls.as_ref()?.alpn;
    match server.websocket_protocol {
        _ if offered.is_empty() => None,
        WebsocketProtocol::Http1 => Some(ALPN_HTTP1),
        WebsocketProtocol::Http2 => Some(ALPN_HTTP2),
        WebsocketProtocol::Auto => offered
            .iter()
            .any(|protocol| protocol == ALPN_HTTP1)
            .then_some(ALPN_HTTP1),
    }
}

#[cfg(test)]
mod tests {
    use ballast_model::{Address, ServerTls};

    use super::*;

    #[test]
    fn without_a_word_the_codec_has_its_defaults() {
        let tune = Tune::default();
        let (front, back) = (H2Terms::for_clients(&tune), H2Terms::for_servers(&tune));
        assert_eq!(front.settings, H2Settings::default());
        assert_eq!(front, back);
        assert_eq!(front.glitch_count_max, None);
    }

    #[test]
    fn the_words_of_one_side_are_not_those_of_the_other() {
        let mut tune = Tune::default();
        tune.h2.stream_count_max = 5;
        tune.h2.back.stream_count_max = Some(7);
        tune.h2.front.glitch_count_max = 9;
        (tune.h2.stream_total_max, tune.h2.reset_count_max) = (11, 3);
        tune.h2.back.frame_count_max = 13;
        let (front, back) = (H2Terms::for_clients(&tune), H2Terms::for_servers(&tune));
        let (ours, theirs) = (front.settings, back.settings);
        assert_eq!((ours.stream_count_max, theirs.stream_count_max), (5, 7));
        assert_eq!((ours.stream_total_max, theirs.stream_total_max), (11, 0));
        assert_eq!((ours.reset_count_max, theirs.reset_count_max), (3, 0));
        assert_eq!((ours.frame_count_max, theirs.frame_count_max), (0, 13));
        assert_eq!(front.glitch_count_max.map(NonZeroU32::get), Some(9));
        assert_eq!(back.glitch_count_max, None);
    }

    /// As HAProxy 3.2 was seen to announce them.
    #[test]
    fn windows_and_frames_follow_the_buffer_unless_they_are_set() {
        let announced = |tune: &Tune| {
            let settings = H2Terms::for_clients(tune).settings;
            (settings.initial_window_bytes, settings.frame_bytes_max)
        };
        let mut tune = Tune::default();
        for (buffer, window) in [(16_384, 16_384), (32_768, 32_712), (8192, 16_384)] {
            tune.buffer_bytes = buffer;
            assert_eq!(announced(&tune), (window, buffer));
        }
        (tune.h2.window_bytes, tune.h2.frame_bytes) = (Some(100), Some(20_000));
        assert_eq!(announced(&tune), (100, 8192));
        tune.buffer_bytes = 32_768;
        assert_eq!(announced(&tune), (100, 20_000));
        tune.h2.front.window_bytes = Some(70_000);
        assert_eq!(announced(&tune), (70_000, 20_000));
        let back = H2Terms::for_servers(&tune).settings;
        assert_eq!(back.initial_window_bytes, 100);
    }

    #[test]
    fn each_stream_has_a_buffer_at_least() {
        let buffers = |tune: &Tune| H2Terms::for_clients(tune).settings.receive_bytes_max / 16_384;
        let mut tune = Tune::default();
        assert_eq!(buffers(&tune), 100);
        tune.h2.front.receive_bytes = Some(1000);
        assert_eq!(buffers(&tune), 100);
        tune.h2.front.stream_count_max = Some(3);
        assert_eq!(buffers(&tune), 3);
        tune.h2.front.receive_bytes = Some(4 * 16_384 + 1);
        assert_eq!(buffers(&tune), 5);
    }

    #[test]
    fn a_bind_has_the_last_word_about_the_protocol() {
        let mut bind = Bind::new(Address::Fd(0));
        let mut frontend = FrontendOptions::default();
        let http1 = |takes_preface| ClientProtocol::Http1 { takes_preface };
        let begins = |bind: &Bind, frontend: &FrontendOptions| {
            [None, Some(&b"http/1.1"[..]), Some(b"h2")]
                .map(|negotiated| ClientProtocol::of(bind, frontend, negotiated))
        };
        let h2 = ClientProtocol::Http2;
        assert_eq!(begins(&bind, &frontend), [http1(true), http1(true), h2]);
        frontend.disable_h2_upgrade = true;
        assert_eq!(begins(&bind, &frontend), [http1(false), http1(false), h2]);
        bind.protocol = Some(HttpProtocol::Http2);
        assert_eq!(begins(&bind, &frontend), [h2; 3]);
        bind.protocol = Some(HttpProtocol::Http1);
        frontend.disable_h2_upgrade = false;
        assert_eq!(begins(&bind, &frontend), [http1(false); 3]);
    }

    #[test]
    fn websocket_may_have_a_protocol_of_its_own() {
        let mut server = Server::new("s".to_owned(), Address::Fd(0));
        let (h1, h2) = (HttpProtocol::Http1, HttpProtocol::Http2);
        let spoken = |server: &Server, negotiated| {
            [false, true].map(|websocket| server_protocol(server, websocket, negotiated))
        };
        assert_eq!(spoken(&server, None), [h1, h1]);
        assert_eq!(spoken(&server, Some(b"h2")), [h2, h2]);
        server.protocol = Some(h2);
        assert_eq!(spoken(&server, None), [h2, h2]);
        server.websocket_protocol = WebsocketProtocol::Http1;
        assert_eq!(spoken(&server, None), [h2, h1]);
        assert_eq!(websocket_alpn(&server), None);
        let tls = ServerTls {
            alpn: vec!["h2".to_owned()],
            ..ServerTls::default()
        };
        server.tls = Some(Box::new(tls));
        assert_eq!(websocket_alpn(&server), Some("http/1.1"));
        server.websocket_protocol = WebsocketProtocol::Auto;
        assert_eq!(websocket_alpn(&server), None);
    }
}
