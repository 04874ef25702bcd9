//! The line to a file helper: questions, answers, and what is done while none comes.

use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use ballast_handover::{Channel, MemoryFile};
use ballast_net as net;

/// A message has one byte, and a memory file with what it says.
const MARK: &[u8] = b"f";

/// How long is waited for answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For an answer: it may have to read a large configuration from a slow disk.
    pub(super) answer: Duration,
    /// For an answer, after one that did not come.
    pub(super) answer_when_silent: Duration,
    /// Until it is asked again after an answer that did not come: a change asks thousands of questions.
    pub(super) pause: Duration,
}

impl Patience {
    pub(super) const USUAL: Self = Self {
        answer: Duration::from_secs(60),
        answer_when_silent: Duration::from_secs(1),
        pause: Duration::from_secs(5),
    };
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// None came in time. `is_new`: the one before did.
    Late { is_new: bool },
    /// The helper has ended.
    Ended,
    /// It could not be asked.
    System(io::Error),
}

/// The line of the process that asks.
#[derive(Debug)]
pub(super) struct Line {
    channel: Channel,
    patience: Patience,
    /// The number of the last question.
    number: u64,
    /// When an answer was last waited for in vain; `None` if none was, or a late one came since.
    silent_since: Option<Instant>,
}

impl Line {
    pub(super) fn new(channel: Channel, patience: Patience) -> Self {
        Self {
            channel,
            patience,
            number: 0,
            silent_since: None,
        }
    }

    /// The answer to a question. An answer to a change of files is waited for as long as ever: it would be
    /// carried out all the same.
    pub(super) fn ask(&mut self, question: &[u8], is_change: bool) -> Result<Vec<u8>, NoAnswer> {
        if let Some(since) = self.silent_since {
            if self.has_late_answer()? {
                self.silent_since = None;
            } else if since.elapsed() < self.patience.pause {
                return Err(NoAnswer::Late { is_new: false });
            }
        }
        let timeout = match self.silent_since {
            Some(_) if !is_change => self.patience.answer_when_silent,
            _ => self.patience.answer,
        };
        self.number += 1;
        match self.exchange(question, timeout) {
            Ok(Some(answer)) => {
                self.silent_since = None;
                Ok(answer)
            }
            Ok(None) => Err(NoAnswer::Ended),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let before = self.silent_since.replace(Instant::now());
                Err(NoAnswer::Late {
                    is_new: before.is_none(),
                })
            }
            Err(error) => Err(NoAnswer::System(error)),
        }
    }

    /// Sends the question, and waits for the answer with its number.
    fn exchange(&self, question: &[u8], timeout: Duration) -> io::Result<Option<Vec<u8>>> {
        // Who answers nothing takes no questions either, once many wait.
        net::set_timeouts(self.channel.as_fd(), timeout)?;
        let number = self.number.to_le_bytes();
        match send(&self.channel, &[&number, question].concat()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            sent => sent?,
        }
        loop {
            match receive(&self.channel) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Some(answer)) => match answer.strip_prefix(&number) {
                    Some(answer) => return Ok(Some(answer.to_vec())),
                    // It came too late for its question.
                    None => continue,
                },
                other => return other,
            }
        }
    }

    /// Whether the helper has answered a question that nobody waits for any more: it goes on.
    fn has_late_answer(&self) -> Result<bool, NoAnswer> {
        let looks = net::set_timeouts(self.channel.as_fd(), Duration::from_millis(1));
        looks.map_err(NoAnswer::System)?;
        let mut is_there = false;
        loop {
            match receive(&self.channel) {
                Ok(Some(_)) => is_there = true,
                Ok(None) => return Err(NoAnswer::Ended),
                Err(_) => return Ok(is_there),
            }
        }
    }
}

/// Sends what one side says.
pub(super) fn send(channel: &Channel, bytes: &[u8]) -> io::Result<()> {
    let file = MemoryFile::write(bytes)?;
    net::send_with_fds(channel.as_fd(), MARK, &[file.as_fd()]).map(|_| ())
}

/// What the other side says; `None`: it has ended.
pub(super) fn receive(channel: &Channel) -> io::Result<Option<Vec<u8>>> {
    let (count, fds) = net::receive_with_fds(channel.as_fd(), &mut [0; MARK.len()])?;
    let file = fds.into_iter().next().map(MemoryFile::from_fd);
    match (count, file) {
        (0, _) => Ok(None),
        (_, Some(file)) if file.is_sealed() => file.read().map(Some),
        (_, _) => Ok(Some(Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Patience = Patience {
        answer: Duration::from_millis(50),
        answer_when_silent: Duration::from_millis(1),
        pause: Duration::ZERO,
    };

    /// More questions than the channel holds: none is waited for without end, and nobody has to start the
    /// process again once the helper goes on.
    #[test]
    fn a_helper_that_hangs_holds_nobody_up_and_may_go_on() {
        let (own, other) = Channel::pair().unwrap();
        let mut line = Line::new(own, SHORT);
        let first = line.ask(b"first", false);
        assert!(matches!(first, Err(NoAnswer::Late { is_new: true })));
        for _ in 0..320 {
            let next = line.ask(b"next", false);
            assert!(matches!(next, Err(NoAnswer::Late { is_new: false })));
        }
        let answering = std::thread::spawn(move || {
            let mut count = 0;
            while let Ok(Some(question)) = receive(&other) {
                let answer = [&question[..8], b"to ", &question[8..]].concat();
                let _ = send(&other, &answer);
                count += 1;
            }
            count
        });
        // Answers to the former ones come first.
        while line.ask(b"last", false).ok() != Some(b"to last".to_vec()) {}
        drop(line);
        let count = answering.join().unwrap();
        assert!(
            count < 500,
            "{count} questions waited: the channel was never full"
        );
    }

    /// In the pause nothing is asked, unless an answer tells that the helper goes on.
    #[test]
    fn it_is_asked_again_after_a_pause_or_an_answer() {
        let (own, other) = Channel::pair().unwrap();
        let pause = Duration::from_secs(3600);
        let mut line = Line::new(own, Patience { pause, ..SHORT });
        for question in [b"first", b"other"] {
            let asked = line.ask(question, true);
            assert!(matches!(asked, Err(NoAnswer::Late { .. })));
        }
        let question = receive(&other).unwrap().unwrap();
        assert_eq!(&question[8..], b"first");
        send(&other, &[&question[..8], b"late"].concat()).unwrap();
        let asked = line.ask(b"third", false);
        assert!(matches!(asked, Err(NoAnswer::Late { is_new: true })));
        let question = receive(&other).unwrap().unwrap();
        assert_eq!(&question[8..], b"third");
    }

    #[test]
    fn a_helper_that_has_ended_is_told_so() {
        let (own, other) = Channel::pair().unwrap();
        let mut line = Line::new(own, SHORT);
        let late = line.ask(b"question", false);
        assert!(matches!(late, Err(NoAnswer::Late { .. })));
        drop(other);
        assert!(matches!(line.ask(b"next", true), Err(NoAnswer::Ended)));
    }
}
