//! The plan of a target: what it would change, in the operator's words.

use ballast_model::Change;
use ballast_model::plan::PlanLine;

use crate::kinds;
use crate::overrides::OverrideKey;
use crate::participant::GenerationSwitch;
use crate::reconciler::Reconciler;
use crate::request::ChangeReport;
use crate::target::ChangeTarget;

/// A plan, for the operator and for the history.
pub(crate) struct ChangePlan {
    pub(crate) report: ChangeReport,
    pub(crate) lines: Vec<PlanLine>,
}

impl Reconciler {
    /// The plan of a target.
    pub(crate) fn plan(&self, target: &ChangeTarget) -> ChangePlan {
        let now = self.host.generation();
        let changed = ballast_model::plan::lines(&now.config, &target.changes);
        let mut drains = false;
        let with_connections = |(line, change): (&PlanLine, &Change)| {
            let left = self.connections_of_removed(change);
            if left == 0 {
                return line.to_string();
            }
            drains = true;
            match now.config.global.hard_stop_after {
                Some(limit) => format!(
                    "{line} ({left} connections may finish within {} s)",
                    limit.as_secs()
                ),
                None => format!("{line} ({left} connections may finish)"),
            }
        };
        let mut lines: Vec<String> = changed
            .iter()
            .zip(&target.changes)
            .map(with_connections)
            .collect();
        lines.extend(self.dropped_overrides(target));
        let to = GenerationSwitch {
            now: &now,
            next: None,
            patterns: target.source.as_ref().map(|source| &source.patterns),
            changes: None,
        };
        lines.extend(self.participants.iter().flat_map(|one| one.plan(&to)));
        let report = ChangeReport {
            generation: now.number,
            lines,
            notes: target.notes.clone(),
            needs_process: !self.needs_handover(&now.config, &target.config).is_empty(),
            drains,
        };
        ChangePlan {
            report,
            lines: changed,
        }
    }

    /// How many connections an object has that a change removes; 0 for other changes.
    fn connections_of_removed(&self, change: &Change) -> u32 {
        let removes = matches!(
            change,
            Change::RemoveFrontend(_) | Change::RemoveBackend(_) | Change::RemoveServer(..)
        );
        let object = kinds::object_of(change).filter(|_| removes);
        object.map_or(0, |(kind, name)| {
            (kind.connections)(&self.host.generation(), &name)
        })
    }

    /// The lines of overrides that are dropped. The lines of servers and sections that go or come back
    /// are not repeated.
    fn dropped_overrides(&self, target: &ChangeTarget) -> Vec<String> {
        if !target.drops_overrides() {
            return Vec::new();
        }
        let has_own_line = |key: &OverrideKey| {
            key.setting.has_plan_line && (key.kind.in_config)(&target.config, &key.name)
        };
        let history = self.controller.config_history();
        let overrides = history.overrides();
        let overrides = overrides
            .filter(|(key, _)| has_own_line(key) && target.overruled.binary_search(key).is_ok());
        let lines = overrides.map(|(key, entry)| format!("- override {key} {}", entry.value));
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}
