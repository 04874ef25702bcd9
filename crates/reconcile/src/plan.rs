//! What a target would change, in the operator's words.

use ballast_model::plan::{PlanAction, PlanLine};

use crate::object::OverrideKey;
use crate::participant::Transition;
use crate::reconciler::Reconciler;
use crate::request::Applied;
use crate::target::Target;

/// A plan, as who asked reads it, and as the history keeps it.
pub(crate) struct Plan {
    pub(crate) applied: Applied,
    pub(crate) lines: Vec<PlanLine>,
}

impl Reconciler {
    /// What would be changed, and what that would drain.
    pub(crate) fn plan(&self, target: &Target) -> Plan {
        let now = self.host.generation();
        let changed = ballast_model::plan::lines(&now.config, &target.changes);
        let mut drains = false;
        let with_connections = |line: &PlanLine| {
            let left = self.left_by(line);
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
        let mut lines: Vec<String> = changed.iter().map(with_connections).collect();
        lines.extend(self.dropped(target));
        let to = Transition {
            now: &now,
            next: None,
            patterns: target.source.as_ref().map(|source| &source.patterns),
            taken: None,
        };
        lines.extend(self.participants.iter().flat_map(|one| one.plan(&to)));
        let applied = Applied {
            generation: now.number,
            lines,
            notes: target.notes.clone(),
            needs_process: !self.needs_handover(&now.config, &target.config).is_empty(),
            drains,
        };
        Plan {
            applied,
            lines: changed,
        }
    }

    /// How many connections what is removed still has.
    fn left_by(&self, line: &PlanLine) -> u32 {
        if line.action != PlanAction::Remove {
            return 0;
        }
        let Some((word, name)) = line.what.split_once(' ') else {
            return 0;
        };
        let kind = self.controller.kinds.iter().find(|kind| kind.word == word);
        kind.map_or(0, |kind| (kind.connections)(&self.host.generation(), name))
    }

    /// The lines for the overrides that are dropped. Servers and sections that go, or come back,
    /// have lines of their own.
    fn dropped(&self, target: &Target) -> Vec<String> {
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
