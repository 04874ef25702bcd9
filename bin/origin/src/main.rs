//! A dummy origin whose answers are shaped by the request.

fn main() {}
