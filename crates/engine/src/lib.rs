//! Generation and Registry: what runs, and what outlives it.
