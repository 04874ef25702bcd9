//! Sockets, options, descriptors, processes: the only crate with unsafe.
