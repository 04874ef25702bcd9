//! Parser of an agent's reply to `agent-check` (configuration manual, section 5.2).

/// The longest reply line, in bytes. A longer one is refused.
pub const REPLY_BYTES_MAX: usize = 16384;

/// The content of a reply; what it does not mention stays as it is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AgentReply<'a> {
    /// `ready`, `drain` or `maint`.
    pub administrative: Option<AgentAdminState>,
    /// `up`, `down`, `fail` or `stopped`.
    pub operating: Option<AgentOperationalState>,
    /// The text after `#`, up to the end of the line.
    pub description: Option<&'a [u8]>,
    /// `75%`: percent of the configured weight.
    pub weight_percent: Option<u32>,
    /// `maxconn:30`.
    pub maxconn: Option<u32>,
    /// The first unknown word, to be reported.
    pub unknown: Option<&'a [u8]>,
}

/// The administrative state that an agent sets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentAdminState {
    /// Only persistent clients use the server.
    Drain,
    /// The server is not used and not checked.
    Maint,
    /// Neither.
    Ready,
}

/// The state of the service, according to the agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentOperationalState {
    /// It does not respond.
    Down,
    /// It fails its own checks.
    Fail,
    /// It was stopped on purpose.
    Stopped,
    /// It works.
    Up,
}

/// The result of parsing what has arrived so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentReplyParse<'a> {
    /// The line is incomplete.
    Incomplete,
    /// A complete line.
    Complete(AgentReply<'a>),
    /// No end of the line within [`REPLY_BYTES_MAX`] or before the agent closed the connection, or
    /// an empty line.
    Invalid,
}

/// Parses a reply; `ended` says that the agent has closed its side.
pub fn parse(input: &[u8], ended: bool) -> AgentReplyParse<'_> {
    let window = &input[..input.len().min(REPLY_BYTES_MAX)];
    match window.iter().position(|&b| b == b'\r' || b == b'\n') {
        Some(end) => match reply(&window[..end]) {
            Some(reply) => AgentReplyParse::Complete(reply),
            None => AgentReplyParse::Invalid,
        },
        None if ended || window.len() == REPLY_BYTES_MAX => AgentReplyParse::Invalid,
        None => AgentReplyParse::Incomplete,
    }
}

fn reply(line: &[u8]) -> Option<AgentReply<'_>> {
    let mut reply = AgentReply::default();
    let mut words = line;
    if let Some(sharp) = line.iter().position(|&b| b == b'#') {
        words = &line[..sharp];
        reply.description = Some(&line[sharp + 1..]);
    }
    let mut some = false;
    for word in words.split(|b| matches!(b, b' ' | b'\t' | b',')) {
        if !word.is_empty() {
            some = true;
            take(&mut reply, word);
        }
    }
    some.then_some(reply)
}

fn take<'a>(reply: &mut AgentReply<'a>, word: &'a [u8]) {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if is("up") {
        reply.operating = Some(AgentOperationalState::Up);
    } else if is("down") {
        reply.operating = Some(AgentOperationalState::Down);
    } else if is("fail") {
        reply.operating = Some(AgentOperationalState::Fail);
    } else if is("stopped") {
        reply.operating = Some(AgentOperationalState::Stopped);
    } else if is("ready") {
        reply.administrative = Some(AgentAdminState::Ready);
    } else if is("drain") {
        reply.administrative = Some(AgentAdminState::Drain);
    } else if is("maint") {
        reply.administrative = Some(AgentAdminState::Maint);
    } else if let Some(percent) = word.strip_suffix(b"%").and_then(number) {
        reply.weight_percent = Some(percent);
    } else if let Some(count) = maxconn(word) {
        reply.maxconn = Some(count);
    } else if reply.unknown.is_none() {
        reply.unknown = Some(word);
    }
}

fn maxconn(word: &[u8]) -> Option<u32> {
    let (name, count) = word.split_at_checked(8)?;
    if !name.eq_ignore_ascii_case(b"maxconn:") {
        return None;
    }
    number(count)
}

fn number(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str) -> AgentReply<'_> {
        match parse(line.as_bytes(), false) {
            AgentReplyParse::Complete(reply) => reply,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn words_in_any_order() {
        let reply = whole("UP ready,75%\tmaxconn:30\r\nignored");
        assert_eq!(reply.operating, Some(AgentOperationalState::Up));
        assert_eq!(reply.administrative, Some(AgentAdminState::Ready));
        assert_eq!(reply.weight_percent, Some(75));
        assert_eq!(reply.maxconn, Some(30));
        assert_eq!((reply.description, reply.unknown), (None, None));
        assert_eq!(
            whole("drain\n").administrative,
            Some(AgentAdminState::Drain)
        );
        assert_eq!(
            whole("maint\n").administrative,
            Some(AgentAdminState::Maint)
        );
        assert_eq!(whole("fail\n").operating, Some(AgentOperationalState::Fail));
        assert_eq!(
            whole("stopped\n").operating,
            Some(AgentOperationalState::Stopped)
        );
        assert_eq!(whole("0%\n").weight_percent, Some(0));
        assert_eq!(
            whole("down up\n").operating,
            Some(AgentOperationalState::Up)
        );
    }

    #[test]
    fn descriptions_keep_their_spaces() {
        let reply = whole("50% down#disk is full, 3%\n");
        assert_eq!(reply.operating, Some(AgentOperationalState::Down));
        assert_eq!(reply.description, Some(&b"disk is full, 3%"[..]));
        assert_eq!(reply.weight_percent, Some(50));
    }

    #[test]
    fn what_means_nothing_is_reported() {
        for line in [
            "-5%",
            "maxconn:",
            "maxconn:x",
            "%",
            "4294967296%",
            "upp",
            "x y",
        ] {
            let text = format!("{line}\n");
            let reply = whole(&text);
            let first = line.split(' ').next().unwrap();
            assert_eq!(reply.unknown, Some(first.as_bytes()));
            assert_eq!((reply.maxconn, reply.weight_percent), (None, None));
        }
    }

    #[test]
    fn ends() {
        assert_eq!(parse(b"up", false), AgentReplyParse::Incomplete);
        assert_eq!(parse(b"up", true), AgentReplyParse::Invalid);
        assert_eq!(parse(b"\n", false), AgentReplyParse::Invalid);
        assert_eq!(parse(b" ,\n", false), AgentReplyParse::Invalid);
        assert_eq!(
            parse(&[b'x'; REPLY_BYTES_MAX], false),
            AgentReplyParse::Invalid
        );
    }
}
