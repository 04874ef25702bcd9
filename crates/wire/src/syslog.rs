//! Syslog lines in the eight formats of `log ... format <format>` (configuration manual, section
//! 4.2, "log"), byte for byte as HAProxy 2.6.
//!
//! A line is priority, timestamp, origin, structured data, message, newline; most formats leave
//! some of them out. The timestamp changes once a second and the origin hardly ever, so both are
//! kept as text ([`TimestampText`], [`Origin`]), and a line costs a few copies.

use std::str::FromStr;

/// The default of the maximum line length, in bytes: `len`.
pub const LINE_BYTES_DEFAULT: u32 = 1024;

/// A line format.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Format {
    /// ISO date and message.
    Iso,
    /// As [`Format::Rfc3164`] without host name: the default.
    #[default]
    Local,
    /// `<facility and level>` and message.
    Priority,
    /// The message alone.
    Raw,
    /// RFC 3164.
    Rfc3164,
    /// RFC 5424.
    Rfc5424,
    /// `<level>` and message.
    Short,
    /// `<level>`, ISO date and message.
    Timed,
}

impl Format {
    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Iso => "iso",
            Self::Local => "local",
            Self::Priority => "priority",
            Self::Raw => "raw",
            Self::Rfc3164 => "rfc3164",
            Self::Rfc5424 => "rfc5424",
            Self::Short => "short",
            Self::Timed => "timed",
        }
    }

    /// All forms.
    pub const ALL: [Self; 8] = [
        Self::Iso,
        Self::Local,
        Self::Priority,
        Self::Raw,
        Self::Rfc3164,
        Self::Rfc5424,
        Self::Short,
        Self::Timed,
    ];
}

impl FromStr for Format {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Self::ALL
            .into_iter()
            .find(|format| format.word() == word)
            .ok_or(UnknownWord)
    }
}

/// A syslog severity: the lower, the more severe.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names of RFC 5424, table 2")]
pub enum Level {
    Emerg = 0,
    Alert = 1,
    Crit = 2,
    Err = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

impl Level {
    /// All levels, the most severe first.
    pub const ALL: [Self; 8] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Err,
        Self::Warning,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        LEVEL_WORDS[self as usize]
    }
}

impl FromStr for Level {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let index = LEVEL_WORDS.iter().position(|w| *w == word);
        index.map(|i| Self::ALL[i]).ok_or(UnknownWord)
    }
}

/// A syslog facility, 0 to 23.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Facility(u8);

impl Facility {
    /// The facility of that number, if it is below 24.
    pub fn new(number: u8) -> Option<Self> {
        (usize::from(number) < FACILITY_WORDS.len()).then_some(Self(number))
    }

    /// 0 to 23.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        FACILITY_WORDS[usize::from(self.0)]
    }
}

impl FromStr for Facility {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let index = FACILITY_WORDS.iter().position(|w| *w == word);
        index
            .and_then(|i| u8::try_from(i).ok())
            .map(Self)
            .ok_or(UnknownWord)
    }
}

/// There is no format, level or facility of that name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownWord;

/// A second of the local calendar.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DateTime {
    /// Such as 2026; shown modulo 10000.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
    /// East of UTC, seconds.
    pub utc_offset_s: i32,
}

/// The text of one second, in the two forms that lines use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TimestampText {
    /// `Nov  4 09:34:47`
    rfc3164: [u8; 15],
    /// `2026-11-04T09:34:47.`, to be followed by six digits.
    iso: [u8; 20],
    /// `+00:00`
    offset: [u8; 6],
}

impl TimestampText {
    /// The texts for `time`. Numbers that are out of range are shown wrong.
    pub fn new(time: &DateTime) -> Self {
        let mut rfc3164 = *b"Jan  0 00:00:00";
        let month = usize::from(time.month).clamp(1, 12) - 1;
        rfc3164[..3].copy_from_slice(&MONTHS[month * 3..month * 3 + 3]);
        put2(&mut rfc3164[4..6], time.day);
        if time.day < 10 {
            rfc3164[4] = b' ';
        }
        let mut iso = *b"0000-00-00T00:00:00.";
        let year = time.year.rem_euclid(10_000);
        put2(&mut iso[0..2], (year / 100) as u8);
        put2(&mut iso[2..4], (year % 100) as u8);
        put2(&mut iso[5..7], time.month);
        put2(&mut iso[8..10], time.day);
        put_clock(&mut iso[11..19], time);
        put_clock(&mut rfc3164[7..15], time);
        let minutes = time.utc_offset_s.unsigned_abs() / 60;
        let mut offset = *b"+00:00";
        if time.utc_offset_s < 0 {
            offset[0] = b'-';
        }
        put2(&mut offset[1..3], (minutes / 60 % 100) as u8);
        put2(&mut offset[4..6], (minutes % 60) as u8);
        Self {
            rfc3164,
            iso,
            offset,
        }
    }

    fn write_iso(&self, out: &mut Vec<u8>, microsecond: u32) {
        let mut digits = *b"000000";
        let mut rest = microsecond.min(999_999);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&self.iso);
        out.extend_from_slice(&digits);
        out.extend_from_slice(&self.offset);
    }
}

/// The text between the timestamp and the message: host name, tag and process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    format: Format,
    facility: Facility,
    /// What stands before the tag.
    before: Vec<u8>,
    /// `None` for formats without one.
    tag: Option<Vec<u8>>,
    /// What stands after the tag.
    after: Vec<u8>,
    /// All of it, with the tag.
    whole: Vec<u8>,
}

impl Origin {
    /// The text for a format. Without `hostname` RFC 3164 says `localhost` and
    /// RFC 5424 says `-`, as HAProxy without `log-send-hostname`.
    pub fn new(
        format: Format,
        facility: Facility,
        hostname: Option<&[u8]>,
        tag: &[u8],
        process_id: u32,
    ) -> Self {
        let named = |unsaid| [b" ", hostname.unwrap_or(unsaid), b" "].concat();
        let before = match format {
            Format::Local | Format::Iso | Format::Timed => b" ".to_vec(),
            Format::Rfc3164 => named(&b"localhost"[..]),
            Format::Rfc5424 => named(b"-"),
            Format::Priority | Format::Raw | Format::Short => Vec::new(),
        };
        let after = match format {
            Format::Local | Format::Rfc3164 => format!("[{process_id}]: "),
            Format::Rfc5424 => format!(" {process_id} - "),
            _ => String::new(),
        };
        let has_tag = matches!(format, Format::Local | Format::Rfc3164 | Format::Rfc5424);
        let tag = has_tag.then(|| tag.to_vec());
        let parts = [
            &before[..],
            tag.as_deref().unwrap_or_default(),
            after.as_bytes(),
        ];
        Self {
            format,
            facility,
            whole: parts.concat(),
            before,
            tag,
            after: after.into_bytes(),
        }
    }

    /// The form of the lines.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Appends the header of a line: everything before structured data and message. `tag` replaces
    /// the tag, if there is one.
    pub fn write_header(
        &self,
        out: &mut Vec<u8>,
        level: Level,
        stamp: &TimestampText,
        microsecond: u32,
        tag: Option<&str>,
    ) {
        self.write_priority(out, level);
        // The usual line: what stands around its tag is copied with it.
        if let (Format::Local, None) = (self.format, tag) {
            out.extend_from_slice(&stamp.rfc3164);
            return out.extend_from_slice(&self.whole);
        }
        match self.format {
            Format::Local | Format::Rfc3164 => out.extend_from_slice(&stamp.rfc3164),
            Format::Iso | Format::Rfc5424 | Format::Timed => stamp.write_iso(out, microsecond),
            Format::Priority | Format::Raw | Format::Short => {}
        }
        out.extend_from_slice(&self.before);
        if let Some(own) = &self.tag {
            out.extend_from_slice(tag.map_or(own, str::as_bytes));
        }
        out.extend_from_slice(&self.after);
    }

    fn write_priority(&self, out: &mut Vec<u8>, level: Level) {
        let priority = match self.format {
            Format::Iso | Format::Raw => return,
            Format::Short | Format::Timed => level as u8,
            _ => self.facility.0 * 8 + level as u8,
        };
        match priority {
            100.. => out.extend_from_slice(&[
                b'<',
                b'0' + priority / 100,
                b'0' + priority / 10 % 10,
                b'0' + priority % 10,
                b'>',
            ]),
            10.. => {
                out.extend_from_slice(&[b'<', b'0' + priority / 10, b'0' + priority % 10, b'>'])
            }
            _ => out.extend_from_slice(&[b'<', b'0' + priority, b'>']),
        }
        if self.format == Format::Rfc5424 {
            out.extend_from_slice(b"1 ");
        }
    }

    /// Appends a whole line with its newline.
    ///
    /// It has at most `line_bytes_max` bytes, newline included: a longer message is cut, and
    /// structured data that do not fit are left out together with the message. Structured data are
    /// for RFC 5424 only; if they are empty, `-` is written.
    pub fn write_line(
        &self,
        out: &mut Vec<u8>,
        level: Level,
        stamp: &TimestampText,
        microsecond: u32,
        text: LineText<'_>,
        line_bytes_max: usize,
    ) {
        let start = out.len();
        out.reserve(self.whole.len() + text.message.len() + HEADER_EXTRA_BYTES);
        let line_bytes_max = line_bytes_max.saturating_sub(1);
        self.write_header(out, level, stamp, microsecond, text.tag);
        let mut fits = true;
        if self.format == Format::Rfc5424 {
            let data = match text.structured_data {
                [] => b"-",
                data => data,
            };
            fits = out.len() - start + data.len() < line_bytes_max;
            if fits {
                out.extend_from_slice(data);
                out.push(b' ');
            }
        }
        out.truncate(start + line_bytes_max);
        if fits {
            let room = line_bytes_max - (out.len() - start);
            out.extend_from_slice(&text.message[..text.message.len().min(room)]);
        }
        out.push(b'\n');
    }
}

/// What a header has beside its origin, at most: priority, version and timestamp; and a newline.
const HEADER_EXTRA_BYTES: usize = 48;

/// The content of a line.
#[derive(Clone, Copy, Debug)]
pub struct LineText<'a> {
    /// Replaces the tag of the header.
    pub tag: Option<&'a str>,
    /// `log-format-sd`, or empty.
    pub structured_data: &'a [u8],
    /// The message, without newline.
    pub message: &'a [u8],
}

impl<'a> LineText<'a> {
    /// A message alone.
    pub fn of(message: &'a [u8]) -> Self {
        Self {
            tag: None,
            structured_data: b"",
            message,
        }
    }
}

/// Appends `message` with its length before it, for syslog over a stream (octet counting, RFC 6587,
/// section 3.4.1).
pub fn write_counted(out: &mut Vec<u8>, message: &[u8]) {
    out.extend_from_slice(itoa::Buffer::new().format(message.len()).as_bytes());
    out.push(b' ');
    out.extend_from_slice(message);
}

fn put_clock(digits: &mut [u8], time: &DateTime) {
    put2(&mut digits[0..2], time.hour);
    put2(&mut digits[3..5], time.minute);
    put2(&mut digits[6..8], time.second);
}

fn put2(digits: &mut [u8], number: u8) {
    digits[0] = b'0' + number / 10 % 10;
    digits[1] = b'0' + number % 10;
}

const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

const LEVEL_WORDS: [&str; 8] = [
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];

/// In the order of their numbers (configuration manual, 4.2 "log").
const FACILITY_WORDS: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2",
    "ftp", "ntp", "audit", "alert", "cron2", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(
        format: Format,
        hostname: Option<&str>,
        data: &[u8],
        message: &[u8],
        max: usize,
    ) -> String {
        let time = DateTime {
            year: 2026,
            month: 11,
            day: 4,
            hour: 9,
            minute: 34,
            second: 47,
            utc_offset_s: -(3 * 60 + 27) * 60,
        };
        let facility = "local3".parse().unwrap();
        let origin = Origin::new(
            format,
            facility,
            hostname.map(str::as_bytes),
            b"haproxy",
            11798,
        );
        let mut out = b"before".to_vec();
        let text = LineText {
            tag: None,
            structured_data: data,
            message,
        };
        let stamp = TimestampText::new(&time);
        origin.write_line(&mut out, Level::Info, &stamp, 4_958, text, max);
        String::from_utf8(out.split_off(6)).unwrap()
    }

    // The expected lines were written by HAProxy 2.6.12.
    #[test]
    fn lines_of_each_format() {
        let plain = |format| line(format, None, b"", b"hello /abc", 1024);
        assert_eq!(
            plain(Format::Local),
            "<158>Nov  4 09:34:47 haproxy[11798]: hello /abc\n"
        );
        assert_eq!(
            plain(Format::Rfc3164),
            "<158>Nov  4 09:34:47 localhost haproxy[11798]: hello /abc\n"
        );
        assert_eq!(
            plain(Format::Rfc5424),
            "<158>1 2026-11-04T09:34:47.004958-03:27 - haproxy 11798 - - hello /abc\n"
        );
        assert_eq!(plain(Format::Priority), "<158>hello /abc\n");
        assert_eq!(plain(Format::Short), "<6>hello /abc\n");
        assert_eq!(
            plain(Format::Timed),
            "<6>2026-11-04T09:34:47.004958-03:27 hello /abc\n"
        );
        assert_eq!(
            plain(Format::Iso),
            "2026-11-04T09:34:47.004958-03:27 hello /abc\n"
        );
        assert_eq!(plain(Format::Raw), "hello /abc\n");
        let origin = Origin::new(Format::Local, Facility(3), None, b"haproxy", 7);
        let text = LineText {
            tag: Some("other"),
            ..LineText::of(b"hello")
        };
        let mut out = Vec::new();
        let stamp = TimestampText::new(&DateTime::default());
        origin.write_line(&mut out, Level::Info, &stamp, 0, text, 1024);
        assert!(out.ends_with(b" other[7]: hello\n"), "{out:?}");
        assert_eq!(
            line(Format::Rfc5424, Some("vm"), b"[a@1 b=49]", b"hello", 1024),
            "<158>1 2026-11-04T09:34:47.004958-03:27 vm haproxy 11798 - [a@1 b=49] hello\n"
        );
        assert_eq!(
            line(Format::Rfc3164, Some("vm"), b"[a@1 b=49]", b"hello", 1024),
            "<158>Nov  4 09:34:47 vm haproxy[11798]: hello\n"
        );
        assert_eq!(
            line(Format::Local, Some("vm"), b"", b"hello", 1024),
            "<158>Nov  4 09:34:47 haproxy[11798]: hello\n"
        );
    }

    #[test]
    fn priorities_have_one_to_three_digits() {
        for (facility, level) in (0..24).flat_map(|f| Level::ALL.map(|level| (f, level))) {
            let origin = Origin::new(Format::Priority, Facility(facility), None, b"", 0);
            let mut out = Vec::new();
            origin.write_header(
                &mut out,
                level,
                &TimestampText::new(&DateTime::default()),
                0,
                None,
            );
            let priority = u32::from(facility) * 8 + level as u32;
            assert_eq!(out, format!("<{priority}>").into_bytes());
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let message = [b'x'; 200];
        for format in Format::ALL {
            let line = line(format, None, b"", &message, 80);
            assert_eq!(line.len(), 80, "{line:?}");
            assert!(line.ends_with('\n'));
        }
        // Structured data are written whole or not at all.
        let fits = line(Format::Rfc5424, None, b"[aaa@1 x=1234567890]", &message, 80);
        assert!(fits.ends_with(" - [aaa@1 x=1234567890] \n"), "{fits:?}");
        let long = line(Format::Rfc5424, None, &message, &message, 80);
        assert!(long.ends_with(" - haproxy 11798 - \n"), "{long:?}");
        // Even the header is cut, if the limit is that small.
        assert_eq!(line(Format::Local, None, b"", b"x", 8), "<158>No\n");
    }

    #[test]
    fn words() {
        for format in Format::ALL {
            assert_eq!(format.word().parse(), Ok(format));
        }
        for level in Level::ALL {
            assert_eq!(level.word().parse(), Ok(level));
        }
        for number in 0..24 {
            let facility = Facility::new(number).unwrap();
            assert_eq!(facility.word().parse(), Ok(facility));
        }
        assert_eq!(Facility::new(24), None);
        assert_eq!("local7".parse::<Facility>().unwrap().number(), 23);
        assert_eq!("error".parse::<Level>(), Err(UnknownWord));
        assert_eq!(Level::Warning as u8, 4);
    }

    #[test]
    fn octet_counting() {
        let mut out = Vec::new();
        write_counted(&mut out, b"<6>hello");
        assert_eq!(out, b"8 <6>hello");
    }
}
