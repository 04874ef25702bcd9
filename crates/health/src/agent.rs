//! Parser of an agent's response (`agent-check`).
//!
//! Source: configuration manual, `agent-check`. The words may come in any order, separated by
//! spaces, tabs or commas; the line ends at the first CR or LF.

/// The longest line of a reply, in bytes. A longer one is refused.
pub const AGENT_REPLY_BYTES_MAX: usize = 16384;

/// The largest weight of a server.
const WEIGHT_MAX: u32 = 256;

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
    /// What is wrong with the number of `maxconn:`.
    pub maxconn_warning: Option<&'static str>,
    /// The text after `#`.
    pub note: String,
    /// Operating state.
    pub state: Option<AgentState>,
    /// The word of that state, as the agent wrote it.
    pub state_word: String,
    /// The first word that is not known.
    pub unknown: Option<String>,
    /// `<n>%` of the initial weight.
    pub weight_percent: Option<u32>,
    /// What is wrong with the weight, or why it is not taken.
    pub weight_warning: Option<&'static str>,
}

impl AgentAnswer {
    fn read_state(&mut self, state: AgentState, word: &str) {
        self.state = Some(state);
        word.clone_into(&mut self.state_word);
    }

    fn read_maxconn(&mut self, text: &str) {
        let warning = match leading_number(text.strip_prefix('+').unwrap_or(text)) {
            Some((number, "")) => {
                self.maxconn = Some(number);
                return;
            }
            Some(_) => "Trailing garbage in maxconn string",
            None if text.is_empty() => "Require <maxconn>.",
            None => "maxconn string empty or preceded by garbage",
        };
        self.maxconn_warning = Some(warning);
    }

    fn read_weight(&mut self, text: &str) {
        match leading_number(text) {
            Some((percent, "%")) => self.weight_percent = Some(percent),
            // As in HAProxy, what is no percentage is judged as a weight.
            Some((weight, _)) if weight > WEIGHT_MAX => {
                self.weight_warning =
                    Some("Absolute weight can only be between 0 and 256 inclusive.");
            }
            _ => self.weight_warning = Some("Trailing garbage in weight string"),
        }
    }

    /// What of it applies to a server whose weight is static: no weight at all, or that of its line,
    /// which is `weight`.
    #[must_use]
    pub fn with_static_weight(mut self, weight: u32) -> Self {
        let asked = self.weight_percent.map(|percent| share(weight, percent));
        if asked.is_some_and(|asked| asked != 0 && asked != weight) {
            self.weight_percent = None;
            self.weight_warning = Some(
                "Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.",
            );
        }
        self
    }

    /// What is shown of it (`last_agt`). The note says why a server is down; of one that is up, what was not
    /// understood is shown first.
    pub(crate) fn info(&self) -> String {
        let unknown = self.unknown.as_deref();
        let warning = self.weight_warning.or(self.maxconn_warning);
        match (self.state, unknown, warning) {
            (Some(state), ..) => {
                let note = Some(self.note.as_str()).filter(|note| !note.is_empty());
                let remark = match state {
                    AgentState::Up => unknown.or(warning).or(note),
                    AgentState::Down | AgentState::Fail | AgentState::Stopped => {
                        note.or(unknown).or(warning)
                    }
                };
                let word = &self.state_word;
                match remark {
                    None => format!("via agent : {word}"),
                    Some(remark) => format!("via agent : {word} ({remark})"),
                }
            }
            (None, Some(word), _) => format!("agent reports an error : {word}"),
            (None, None, Some(warning)) => format!("agent warns : {warning}"),
            (None, None, None) => String::new(),
        }
    }
}

/// A percentage of a weight.
pub(crate) fn share(weight: u32, percent: u32) -> u32 {
    let share = u64::from(weight) * u64::from(percent) / 100;
    u32::try_from(share).unwrap_or(u32::MAX)
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
            "up" => said.read_state(AgentState::Up, word),
            "down" => said.read_state(AgentState::Down, word),
            "fail" => said.read_state(AgentState::Fail, word),
            "stopped" => said.read_state(AgentState::Stopped, word),
            "ready" => said.admin = Some(AgentAdmin::Ready),
            "drain" => said.admin = Some(AgentAdmin::Drain),
            "maint" => said.admin = Some(AgentAdmin::Maint),
            other => match other.strip_prefix("maxconn:") {
                Some(text) => said.read_maxconn(text),
                None if other.starts_with(|c: char| c.is_ascii_digit()) && other.contains('%') => {
                    said.read_weight(other);
                }
                None => {
                    said.unknown.get_or_insert_with(|| word.to_owned());
                }
            },
        }
    }
    said
}

/// The number at the start of a text, and what follows it; a number that is too large is the largest.
fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    match digits {
        "" => None,
        digits => Some((digits.parse().unwrap_or(u32::MAX), rest)),
    }
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
