//! Statistics: snapshots to csv, typed and text.
