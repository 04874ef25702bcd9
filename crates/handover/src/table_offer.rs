//! How a process that starts finds the one whose stick tables it asks for.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ballast_net::{foreign_fd, read_memory_file, receive_with_fds, sealed_file, sealed_file_of};
use ballast_wire::getsocks::TABLES_REQUEST;
use ballast_wire::handoff::Message;

use crate::channel::Channel;
use crate::table_channel::TableChannel;

/// How long a command socket may take to give a channel.
const CHANNEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The name of the file that says which descriptor is the offer, as `/proc` shows it.
const OFFER: &str = "ballast-tables";

/// What a process holds open so that one that replaces it (`-sf`) gets a channel to it.
///
/// Who may take descriptors out of this process may send channels over the one that is offered.
#[derive(Debug)]
pub struct TableOffer {
    served: Channel,
    _offered: Channel,
    _name: OwnedFd,
}

impl TableOffer {
    /// Opens an offer.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn open() -> io::Result<Self> {
        let (served, offered) = Channel::pair()?;
        let number = offered.as_fd().as_raw_fd().to_string();
        Ok(Self {
            served,
            _offered: offered,
            _name: sealed_file(OFFER, number.as_bytes())?,
        })
    }

    /// The end that channels come from, as [`Message::TableChannel`].
    pub fn served(&self) -> &Channel {
        &self.served
    }
}

/// A channel to another process; `None` where it offers none, and where this process may not look.
pub fn table_channel_of(pid: i32) -> Option<TableChannel> {
    let name = sealed_file_of(pid, OFFER).ok().flatten()?;
    let number = String::from_utf8(read_memory_file(&name, 16).ok()?).ok()?;
    let offered = foreign_fd(pid, number.parse().ok()?).ok()?;
    let (here, there) = TableChannel::pair().ok()?;
    let sent = Channel::from_fd(offered).send(&Message::TableChannel, &[there.as_fd()]);
    sent.is_ok().then_some(here)
}

/// Asks the process behind a command socket for a channel; `None` where it gives none: HAProxy, or a
/// process without tables.
pub fn fetch_table_channel(path: &Path) -> Option<TableChannel> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.set_read_timeout(Some(CHANNEL_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(CHANNEL_TIMEOUT)).ok()?;
    stream.write_all(TABLES_REQUEST).ok()?;
    let (_, fds) = receive_with_fds(&stream, &mut [0; 64]).ok()?;
    fds.into_iter().next().map(TableChannel::from_fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_channel::TableRequest;

    #[test]
    fn a_process_is_found_by_its_number() {
        let own = ballast_net::process_id();
        assert!(table_channel_of(own).is_none());
        let offer = TableOffer::open().unwrap();
        let channel = table_channel_of(own).unwrap();
        let received = offer.served().receive().unwrap().unwrap();
        assert_eq!(received.message, Message::TableChannel);
        let answers = TableChannel::from_fd(received.fds.into_iter().next().unwrap());
        channel.ask(TableRequest::All).unwrap();
        assert_eq!(answers.next_request().unwrap(), Some(TableRequest::All));
    }
}
