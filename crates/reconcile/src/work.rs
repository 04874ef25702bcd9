//! Change requests are carried out one after the other, on a thread of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ballast_edit::Refusal;
use ballast_syntax::Severity;

use crate::console::{console_line, reload_message};
use crate::controller::{ControllerJob, RequestQueue, Unwritten};
use crate::kinds::process;
use crate::override_value::OverrideValue;
use crate::overrides::{Override, OverrideKey};
use crate::reading::OverridePolicy;
use crate::reconciler::Reconciler;
use crate::request::{ChangeReport, ChangeRequest, ConfigInput, Persist};
use crate::target::{ChangeMode, ChangeTarget, FileOrigin};

/// How many dropped changes a message names.
const LOST_NAMED_MAX: usize = 20;

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
                self.report_unwritten(&self.write_back());
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
            ChangeRequest::PersistOutcome => Ok(self.persist_outcome()),
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
        let outcome = target.and_then(|target| {
            let lost = match &target.mode {
                ChangeMode::Drop(..) => self.unwritten_changes(),
                _ => None,
            };
            let mut report = self.put_in_force(target)?;
            if let Some(lost) = lost {
                self.host.log(Severity::Alert, &lost);
                report.notes.push_str(&lost);
                report.notes.push('\n');
                *self.controller.unwritten() = Unwritten::default();
            }
            Ok(report)
        });
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
            Persist::Now => {
                let report = self.write_back()?;
                self.note_written(&report);
                return Ok(report);
            }
            Persist::On => {
                let was_on = self.controller.persists.swap(true, Ordering::Relaxed);
                // An override, so that the next process persists too.
                let entry = Override::now(OverrideValue::of_text("on"), "persist on".to_owned());
                let key = process::override_key(&process::PERSIST);
                self.controller.config_history().note(key, entry);
                let done = self.write_back();
                if let Ok(report) = &done {
                    self.note_written(report);
                }
                return done.map_err(|Refusal(why)| {
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
        // What is changed from now on is not meant for the files.
        *self.controller.unwritten() = Unwritten::default();
    }

    /// Tells what came of writing that no command waits for; the answer of the next
    /// [`ChangeRequest::PersistOutcome`] has it too.
    fn report_unwritten(&self, outcome: &Result<ChangeReport, Refusal>) {
        match outcome {
            Ok(report) => {
                let news = self.note_written(report);
                for line in &news {
                    let text = format!("persist : {line}");
                    self.host.log(Severity::Warning, &text);
                }
                self.controller.unwritten().news.extend(news);
            }
            Err(Refusal(why)) => {
                let why = why.trim_end();
                let text = format!("persist : What commands changed is not in the files: {why}");
                self.host.log(Severity::Alert, &text);
                self.controller.unwritten().failure = Some(why.to_owned());
            }
        }
    }

    /// Notes that files were written; returns the lines about what no file can have that are new.
    fn note_written(&self, report: &ChangeReport) -> Vec<String> {
        let notes: Vec<String> = report.notes.lines().map(str::to_owned).collect();
        let mut unwritten = self.controller.unwritten();
        let news = notes.iter().filter(|line| !unwritten.notes.contains(line));
        let news = news.cloned().collect();
        unwritten.failure = None;
        unwritten.notes = notes;
        news
    }

    /// What of the changes so far is not in the files.
    fn persist_outcome(&self) -> ChangeReport {
        let mut unwritten = self.controller.unwritten();
        let mut notes = std::mem::take(&mut unwritten.news);
        if let Some(why) = &unwritten.failure {
            notes.push(format!("Not written to the files: {why}"));
        }
        ChangeReport {
            generation: self.host.generation().number,
            notes: notes.join("\n"),
            ..ChangeReport::default()
        }
    }

    /// What a reload drops although it was to be in the files: writing it failed.
    fn unwritten_changes(&self) -> Option<String> {
        let failure = self.controller.unwritten().failure.clone()?;
        let overrides = self.droppable_overrides();
        let history = self.controller.config_history();
        let sections = &history.written().section_edits;
        let sections = sections.iter().map(|one| one.title.clone());
        let lost = overrides.iter().map(ToString::to_string).chain(sections);
        let mut lost: Vec<String> = lost.collect();
        if lost.is_empty() {
            return None;
        }
        let more = lost.len().saturating_sub(LOST_NAMED_MAX);
        lost.truncate(LOST_NAMED_MAX);
        let mut lost = lost.join(", ");
        if more > 0 {
            lost.push_str(&format!(" and {more} more"));
        }
        Some(format!(
            "persist : The reload dropped what commands changed and could not be written to the \
             files: {lost} ({}).",
            failure.trim_end_matches('.')
        ))
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
