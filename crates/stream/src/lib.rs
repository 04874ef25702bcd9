//! The life of one exchange: rules, route, pick, forward, retry, finish.
