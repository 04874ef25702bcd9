//! bind to exchange: accept, PROXY header, limits.
