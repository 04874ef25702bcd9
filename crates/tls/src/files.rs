//! How this room asks for files: its caller reads them, so that it stays pure and a test needs none.

use std::fmt;

/// Gives the content of files.
pub trait CertificateFileReader {
    /// The content of a file, `None` where there is none.
    ///
    /// # Errors
    ///
    /// The system's reason, as text: "Permission denied".
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String>;

    /// The names of the regular files in a directory, `None` where `path` is no directory.
    ///
    /// # Errors
    ///
    /// The system's reason, as text.
    fn list(&self, path: &str) -> Result<Option<Vec<String>>, String>;
}

/// The digest of what a file had, which tells whether it has something else now.
pub type ContentDigest = [u8; 32];

/// Why a file that a word names cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileError<R> {
    /// The file.
    pub file: String,
    /// Why.
    pub reason: R,
}

impl<R: fmt::Display> fmt::Display for FileError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", self.file, self.reason)
    }
}
