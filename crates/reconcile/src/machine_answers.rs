//! What a machine answered while a configuration was read.
//!
//! A worker that gave its rights up, or sees another root, cannot ask. Then a scout, which has
//! both, reads the configuration once and writes down what the machine answered it; the worker
//! reads the same configuration and finds the same answers there.
//!
//! What was answered when files were read is kept for the edits that commands make until they are
//! read again: a name is not looked up anew, nor a list or page read, because somebody added a rule.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ballast_wire::handoff::{Malformed, read_pairs, write_pairs};

/// What a machine was asked, and answered.
#[derive(Debug)]
pub struct MachineAnswers {
    answers: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    /// Nothing is asked of the machine: what is not here is not there.
    is_closed: bool,
}

static ANSWERS: Mutex<Option<Arc<MachineAnswers>>> = Mutex::new(None);

impl MachineAnswers {
    /// The question for the content of a file.
    pub const CONTENT: u8 = b'r';

    /// An empty one, to be written in.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::default(),
            is_closed: false,
        })
    }

    /// One that was written by another process.
    ///
    /// # Errors
    /// It was not.
    pub fn read(bytes: &[u8]) -> Result<Arc<Self>, Malformed> {
        let mut answers = HashMap::new();
        read_pairs(bytes, |question, answer| {
            answers.insert(question.to_vec(), answer.to_vec());
        })?;
        Ok(Arc::new(Self {
            answers: Mutex::new(answers),
            is_closed: true,
        }))
    }

    /// All of it.
    pub fn write(&self) -> Vec<u8> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = answers.iter();
        write_pairs(pairs.map(|(question, answer)| (&question[..], &answer[..])))
    }

    /// Has every machine of this process use it, until what comes back is dropped.
    pub fn open(self: &Arc<Self>) -> OpenAnswers {
        let before = use_for_all(Some(Arc::clone(self)));
        OpenAnswers { before }
    }

    /// The one that every machine uses, if there is one.
    pub fn in_use() -> Option<Arc<Self>> {
        ANSWERS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Asks the machine, or the answers in use in its place, which say nothing of what was not
    /// asked. `kind` tells questions about one thing apart.
    pub fn asked(kind: u8, about: &str, ask: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        let Some(machine_answers) = Self::in_use() else {
            return ask();
        };
        let question = [&[kind], about.as_bytes()].concat();
        let mut answers = machine_answers
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match answers.get(&question) {
            Some(answer) => answer.clone(),
            None if machine_answers.is_closed => Vec::new(),
            None => {
                let answer = ask();
                answers.insert(question, answer.clone());
                answer
            }
        }
    }

    /// Forgets the content of files, which somebody else keeps.
    pub fn forget_content<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            answers.remove(&[&[Self::CONTENT], name.as_bytes()].concat());
        }
    }
}

/// Has answers be in use for as long as this lives.
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
