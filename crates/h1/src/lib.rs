//! HTTP/1 codec.
