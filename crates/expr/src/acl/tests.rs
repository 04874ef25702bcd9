//! ACLs and conditions against what the manual says of them.
