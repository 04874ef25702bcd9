//! Parser of an agent's response (`agent-check`).
//!
//! Source: configuration manual, `agent-check`. The words may come in any order, separated by
//! spaces, tabs or commas; the line ends at the first CR or LF.

/// An operating state an agent reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentState {
    /// `down`.
    Down,
    /// `fail`.
    Fail,
    /// `stopped`.
    Stopped,
    /// `up`.
    Up,
}

impl AgentState {
    /// The keyword.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Fail => "fail",
            Self::Stopped => "stopped",
            Self::Up => "up",
        }
    }
}

/// An administrative state an agent asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentAdmin {
    /// `drain`.
    Drain,
    /// `maint`.
    Maint,
    /// `ready`.
    Ready,
}

/// A parsed agent response. What it does not mention stays as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AgentAnswer {
    /// Administrative state.
    pub admin: Option<AgentAdmin>,
    /// `maxconn:<n>`.
    pub maxconn: Option<u32>,
    /// The text after `#`.
    pub note: String,
    /// Operating state.
    pub state: Option<AgentState>,
    /// The first word that is not known.
    pub unknown: Option<String>,
    /// `<n>%` of the initial weight.
    pub weight_percent: Option<u32>,
}

/// Parses an agent's response. Bytes after the first line are ignored. It never fails: unknown
/// words are reported in [`AgentAnswer::unknown`].
#[must_use]
pub fn parse_agent(answer: &[u8]) -> AgentAnswer {
    let line_end = answer
        .iter()
        .position(|&byte| byte == b'\r' || byte == b'\n');
    let line = String::from_utf8_lossy(&answer[..line_end.unwrap_or(answer.len())]);
    let (words, note) = split_note(&line);
    let mut said = AgentAnswer {
        note: note.trim_start().to_owned(),
        ..AgentAnswer::default()
    };
    for word in words
        .split([' ', '\t', ','])
        .filter(|word| !word.is_empty())
    {
        match word.to_ascii_lowercase().as_str() {
            "up" => said.state = Some(AgentState::Up),
            "down" => said.state = Some(AgentState::Down),
            "fail" => said.state = Some(AgentState::Fail),
            "stopped" => said.state = Some(AgentState::Stopped),
            "ready" => said.admin = Some(AgentAdmin::Ready),
            "drain" => said.admin = Some(AgentAdmin::Drain),
            "maint" => said.admin = Some(AgentAdmin::Maint),
            other => match (other.strip_suffix('%'), other.strip_prefix("maxconn:")) {
                (Some(digits), _) if digits.parse::<u32>().is_ok() => {
                    said.weight_percent = digits.parse().ok();
                }
                (_, Some(digits)) if digits.parse::<u32>().is_ok() => {
                    said.maxconn = digits.parse().ok();
                }
                _ => {
                    said.unknown.get_or_insert_with(|| word.to_owned());
                }
            },
        }
    }
    said
}

/// `#` begins a note only where a word could begin: `down#x` is one unknown word.
fn split_note(line: &str) -> (&str, &str) {
    let mut before = ' ';
    for (at, now) in line.char_indices() {
        if now == '#' && matches!(before, ' ' | '\t' | ',') {
            return (&line[..at], &line[at + 1..]);
        }
        before = now;
    }
    (line, "")
}
