//! The health of a server, in the words and numbers of the statistics.
//!
//! All that statistics show of health is read here: the table of metrics does not know how a server
//! is tracked_health.

use ballast_engine::{Generation, Server};

/// The longest chain of servers that track one another. The last server of a longer one decides.
const TRACK_LENGTH_MAX: usize = 4096;

/// The last result of a health check or an agent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProbeResult {
    /// `check_status`: the word, without the `* ` of a check under way.
    pub word: &'static str,
    /// `check_desc`.
    pub description: &'static str,
    /// A check is under way.
    pub running: bool,
    /// `check_code`.
    pub code: Option<u16>,
    /// `check_duration`, in milliseconds.
    pub duration_ms: Option<u64>,
    /// `last_chk`: what was read, or what went wrong.
    pub info: String,
    /// `check_rise`.
    pub rise: u32,
    /// `check_fall`.
    pub fall: u32,
    /// `check_health`.
    pub health: u32,
}

/// The health of a server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServerHealth {
    /// `status`.
    pub status: String,
    /// In maintenance, for any reason.
    pub is_maint: bool,
    /// Takes no traffic.
    pub is_down: bool,
    /// The health check, when there is one and it is on.
    pub check: Option<ProbeResult>,
    /// The agent, when there is one and it is on.
    pub agent: Option<ProbeResult>,
    /// Whether it is checked, were it not in maintenance.
    pub is_checked: bool,
    /// `chkfail`.
    pub failed_checks: u64,
    /// `hanafail`.
    pub failed_observations: u64,
    /// `chkdown`.
    pub down_count: u64,
    /// `downtime`, in seconds, the present one included.
    pub down_s: u64,
    /// `lastchg`, in seconds.
    pub since_change_s: u64,
    /// `srv_op_state` of `show servers state`.
    pub operational: u8,
    /// `srv_admin_state`.
    pub admin: u8,
    /// `srv_check_status`.
    pub check_status: u8,
    /// `srv_check_result`.
    pub check_result: u8,
    /// `srv_check_health`.
    pub check_health: u32,
    /// `srv_check_state`.
    pub check_state: u8,
    /// `srv_agent_state`.
    pub agent_state: u8,
    /// `srv_iweight`.
    pub weight_initial: u32,
    /// `srv_uweight`.
    pub weight_user: u32,
}

impl ServerHealth {
    /// Asks a server. `generation` finds the server it tracks; `now_ms` is the age of the
    /// process ([`Process::age_ms`](ballast_engine::Process::age_ms)).
    pub fn of(server: &Server, generation: &Generation, now_ms: u64) -> Self {
        let tracked_server = tracked_server(server, generation);
        // Copied before the server's own is locked: never two locks at once.
        let tracked_health =
            tracked_server.map(|tracked_server| tracked_server.state.health().clone());
        let tracked = server
            .model
            .track
            .as_ref()
            .map(|(backend, server)| format!("{backend}/{server}"));
        let health = server.state.health();
        let numbers = health.snapshot(now_ms);
        let is_maint = health.admin().is_maint();
        let probe = |of_agent: bool| {
            let check = if of_agent {
                health.agent()
            } else {
                health.check()
            };
            ProbeResult {
                word: check.last.status.word(),
                description: check.last.status.description(),
                running: check.running,
                code: check.last.code.filter(|_| check.last.status.has_code()),
                duration_ms: check.last.duration_ms,
                info: check.last.info.clone(),
                rise: check.settings.rise,
                fall: check.settings.fall,
                health: check.health,
            }
        };
        let (check, agent) = (health.check(), health.agent());
        let is_checked = health.settings().check.is_some() && check.enabled;
        let checks = is_checked && !is_maint;
        // In maintenance no check runs, and the agent is asked all the same.
        let agents = health.settings().agent.is_some() && agent.enabled;
        let counters = health.counters();
        let is_down = numbers.op_state == 0;
        let down_now_s = if is_down { numbers.since_change_s } else { 0 };
        Self {
            status: health.status_text(
                tracked_health.as_ref().unwrap_or(&health),
                tracked.as_deref(),
            ),
            is_maint,
            is_down,
            check: checks.then(|| probe(false)),
            agent: agents.then(|| probe(true)),
            is_checked,
            failed_checks: counters.failed_checks,
            failed_observations: counters.failed_observations,
            down_count: counters.down_transitions,
            down_s: counters.down_ms / 1000 + down_now_s,
            since_change_s: numbers.since_change_s,
            operational: numbers.op_state,
            admin: numbers.admin_state,
            check_status: numbers.check_status,
            check_result: numbers.check_result,
            check_health: numbers.check_health,
            check_state: numbers.check_state,
            agent_state: numbers.agent_state,
            weight_initial: numbers.weight_initial,
            weight_user: numbers.weight_user,
        }
    }
}

/// The server whose checks count for one that tracks: the end of the chain. `None` for one that
/// tracks nobody.
fn tracked_server<'g>(server: &Server, generation: &'g Generation) -> Option<&'g Server> {
    let mut found: Option<&'g Server> = None;
    for _ in 0..TRACK_LENGTH_MAX {
        let track = found.map_or(&server.model.track, |found| &found.model.track);
        let Some((backend, name)) = track else { break };
        let backend = &generation.backends[generation.backend_named(backend)?];
        found = Some(&backend.servers[backend.server_named(name)?]);
    }
    found
}
