//! A client of a proxy's command socket.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{LOOK_AGAIN, WAIT_MAX};

/// The maximum size of a response in a test.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A command socket.
#[derive(Clone, Debug)]
pub struct RuntimeApi {
    path: PathBuf,
}

/// One line of `show stat`: column to value, as text.
pub type StatRow = BTreeMap<String, String>;

impl RuntimeApi {
    /// The command socket at that path, once it is listened on, which may be a moment after the
    /// frontends are.
    ///
    /// # Panics
    ///
    /// When it is not listened on in time.
    #[must_use]
    pub fn at(path: impl AsRef<Path>) -> Self {
        let began = Instant::now();
        while UnixStream::connect(path.as_ref()).is_err() {
            assert!(began.elapsed() < WAIT_MAX, "the command socket listens");
            std::thread::sleep(LOOK_AGAIN);
        }
        Self {
            path: path.as_ref().into(),
        }
    }

    /// The whole response to a line of commands, with their payload, if any.
    ///
    /// # Panics
    ///
    /// When there is no response.
    #[must_use]
    pub fn ask(&self, text: &str) -> String {
        let mut socket = UnixStream::connect(&self.path).expect("the command socket listens");
        socket
            .set_read_timeout(Some(WAIT_MAX))
            .expect("a timeout above zero");
        socket
            .write_all(format!("{text}\n").as_bytes())
            .expect("the Runtime API reads");
        let mut answer = String::new();
        socket
            .take(ANSWER_BYTES_MAX)
            .read_to_string(&mut answer)
            .expect("the Runtime API answers");
        answer.trim_end().to_owned()
    }

    /// Applies a configuration, and returns the response.
    #[must_use]
    pub fn apply(&self, configuration: &str) -> String {
        self.ask(&format!("apply <<THE-END\n{configuration}\nTHE-END"))
    }

    /// `show stat`: the rows by `proxy/service`.
    ///
    /// # Panics
    ///
    /// When the response is not a table.
    #[must_use]
    pub fn stat(&self) -> BTreeMap<String, StatRow> {
        let answer = self.ask("show stat");
        let mut lines = answer.lines();
        let head = lines.next().and_then(|line| line.strip_prefix("# "));
        let head: Vec<&str> = head.expect("a table has a head").split(',').collect();
        lines
            .filter(|line| !line.is_empty())
            .map(|line| {
                let row: StatRow = head
                    .iter()
                    .zip(line.split(','))
                    .map(|(name, value)| ((*name).to_owned(), value.to_owned()))
                    .collect();
                (format!("{}/{}", row["pxname"], row["svname"]), row)
            })
            .collect()
    }

    /// One value of `show stat`.
    ///
    /// # Panics
    ///
    /// When there is no such row or column.
    #[must_use]
    pub fn stat_of(&self, row: &str, column: &str) -> String {
        let value = self
            .stat()
            .remove(row)
            .and_then(|mut row| row.remove(column));
        assert!(value.is_some(), "no {column} of {row} in show stat");
        value.unwrap_or_default()
    }
}
