//! Variables of the environment by which the processes of one program know each other.

/// Tells a process that another one started it: `descriptor:process number of that one:kind`.
pub(crate) const WORKER_VARIABLE: &str = "BALLAST_WORKER_LINE";

/// The variable of a master after `exec`: `descriptor:its process number`.
pub(crate) const REEXEC_VARIABLE: &str = "BALLAST_MASTER_SHEET";
