//! The ballast program: command line, processes and composition.

fn main() {}
