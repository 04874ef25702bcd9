//! Numbers, IPv4 addresses and dates as text. A log line has dozens of them, so they are written
//! without the machinery of `core::fmt`.

use std::net::Ipv4Addr;

use crate::calendar::{CalendarTime, padded};

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = pairs();

/// The digits of an octet from the left, the rest full stops, and how many digits there are.
static OCTETS: [([u8; 4], u8); 256] = octets();

const fn pairs() -> [[u8; 2]; 100] {
    let mut all = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        all[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    all
}

const fn octets() -> [([u8; 4], u8); 256] {
    let mut all = [([b'.'; 4], 0); 256];
    let mut number = 0;
    while number < 256 {
        let digits = [
            b'0' + (number / 100) as u8,
            b'0' + (number / 10 % 10) as u8,
            b'0' + (number % 10) as u8,
        ];
        let skipped = (number < 100) as usize + (number < 10) as usize;
        let mut at = skipped;
        while at < 3 {
            all[number].0[at - skipped] = digits[at];
            at += 1;
        }
        all[number].1 = (3 - skipped) as u8;
        number += 1;
    }
    all
}

/// The two last digits of a number.
fn pair(number: u32) -> [u8; 2] {
    PAIRS[number as usize % 100]
}

/// Appends a number.
#[inline]
pub(crate) fn push_int(out: &mut Vec<u8>, number: i64) {
    match number {
        0..=9 => out.push(b'0' + number as u8),
        10..=99 => out.extend_from_slice(&pair(number as u32)),
        100..=999 => {
            let [tens, ones] = pair(number as u32);
            out.extend_from_slice(&[b'0' + (number / 100) as u8, tens, ones]);
        }
        _ => push_long_int(out, number),
    }
}

#[inline(never)]
fn push_long_int(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends an address.
pub(crate) fn push_v4(out: &mut Vec<u8>, address: Ipv4Addr) {
    // Four digits more than the longest: an octet is copied with what stands behind it in the table.
    let mut text = [0; 20];
    let mut length = 0;
    for octet in address.octets() {
        let (digits, count) = &OCTETS[usize::from(octet)];
        if let Some(room) = text.get_mut(length..length + 4) {
            room.copy_from_slice(digits);
        }
        length += usize::from(*count) + 1;
    }
    out.extend_from_slice(text.get(..length - 1).unwrap_or_default());
}

/// Appends three digits: of milliseconds, below 1000.
#[inline]
pub(crate) fn push_millis(out: &mut Vec<u8>, millis: u32) {
    let [tens, ones] = pair(millis);
    out.extend_from_slice(&[b'0' + (millis / 100 % 10) as u8, tens, ones]);
}

/// A date as logs show it, `21/Nov/2026:09:40:07`, kept until another one is asked for: all lines of
/// a second have the same.
#[derive(Debug, Default)]
pub(crate) struct DateText {
    /// The second, and by how much its text is ahead of UTC.
    moment: Option<(i64, i32)>,
    text: Vec<u8>,
}

impl DateText {
    /// The text of a second.
    #[inline]
    pub(crate) fn of(&mut self, secs: i64, ahead: i32) -> &[u8] {
        if self.moment != Some((secs, ahead)) {
            self.write(secs, ahead);
        }
        &self.text
    }

    #[cold]
    fn write(&mut self, secs: i64, ahead: i32) {
        let Self { moment, text } = self;
        *moment = Some((secs, ahead));
        text.clear();
        let date = CalendarTime::at(secs, ahead);
        text.extend_from_slice(&pair(date.day));
        text.push(b'/');
        text.extend_from_slice(&date.month_name().as_bytes()[..3]);
        text.push(b'/');
        padded(text, date.year, 4, b'0');
        for number in [date.hour, date.minute, date.second] {
            text.push(b':');
            text.extend_from_slice(&pair(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        write(&mut out);
        String::from_utf8(out).unwrap()[1..].to_owned()
    }

    #[test]
    fn small_numbers_are_as_core_writes_them() {
        for number in -1100_i64..11_000 {
            let text = written(|out| push_int(out, number));
            assert_eq!(text, number.to_string());
        }
        for millis in 0..1000 {
            assert_eq!(
                written(|out| push_millis(out, millis)),
                format!("{millis:03}")
            );
        }
    }

    #[test]
    fn each_octet_is_as_core_writes_it() {
        for octet in 0..=u8::MAX {
            for address in [
                [octet, 0, 10, 255],
                [255, octet, 100, 9],
                [1, 99, octet, octet],
            ] {
                let address = Ipv4Addr::from(address);
                assert_eq!(written(|out| push_v4(out, address)), address.to_string());
            }
        }
    }

    #[test]
    fn a_date_is_kept_for_its_second_and_zone() {
        let mut date = DateText::default();
        let mut text = |secs, ahead| String::from_utf8(date.of(secs, ahead).to_vec()).unwrap();
        assert_eq!(text(0, 0), "01/Jan/1970:00:00:00");
        assert_eq!(text(0, 0), "01/Jan/1970:00:00:00");
        assert_eq!(text(0, 3600), "01/Jan/1970:01:00:00");
        assert_eq!(text(1, 3600), "01/Jan/1970:01:00:01");
        assert_eq!(text(-1, 0), "31/Dec/1969:23:59:59");
        assert_eq!(text(951_827_696, 0), "29/Feb/2000:12:34:56");
        assert_eq!(text(253_402_300_799, 3600), "01/Jan/10000:00:59:59");
    }

    proptest! {
        #[test]
        fn any_number_is_as_core_writes_it(number: i64, shift in 0_u32..64) {
            for number in [number, number >> shift] {
                prop_assert_eq!(written(|out| push_int(out, number)), number.to_string());
            }
        }

        #[test]
        fn any_address_is_as_core_writes_it(address: u32) {
            let address = Ipv4Addr::from(address);
            prop_assert_eq!(written(|out| push_v4(out, address)), address.to_string());
        }

        #[test]
        fn any_date_is_as_core_writes_it(secs: i64, near in -5_000_000_000_i64..500_000_000_000, ahead in -50_400_i32..50_400) {
            let mut text = DateText::default();
            for secs in [secs, near, near, near + 1] {
                let date = CalendarTime::at(secs, ahead);
                let sign = if date.year < 0 { "-" } else { "" };
                let expected = format!(
                    "{:02}/{}/{sign}{:04}:{:02}:{:02}:{:02}",
                    date.day,
                    &date.month_name()[..3],
                    date.year.abs(),
                    date.hour,
                    date.minute,
                    date.second
                );
                prop_assert_eq!(text.of(secs, ahead), expected.as_bytes());
            }
        }
    }
}
