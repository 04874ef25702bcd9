//! How a server speaks HTTP/2, from the command line.

use crate::h2::raw::{self, ACK};

/// The window of a stream and the streams of a connection, unless the command line says otherwise.
const WINDOW_BYTES: u32 = 1 << 20;
const STREAM_COUNT: u32 = 1000;

/// The options of the command line, for the servers that follow them.
#[derive(Clone, Debug)]
pub(crate) struct H2Options {
    is_off: bool,
    pub(super) window_bytes: u32,
    pub(super) stream_count: u32,
    pub(super) muted: Muted,
}

impl Default for H2Options {
    fn default() -> Self {
        Self {
            is_off: false,
            window_bytes: WINDOW_BYTES,
            stream_count: STREAM_COUNT,
            muted: Muted::default(),
        }
    }
}

impl H2Options {
    /// Takes one option; false when it is none of these.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn take(
        &mut self,
        option: &str,
        mut value: impl FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        let mut number = |max: u32| {
            let text = value()?;
            let number = text.parse().ok().filter(|number| *number <= max);
            number.ok_or_else(|| format!("{option} {text}: wants a number up to {max}"))
        };
        match option {
            "--h2-window" => self.window_bytes = number(i32::MAX.unsigned_abs())?,
            "--h2-streams" => self.stream_count = number(u32::MAX)?,
            "--h2" => {
                self.is_off = match value()?.as_str() {
                    "on" => false,
                    "off" => true,
                    other => return Err(format!("--h2 {other}: wants on or off")),
                };
            }
            "--h2-mute" => self.muted = Muted::read(&value()?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the preface is recognised.
    pub(crate) fn is_served(&self) -> bool {
        !self.is_off
    }
}

/// Frames that are never sent: their types, and whether they have the flag ACK.
#[derive(Clone, Debug, Default)]
pub(super) struct Muted(Vec<(u8, bool)>);

impl Muted {
    /// Reads a list of words.
    ///
    /// # Errors
    ///
    /// The word that is not known.
    pub(super) fn read(list: &str) -> Result<Self, String> {
        let words = list.split(',').filter(|word| *word != "none");
        let kinds = words.map(|word| {
            Ok(match word.trim() {
                "data" => (raw::DATA, false),
                "headers" => (raw::HEADERS, false),
                "reset" => (raw::RST_STREAM, false),
                "settings" => (raw::SETTINGS, false),
                "settings-ack" => (raw::SETTINGS, true),
                "ping-ack" => (raw::PING, true),
                "goaway" => (raw::GOAWAY, false),
                "window-update" => (raw::WINDOW_UPDATE, false),
                other => return Err(format!("--h2-mute: no such frame: {other}")),
            })
        });
        kinds.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn has(&self, kind: u8, flags: u8) -> bool {
        let has_ack = matches!(kind, raw::SETTINGS | raw::PING) && flags & ACK != 0;
        self.0.contains(&(kind, has_ack))
    }
}
