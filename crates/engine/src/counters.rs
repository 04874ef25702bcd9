//! Counters: one copy per worker, added up when they are read.
//!
//! A worker writes only its own copy, with a load and a store: a request costs no locked
//! instruction and touches no shared cache line. Readers add the copies up. Counters belong to the
//! Registry: they outlive every generation and never decrease.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// One value per worker, each on cache lines of its own.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[CacheAligned<T>]>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheAligned<T>(T);

impl<T: Default> PerWorker<T> {
    /// One default value for each of `worker_count` workers; at least one.
    pub fn new(worker_count: usize) -> Self {
        Self(
            (0..worker_count.max(1))
                .map(|_| CacheAligned::default())
                .collect(),
        )
    }
}

impl<T> PerWorker<T> {
    /// The copy of one worker. An unknown worker number gives the last copy.
    pub fn of(&self, worker: usize) -> &T {
        &self.0[worker.min(self.0.len() - 1)].0
    }

    /// How many copies there are.
    pub fn worker_count(&self) -> usize {
        self.0.len()
    }

    /// Every worker's copy.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|aligned| &aligned.0)
    }
}

/// The same, made when the first worker asks for its copy: most servers of a large configuration see
/// no traffic.
#[derive(Debug)]
pub struct LazyPerWorker<T> {
    copies: OnceLock<PerWorker<T>>,
    worker_count: usize,
}

impl<T: Default> LazyPerWorker<T> {
    /// No value yet, for `worker_count` workers.
    pub fn new(worker_count: usize) -> Self {
        Self {
            copies: OnceLock::new(),
            worker_count,
        }
    }

    /// The copy of one worker. An unknown worker number gives the last copy.
    #[inline]
    pub fn of(&self, worker: usize) -> &T {
        match self.copies.get() {
            Some(copies) => copies.of(worker),
            None => self.create().of(worker),
        }
    }

    #[cold]
    fn create(&self) -> &PerWorker<T> {
        self.copies
            .get_or_init(|| PerWorker::new(self.worker_count))
    }
}

impl<T> LazyPerWorker<T> {
    /// The copies, where a worker has asked for one.
    pub fn known(&self) -> Option<&PerWorker<T>> {
        self.copies.get()
    }

    /// How many workers may ask.
    pub fn worker_count(&self) -> usize {
        self.worker_count.max(1)
    }
}

/// A number one worker adds to and anyone may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds. Only the worker that owns the copy may call this.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(amount),
            Ordering::Relaxed,
        );
    }

    /// Adds one. Only the worker that owns the copy may call this.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Raises the value to `candidate` when that is larger.
    #[inline]
    pub fn raise(&self, candidate: u64) {
        if candidate > self.0.load(Ordering::Relaxed) {
            self.0.store(candidate, Ordering::Relaxed);
        }
    }

    /// The value now.
    #[inline]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the value, for `clear counters` and for a handover.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Declares a struct of counters together with the plain struct of their sums.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident => $sums:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name { $($(#[$doc])* pub $field: Counter,)* }

        /// The sums over all workers.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        pub struct $sums { $($(#[$doc])* pub $field: u64,)* }

        impl $name {
            /// The counter of that name, where there is one.
            pub fn find(&self, name: &str) -> Option<&Counter> {
                match name {
                    $(stringify!($field) => Some(&self.$field),)*
                    _ => None,
                }
            }
        }

        impl $sums {
            /// The names of the counters, for a handover.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field),)*];

            /// The counters in the order of their names.
            pub fn values(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$field,)*]
            }
        }

        impl PerWorker<$name> {
            /// Adds up what the workers counted.
            pub fn sums(&self) -> $sums {
                let mut sums = $sums::default();
                for copy in self.iter() {
                    $(sums.$field = sums.$field.wrapping_add(copy.$field.value());)*
                }
                sums
            }

            /// Forgets everything counted so far (`clear counters all`).
            pub fn clear(&self) {
                for copy in self.iter() {
                    $(copy.$field.set(0);)*
                }
            }
        }

        impl LazyPerWorker<$name> {
            /// Adds up what the workers counted.
            pub fn sums(&self) -> $sums {
                self.known().map(PerWorker::<$name>::sums).unwrap_or_default()
            }

            /// Forgets everything counted so far (`clear counters all`).
            pub fn clear(&self) {
                if let Some(copies) = self.known() {
                    copies.clear();
                }
            }
        }
    };
}

counters! {
    /// What a frontend counts (management manual, section 9.1, the FRONTEND column).
    FrontendCounters => FrontendSums {
        /// Connections accepted (`conn_tot`).
        connections,
        /// Connections that handshakes, connection and session rules let in (`stot`).
        sessions,
        /// Bytes received from clients (`bin`).
        bytes_in,
        /// Bytes sent to clients (`bout`).
        bytes_out,
        /// Bytes sent to servers (`reqbout`).
        bytes_to_servers,
        /// Bytes received from servers (`resbin`).
        bytes_from_servers,
        /// Of the bytes of clients, those that the kernel moved (`h1_spliced_bytes_in`).
        spliced_bytes_in,
        /// Of the bytes to clients, those that the kernel moved (`h1_spliced_bytes_out`).
        spliced_bytes_out,
        /// Requests denied by rules (`dreq`).
        denied_requests,
        /// Responses denied by rules (`dresp`).
        denied_responses,
        /// Requests that were never whole or never valid (`ereq`).
        failed_requests,
        /// Connections denied by `tcp-request connection` (`dcon`).
        denied_connections,
        /// Sessions denied by `tcp-request session` (`dses`).
        denied_sessions,
        /// HTTP requests (`req_tot`).
        requests,
        /// Requests answered without a server (`intercepted`).
        intercepted,
        /// Responses of class 1xx.
        responses_1xx,
        /// Responses of class 2xx.
        responses_2xx,
        /// Responses of class 3xx.
        responses_3xx,
        /// Responses of class 4xx.
        responses_4xx,
        /// Responses of class 5xx.
        responses_5xx,
        /// Responses of any other class, and TCP sessions.
        responses_other,
        /// Failed header rewrites (`wrew`).
        failed_rewrites,
        /// Errors of our own (`eint`).
        internal_errors,
        /// TLS handshakes that resumed no session (`ssl_sess`).
        tls_full_handshakes,
        /// TLS handshakes that resumed a session (`ssl_reused_sess`).
        tls_resumed_handshakes,
        /// TLS handshakes that failed (`ssl_failed_handshake`).
        tls_failed_handshakes,
    }
}

counters! {
    /// What a backend counts, and a server: the columns are the same
    /// (management manual, section 9.1).
    BackendCounters => BackendSums {
        /// Sessions sent here (`stot`).
        sessions,
        /// Bytes received from clients for this side (`bin`), as they were sent to servers (`reqbout`).
        bytes_in,
        /// Bytes sent back (`bout`).
        bytes_out,
        /// Bytes received from servers (`resbin`).
        bytes_from_servers,
        /// Of the bytes to servers, those that the kernel moved (`h1_spliced_bytes_out`).
        spliced_bytes_in,
        /// Of the bytes of servers, those that the kernel moved (`h1_spliced_bytes_in`).
        spliced_bytes_out,
        /// Requests denied by rules (`dreq`).
        denied_requests,
        /// Responses denied by rules (`dresp`).
        denied_responses,
        /// Connection failures (`econ`).
        failed_connections,
        /// Responses that failed (`eresp`).
        failed_responses,
        /// Retries (`wretr`).
        retries,
        /// Requests sent to another server than first chosen (`wredis`).
        redispatches,
        /// Times chosen by the balancing (`lbtot`).
        chosen,
        /// HTTP requests, counted with their responses (`req_tot`).
        requests,
        /// Transfers that the client gave up (`cli_abrt`).
        client_aborts,
        /// Transfers that the server gave up (`srv_abrt`).
        server_aborts,
        /// Responses of class 1xx.
        responses_1xx,
        /// Responses of class 2xx.
        responses_2xx,
        /// Responses of class 3xx.
        responses_3xx,
        /// Responses of class 4xx.
        responses_4xx,
        /// Responses of class 5xx.
        responses_5xx,
        /// Responses of any other class.
        responses_other,
        /// Connections opened to servers (`connect`).
        connects,
        /// Exchanges over a connection that was already open (`reuse`).
        reuses,
        /// Failed header rewrites (`wrew`).
        failed_rewrites,
        /// Errors of our own (`eint`).
        internal_errors,
        /// TLS handshakes that resumed no session (`ssl_sess`).
        tls_full_handshakes,
        /// TLS handshakes that resumed a session (`ssl_reused_sess`).
        tls_resumed_handshakes,
        /// TLS handshakes that failed (`ssl_failed_handshake`).
        tls_failed_handshakes,
    }
}

counters! {
    /// What connections of HTTP/2 have carried, of a frontend or of a backend.
    H2Counters => H2Sums {
        /// Connections (`h2_total_connections`).
        connections,
        /// Of those, the ones that began as connections of HTTP/1.
        upgrades,
        /// Streams (`h2_backend_total_streams`, for frontends too).
        streams,
        /// HEADERS frames received (`h2_headers_rcvd`).
        headers_received,
        /// DATA frames received (`h2_data_rcvd`).
        data_received,
        /// SETTINGS frames received (`h2_settings_rcvd`).
        settings_received,
        /// RST_STREAM frames received (`h2_rst_stream_rcvd`).
        resets_received,
        /// GOAWAY frames received (`h2_goaway_rcvd`).
        go_aways_received,
        /// Connections that broke the protocol (`h2_detected_conn_protocol_errors`).
        connection_errors,
        /// Streams that broke the protocol (`h2_detected_strm_protocol_errors`).
        stream_errors,
        /// RST_STREAM frames sent (`h2_rst_stream_resp`).
        resets_sent,
        /// GOAWAY frames sent for an error (`h2_goaway_resp`).
        go_aways_sent,
    }
}

counters! {
    /// What the whole process counts (`show info`).
    ProcessCounters => ProcessSums {
        /// Connections of clients that were accepted (part of `CumConns`).
        connections,
        /// Requests whose head was received, and TCP sessions (part of `CumReq`).
        requests,
        /// Bytes sent by frontends that were removed (part of `TotalBytesOut`).
        bytes_out,
        /// Bytes that the kernel moved, in either direction (`TotalSplicedBytesOut`).
        spliced_bytes,
        /// Tasks that ended in a panic of our own.
        panics,
        /// Log lines lost: a target was too slow, full or gone (`DroppedLogs`).
        dropped_logs,
        /// How often accepting had to stop: the process reached its connection limit, or the system
        /// had no descriptor or memory for another connection (`MaxconnReached`).
        accept_pauses,
        /// Requests that were answered 503 because memory was short.
        memory_rejections,
    }
}

impl FrontendCounters {
    /// Counts a response by the class of its status.
    pub fn count_status(&self, status: u16) {
        match status / 100 {
            1 => &self.responses_1xx,
            2 => &self.responses_2xx,
            3 => &self.responses_3xx,
            4 => &self.responses_4xx,
            5 => &self.responses_5xx,
            _ => &self.responses_other,
        }
        .increment();
    }
}

impl BackendCounters {
    /// Counts a response by the class of its status.
    pub fn count_status(&self, status: u16) {
        match status / 100 {
            1 => &self.responses_1xx,
            2 => &self.responses_2xx,
            3 => &self.responses_3xx,
            4 => &self.responses_4xx,
            5 => &self.responses_5xx,
            _ => &self.responses_other,
        }
        .increment();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_every_workers_copy() {
        let counters = PerWorker::<FrontendCounters>::new(3);
        for worker in 0..3 {
            counters.of(worker).bytes_in.add(10);
            counters.of(worker).count_status(204);
        }
        let sums = counters.sums();
        assert_eq!(
            (sums.bytes_in, sums.responses_2xx, sums.responses_5xx),
            (30, 3, 0)
        );
        counters.clear();
        assert_eq!(counters.sums(), FrontendSums::default());
    }

    #[test]
    fn copies_come_with_the_first_worker_that_counts() {
        let counters = LazyPerWorker::<BackendCounters>::new(2);
        counters.clear();
        assert_eq!(counters.sums(), BackendSums::default());
        assert!(counters.known().is_none());
        counters.of(1).retries.increment();
        counters.of(0).retries.increment();
        assert_eq!(counters.known().map(PerWorker::worker_count), Some(2));
        assert_eq!(counters.sums().retries, 2);
        counters.clear();
        assert_eq!(counters.sums().retries, 0);
    }

    #[test]
    fn counters_are_found_by_the_names_they_are_handed_over_by() {
        let counters = PerWorker::<ProcessCounters>::new(1);
        for (index, name) in ProcessSums::NAMES.iter().enumerate() {
            counters.of(0).find(name).unwrap().set(index as u64 + 1);
        }
        let values = counters.sums().values();
        assert!(
            values
                .iter()
                .enumerate()
                .all(|(index, value)| *value == index as u64 + 1)
        );
        assert!(counters.of(0).find("later").is_none());
    }

    #[test]
    fn a_worker_beyond_the_last_shares_the_last_copy() {
        let counters = PerWorker::<ProcessCounters>::new(2);
        counters.of(9).requests.increment();
        assert_eq!(counters.of(1).requests.value(), 1);
    }
}
