//! Numbers, IPv4 addresses and dates as text. A log line has dozens of them, so they are written
//! without the machinery of `core::fmt`.

use std::net::Ipv4Addr;

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
pub(crate) fn pair(number: u32) -> [u8; 2] {
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

/// The text of a second, kept until that of another one is asked for: all lines of a second have the
/// same date.
#[derive(Debug, Default)]
pub(crate) struct DateText {
    /// The second, and by how much its text is ahead of UTC.
    moment: Option<(i64, i32)>,
    text: Vec<u8>,
}

impl DateText {
    /// The text of a second, as `write` appends it: the same for each call.
    #[inline]
    pub(crate) fn of(&mut self, secs: i64, ahead: i32, write: fn(&mut Vec<u8>, i64, i32)) -> &[u8] {
        if self.moment != Some((secs, ahead)) {
            self.text.clear();
            write(&mut self.text, secs, ahead);
            self.moment = Some((secs, ahead));
        }
        &self.text
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
        let mut text = |secs, ahead| {
            let write = |out: &mut Vec<u8>, secs, ahead| {
                out.extend_from_slice(format!("{secs} {ahead}").as_bytes());
            };
            String::from_utf8(date.of(secs, ahead, write).to_vec()).unwrap()
        };
        for (secs, ahead) in [(0, 0), (0, 0), (0, 3600), (1, 3600), (0, 3600), (-1, 0)] {
            assert_eq!(text(secs, ahead), format!("{secs} {ahead}"));
        }
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
    }
}
