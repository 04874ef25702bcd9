//! Asking: samples, converters, ACLs, patterns, maps and log formats.
