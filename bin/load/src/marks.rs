//! What others did during a run, for its charts: lines that they append to a file or write to a pipe.
//!
//! A line is a text, with the time before it or without: seconds since 1970, or as in RFC 3339.
//! A line without a time happened when it was read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a file is looked at.
const PERIOD: Duration = Duration::from_millis(20);
/// Later marks are dropped.
const MARK_COUNT_MAX: usize = 1000;
/// The rest of a longer line is dropped.
const LINE_BYTES_MAX: usize = 200;
/// How long the last look at a file may take.
const FINISH_WAIT: Duration = Duration::from_millis(200);
/// Numbers from this one on are taken for seconds since 1970 (September 2001).
const UNIX_SECONDS_MIN: f64 = 1e9;

/// Something that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mark {
    pub(crate) at: SystemTime,
    pub(crate) text: String,
}

/// Reads marks while the run goes on.
#[derive(Debug)]
pub(crate) struct MarkReader {
    marks: Arc<Mutex<Vec<Mark>>>,
    stop: Arc<AtomicBool>,
    /// Closed when the thread has read everything.
    done: mpsc::Receiver<()>,
}

impl MarkReader {
    /// Starts to read. The file may be created later; of what it already has, only lines with a time
    /// count.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        let (sender, done) = mpsc::channel();
        let reader = Self {
            marks: Arc::default(),
            stop: Arc::default(),
            done,
        };
        let mut follower = Follower {
            old_bytes: path.metadata().map_or(0, |data| data.len()),
            path: path.to_owned(),
            lines: Lines::default(),
            marks: Arc::clone(&reader.marks),
            stop: Arc::clone(&reader.stop),
            file: None,
        };
        // Connections may take all descriptors that are left.
        follower.file = follower.try_open()?;
        thread::Builder::new().name("marks".into()).spawn(move || {
            if let Err(error) = follower.run() {
                eprintln!("ballast-load: --marks {}: {error}", follower.path.display());
            }
            drop(sender);
        })?;
        Ok(reader)
    }

    /// Stops reading; returns the marks in order of time. The thread may stay in a read of a pipe.
    pub(crate) fn finish(self) -> Vec<Mark> {
        self.stop.store(true, Ordering::Relaxed);
        // Ends with an error either way.
        let _ = self.done.recv_timeout(FINISH_WAIT);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marks = std::mem::take(&mut *marks);
        marks.sort_by_key(|mark| mark.at);
        marks
    }
}

/// The thread that reads.
struct Follower {
    path: PathBuf,
    /// So many bytes were there before the start.
    old_bytes: u64,
    lines: Lines,
    marks: Arc<Mutex<Vec<Mark>>>,
    stop: Arc<AtomicBool>,
    /// None until it is there.
    file: Option<File>,
}

impl Follower {
    fn run(&mut self) -> io::Result<()> {
        let Some(mut file) = self.open()? else {
            return Ok(());
        };
        let (mut buffer, mut position) = ([0; 4096], 0u64);
        loop {
            let is_last = self.stop.load(Ordering::Relaxed);
            let is_old = position < self.old_bytes;
            let space = usize::try_from(self.old_bytes.saturating_sub(position));
            // A piece is old or new, and not both.
            let space = match is_old {
                true => space.map_or(buffer.len(), |space| space.min(buffer.len())),
                false => buffer.len(),
            };
            let length = file.read(&mut buffer[..space])?;
            position += length as u64;
            for line in self.lines.push(&buffer[..length]) {
                self.take(&line, is_old);
            }
            if length == 0 && is_last {
                let rest = self.lines.rest();
                self.take(&rest, is_old);
                return Ok(());
            }
            if length == 0 {
                thread::sleep(PERIOD);
            }
        }
    }

    /// Opens the file as soon as it is there; none when the run ends before.
    fn open(&mut self) -> io::Result<Option<File>> {
        loop {
            let is_last = self.stop.load(Ordering::Relaxed);
            let file = match self.file.take() {
                None => self.try_open()?,
                file => file,
            };
            if file.is_some() || is_last {
                return Ok(file);
            }
            thread::sleep(PERIOD);
        }
    }

    /// Opens the file, if it is there.
    fn try_open(&mut self) -> io::Result<Option<File>> {
        let data = self.path.metadata();
        // A pipe is opened for writing, too: it does not end when a writer leaves.
        let is_pipe = data.is_ok_and(|data| data.file_type().is_fifo());
        if is_pipe {
            self.old_bytes = 0;
        }
        let mut options = OpenOptions::new();
        match options.read(true).write(is_pipe).open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn take(&self, line: &[u8], is_old: bool) {
        let line = String::from_utf8_lossy(line);
        let (time, text) = parse(&line);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if text.is_empty() || (is_old && time.is_none()) || marks.len() >= MARK_COUNT_MAX {
            return;
        }
        marks.push(Mark {
            at: time.unwrap_or_else(SystemTime::now),
            text: text.to_owned(),
        });
    }
}

/// Makes lines of pieces.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The lines that a piece completes, shortened where they are too long.
    fn push(&mut self, piece: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            let space = LINE_BYTES_MAX.saturating_sub(self.0.len());
            self.0.extend_from_slice(&text[..text.len().min(space)]);
            if is_whole {
                lines.push(std::mem::take(&mut self.0));
            }
        }
        lines
    }

    /// What is left without a line end.
    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// The time of a line, if it has one, and its text.
fn parse(line: &str) -> (Option<SystemTime>, &str) {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match unix_seconds(first).or_else(|| rfc3339(first)) {
        Some(seconds) => {
            let time = Duration::try_from_secs_f64(seconds).ok();
            let time = time.and_then(|since| UNIX_EPOCH.checked_add(since));
            (time, rest.trim())
        }
        None => (None, line),
    }
}

fn unix_seconds(word: &str) -> Option<f64> {
    let is_number = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = word.parse().ok()?;
    (is_number && seconds >= UNIX_SECONDS_MIN).then_some(seconds)
}

/// `2026-11-28T03:01:55.25Z`, or with `+01:00` at its end.
fn rfc3339(word: &str) -> Option<f64> {
    let (date, time) = word.split_once(['T', 't'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone);
    let mut time = time.splitn(3, ':');
    let hour: f64 = time.next()?.parse().ok()?;
    let minute: f64 = time.next()?.parse().ok()?;
    let second: f64 = time.next()?.parse().ok()?;
    let offset = match zone.strip_prefix(['+', '-']) {
        None => 0.0,
        Some(offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let minutes = hours.parse::<f64>().ok()? * 60.0 + minutes.parse::<f64>().ok()?;
            if zone.starts_with('-') {
                -minutes
            } else {
                minutes
            }
        }
    };
    let is_right = (1970..10_000).contains(&year) && (1..=12).contains(&month);
    let days = is_right.then(|| days_since_1970(year, month, day))? as f64;
    Some(days * 86_400.0 + hour * 3600.0 + (minute - offset) * 60.0 + second)
}

/// Days from the first of January 1970, in the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    let month = usize::try_from(month - 1).unwrap_or(0);
    let in_year = BEFORE_MONTH.get(month).unwrap_or(&0) + i64::from(is_leap && month >= 2);
    (year - 1970) * 365 + leap_days + in_year + day - 1
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn seconds(line: &str) -> Option<f64> {
        let time = parse(line).0?;
        Some(time.duration_since(UNIX_EPOCH).unwrap().as_secs_f64())
    }

    #[test]
    fn a_time_stands_before_the_text_or_not() {
        assert_eq!(parse(" weight 50% \r"), (None, "weight 50%"));
        assert_eq!(parse("50 percent").1, "50 percent");
        assert_eq!(parse("1795834915.5 reload now").1, "reload now");
        assert_eq!(seconds("1795834915.5 reload"), Some(1_795_834_915.5));
        assert_eq!(seconds("1795834915"), Some(1_795_834_915.0));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (line, expected) in [
            ("1970-01-01T00:00:00Z x", 0.0),
            ("2000-02-29T12:00:00Z x", 951_825_600.0),
            ("2024-03-01T00:00:00.25Z x", 1_709_251_200.25),
            ("2026-11-28T03:01:55Z x", 1_795_834_915.0),
            ("2026-11-28T04:01:55+01:00 x", 1_795_834_915.0),
            ("2026-11-27T21:31:55-05:30 x", 1_795_834_915.0),
        ] {
            assert_eq!(seconds(line), Some(expected), "{line}");
        }
        for line in [
            "2026-13-01T00:00:00Z",
            "2026-11-28",
            "T",
            "Take a-b-c",
            "aTbZ",
        ] {
            assert_eq!(seconds(line), None, "{line}");
        }
    }

    #[test]
    fn lines_are_whole_and_bounded() {
        let mut lines = Lines::default();
        assert!(lines.push(b"rel").is_empty());
        assert_eq!(lines.push(b"oad\nsto"), [b"reload".to_vec()]);
        lines.push(&[b'x'; 10_000]);
        assert_eq!(lines.push(b"\n")[0].len(), LINE_BYTES_MAX);
        lines.push(b"end");
        assert_eq!(lines.rest(), b"end");
    }

    #[test]
    fn a_file_is_followed_from_where_it_is() {
        let path = std::env::temp_dir().join(format!("ballast-marks-{}", std::process::id()));
        std::fs::write(&path, "old\n1795834915 old, with its time\n").unwrap();
        let reader = MarkReader::begin(&path).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"reload\nend").unwrap();
        let marks = reader.finish();
        std::fs::remove_file(&path).unwrap();
        let mut texts: Vec<&str> = marks.iter().map(|mark| mark.text.as_str()).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["end", "old, with its time", "reload"]);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_marks() {
        let reader = MarkReader::begin(Path::new("/nowhere/marks")).unwrap();
        assert!(reader.finish().is_empty());
    }
}
