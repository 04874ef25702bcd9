//! What only HTTP/2 has: counted, and reported.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::table::write_row;

/// Counts of one thread.
#[derive(Debug, Default)]
pub(crate) struct H2Tally {
    /// Requests that were sent again because GOAWAY said that theirs was not processed.
    pub(crate) goaway: u64,
    /// Requests that were sent again because their stream was reset with REFUSED_STREAM.
    pub(crate) refused: u64,
    /// Streams that the server reset, by code; those that were sent again are among them.
    pub(crate) codes: BTreeMap<String, u64>,
}

impl H2Tally {
    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.goaway += other.goaway;
        self.refused += other.refused;
        for (code, count) in other.codes {
            *self.codes.entry(code).or_default() += count;
        }
    }
}

/// Field names are the interface of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct H2Report<'a> {
    /// Streams at the same time on a connection.
    streams: usize,
    /// The server said that it did not process them: no failures, sent again.
    told_to_retry: ToldToRetry,
    /// Streams that the server reset, by code.
    reset_codes: &'a BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct ToldToRetry {
    goaway: u64,
    refused: u64,
}

impl<'a> H2Report<'a> {
    pub(crate) fn of(streams: usize, tally: &'a H2Tally) -> Self {
        Self {
            streams,
            told_to_retry: ToldToRetry {
                goaway: tally.goaway,
                refused: tally.refused,
            },
            reset_codes: &tally.codes,
        }
    }

    pub(crate) fn write_rows(&self, to: &mut String) -> std::fmt::Result {
        write_row(to, "streams", format!("{} on a connection", self.streams))?;
        let ToldToRetry { goaway, refused } = self.told_to_retry;
        if goaway + refused > 0 {
            let told = format!("{goaway} by GOAWAY, {refused} by REFUSED_STREAM (no failures)");
            write_row(to, "told to retry", told)?;
        }
        for (code, count) in self.reset_codes {
            write_row(to, &format!("reset {code}"), count.to_string())?;
        }
        Ok(())
    }
}
