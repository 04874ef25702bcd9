//! Opening the log targets of a configuration.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ballast_log::{LogSet, Logs, SetSpec, TargetSpec};
use ballast_model::{Common, Config, Global, LogEndpoint, LogTarget};
use ballast_upstream::probe::{BackendSets, EventLog};

use crate::machine::hostname;

/// The name log lines carry unless `log-tag` says otherwise: what collectors filter for.
const TAG: &str = "haproxy";

/// The log targets of all proxies, open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// Of each frontend, by place.
    pub(crate) frontends: Vec<Option<Arc<LogSet>>>,
    /// Of the backends that have any, by name.
    pub(crate) backends: BackendSets,
}

/// Where everyone logs, over every change of the configuration.
#[derive(Debug)]
pub(crate) struct LogDesk {
    pub(crate) logs: Logs,
    /// The targets in force.
    pub(crate) open: ArcSwap<Opened>,
    /// Lines about servers.
    pub(crate) journal: Arc<EventLog>,
    /// Nobody reads standard output and error.
    pub(crate) background: bool,
}

/// Opens them.
///
/// In the background nobody reads standard output and error: lines for them go nowhere, and
/// whoever captured them when the program was started is not kept waiting for their end.
///
/// # Errors
/// What cannot be opened, and why, to be said by whoever asked for it.
pub(crate) fn open(logs: &Logs, config: &Config, background: bool) -> Result<Opened, String> {
    let shared: Vec<(&LogTarget, Arc<TargetSpec>)> = config
        .global
        .log_targets
        .iter()
        .filter_map(|target| Some((target, Arc::new(TargetSpec::try_from(target).ok()?))))
        .collect();
    let fronts = config.frontends.iter().map(|frontend| &frontend.common);
    let backs = config.backends.iter().map(|backend| &backend.common);
    let mut sets = Vec::new();
    for common in fronts.chain(backs) {
        sets.push(set(common, &config.global, &shared, background)?);
    }
    let opened = logs.open(&sets).map_err(|error| format!("{error}."))?;
    let mut opened = opened
        .into_iter()
        .zip(&sets)
        .map(|(open, set)| (!set.targets.is_empty()).then_some(open));
    let frontends = opened.by_ref().take(config.frontends.len()).collect();
    Ok(Opened {
        frontends,
        backends: config
            .backends
            .iter()
            .zip(opened)
            .filter_map(|(backend, set)| Some((backend.common.name.clone(), set?)))
            .collect(),
    })
}

/// The set of one proxy. Lines that come from the global section are the same in each set, so
/// that they are sampled together.
fn set(
    common: &Common,
    global: &Global,
    shared: &[(&LogTarget, Arc<TargetSpec>)],
    background: bool,
) -> Result<SetSpec, String> {
    let mut targets = Vec::new();
    for target in &common.log_targets {
        if background && matches!(target.endpoint, LogEndpoint::Fd(1 | 2)) {
            continue;
        }
        if let Some((_, spec)) = shared.iter().find(|(known, _)| *known == target) {
            targets.push(Arc::clone(spec));
            continue;
        }
        match TargetSpec::try_from(target) {
            Ok(spec) => targets.push(Arc::new(spec)),
            Err(error) => return Err(format!("proxy '{}': {error}.", common.name)),
        }
    }
    let tag = common.log_tag.as_ref().or(global.log_tag.as_ref());
    Ok(SetSpec {
        tag: tag.cloned().unwrap_or_else(|| TAG.to_owned()),
        hostname: match global.log_send_hostname.as_deref() {
            Some("") => Some(hostname()),
            named => named.map(str::to_owned),
        },
        targets,
    })
}
