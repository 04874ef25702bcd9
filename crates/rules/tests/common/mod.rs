//! A transaction of plain values, and lines cut into words.

#![allow(dead_code, reason = "each test file uses its share")]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ballast_expr::{
    AclSet, AddressPair, ExpressionError, Facts, FrontendFacts, Linker, LogFormat, Side, Store,
    Time, Usage, Value, VarName,
};
use ballast_message::{HeadLimits, NoRoom, Request, Response, Version};
use ballast_rules::{
    Capability, ExchangeSetting, LogLevel, ParseEnv, Rule, RuleSetKind, RuleSets, Transaction,
    Verdict, Workspace, parse_rule, run,
};

/// A value that owns its bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Owned {
    Bool(bool),
    Int(i64),
    Ip(IpAddr),
    Str(Vec<u8>),
    Bin(Vec<u8>),
    Meth(Vec<u8>),
}

impl Owned {
    pub fn of(value: Value<'_>) -> Owned {
        match value {
            Value::Bool(flag) => Owned::Bool(flag),
            Value::Int(number) => Owned::Int(number),
            Value::Ipv4(address) => Owned::Ip(address.into()),
            Value::Ipv6(address) => Owned::Ip(address.into()),
            Value::Str(bytes) => Owned::Str(bytes.to_vec()),
            Value::Bin(bytes) => Owned::Bin(bytes.to_vec()),
            Value::Meth(bytes) => Owned::Meth(bytes.to_vec()),
        }
    }

    pub fn value(&self) -> Value<'_> {
        match self {
            Owned::Bool(flag) => Value::Bool(*flag),
            Owned::Int(number) => Value::Int(*number),
            Owned::Ip(IpAddr::V4(address)) => Value::Ipv4(*address),
            Owned::Ip(IpAddr::V6(address)) => Value::Ipv6(*address),
            Owned::Str(bytes) => Value::Str(bytes),
            Owned::Bin(bytes) => Value::Bin(bytes),
            Owned::Meth(bytes) => Value::Meth(bytes),
        }
    }
}

/// What a stream would be.
#[derive(Default)]
pub struct Fake {
    pub request: Option<Request>,
    pub response: Option<Response>,
    pub on_response: bool,
    pub answer: Response,
    pub body: Vec<u8>,
    pub vars: HashMap<VarName, Owned>,
    pub request_captures: HashMap<usize, Vec<u8>>,
    pub response_captures: HashMap<usize, Vec<u8>>,
    pub level: Option<LogLevel>,
    pub failures: usize,
    pub settings: Vec<ExchangeSetting>,
    /// Of 103 responses: group, name and value of each field.
    pub hints: Vec<(usize, String)>,
    /// The client's bytes as they came.
    pub data: Option<Vec<u8>>,
}

const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), 5000);
const DESTINATION: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 80);

impl Facts for Fake {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        4
    }
    fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }
    fn response(&self) -> Option<&Response> {
        self.response.as_ref()
    }
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        self.data.as_deref().filter(|_| sent_by == Side::Client)
    }
    fn side(&self) -> Side {
        if self.on_response {
            Side::Server
        } else {
            Side::Client
        }
    }
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: Some(&SOURCE),
            destination: Some(&DESTINATION),
        }
    }
    fn frontend(&self) -> Option<&dyn FrontendFacts> {
        Some(self)
    }
    fn var(&self, name: &VarName) -> Option<Value<'_>> {
        self.vars.get(name).map(Owned::value)
    }
}

impl FrontendFacts for Fake {
    fn name(&self) -> &str {
        "f"
    }
}

impl Transaction for Fake {
    fn with_facts(&self, question: &mut dyn FnMut(&dyn Facts)) {
        question(self);
    }
    fn request_mut(&mut self) -> Option<&mut Request> {
        self.request.as_mut()
    }
    fn response_mut(&mut self) -> Option<&mut Response> {
        self.response.as_mut()
    }
    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
        (&mut self.answer, &mut self.body)
    }
    fn set_var(&mut self, name: &VarName, value: Option<Value<'_>>) {
        match value {
            Some(value) => self.vars.insert(name.clone(), Owned::of(value)),
            None => self.vars.remove(name),
        };
    }
    fn capture_request(&mut self, slot: usize, value: &[u8]) {
        self.request_captures.insert(slot, value.to_vec());
    }
    fn capture_response(&mut self, slot: usize, value: &[u8]) {
        self.response_captures.insert(slot, value.to_vec());
    }
    fn set(&mut self, setting: ExchangeSetting) {
        self.settings.push(setting);
    }
    fn early_hint(&mut self, group: usize, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        let text = format!(
            "{}: {}",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(value)
        );
        self.hints.push((group, text));
        Ok(())
    }
    fn set_log_level(&mut self, level: LogLevel) {
        self.level = Some(level);
    }
    fn rewrite_failed(&mut self) {
        self.failures += 1;
    }
}

impl Fake {
    /// A request, and limits that leave room.
    pub fn asking(method: &str, target: &str, headers: &[(&str, &str)]) -> Fake {
        let mut request = Request::new(HeadLimits::default());
        request.set_method(method.as_bytes()).unwrap();
        request.set_target(target.as_bytes()).unwrap();
        request.set_version(Version::Http11);
        for (name, value) in headers {
            request
                .fields_mut()
                .add(name.as_bytes(), value.as_bytes())
                .unwrap();
        }
        Fake {
            request: Some(request),
            ..Fake::default()
        }
    }

    /// What a client of a TCP proxy sent so far.
    pub fn sent(bytes: &[u8]) -> Fake {
        Fake {
            data: Some(bytes.to_vec()),
            ..Fake::default()
        }
    }

    /// The same with the server's answer.
    pub fn answered(mut self, status: u16, headers: &[(&str, &str)]) -> Fake {
        let mut response = Response::new(HeadLimits::default());
        response.set_version(Version::Http11);
        response.set_status(status).unwrap();
        for (name, value) in headers {
            response
                .fields_mut()
                .add(name.as_bytes(), value.as_bytes())
                .unwrap();
        }
        self.response = Some(response);
        self.on_response = true;
        self
    }

    pub fn var(&self, name: &str) -> Option<&Owned> {
        self.vars.get(&VarName::parse(name).unwrap())
    }

    /// Method, target and fields, one a line.
    pub fn request_text(&self) -> String {
        let request = self.request.as_ref().unwrap();
        let mut text = format!(
            "{} {}\n",
            lossy(request.method_token()),
            lossy(request.target())
        );
        push_fields(&mut text, request.fields());
        text
    }

    pub fn response_text(&self) -> String {
        head_text(self.response.as_ref().unwrap())
    }
}

/// Status, reason and fields, one a line.
pub fn head_text(response: &Response) -> String {
    let mut text = format!("{} {}\n", response.status(), lossy(response.reason()));
    push_fields(&mut text, response.fields());
    text
}

fn push_fields(text: &mut String, fields: &ballast_message::Fields) {
    for field in fields {
        text.push_str(&format!("{}: {}\n", lossy(field.name), lossy(field.value)));
    }
}

pub fn lossy(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

pub fn no_files(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "/page" => Ok(b"HTTP/1.0 503 Gone fishing\r\n\r\nback soon".to_vec()),
        "/text" => Ok(b"from a file".to_vec()),
        "/fmt" => Ok(b"you are %[src]".to_vec()),
        "/empty" => Ok(Vec::new()),
        _ => Err("no such file".to_owned()),
    }
}

pub const FRONT: Capability = Capability {
    frontend: true,
    backend: false,
};
pub const BACK: Capability = Capability {
    frontend: false,
    backend: true,
};
pub const BOTH: Capability = Capability {
    frontend: true,
    backend: true,
};

/// Parses the words of a line after those of the rule set; warnings are given too.
pub fn parse(
    rule_set: RuleSetKind,
    line: &str,
    capability: Capability,
) -> (Result<Rule, ExpressionError>, Vec<String>) {
    let acls = AclSet::new();
    let mut files = no_files;
    let title = if capability.frontend {
        "frontend 'f'"
    } else {
        "backend 'b'"
    };
    let mut env = ParseEnv::new(&acls, &mut files, capability, title);
    env.experimental = true;
    env.experimental = true;
    let cut = words(line);
    let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
    let parsed = parse_rule(rule_set, &cut, &mut env);
    (
        parsed,
        env.warnings
            .into_iter()
            .map(|warning| warning.message)
            .collect(),
    )
}

/// Rules of one rule set, parsed and linked.
pub fn rules(rule_set: RuleSetKind, lines: &[&str]) -> Vec<Rule> {
    let mut sets = RuleSets::default();
    for line in lines {
        let rule = parse(rule_set, line, BOTH).0;
        sets.of_mut(rule_set)
            .push(rule.unwrap_or_else(|error| panic!("{line}: {error}")));
    }
    let mut linker = Linker {
        store: &Store::new(),
        files: &mut no_files,
        acls: &AclSet::new(),
    };
    sets.link(&mut linker).unwrap();
    std::mem::take(&mut **sets.of_mut(rule_set))
}

/// Runs lines over a transaction.
pub fn act(rule_set: RuleSetKind, lines: &[&str], fake: &mut Fake) -> Verdict {
    run(&rules(rule_set, lines), fake, &mut Workspace::new())
}

pub fn rendered(text: &str, fake: &Fake) -> String {
    let mut out = Vec::new();
    let format = LogFormat::parse(text, Usage::Text).unwrap();
    format.render(fake, &mut ballast_expr::Scratch::new(), &mut out);
    lossy(&out)
}

/// Cuts a line into words: quotes and backslashes as manual 2.2 says, as far as tests need.
pub fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ') => all.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None, '\\') => {
                let word = word.get_or_insert_default();
                match chars.next() {
                    Some('n') => word.push('\n'),
                    Some(next @ ('\\' | ' ' | '"' | '\'' | '#')) => word.push(next),
                    Some(next) => word.extend(['\\', next]),
                    None => {}
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}
