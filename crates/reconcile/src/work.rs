//! Change requests are carried out one after the other, on a thread of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ballast_edit::Refusal;

use crate::console::{console_line, reload_message};
use crate::controller::{ControllerJob, RequestQueue};
use crate::kinds::process;
use crate::override_value::OverrideValue;
use crate::overrides::{Override, OverrideKey};
use crate::reading::OverridePolicy;
use crate::reconciler::Reconciler;
use crate::request::{ChangeReport, ChangeRequest, ConfigInput, Persist};
use crate::target::{ChangeTarget, FileOrigin};

impl Reconciler {
    /// Starts the thread that carries out requests. It lives as long as the process.
    ///
    /// # Errors
    /// The system's refusal of a thread.
    pub fn start(self: &Arc<Self>, queue: RequestQueue) -> std::io::Result<()> {
        let reconciler = Arc::clone(self);
        let work = move || {
            for job in queue.0 {
                // A panic in one request must not end those that come after it. Its callback is
                // dropped, which tells the caller.
                let done = catch_unwind(AssertUnwindSafe(|| reconciler.run_job(job)));
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

    fn run_job(&self, job: ControllerJob) {
        let _journal = self.controller.certificate_journal.open();
        match job {
            ControllerJob::Request(request, answer) => answer(self.carry_out(request)),
            ControllerJob::Persist => {
                let waits = &self.controller.persist_is_queued;
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
    pub(crate) fn carry_out(&self, request: ChangeRequest) -> Result<ChangeReport, Refusal> {
        match request {
            ChangeRequest::Persist(how) => self.persist(how),
            ChangeRequest::Section(at) => Ok(ChangeReport {
                generation: self.host.generation().number,
                lines: self.lines_of(&at)?,
                ..ChangeReport::default()
            }),
            ChangeRequest::Plan(source) => {
                let target = self.reload_target(source, OverridePolicy::Drop, "plan")?;
                Ok(self.plan(&target).report)
            }
            ChangeRequest::Reload { keep: true } => {
                self.reload(None, OverridePolicy::Keep, "reload")
            }
            ChangeRequest::Reload { keep: false } => {
                self.reload(None, OverridePolicy::Drop, "reload")
            }
            ChangeRequest::Apply(source) => {
                let cause = match &source {
                    ConfigInput::File(name) => format!("apply {name}"),
                    ConfigInput::Text(_) => "apply".to_owned(),
                };
                self.reload(Some(source), OverridePolicy::Drop, &cause)
            }
            ChangeRequest::Rollback(number) => {
                self.put_command_in_force(self.rollback_target(number)?)
            }
            ChangeRequest::Change { changes, command } => {
                self.put_command_in_force(self.change_target(&changes, command)?)
            }
            ChangeRequest::AddServer {
                backend,
                server,
                words,
            } => self.put_command_in_force(self.add_server_target(&backend, &server, &words)?),
            ChangeRequest::Edit {
                section,
                edit,
                command,
            } => self.put_command_in_force(self.edit_target(&section, edit, command)?),
            ChangeRequest::RenameServer {
                backend,
                server,
                name,
            } => self.put_command_in_force(self.rename_target(backend, server, name)?),
        }
    }

    /// Puts in force what files say. `show startup-logs` has the outcome.
    fn reload(
        &self,
        source: Option<ConfigInput>,
        policy: OverridePolicy,
        cause: &str,
    ) -> Result<ChangeReport, Refusal> {
        let target = self.reload_target(source, policy, cause);
        let outcome = target.and_then(|target| self.put_in_force(target));
        let (severity, text) = reload_message(&outcome);
        self.host.set_startup_log(console_line(severity, &text));
        outcome
    }

    /// Puts the target of a command in force. It differs from the files: `persist` writes it.
    fn put_command_in_force(&self, target: ChangeTarget) -> Result<ChangeReport, Refusal> {
        let report = self.put_in_force(target)?;
        self.controller.queue_persist();
        Ok(report)
    }

    fn persist(&self, how: Persist) -> Result<ChangeReport, Refusal> {
        match how {
            Persist::Now => return self.write_back(),
            Persist::On => {
                let was_on = self.controller.persists.swap(true, Ordering::Relaxed);
                // An override, so that the next process persists too.
                let entry = Override::now(OverrideValue::of_text("on"), "persist on".to_owned());
                let key = process::override_key(&process::PERSIST);
                self.controller.config_history().note(key, entry);
                return self.write_back().map_err(|Refusal(why)| {
                    if was_on {
                        return Refusal(why);
                    }
                    self.persist_off();
                    Refusal(format!("'persist' stays off: {why}"))
                });
            }
            Persist::Off => self.persist_off(),
        }
        Ok(ChangeReport::default())
    }

    fn persist_off(&self) {
        let is_persist = |key: &OverrideKey| key.is_about(&process::PERSIST);
        self.controller
            .config_history()
            .forget_overrides(is_persist);
        self.controller.persists.store(false, Ordering::Relaxed);
    }

    /// Writes overrides to the files, and takes the files up as what is written. Overrides that came
    /// meanwhile stay, and so do those that no file can have.
    fn write_back(&self) -> Result<ChangeReport, Refusal> {
        let certificates = self.write_certificates()?;
        let (mut written, files) = self.write_files_back()?;
        if !written.lines.is_empty() {
            // The text that was written, not that of the disk: somebody may have edited the files.
            self.controller.set_disk(Arc::new(files.clone()));
            let policy = OverridePolicy::Keep;
            let mut target = self.files_target(files, FileOrigin::Given, policy, "persist")?;
            target.overruled.clear();
            let left = self.keep_server_lines(&mut target);
            self.put_in_force(target)?;
            self.reapply_overrides_since(&left);
        }
        written.lines.extend(certificates.lines);
        written.notes.push_str(&certificates.notes);
        Ok(ChangeReport {
            generation: self.host.generation().number,
            ..written
        })
    }
}
