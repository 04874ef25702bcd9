//! Any HTTP version, either role, as one exchange.
