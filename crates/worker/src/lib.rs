//! Threads, tasks, timers, mailboxes: the only crate that names the executor.
