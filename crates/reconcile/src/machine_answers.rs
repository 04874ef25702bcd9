//! Answers of the machine (names, files, users) while a configuration was read.
//!
//! A worker without rights, or in a chroot, cannot ask the machine. Then the privileged helper, a
//! process that can, reads the configuration once and records the answers. The worker reads the same
//! configuration with the recorded answers.
//!
//! The answers are also kept for edits by command until the files are read again: an added rule
//! causes no lookup of names and reads no list or page again. Keys are not kept here: the certificates in
//! force have them.

use std::collections::{HashMap, TryReserveError};
use std::sync::{Arc, Mutex, PoisonError};

use ballast_tls::shared_store::SharedStore;
use ballast_wire::handoff::{HandoffError, read_pairs, write_pairs};

/// Questions to the machine and their answers.
#[derive(Debug)]
pub struct MachineAnswers {
    answers: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    /// The machine is not asked: a question without an answer has an empty one.
    is_closed: bool,
}

static ANSWERS: Mutex<Option<Arc<MachineAnswers>>> = Mutex::new(None);

impl MachineAnswers {
    /// The question for the content of a file.
    pub const CONTENT: u8 = b'r';

    /// No answers yet; they are recorded.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::default(),
            is_closed: false,
        })
    }

    /// The answers that another process recorded.
    ///
    /// # Errors
    /// The bytes are malformed.
    pub fn read(bytes: &[u8]) -> Result<Arc<Self>, HandoffError> {
        let mut answers = HashMap::new();
        read_pairs(bytes, |question, answer| {
            answers.insert(question.to_vec(), answer.to_vec());
        })?;
        Ok(Arc::new(Self {
            answers: Mutex::new(answers),
            is_closed: true,
        }))
    }

    /// The answers as bytes.
    pub fn write(&self) -> Vec<u8> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = answers.iter();
        write_pairs(pairs.map(|(question, answer)| (&question[..], &answer[..])))
    }

    /// Makes them the answers of this process, until the guard is dropped.
    pub fn open(self: &Arc<Self>) -> OpenAnswers {
        let before = use_for_all(Some(Arc::clone(self)));
        OpenAnswers { before }
    }

    /// The answers in use, if any.
    pub fn in_use() -> Option<Arc<Self>> {
        ANSWERS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The answer to a question: of the answers in use, or of the machine. `kind` tells questions
    /// about one subject apart.
    ///
    /// # Errors
    /// There is no memory for a copy of it.
    pub fn ask(
        kind: u8,
        about: &str,
        ask: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, TryReserveError> {
        let Some(machine_answers) = Self::in_use() else {
            return Ok(ask());
        };
        let question = [&[kind], about.as_bytes()].concat();
        let mut answers = machine_answers
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match answers.get(&question) {
            Some(answer) => try_copy(answer),
            None if machine_answers.is_closed => Ok(Vec::new()),
            None => {
                let answer = ask();
                answers.insert(question, try_copy(&answer)?);
                Ok(answer)
            }
        }
    }

    /// Drops the content of the files that these certificates and keys were read from: an edit takes
    /// them from memory.
    pub(crate) fn forget_certificates(&self, read: &SharedStore) {
        let names = read.lock().file_names();
        self.forget_content(names.iter().map(String::as_str));
    }

    /// Drops the content of files.
    pub fn forget_content<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            answers.remove(&[&[Self::CONTENT], name.as_bytes()].concat());
        }
    }
}

/// A copy, if there is memory for it: contents of files are large.
fn try_copy(bytes: &[u8]) -> Result<Vec<u8>, TryReserveError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Keeps answers in use while it lives.
#[derive(Debug)]
pub struct OpenAnswers {
    before: Option<Arc<MachineAnswers>>,
}

impl Drop for OpenAnswers {
    fn drop(&mut self) {
        let _ = use_for_all(self.before.take());
    }
}

fn use_for_all(machine_answers: Option<Arc<MachineAnswers>>) -> Option<Arc<MachineAnswers>> {
    let mut used = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut used, machine_answers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ballast_tls::shared_store::StoreState;
    use ballast_tls::tickets::TicketKeys;

    use super::*;

    #[test]
    fn no_key_is_kept_once_it_is_in_force() {
        let answers = MachineAnswers::new();
        {
            let _open = answers.open();
            for name in ["a list", "keys"] {
                let ask = || format!("the content of {name}").into_bytes();
                let _ = MachineAnswers::ask(MachineAnswers::CONTENT, name, ask);
            }
        }
        let keys = Arc::new(TicketKeys::random());
        let read = SharedStore::new(StoreState {
            ticket_keys: BTreeMap::from([("keys".to_owned(), keys)]),
            ..StoreState::default()
        });
        answers.forget_certificates(&read);
        let kept = String::from_utf8_lossy(&answers.write()).into_owned();
        assert!(kept.contains("the content of a list"), "{kept}");
        assert!(!kept.contains("the content of keys"), "{kept}");
    }
}
