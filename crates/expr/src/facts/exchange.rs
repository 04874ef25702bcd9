//! One exchange: what is known of it beside its messages and numbers.

use crate::config_line::ConfigLine;

/// An exchange.
pub trait ExchangeFacts {
    /// Whether it has begun: an HTTP connection whose first request is not there yet, or was none, has
    /// no stream (`fs.id`).
    fn has_begun(&self) -> bool {
        true
    }

    /// This is the first request of its connection (`http_first_req`).
    fn is_first_request(&self) -> bool {
        true
    }

    /// The client takes us for its proxy, and is asked for credentials as proxies ask
    /// (`option http-use-proxy-header`).
    fn asks_as_proxy(&self) -> bool {
        false
    }

    /// The method of the request as received, where it is a known one (`method`).
    fn received_method(&self) -> Option<&[u8]> {
        None
    }

    /// The unique id (`unique-id`).
    fn unique_id(&self) -> Option<&[u8]> {
        None
    }

    /// The request line kept for the log (`%r`): method, URI and version as received.
    fn request_line(&self) -> Option<&[u8]> {
        None
    }

    /// The service that answered in place of a server (`<STATS>`).
    fn service_name(&self) -> Option<&str> {
        None
    }

    /// The status of the server's response, as it came; 0 before that (`server_status`).
    fn server_status(&self) -> u16 {
        0
    }

    /// The timeout for the client in force, in milliseconds; 0 for none (`cur_client_timeout`).
    fn client_timeout_ms(&self) -> i64 {
        0
    }

    /// The same for the server (`cur_server_timeout`).
    fn server_timeout_ms(&self) -> i64 {
        0
    }

    /// The same for tunnels (`cur_tunnel_timeout`).
    fn tunnel_timeout_ms(&self) -> i64 {
        0
    }

    /// The rule that ended its rule set last (`last_rule_line`).
    fn last_rule(&self) -> Option<&ConfigLine> {
        None
    }

    /// The rule that waits, or waited when the exchange ended (`waiting_entity`).
    fn waiting_rule(&self) -> Option<&ConfigLine> {
        None
    }

    /// The class in the queue, lowest first (`prio_class`).
    fn priority_class(&self) -> i64 {
        0
    }

    /// By how much its position in the queue was moved, in milliseconds (`prio_offset`).
    fn priority_offset_ms(&self) -> i64 {
        0
    }

    /// Something went wrong with it, as `option dontlog-normal` judges (`when(error)`).
    fn has_failed(&self) -> bool {
        false
    }

    /// It was given to a server (`when(forwarded)`).
    fn was_forwarded(&self) -> bool {
        false
    }

    /// Why the log line is written (`%OG`).
    fn log_origin(&self) -> &str {
        "unspec"
    }
}

/// What was captured of a message for logs and rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureFacts<'f> {
    /// How many slots the frontend declares.
    pub slot_count: usize,
    /// What the slots hold, as far as any was filled; an empty one holds nothing.
    pub slots: &'f [Vec<u8>],
    /// The captured cookie (`%CC`, `%CS`), `name=value`; empty for none.
    pub cookie: &'f [u8],
}

impl<'f> CaptureFacts<'f> {
    /// What a slot holds.
    pub fn slot(&self, number: usize) -> Option<&'f [u8]> {
        self.slots
            .get(number)
            .map(Vec::as_slice)
            .filter(|held| !held.is_empty())
    }
}
