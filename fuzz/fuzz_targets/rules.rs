//! Any words as a rule of every rule set; what parses prints back, links and runs over a message
//! made of the same bytes.
#![no_main]

use ballast_expr::{AclSet, Facts, Linker, Store, Time, Value, VarName};
use ballast_message::{HeadLimits, Request, Response, is_field_value_lenient, is_target_lenient};
use ballast_rules::{
    Capability, LogLevel, ParseEnv, RuleSetKind, RuleSets, Transaction, Workspace, parse_rule, run,
};
use libfuzzer_sys::fuzz_target;

struct World {
    request: Request,
    response: Response,
    answer: Response,
    body: Vec<u8>,
}

impl Facts for World {
    fn now(&self) -> Time {
        Time {
            secs: 1_700_000_000,
            micros: 1,
        }
    }
    fn random(&self) -> u64 {
        7
    }
    fn request(&self) -> Option<&Request> {
        Some(&self.request)
    }
    fn response(&self) -> Option<&Response> {
        Some(&self.response)
    }
}

impl Transaction for World {
    fn with_facts(&self, question: &mut dyn FnMut(&dyn Facts)) {
        question(self);
    }
    fn request_mut(&mut self) -> Option<&mut Request> {
        Some(&mut self.request)
    }
    fn response_mut(&mut self) -> Option<&mut Response> {
        Some(&mut self.response)
    }
    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
        (&mut self.answer, &mut self.body)
    }
    fn set_var(&mut self, _: &VarName, _: Option<Value<'_>>) {}
    fn capture_request(&mut self, _: usize, _: &[u8]) {}
    fn capture_response(&mut self, _: usize, _: &[u8]) {}
    fn set_log_level(&mut self, _: LogLevel) {}
    fn rewrite_failed(&mut self) {}
}

fn world(payload: &[u8]) -> World {
    let limits = HeadLimits {
        head_bytes_max: 4096,
        ..HeadLimits::default()
    };
    let mut request = Request::new(limits);
    let mut response = Response::new(limits);
    let value: Vec<u8> = payload
        .iter()
        .copied()
        .filter(|byte| is_field_value_lenient(&[*byte]))
        .take(512)
        .collect();
    let target: Vec<u8> = payload
        .iter()
        .copied()
        .filter(|byte| is_target_lenient(&[*byte]))
        .take(512)
        .collect();
    let _ = request.set_method(b"GET");
    let _ = request.set_target(if target.is_empty() { b"/" } else { &target });
    let _ = response.set_status(200);
    for name in [&b"host"[..], b"cookie", b"x-a"] {
        let _ = request.fields_mut().add(name, &value);
        let _ = response.fields_mut().add(name, &value);
    }
    World {
        request,
        response,
        answer: Response::new(limits),
        body: Vec::new(),
    }
}

fn check(world: &World) {
    for field in world
        .request
        .fields()
        .iter()
        .chain(world.response.fields())
        .chain(world.answer.fields())
    {
        assert!(
            is_field_value_lenient(field.value),
            "a line end in a header"
        );
    }
    assert!(!world.request.target().contains(&b' '));
}

fuzz_target!(|data: &[u8]| {
    let (text, payload) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, data),
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let mut sets = RuleSets::default();
    let acls = AclSet::new();
    for line in text.split('\n').take(12) {
        let words: Vec<&str> = line.split(' ').collect();
        for rule_set in RuleSetKind::ALL {
            let mut files = |_: &str| Ok(payload.to_vec());
            let capability = Capability {
                frontend: true,
                backend: true,
            };
            let mut env = ParseEnv::new(&acls, &mut files, capability, "frontend 'f'");
            env.experimental = true;
            match parse_rule(rule_set, &words, &mut env) {
                Ok(rule) => sets.of_mut(rule_set).push(rule),
                Err(error) => {
                    assert!(error.word < words.len().max(1));
                    assert!(error.range.end <= words[error.word].len());
                }
            }
            for warning in env.warnings {
                assert!(warning.range.end <= words[warning.word].len());
            }
        }
    }
    let mut files = |_: &str| Ok(payload.to_vec());
    let mut linker = Linker {
        store: &Store::new(),
        files: &mut files,
        acls: &acls,
    };
    let _ = sets.link(&mut linker);
    sets.make_indexes();
    let _ = sets.unimplemented(&acls);
    for rule_set in RuleSetKind::ALL {
        let mut world = world(payload);
        run(sets.of(rule_set), &mut world, &mut Workspace::new());
        check(&world);
    }
});
