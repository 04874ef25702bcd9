//! Which converters turn a sample into one of another type, where no implicit cast does.

use crate::value::SampleKind;

/// Converters, as they are written, that make of a sample of type `from` one that is taken for `to`.
/// None where there is an implicit cast, and where nothing sensible can be made.
const fn converters_between(from: SampleKind, to: SampleKind) -> &'static [&'static str] {
    use SampleKind::{Addr, Bin, Bool, Int, Ipv4, Ipv6, Meth};
    match (from, to) {
        // The bytes read as a number, or as its digits.
        (Bin, Int) => &["be2dec(,8)", "concat()"],
        (Bin, Bool) => &["length,bool", "concat()"],
        (Bin, Addr | Ipv4 | Ipv6) => &["concat()"],
        // The bytes of an address read as a number, or its hash.
        (Addr | Ipv6, Int) => &["be2dec(,4)", "xxh32"],
        (Ipv4, Bool) => &["bool"],
        (Meth, Int) => &["length", "xxh32"],
        _ => &[],
    }
}

/// The end of a sentence that says that `from` came where `to` is wanted: what would help.
pub fn missing_cast(from: SampleKind, to: SampleKind) -> String {
    match converters_between(from, to) {
        [] => "; no converter makes one of it".to_owned(),
        words => {
            let words: Vec<String> = words.iter().map(|word| format!("',{word}'")).collect();
            format!("; {} makes one of it", words.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;

    /// A sample of each type that others cannot always be cast to.
    const SAMPLES: [(&str, SampleKind); 7] = [
        ("src", SampleKind::Addr),
        ("req.payload(0,4)", SampleKind::Bin),
        ("ssl_fc", SampleKind::Bool),
        ("int(1)", SampleKind::Int),
        ("ipv4(192.0.2.1)", SampleKind::Ipv4),
        ("ipv6(::1)", SampleKind::Ipv6),
        ("method", SampleKind::Meth),
    ];

    #[test]
    fn what_is_said_to_help_is_accepted_and_makes_the_type() {
        let mut helped = 0;
        for (sample, from) in SAMPLES {
            assert_eq!(Expr::parse(sample).unwrap().kind, from, "{sample}");
            for (_, to) in SAMPLES {
                for word in converters_between(from, to) {
                    let expr = Expr::parse(&format!("{sample},{word}")).unwrap();
                    assert!(!from.casts_to(to), "{from} is {to} without '{word}'");
                    assert!(expr.kind.casts_to(to), "{expr} is no {to}");
                    helped += 1;
                }
            }
        }
        assert!(helped > 10, "{helped} converters were tried");
    }
}
