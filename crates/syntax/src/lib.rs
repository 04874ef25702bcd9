//! Configuration text to a lossless tree with spans; never fails.
