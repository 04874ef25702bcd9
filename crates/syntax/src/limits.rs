//! Limits of what is parsed.

/// Maximum size of a file, in bytes. A larger one is refused.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of lines in a file. A line takes more memory in the tree than in the file.
pub const LINE_COUNT_MAX: u32 = 4 << 20;

/// Maximum length of a line that is split into words, in bytes. A longer one is kept but not
/// parsed.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Maximum number of words in a line. HAProxy stops at [`HAPROXY_WORD_COUNT_MAX`].
pub const WORD_COUNT_MAX: usize = 1024;

/// Maximum number of words in a line in HAProxy, which refuses a line with more. We accept and
/// warn.
pub const HAPROXY_WORD_COUNT_MAX: usize = 64;

/// Maximum size of the words of one line after variables are expanded, in bytes.
pub const RESOLVED_LINE_BYTES_MAX: usize = 256 << 10;

/// Maximum number of bytes that variables may add to the whole document. It stops a few lines of
/// `setenv A "$A$A"` from filling the memory.
pub const EXPANDED_BYTES_MAX: usize = 64 << 20;

/// Maximum nesting of `.if` blocks, as in HAProxy.
pub const CONDITION_NESTING_MAX: usize = 100;

/// Maximum nesting of parentheses in one condition.
pub const CONDITION_DEPTH_MAX: usize = 64;

/// Maximum number of diagnostics kept for one document; further ones are counted.
pub const DIAGNOSTIC_COUNT_MAX: usize = 10_000;
