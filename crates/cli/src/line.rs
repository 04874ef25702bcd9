//! Cutting what a caller sends into commands.
//!
//! Source: management manual, section 9.3 "Unix Socket commands". A line holds commands
//! separated by `;`, each of words separated by spaces or tabs. A backslash takes the next
//! character as it is, a line end, too. What stands last and begins with `<<` announces a payload:
//! the lines that follow, up to an empty one, or to one that equals what stands behind `<<`. A
//! carriage return before the line end is read as HAProxy 3.2 reads it: an empty command follows.

use ballast_expr::text_of_bytes;

/// What ends a payload is no longer than this; with a longer word behind `<<` there is none.
const MARK_BYTES_MAX: usize = 7;

/// A command as it was given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CommandInput {
    /// Its words, backslashes taken away.
    pub words: Vec<String>,
    /// Its text as it came, for passing it on.
    pub text: String,
    /// The payload, each line with its end.
    pub payload: Option<Vec<u8>>,
}

/// A line, with what was announced to follow it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CommandLine {
    /// The commands, at least one. An empty line holds one without words.
    pub commands: Vec<CommandInput>,
}

/// What [`LineReader::next_line`] found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LineEvent {
    /// A whole line, with its payload.
    Line(CommandLine),
    /// Nothing whole yet: push more.
    Nothing,
    /// A line of a payload, or the line that announced it; more must follow.
    Payload,
    /// The line is longer than it may be.
    LineTooLong,
    /// The payload is longer than it may be.
    PayloadTooLong,
}

/// Bytes in, lines out. Holds at most one line and its payload beyond what was pushed last.
#[derive(Debug)]
pub struct LineReader {
    line_bytes_max: usize,
    payload_bytes_max: usize,
    bytes: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
    /// The line whose payload is being read, and what ends it.
    open: Option<(CommandLine, Vec<u8>, Vec<u8>)>,
}

impl LineReader {
    /// A reader of nothing yet.
    pub fn new(line_bytes_max: usize, payload_bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            payload_bytes_max,
            bytes: Vec::new(),
            searched: 0,
            open: None,
        }
    }

    /// Adds what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether a whole line waits to be read.
    pub fn has_line(&mut self) -> bool {
        let searched = self.searched;
        let found = self.line_length().is_some();
        self.searched = searched;
        found
    }

    /// Whether something came behind the lines that were taken out.
    pub fn has_bytes(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The bytes after the lines that were taken out: another reader goes on with them.
    pub fn take_rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        std::mem::take(&mut self.bytes)
    }

    /// Takes the next line out. After [`LineEvent::LineTooLong`] and [`LineEvent::PayloadTooLong`] there
    /// is nothing sensible left to read.
    pub fn next_line(&mut self) -> LineEvent {
        let Some(length) = self.line_length() else {
            let payload = self
                .open
                .as_ref()
                .map_or(0, |(_, payload, _)| payload.len());
            if self.open.is_some() && payload + self.bytes.len() > self.payload_bytes_max {
                return LineEvent::PayloadTooLong;
            }
            if self.open.is_none() && self.bytes.len() > self.line_bytes_max {
                return LineEvent::LineTooLong;
            }
            return LineEvent::Nothing;
        };
        let raw: Vec<u8> = self.bytes.drain(..=length).collect();
        self.searched = 0;
        let line = raw.strip_suffix(b"\n").unwrap_or(&raw);
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if self.open.is_some() {
            return self.payload_line(&raw, text);
        }
        let has_return = text.len() < line.len();
        // As long as it was on its way, so that cuts of the network do not matter.
        if length > self.line_bytes_max {
            return LineEvent::LineTooLong;
        }
        let (mut line, end) = parse(&text_of_bytes(text));
        match end {
            None => {
                if has_return {
                    line.commands.push(CommandInput::default());
                }
                LineEvent::Line(line)
            }
            Some(end) => {
                self.open = Some((line, Vec::new(), end.into_bytes()));
                LineEvent::Payload
            }
        }
    }

    /// Where the first line ends. A backslash takes the line end, too, except in a payload.
    fn line_length(&mut self) -> Option<usize> {
        let is_payload = self.open.is_some();
        let mut from = std::mem::replace(&mut self.searched, self.bytes.len());
        while let Some(at) = self.bytes[from..].iter().position(|&byte| byte == b'\n') {
            let end = from + at;
            if is_payload || !is_escaped(&self.bytes[..end]) {
                return Some(end);
            }
            from = end + 1;
        }
        None
    }

    fn payload_line(&mut self, raw: &[u8], text: &[u8]) -> LineEvent {
        let Some((mut line, mut payload, end)) = self.open.take() else {
            return LineEvent::Nothing;
        };
        let before_end = payload.len() + raw.len() - 1;
        if before_end > self.payload_bytes_max {
            return LineEvent::PayloadTooLong;
        }
        if text == end {
            if let Some(last) = line.commands.last_mut() {
                last.payload = Some(payload);
            }
            return LineEvent::Line(line);
        }
        if payload.len() + raw.len() > self.payload_bytes_max {
            return LineEvent::PayloadTooLong;
        }
        payload.extend_from_slice(raw);
        self.open = Some((line, payload, end));
        LineEvent::Payload
    }
}

/// Whether a backslash takes the byte that follows these: an odd number of them stands last.
fn is_escaped(before: &[u8]) -> bool {
    let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Cuts a line into commands; and what ends its payload, if it announces one.
fn parse(text: &str) -> (CommandLine, Option<String>) {
    let mut commands = Vec::new();
    let mut rest = text;
    loop {
        let (command, after) = one_command(rest);
        commands.push(command);
        match after {
            Some(after) => rest = after,
            None => break,
        }
    }
    // The word must stand alone, last and unescaped: the text decides, not the word.
    let announced = rest.rsplit([' ', '\t']).next().unwrap_or_default();
    let end = announced
        .strip_prefix("<<")
        .filter(|mark| mark.len() <= MARK_BYTES_MAX);
    if let Some(last) = commands.last_mut().filter(|_| end.is_some()) {
        last.words.pop();
    }
    let end = end.map(str::to_owned);
    (CommandLine { commands }, end)
}

/// The first command of a text, and what follows its `;`.
fn one_command(text: &str) -> (CommandInput, Option<&str>) {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            ';' => {
                words.extend(word.take());
                return (command_input(words, &text[..at]), Some(&text[at + 1..]));
            }
            ' ' | '\t' => words.extend(word.take()),
            '\\' => {
                let word = word.get_or_insert_default();
                word.extend(letters.next().map(|(_, escaped)| escaped));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    (command_input(words, text), None)
}

fn command_input(words: Vec<String>, text: &str) -> CommandInput {
    CommandInput {
        words,
        text: text.trim_matches([' ', '\t']).to_owned(),
        payload: None,
    }
}

#[cfg(test)]
mod tests {
    use ballast_expr::bytes_of_text;
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let mut reader = LineReader::new(1000, 1000);
        reader.push(text.as_bytes());
        reader.push(b"\n");
        match reader.next_line() {
            LineEvent::Line(line) => line.commands.into_iter().map(|given| given.words).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn commands_are_cut_at_semicolons_and_words_at_blanks() {
        assert_eq!(
            words("show  info\t; quit"),
            [vec!["show", "info"], vec!["quit"]]
        );
        assert_eq!(words(r"a\;b \\ c\ d"), [[r"a;b", r"\", "c d"]]);
        assert_eq!(words(""), [Vec::<String>::new()]);
        assert_eq!(words("a;;b")[1], Vec::<String>::new());
        assert_eq!(words("show info\r"), words("show info;"));
    }

    #[test]
    fn a_payload_ends_at_an_empty_line_or_at_its_mark() {
        let mut reader = LineReader::new(1000, 1000);
        reader.push(b"add map x <<\na 1\r\nb 2\n\nshow x <<EOF\n\nEOF\nrest");
        assert_eq!(reader.next_line(), LineEvent::Payload);
        assert_eq!(reader.next_line(), LineEvent::Payload);
        assert_eq!(reader.next_line(), LineEvent::Payload);
        let LineEvent::Line(line) = reader.next_line() else {
            panic!("no line")
        };
        assert_eq!(line.commands[0].words, ["add", "map", "x"]);
        assert_eq!(
            line.commands[0].payload.as_deref(),
            Some(&b"a 1\r\nb 2\n"[..])
        );
        assert_eq!(
            (reader.next_line(), reader.next_line()),
            (LineEvent::Payload, LineEvent::Payload)
        );
        let LineEvent::Line(line) = reader.next_line() else {
            panic!("no line")
        };
        assert_eq!(line.commands[0].payload.as_deref(), Some(&b"\n"[..]));
        assert_eq!(reader.next_line(), LineEvent::Nothing);
        assert!(!reader.has_line());
    }

    #[test]
    fn a_mark_must_stand_alone_and_last() {
        assert_eq!(words("a <<x b"), [["a", "<<x", "b"]]);
        assert_eq!(words("a<<"), [["a<<"]]);
        assert_eq!(words(r"a \<<"), [["a", "<<"]]);
        assert_eq!(words("a <<x "), [["a", "<<x"]]);
        assert_eq!(words("a <<12345678"), [["a", "<<12345678"]]);
    }

    #[test]
    fn a_backslash_takes_the_line_end() {
        assert_eq!(words("a\\\nb c"), [["a\nb", "c"]]);
        assert_eq!(words("a \\\\"), [["a", "\\"]]);
        let mut reader = LineReader::new(1000, 1000);
        reader.push(b"a\\\n");
        assert_eq!(reader.next_line(), LineEvent::Nothing);
        reader.push(b"b <<\nv\\\n\n");
        assert_eq!(reader.next_line(), LineEvent::Payload);
        assert_eq!(reader.next_line(), LineEvent::Payload);
        let LineEvent::Line(line) = reader.next_line() else {
            panic!("no line")
        };
        assert_eq!(line.commands[0].words, ["a\nb"]);
        assert_eq!(line.commands[0].payload.as_deref(), Some(&b"v\\\n"[..]));
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_whole() {
        let mut reader = LineReader::new(10, 10);
        reader.push(b"0123456789");
        assert_eq!(reader.next_line(), LineEvent::Nothing);
        reader.push(b"0");
        assert_eq!(reader.next_line(), LineEvent::LineTooLong);
        let mut reader = LineReader::new(10, 10);
        reader.push(b"a <<\n0123456789");
        assert_eq!(
            (reader.next_line(), reader.next_line()),
            (LineEvent::Payload, LineEvent::Nothing)
        );
        reader.push(b"\n");
        assert_eq!(reader.next_line(), LineEvent::PayloadTooLong);
    }

    #[test]
    fn a_line_may_hold_any_bytes() {
        let mut reader = LineReader::new(100, 100);
        reader.push(b"add acl x \xff\xfe\nquit\n");
        let LineEvent::Line(line) = reader.next_line() else {
            panic!("a line");
        };
        assert_eq!(*bytes_of_text(&line.commands[0].words[3]), *b"\xff\xfe");
        assert!(matches!(reader.next_line(), LineEvent::Line(_)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// However the bytes are cut up on the way, the same lines come out.
        #[test]
        fn the_cuts_of_the_network_do_not_show(
            text in "[a-c;<\\\\ \n]{0,80}", cut in 1_usize..9
        ) {
            let read = |size: usize| {
                let mut reader = LineReader::new(200, 200);
                let mut found = Vec::new();
                for part in text.as_bytes().chunks(size) {
                    reader.push(part);
                    loop {
                        match reader.next_line() {
                            LineEvent::Nothing => break,
                            other => found.push(other),
                        }
                    }
                }
                found
            };
            prop_assert_eq!(read(cut), read(1000));
        }
    }
}
