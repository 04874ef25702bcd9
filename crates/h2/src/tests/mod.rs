//! Tests of the whole codec.

mod appendix_c;
mod chance;
mod flood;
mod glitches;
mod heads;
mod heads_out;
mod peer;
mod spec_frames;
mod spec_streams;
mod windows;
