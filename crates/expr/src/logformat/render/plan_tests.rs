//! The steps of formats against their items, written one after the other.

use proptest::prelude::*;

use super::*;
use crate::facts::{ExchangeFacts, ProcessFacts};

/// Writes the items as the manual says: blanks once, and not before anything else.
fn reference(format: &LogFormat, facts: &dyn Facts) -> Vec<u8> {
    let (mut out, mut scratch) = (Vec::new(), Scratch::new());
    let mut blank = matches!(format.usage, Usage::Log | Usage::UniqueId);
    for item in &format.items {
        let start = out.len();
        match item {
            Item::Blank => {
                if !blank {
                    out.push(b' ');
                }
                blank = true;
                continue;
            }
            Item::Literal(text) => out.extend_from_slice(text.as_bytes()),
            _ => {
                let mut writer = format.writer(facts, &mut out);
                format.render_item(item, &mut scratch, &mut writer);
            }
        }
        blank = blank && out.len() == start;
    }
    out
}

/// An exchange of which little is known, or nothing.
#[derive(Debug)]
struct Exchange {
    line: Option<&'static [u8]>,
    cookie: &'static [u8],
    slots: Vec<Vec<u8>>,
    numbers: Option<ExchangeNumbers>,
    source: Option<SocketAddr>,
}

impl Facts for Exchange {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        0
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
    fn exchange(&self) -> &dyn ExchangeFacts {
        self
    }
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: self.source.as_ref(),
            destination: None,
        }
    }
    fn captures(&self, _: Side) -> CaptureFacts<'_> {
        CaptureFacts {
            slot_count: self.slots.len(),
            slots: &self.slots,
            cookie: self.cookie,
        }
    }
    fn numbers(&self) -> Option<&ExchangeNumbers> {
        self.numbers.as_ref()
    }
}

impl ProcessFacts for Exchange {}

impl ExchangeFacts for Exchange {
    fn request_line(&self) -> Option<&[u8]> {
        self.line
    }
}

fn exchanges() -> impl Strategy<Value = Exchange> {
    let lines = prop_oneof![
        Just(None),
        Just(Some(b"GET / HTTP/1.1".as_slice())),
        Just(Some(b"GET /a\"b#\xffc?d=e HTTP/1.0".as_slice())),
        Just(Some(b" ".as_slice())),
    ];
    let numbers =
        (any::<[i64; 3]>(), any::<bool>()).prop_map(|([a, b, c], asap)| ExchangeNumbers {
            request_ms: a,
            active_ms: b % 1000,
            status: (c % 600) as i32,
            retries: (c % 3) as u32,
            redispatched: asap,
            asap,
            ..ExchangeNumbers::default()
        });
    let slots = proptest::collection::vec(prop_oneof![Just(vec![]), Just(b"x|y".to_vec())], 0..3);
    let sources = prop_oneof![
        Just(None),
        Just(Some("192.0.2.1:80".parse().unwrap())),
        Just(Some("[2001:db8::1]:8".parse().unwrap())),
    ];
    let cookies = prop_oneof![Just(b"".as_slice()), Just(b"a=b".as_slice())];
    (
        lines,
        cookies,
        slots,
        proptest::option::of(numbers),
        sources,
    )
        .prop_map(|(line, cookie, slots, numbers, source)| Exchange {
            line,
            cookie,
            slots,
            numbers,
            source,
        })
}

fn formats() -> impl Strategy<Value = String> {
    let alias = (0..super::super::ALIASES.len()).prop_map(|at| super::super::ALIASES[at].word);
    let flags = prop_oneof![
        8 => Just(""),
        1 => Just("{+Q}"),
        1 => Just("{+X}"),
        1 => Just("{+E}"),
        1 => Just("{+json}"),
        1 => Just("{+cbor}"),
    ];
    let piece = prop_oneof![
        8 => Just(" ".to_owned()),
        2 => Just("/".to_owned()),
        1 => Just("[ab c%%".to_owned()),
        1 => Just("%[str()]".to_owned()),
        1 => Just("%[int(-12)]".to_owned()),
        1 => Just("%[req.hdr(x)]".to_owned()),
        // What may write nothing.
        6 => proptest::sample::select(vec!["%hr", "%hs", "%hrl", "%hsl", "%HQ", "%HPO", "%ID"])
            .prop_map(str::to_owned),
        4 => (flags, alias).prop_filter_map("a whole line would be encoded", |(flags, word)| {
            (word != "o").then(|| format!("%{flags}{word}"))
        }),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn steps_write_what_the_items_write(
        text in formats(),
        exchange in exchanges(),
        usage in prop_oneof![
            3 => Just(Usage::Log),
            1 => Just(Usage::UniqueId),
            1 => Just(Usage::Http),
            1 => Just(Usage::Text),
        ],
    ) {
        let format = LogFormat::parse(&text, usage).unwrap();
        // What is there already is no blank.
        for before in [b"".as_slice(), b"x", b" "] {
            let mut out = before.to_vec();
            format.render(&exchange, &mut Scratch::new(), &mut out);
            let rendered = String::from_utf8_lossy(&out[before.len()..]).into_owned();
            let expected = String::from_utf8_lossy(&reference(&format, &exchange)).into_owned();
            prop_assert_eq!(rendered, expected, "{}", text);
        }
    }
}
