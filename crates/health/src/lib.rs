//! What do we believe of a server? Health as a pure machine.
