//! Any path on any JSON document: an answer is never longer than the document.
#![no_main]

use ballast_expr::{Expr, Facts, ProcessFacts, Scratch, Time, Value, eval};
use libfuzzer_sys::fuzz_target;

struct World<'a>(&'a [u8]);

impl Facts for World<'_> {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        7
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
}

impl ProcessFacts for World<'_> {
    fn env(&self, _: &str) -> Option<std::sync::Arc<[u8]>> {
        Some(self.0.into())
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(at) = data.iter().position(|byte| *byte == 0) else {
        return;
    };
    let Ok(path) = std::str::from_utf8(&data[..at]) else {
        return;
    };
    let document = &data[at + 1..];
    let path = path.replace('\\', "\\\\").replace('"', "\\\"");
    for output in ["", ",int"] {
        let Ok(expr) = Expr::parse(&format!("env(x),json_query(\"{path}\"{output})")) else {
            continue;
        };
        let (world, mut scratch) = (World(document), Scratch::new());
        if let Some(Value::Str(text)) = eval(&expr, &world, &mut scratch) {
            // A number is written with six digits and an exponent.
            assert!(text.len() <= document.len().max(13));
        }
    }
});
