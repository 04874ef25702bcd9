//! Windows: what may be sent, and what the peer may send (RFC 9113 section 6.9).

use crate::error::H2Error;
use crate::frame::STREAM_ID_MAX;

const WINDOW_MAX: i64 = STREAM_ID_MAX as i64;

/// What we may still send. It may be negative after settings were reduced (section 6.9.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWindow {
    bytes: i64,
    /// What was promised to a sender and is not sent yet.
    reserved: i64,
}

impl SendWindow {
    pub(crate) fn new(bytes: u32) -> SendWindow {
        SendWindow {
            bytes: i64::from(bytes),
            reserved: 0,
        }
    }

    /// What may be promised.
    pub(crate) fn available(&self) -> u32 {
        u32::try_from((self.bytes - self.reserved).max(0)).unwrap_or(STREAM_ID_MAX)
    }

    /// What was promised and is still allowed.
    pub(crate) fn reserved(&self) -> u32 {
        u32::try_from(self.reserved.min(self.bytes).max(0)).unwrap_or(0)
    }

    /// What was promised, allowed any more or not.
    pub(crate) fn promised(&self) -> i64 {
        self.reserved
    }

    pub(crate) fn reserve(&mut self, bytes: u32) {
        self.reserved += i64::from(bytes);
    }

    /// Takes back a promise; returns how much was promised.
    pub(crate) fn unreserve(&mut self) -> u32 {
        u32::try_from(std::mem::take(&mut self.reserved)).unwrap_or(0)
    }

    /// Takes back a part of a promise.
    pub(crate) fn unreserve_part(&mut self, bytes: u32) {
        self.reserved = (self.reserved - i64::from(bytes)).max(0);
    }

    /// Sends what was promised before.
    pub(crate) fn send(&mut self, bytes: u32) {
        self.reserved -= i64::from(bytes);
        self.bytes -= i64::from(bytes);
        debug_assert!(self.reserved >= 0, "only what was reserved is sent");
    }

    /// The peer allows more (section 6.9.1).
    ///
    /// # Errors
    /// [`H2Error::WindowIncrementZero`], [`H2Error::WindowOverflow`].
    pub(crate) fn increase(&mut self, bytes: u32) -> Result<(), H2Error> {
        if bytes == 0 {
            return Err(H2Error::WindowIncrementZero);
        }
        self.adjust(i64::from(bytes))
    }

    /// The peer's settings changed by this much (section 6.9.2).
    ///
    /// # Errors
    /// [`H2Error::WindowOverflow`].
    pub(crate) fn adjust(&mut self, difference: i64) -> Result<(), H2Error> {
        if self.bytes + difference > WINDOW_MAX {
            return Err(H2Error::WindowOverflow);
        }
        self.bytes += difference;
        Ok(())
    }
}

/// What the peer may still send, and what it has sent that nobody has taken yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    bytes: i64,
    held: u32,
    has_received: bool,
}

impl ReceiveWindow {
    pub(crate) fn new(bytes: u32) -> ReceiveWindow {
        ReceiveWindow {
            bytes: i64::from(bytes),
            held: 0,
            has_received: false,
        }
    }

    /// The peer sends.
    ///
    /// # Errors
    /// [`H2Error::WindowExceeded`].
    pub(crate) fn receive(&mut self, bytes: u32) -> Result<(), H2Error> {
        // An empty frame is always allowed: the window may be negative after our settings reduced it.
        if bytes > 0 && i64::from(bytes) > self.bytes {
            return Err(H2Error::WindowExceeded);
        }
        self.has_received = true;
        self.bytes -= i64::from(bytes);
        self.held = self.held.saturating_add(bytes);
        Ok(())
    }

    /// Somebody took what was sent.
    pub(crate) fn give_back(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.held, "only what was received is given back");
        self.held = self.held.saturating_sub(bytes);
    }

    /// What was received and nobody has taken.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Whether anything was ever received: before, a larger window is of no use.
    pub(crate) fn has_received(&self) -> bool {
        self.has_received
    }

    /// Our settings changed by this much.
    pub(crate) fn adjust(&mut self, difference: i64) {
        self.bytes += difference;
    }

    /// The increment to announce so that the peer may have `target` bytes on the way or untaken; 0
    /// when it is not worth a frame yet: less than half of what it may send.
    pub(crate) fn credit(&self, target: u32) -> u32 {
        let credit = i64::from(target) - i64::from(self.held) - self.bytes;
        if credit <= 0 || credit < i64::from(target) / 2 {
            return 0;
        }
        u32::try_from(credit.min(WINDOW_MAX - self.bytes)).unwrap_or(0)
    }

    /// The increment was announced.
    pub(crate) fn announced(&mut self, credit: u32) {
        self.bytes += i64::from(credit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_outlives_no_reduction() {
        let mut window = SendWindow::new(100);
        window.reserve(60);
        assert_eq!(window.available(), 40);
        window.adjust(-90).unwrap();
        assert_eq!((window.available(), window.reserved()), (0, 10));
        window.send(10);
        assert_eq!((window.available(), window.reserved()), (0, 0));
        window.increase(200).unwrap();
        assert_eq!((window.available(), window.reserved()), (150, 50));
        assert_eq!(window.unreserve(), 50);
    }

    #[test]
    fn a_window_has_31_bits() {
        let mut window = SendWindow::new(65_535);
        assert_eq!(window.increase(0), Err(H2Error::WindowIncrementZero));
        assert_eq!(window.increase(STREAM_ID_MAX), Err(H2Error::WindowOverflow));
        assert_eq!(window.increase(STREAM_ID_MAX - 65_535), Ok(()));
        assert_eq!(window.increase(1), Err(H2Error::WindowOverflow));
    }

    #[test]
    fn credit_is_given_when_it_is_worth_a_frame() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(101), Err(H2Error::WindowExceeded));
        window.receive(60).unwrap();
        assert_eq!(window.credit(100), 0);
        window.give_back(40);
        assert_eq!(window.credit(100), 0);
        window.give_back(20);
        assert_eq!(window.credit(100), 60);
        window.announced(60);
        assert_eq!(window.credit(100), 0);
        assert_eq!(window.credit(1000), 900);
        window.adjust(-200);
        assert_eq!(window.receive(1), Err(H2Error::WindowExceeded));
        assert_eq!(window.receive(0), Ok(()));
    }
}
