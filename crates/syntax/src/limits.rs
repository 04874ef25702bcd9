//! The bounds of the room: what a text may ask of us before we stop and say so.

/// Largest file that is parsed, in bytes. A larger one is refused whole.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// Most lines of a file that are read. A line in the tree takes more memory than in the file.
pub const LINE_COUNT_MAX: u32 = 4 << 20;

/// Longest line that is cut into words, in bytes. A longer one is kept but not read.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Most words of one line. HAProxy stops at [`HAPROXY_WORD_COUNT_MAX`].
pub const WORD_COUNT_MAX: usize = 1024;

/// Most words of one line in HAProxy, which refuses a line with more. We accept and warn.
pub const HAPROXY_WORD_COUNT_MAX: usize = 64;

/// Most bytes that the words of one line may come to once variables are expanded.
pub const RESOLVED_LINE_BYTES_MAX: usize = 256 << 10;

/// Most bytes that variables may add to the whole document. It stops a few lines of
/// `setenv A "$A$A"` from filling the memory.
pub const RESOLVED_BYTES_MAX: usize = 64 << 20;

/// Deepest nesting of `.if` blocks, as HAProxy's.
pub const CONDITION_NESTING_MAX: usize = 100;

/// Deepest nesting of parentheses in one condition.
pub const CONDITION_DEPTH_MAX: usize = 64;

/// Most diagnostics kept for one document; the rest are counted.
pub const DIAGNOSTIC_COUNT_MAX: usize = 10_000;
