//! Requests are carried out, one after the other, on a thread of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ballast_edit::Refusal;

use crate::console::{console_line, told};
use crate::controller::{Job, RequestQueue};
use crate::kinds::{self, PERSIST};
use crate::object::OverrideKey;
use crate::reading::Reading;
use crate::reconciler::Reconciler;
use crate::request::{Applied, ChangeRequest, Persist, Source};
use crate::target::Target;

impl Reconciler {
    /// Has a thread of its own take up requests, for as long as the process lives.
    ///
    /// # Errors
    /// The system's refusal of a thread.
    pub fn start(self: &Arc<Self>, queue: RequestQueue) -> std::io::Result<()> {
        let reconciler = Arc::clone(self);
        let work = move || {
            for job in queue.0 {
                // A fault of ours in one request must not end all that come after it. Who brought
                // it hears that it was given up.
                let done = catch_unwind(AssertUnwindSafe(|| reconciler.carry_out(job)));
                if done.is_err() {
                    let process = reconciler.host.registry().process();
                    process.counters.of(0).panics.increment();
                    let text = "a change ended in a panic and was contained.";
                    reconciler.host.alert(text);
                }
            }
        };
        let thread = std::thread::Builder::new().name("ballast-change".into());
        thread.spawn(work).map(drop)
    }

    fn carry_out(&self, job: Job) {
        match job {
            Job::Request(request, answer) => answer(self.meet(request)),
            Job::WriteBack => {
                let waits = &self.controller.persist_waits;
                waits.store(false, Ordering::Release);
                if !self.controller.persists.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(Refusal(why)) = self.write_back() {
                    self.host.warn(&format!("persist : {}", why.trim_end()));
                }
            }
        }
    }

    /// Carries out one request.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub(crate) fn meet(&self, request: ChangeRequest) -> Result<Applied, Refusal> {
        match request {
            ChangeRequest::Persist(how) => self.persist_as(how),
            ChangeRequest::Section(at) => Ok(Applied {
                generation: self.host.generation().number,
                lines: self.lines_of(&at)?,
                ..Applied::default()
            }),
            ChangeRequest::Plan(source) => {
                let target = self.read_again(source, false, "plan")?;
                Ok(self.plan(&target).applied)
            }
            ChangeRequest::Reload { keep } => self.read(None, keep, "reload"),
            ChangeRequest::Apply(source) => {
                let cause = match &source {
                    Source::File(name) => format!("apply {name}"),
                    Source::Text(_) => "apply".to_owned(),
                };
                self.read(Some(source), false, &cause)
            }
            ChangeRequest::Rollback(number) => self.override_by(self.back_to(number)?),
            ChangeRequest::Change { changes, command } => {
                self.override_by(self.changed(&changes, command)?)
            }
            ChangeRequest::AddServer {
                backend,
                server,
                words,
            } => self.override_by(self.with_server(&backend, &server, &words)?),
            ChangeRequest::Edit {
                section,
                edit,
                command,
            } => self.override_by(self.edit(&section, edit, command)?),
            ChangeRequest::RenameServer {
                backend,
                server,
                name,
            } => self.override_by(self.rename(backend, server, name)?),
        }
    }

    /// Puts in force what files say, and has `show startup-logs` tell what came of it.
    fn read(&self, source: Option<Source>, keep: bool, cause: &str) -> Result<Applied, Refusal> {
        let target = self.read_again(source, keep, cause);
        let applied = target.and_then(|target| self.put_in_force(target));
        let (grade, text) = told(&applied);
        self.host.was_said(console_line(grade, &text));
        applied
    }

    /// Puts in force what a command wants: it overrides the files.
    fn override_by(&self, target: Target) -> Result<Applied, Refusal> {
        let applied = self.put_in_force(target)?;
        self.controller.persist_soon();
        Ok(applied)
    }

    fn persist_as(&self, how: Persist) -> Result<Applied, Refusal> {
        let key = kinds::persist();
        match how {
            Persist::Now => return self.write_back(),
            Persist::On => {
                let was_on = self.controller.persists.swap(true, Ordering::Relaxed);
                // The process that follows goes on with it.
                self.controller.note(key, "on", "persist on");
                return self.write_back().map_err(|Refusal(why)| {
                    if was_on {
                        return Refusal(why);
                    }
                    // What was refused has changed nothing.
                    self.persist_off();
                    Refusal(format!("'persist' stays off: {why}"))
                });
            }
            Persist::Off => self.persist_off(),
        }
        Ok(Applied::default())
    }

    /// Forgets that what operators change was to be written.
    fn persist_off(&self) {
        let is_it = |key: &OverrideKey| key.is(&kinds::PROCESS, &PERSIST);
        self.controller.config_history().forget_overrides(is_it);
        self.controller.persists.store(false, Ordering::Relaxed);
    }

    /// Writes what operators did to the files, and goes on with what the files say then. That is no
    /// news to anybody: what operators did meanwhile, and what no file can say, stays as it is.
    fn write_back(&self) -> Result<Applied, Refusal> {
        let (written, files) = self.persist()?;
        if !written.lines.is_empty() {
            // What was written, not what the files say by now: somebody may have changed them.
            self.controller.set_disk(Arc::new(files.clone()));
            let mut target = self.understood(Reading {
                files,
                is_of_start: false,
                keeps_overrides: true,
                cause: "persist".to_owned(),
            })?;
            target.overruled.clear();
            let left = self.keep_servers(&mut target);
            self.put_in_force(target)?;
            self.say_again(&left);
        }
        Ok(Applied {
            generation: self.host.generation().number,
            ..written
        })
    }
}
