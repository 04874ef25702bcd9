//! Sinks for access and event logs.
