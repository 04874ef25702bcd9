//! Acting: one action per file, run on a trait Transaction.
