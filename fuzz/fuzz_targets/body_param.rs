//! Any bytes as the body of a form: what `req.body_param` finds is what a plain search finds.
#![no_main]

use ballast_expr::{BodyFacts, Expr, Facts, Scratch, Side, Time, Value, eval};
use libfuzzer_sys::fuzz_target;

struct Posted<'a>(&'a [u8]);

impl Facts for Posted<'_> {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        7
    }
    fn body(&self, sent_by: Side) -> Option<BodyFacts<'_>> {
        (sent_by == Side::Client).then_some(BodyFacts {
            bytes: self.0,
            announced_bytes: None,
            is_final: true,
        })
    }
}

fn found(body: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    body.split(|byte| matches!(byte, b'&' | b';'))
        .filter_map(|piece| {
            let equals = piece.iter().position(|byte| *byte == b'=')?;
            Some((&piece[..equals], &piece[equals + 1..]))
        })
        .find(|(name, _)| is_wanted(name))
        .map(|(_, value)| value)
}

fuzz_target!(|body: &[u8]| {
    let check = |text: &str, expected: Option<&[u8]>| {
        let expr = Expr::parse(text).expect("it is valid");
        let (posted, mut scratch) = (Posted(body), Scratch::new());
        let value = eval(&expr, &posted, &mut scratch);
        assert_eq!(value, expected.map(Value::Bin), "{text}");
    };
    check("req.body_param(a)", found(body, |name| name == b"a"));
    let folded = |name: &[u8]| name.eq_ignore_ascii_case(b"a");
    check("req.body_param(a,i)", found(body, folded));
    check("req.body_param", found(body, |_| true));
});
