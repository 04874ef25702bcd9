//! The whole path of a change, without a process: a host in memory, participants that record their
//! calls, and a kind of object that no other crate has yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ballast_config::{EmptyMachine, Machine};
use ballast_edit::{ConfigFiles, Refusal, SectionMap};
use ballast_engine::{Generation, Process, Registry, Server};
use ballast_health::{Effect, Health};
use ballast_syntax::Severity;
use ballast_tls::certificate_file_changes::CertificateFileChange;

use crate::kinds::{frontend, server};
use crate::{
    ChangeReport, ChangeRequest, CommitEffects, ConfigInput, ConfigSource, Controller,
    GenerationSwitch, MachineAnswers, ObjectKind, ObjectName, OverrideKey, OverrideValue,
    Participant, Persist, PreparedChange, ReadOptions, Reconciler, ReconcilerHost, Setting,
    StartRecord,
};

mod default_server;
mod merge;

const FILE: &str = "\
frontend fe
  mode http
  bind 127.0.0.1:1
  default_backend be
backend be # why
  mode http
  server s 127.0.0.1:2 weight 3
";

/// The calls, in order.
type Calls = Arc<Mutex<Vec<String>>>;

fn record(calls: &Calls, what: &str) {
    calls.lock().unwrap().push(what.to_owned());
}

/// A process in memory.
struct ToyHost {
    generation: Mutex<Arc<Generation>>,
    registry: Registry,
    files: Mutex<ConfigFiles>,
    calls: Calls,
}

impl ReconcilerHost for ToyHost {
    fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation.lock().unwrap())
    }

    fn put_in_force(&self, next: Arc<Generation>) -> Arc<Generation> {
        record(&self.calls, "in force");
        std::mem::replace(&mut *self.generation.lock().unwrap(), next)
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn connection_count_hard_max(&self) -> u32 {
        100
    }

    fn files(&self, source: Option<ConfigInput>) -> Result<ConfigFiles, String> {
        match source {
            Some(ConfigInput::Text(text)) => Ok(vec![("<<".to_owned(), text)]),
            _ => Ok(self.files.lock().unwrap().clone()),
        }
    }

    fn machine(&self, _: &ConfigFiles) -> Box<dyn Machine> {
        Box::new(EmptyMachine)
    }

    fn state_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("there are none".to_owned())
    }

    fn write_files(&self, files: &ConfigFiles) -> Result<(), String> {
        for known in self.files.lock().unwrap().iter_mut() {
            if let Some(new) = files.iter().find(|new| new.0 == known.0) {
                known.clone_from(new);
            }
        }
        Ok(())
    }

    fn change_certificate_files(&self, _: &[CertificateFileChange]) -> Result<(), String> {
        Err("there are none".to_owned())
    }

    fn change_health(
        &self,
        backend: &str,
        server: &str,
        change: &mut dyn FnMut(&mut Health, u64) -> Vec<Effect>,
    ) -> bool {
        let generation = self.generation();
        let Some(backend) = generation.backend(backend) else {
            return false;
        };
        let Some(server_index) = backend.server_named(server) else {
            return false;
        };
        let _ = change(&mut backend.servers[server_index].state.health(), 0);
        true
    }

    fn server_moved(&self, _: &Arc<Server>) {}

    fn update_tracking_servers(&self) {}

    fn pause_frontend(&self, _: &str) -> bool {
        true
    }

    fn resume_frontend(&self, _: &str) -> bool {
        true
    }

    fn shut_frontend(&self, _: &str) {}

    fn limits_changed(&self) {}

    fn log(&self, _: Severity, text: &str) {
        record(&self.calls, text);
    }

    fn memory_was_freed(&self) {}

    fn warn(&self, text: &str) {
        record(&self.calls, text);
    }

    fn alert(&self, text: &str) {
        record(&self.calls, text);
    }

    fn set_startup_log(&self, _: String) {}
}

/// A kind that no other crate has yet, as certificates will be: one row.
static CERTIFICATE: ObjectKind = ObjectKind {
    word: "certificate",
    settings: &[&CONTENT],
    ..ObjectKind::BASE
};

static CONTENT: Setting = Setting {
    apply: Some(|scope, name, value| {
        scope.host.warn(&format!("{} is {value}", name.text()));
    }),
    release: |scope, name| scope.host.warn(&format!("{} is the file's", name.text())),
    ..Setting::BASE
};

/// The participant that holds objects of that kind.
struct Certificates {
    name: &'static str,
    refuses: Arc<AtomicBool>,
    calls: Calls,
}

impl Participant for Certificates {
    fn prepare(
        &self,
        to: &GenerationSwitch<'_>,
    ) -> Result<Option<Box<dyn PreparedChange>>, Refusal> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Refusal(format!("{} cannot be read", self.name)));
        }
        record(&self.calls, &format!("{} prepares", self.name));
        assert!(to.changes.is_none(), "nothing is in force yet");
        let (name, calls) = (self.name, Arc::clone(&self.calls));
        Ok(Some(Box::new(OpenCertificates { name, calls })))
    }

    fn plan(&self, _: &GenerationSwitch<'_>) -> Vec<String> {
        vec![format!("~ {}", self.name)]
    }
}

struct OpenCertificates {
    name: &'static str,
    calls: Calls,
}

impl PreparedChange for OpenCertificates {
    fn commit(&mut self, _: &GenerationSwitch<'_>, effects: &mut CommitEffects) {
        effects.listeners_ended = true;
        record(&self.calls, &format!("{} commits", self.name));
    }

    fn finish(self: Box<Self>) {
        record(&self.calls, &format!("{} finishes", self.name));
    }
}

impl Drop for OpenCertificates {
    fn drop(&mut self) {
        record(&self.calls, &format!("{} closes", self.name));
    }
}

/// A process that began with [`FILE`].
struct Toy {
    reconciler: Reconciler,
    host: Arc<ToyHost>,
    second_refuses: Arc<AtomicBool>,
    calls: Calls,
}

impl Toy {
    fn begin() -> Self {
        let calls = Calls::default();
        let files = vec![("f.cfg".to_owned(), FILE.as_bytes().to_vec())];
        let options = ballast_config::Options::default();
        let loaded = ballast_config::load(files.clone(), &EmptyMachine, options);
        let config = Arc::new(loaded.config);
        let process = Arc::new(Process::new(1, 100));
        let registry = Registry::new(1, process);
        let generation = Generation::compile(1, Arc::clone(&config), &registry);
        let written = ConfigSource::of_files(files.clone(), Arc::clone(&config));
        let sections = SectionMap::of(Arc::clone(&written.files), loaded.sections);
        let record = StartRecord {
            written,
            store: loaded.store,
            sections,
            machine_answers: MachineAnswers::new(),
            overrides: Vec::new(),
        };
        let (controller, _) = Controller::new(config, record, ReadOptions::default());
        let host = Arc::new(ToyHost {
            generation: Mutex::new(Arc::new(generation)),
            registry,
            files: Mutex::new(files),
            calls: Arc::clone(&calls),
        });
        let second_refuses = Arc::new(AtomicBool::new(false));
        let participant = |name, refuses: &Arc<AtomicBool>| -> Box<dyn Participant> {
            Box::new(Certificates {
                name,
                refuses: Arc::clone(refuses),
                calls: Arc::clone(&calls),
            })
        };
        let participants = vec![
            participant("first", &Arc::default()),
            participant("second", &second_refuses),
        ];
        let reconciler = Reconciler::new(Arc::new(controller), host.clone(), participants);
        Self {
            reconciler,
            host,
            second_refuses,
            calls,
        }
    }

    fn overrides(&self) -> Vec<String> {
        let history = self.reconciler.controller.config_history();
        let overrides = history.overrides();
        overrides
            .map(|(key, entry)| format!("{key} = {}", entry.value))
            .collect()
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    fn carry_out(&self, request: ChangeRequest) -> Result<ChangeReport, Refusal> {
        self.reconciler.carry_out(request)
    }

    fn override_certificate(&self) {
        let controller = &self.reconciler.controller;
        let key = OverrideKey::new(&CERTIFICATE, ObjectName::of("a.pem"), &CONTENT);
        let value = OverrideValue::of_text("new");
        controller.note_override(key, value, "set ssl cert a.pem".to_owned());
    }
}

fn apply(text: &str) -> ChangeRequest {
    ChangeRequest::Apply(ConfigInput::Text(text.as_bytes().to_vec()))
}

#[test]
fn a_new_kind_is_a_row_and_a_participant() {
    let toy = Toy::begin();
    toy.override_certificate();
    assert_eq!(toy.overrides(), ["certificate a.pem = new"]);
    // A plan tells of it and changes nothing.
    let plan = toy.carry_out(ChangeRequest::Plan(None)).unwrap();
    let lines = ["- override certificate a.pem new", "~ first", "~ second"];
    assert_eq!(plan.lines, lines);
    assert_eq!(toy.calls(), [""; 0]);
    // It goes to the next process, which applies it.
    let now = toy.host.generation();
    let changes = toy.reconciler.controller.operator_changes(&now.config);
    assert_eq!(changes.overrides.len(), 1);
    toy.reconciler.restore_overrides();
    assert_eq!(toy.calls(), ["a.pem is new"]);
    // No file says it.
    let kept = toy.carry_out(ChangeRequest::Persist(Persist::Now)).unwrap();
    let not_written = "Not written: certificate a.pem: it stays with this process\n";
    assert_eq!(kept.notes, not_written);
    // A reload that keeps overrides keeps it, one that does not drops it.
    toy.carry_out(ChangeRequest::Reload { keep: true }).unwrap();
    assert_eq!(toy.overrides().len(), 1);
    let _ = toy.calls();
    toy.carry_out(ChangeRequest::Reload { keep: false })
        .unwrap();
    assert_eq!(toy.overrides(), [""; 0]);
    assert!(toy.calls().contains(&"a.pem is the file's".to_owned()));
}

#[test]
fn all_prepare_before_the_first_commits() {
    let toy = Toy::begin();
    let next = FILE.replace("weight 3", "weight 4");
    let applied = toy.carry_out(apply(&next)).unwrap();
    assert_eq!(applied.generation, 2);
    assert_eq!(applied.lines[0], "~ server be/s: weight 3 -> 4");
    let order = [
        "first prepares",
        "second prepares",
        "in force",
        "first commits",
        "second commits",
        "first finishes",
        "first closes",
        "second finishes",
        "second closes",
    ];
    assert_eq!(toy.calls(), order);
    // What one opened is closed when another refuses, and nothing has changed.
    toy.second_refuses.store(true, Ordering::Relaxed);
    let refused = toy.carry_out(apply(FILE)).unwrap_err();
    assert_eq!(refused.0, "second cannot be read");
    assert_eq!(toy.calls(), ["first prepares", "first closes"]);
    assert_eq!(toy.host.generation().number, 2);
    // Files that the configuration names may hold something else, though it says the same.
    toy.second_refuses.store(false, Ordering::Relaxed);
    assert_eq!(toy.carry_out(apply(&next)).unwrap().generation, 2);
    assert!(toy.calls().contains(&"second commits".to_owned()));
}

#[test]
fn what_is_written_back_is_overridden_no_more() {
    let toy = Toy::begin();
    let controller = &toy.reconciler.controller;
    let note = |key, value| controller.note_override(key, value, "a command".to_owned());
    note(
        server::override_key("be", "s", &server::WEIGHT),
        OverrideValue::Number(7),
    );
    note(
        server::override_key("be", "s", &server::STATE),
        server::DRAIN,
    );
    note(
        frontend::override_key("fe", &frontend::MAXCONN),
        OverrideValue::Number(9),
    );
    let words = ["127.0.0.1:3".to_owned()];
    let add = ChangeRequest::AddServer {
        backend: "be".into(),
        server: "t".into(),
        words: words.to_vec(),
    };
    toy.carry_out(add).unwrap();
    let kept = toy.carry_out(ChangeRequest::Persist(Persist::Now)).unwrap();
    let not_written = "Not written: server be/s state: no word of a file says it\n";
    assert_eq!(kept.notes, not_written);
    let files = toy.host.files.lock().unwrap().clone();
    let text = String::from_utf8(files[0].1.clone()).unwrap();
    let expected = FILE.replace("fe\n", "fe\n    maxconn 9\n").replace(
        "weight 3\n",
        "weight 7\n  server t 127.0.0.1:3 id 2 disabled\n",
    );
    assert_eq!(text, expected);
    assert_eq!(toy.overrides(), ["server be/s state = drain"]);
}
