//! The files that expressions name.

/// Reads the files that expressions name. Expressions themselves do no I/O.
pub trait PatternFileReader {
    /// The contents of the file at `path`.
    ///
    /// # Errors
    /// A sentence why it cannot be had.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;
}

impl<F: FnMut(&str) -> Result<Vec<u8>, String>> PatternFileReader for F {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        self(path)
    }
}
