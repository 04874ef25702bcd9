//! Small wire formats: PROXY protocol, syslog; a file each.
