//! `set anon`, `show anon`: answers without names and addresses, which may be given to strangers.
//!
//! A name is replaced by a short hash. The hash is the same wherever the name appears under the
//! same key, so that a list can still be read. It is too short to find the name from it.
//!
//! Source: management manual, section 9.3, "set anon".

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::session::CliSession;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["set", "anon", "global-key"],
        "set anon global-key <value>",
        "choose the key for sessions that choose none",
        global_key,
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "anon", "off"],
        "set anon off",
        "show names as they are again",
        |call| {
            call.session.anonymous = None;
            CommandAnswer::Done
        },
    ),
    Command::new(
        &["set", "anon", "on"],
        "set anon on [value]",
        "hide names and addresses in lists of sessions and servers",
        turn_on,
    ),
    Command::new(
        &["show", "anon"],
        "show anon",
        "tell whether names are hidden, and by which key",
        |call| {
            let mut text = match call.session.anonymous {
                Some(_) => "Anonymized mode enabled\n".to_owned(),
                None => "Anonymized mode disabled\n".to_owned(),
            };
            // Who has the key can guess names: only administrators see it.
            if let Some(key) = call.session.anonymous
                && call.session.level >= CliLevel::Operator
            {
                text.push_str(&format!("Key : {key}\n"));
            }
            CommandAnswer::Report(text)
        },
    ),
];

const KEY_RANGE: &str = "'set anon' expects a key between 1 and 4294967295.";

fn global_key(call: &mut CommandCall<'_>) -> CommandAnswer {
    // 0 is no key, as in a configuration without the keyword; as in HAProxy no number is 0, too.
    let key = call.arg(0).parse::<u32>().unwrap_or(0);
    call.shared.anonymous_key.set((key > 0).then_some(key));
    CommandAnswer::Done
}

fn turn_on(call: &mut CommandCall<'_>) -> CommandAnswer {
    let key = match call.arg(0) {
        "" => call.shared.anonymous_key.get().unwrap_or_else(random_key),
        word => match word.parse() {
            Ok(key) if key > 0 => key,
            _ => return CommandAnswer::error(KEY_RANGE),
        },
    };
    call.session.anonymous = Some(key);
    CommandAnswer::Done
}

fn random_key() -> u32 {
    let random = RandomState::new().hash_one(0_u8);
    u32::try_from(random >> 32).map_or(1, |key| key.max(1))
}

/// How names are written in the answers of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameMasking {
    key: Option<u32>,
}

impl NameMasking {
    pub(crate) fn of(session: &CliSession) -> Self {
        Self {
            key: session.anonymous,
        }
    }

    /// The name, or its hash.
    pub(crate) fn name<'n>(self, name: &'n str) -> Cow<'n, str> {
        match self.key {
            Some(key) if !name.is_empty() => Cow::Owned(format!("{:06x}", hash(key, name))),
            _ => Cow::Borrowed(name),
        }
    }

    /// The address, or its hash; the port is always shown.
    pub(crate) fn address<'n>(self, address: &'n str) -> Cow<'n, str> {
        if self.key.is_none() || address == "-" {
            return Cow::Borrowed(address);
        }
        match address.rsplit_once(':') {
            Some((ip, port))
                if !ip.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Cow::Owned(format!("{}:{port}", self.name(ip)))
            }
            _ => self.name(address),
        }
    }
}

/// 24 bits: FNV-1a over key, name and key, folded.
fn hash(key: u32, name: &str) -> u32 {
    let key = key.to_be_bytes();
    let bytes = key.iter().chain(name.as_bytes()).chain(&key);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    u32::try_from((hash ^ (hash >> 24) ^ (hash >> 48)) & 0xff_ffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_hidden_alike_under_one_key_and_otherwise_under_another() {
        let one = NameMasking { key: Some(7) };
        assert_eq!(one.name("be"), one.name("be"));
        assert_ne!(one.name("be"), one.name("fe"));
        assert_ne!(one.name("be"), NameMasking { key: Some(8) }.name("be"));
        assert_eq!(one.name("be").len(), 6);
        let address = one.address("10.0.0.1:443");
        assert!(
            address.ends_with(":443") && !address.contains("10.0"),
            "{address}"
        );
        assert!(!one.address("[::1]:80").contains("::1"));
        assert_eq!(one.address("-"), "-");
        assert_eq!(
            NameMasking::default().address("10.0.0.1:443"),
            "10.0.0.1:443"
        );
        assert!(random_key() > 0);
    }
}
