//! Helpers shared by the checks of the whole.
