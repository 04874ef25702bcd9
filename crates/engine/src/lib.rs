//! Generation and Registry: what runs, and what outlives it.
//!
//! A [`Generation`] is a compiled configuration that never changes. Counters, health and queues are
//! in states that the [`Registry`] keeps by name, so that the next generation continues with them.
//! A change leaves untouched what it does not name.

pub mod counters;

mod backend;
mod balancing;
mod cancellation;
mod chain;
mod checks;
mod connecting;
mod cookies;
pub mod descriptors;
mod dynamic_cookies;
mod event_buffer;
mod facts;
mod frontend;
mod gate;
mod gauge;
mod generation;
mod h2;
mod h2_counts;
mod health;
mod invalid;
pub mod limits;
mod no_traffic;
pub mod numbers;
mod override_cell;
mod process;
mod rate;
mod registry;
mod retired;
mod server;
mod server_index;
mod server_tls;
mod session_variables;
pub mod sessions;
mod slot_offer;
mod slots;
mod tables;
mod take_over;
pub mod timings;
mod tls_connections;
mod tls_counters;
mod users;
mod variables;

pub use backend::{Backend, BackendAvailability, BackendState, UseServer, UseServerTarget};
pub use balancing::hash_type;
pub use cancellation::{CancellationReason, Cancelled};
pub use chain::Chain;
pub use checks::CheckOverrides;
pub use connecting::{ConnectSettings, SocketBuffers};
pub use dynamic_cookies::DynamicCookies;
pub use event_buffer::EventBuffer;
pub use frontend::{Frontend, FrontendState, ListenerState, Route, RouteTarget};
pub use gate::{Gate, GateState};
pub use gauge::Gauge;
pub use generation::Generation;
pub use h2::{ClientProtocol, H2Terms, server_protocol, websocket_alpn};
pub use h2_counts::{H2ConnectionCount, H2Counts};
pub use health::{BalancingState, health_settings};
pub use invalid::{InvalidMessage, LastInvalidMessage};
pub use override_cell::{OverrideCell, RateLimits};
pub use process::{DescriptorPressure, IdleConnectionLimits, Process};
pub use rate::Rate;
pub use registry::Registry;
pub use retired::RetiredGenerations;
pub use server::{Server, ServerAddress, ServerState};
pub use server_tls::{ServerTls, Sni};
pub use session_variables::{VariableBounds, Variables};
pub use slot_offer::SlotOffer;
pub use tables::{PURGED_MAX, Tables};
pub use take_over::{ChangedServer, GenerationChanges};
pub use tls_connections::{ServerTlsCounters, TlsConnectionCount};
pub use tls_counters::TlsCounters;
pub use users::{User, UserPassword, Userlists};
pub use variables::{ProcessVariables, SetVariableError, VariableShare, VariablesNow};

#[cfg(test)]
mod tests;
