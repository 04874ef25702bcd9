//! Log formats against what the manual says of them.
