//! The state that survives a process, for `show servers state` and handovers.

use crate::admin::Admin;
use crate::machine::Health;
use crate::operational::Operational;
use crate::status::CheckStatus;

/// The columns of `show servers state` that belong to health, as numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// `srv_admin_state`.
    pub admin_state: u8,
    /// Health counter of the agent (not a column; for handover).
    pub agent_health: u32,
    /// `srv_agent_state`.
    pub agent_state: u8,
    /// `srv_check_health`.
    pub check_health: u32,
    /// `srv_check_result`.
    pub check_result: u8,
    /// `srv_check_state`.
    pub check_state: u8,
    /// `srv_check_status`.
    pub check_status: u8,
    /// `srv_op_state`.
    pub op_state: u8,
    /// `srv_time_since_last_change`, in seconds.
    pub since_change_s: u64,
    /// `srv_iweight`.
    pub weight_initial: u32,
    /// `srv_uweight`.
    pub weight_user: u32,
}

impl Snapshot {
    const AGENT: u8 = 0x10;
    const CONFIGURED: u8 = 0x02;
    /// The bit of `srv_check_state` for an enabled check.
    pub const ENABLED: u8 = 0x04;
    const IN_PROGRESS: u8 = 0x01;
    /// The bit of `srv_check_state` for a paused check, as in maintenance.
    pub const PAUSED: u8 = 0x08;
}

impl Health {
    /// The state as numbers.
    #[must_use]
    pub fn snapshot(&self, now_ms: u64) -> Snapshot {
        let settings = self.settings();
        let bits = |configured: bool, enabled: bool, running: bool, paused: bool| {
            let bit = |set: bool, bit: u8| if set { bit } else { 0 };
            bit(configured, Snapshot::CONFIGURED)
                | bit(configured && enabled, Snapshot::ENABLED)
                | bit(running, Snapshot::IN_PROGRESS)
                | bit(configured && paused, Snapshot::PAUSED)
        };
        let (check, agent) = (self.check(), self.agent());
        // Only a check that is on can be paused.
        let paused = self.admin().is_maint() && check.enabled;
        let agent_bits = bits(
            settings.agent.is_some(),
            agent.enabled,
            agent.running,
            false,
        );
        let agent_flag = if settings.agent.is_some() {
            Snapshot::AGENT
        } else {
            0
        };
        Snapshot {
            admin_state: self.admin().bits(),
            agent_health: agent.health,
            agent_state: agent_bits | agent_flag,
            check_health: check.health,
            check_result: check.last.status.result() as u8,
            check_state: bits(
                settings.check.is_some(),
                check.enabled,
                check.running,
                paused,
            ),
            check_status: check.last.status.number(),
            op_state: self.operational().number(),
            since_change_s: self.seconds_since_change(now_ms),
            weight_initial: settings.weight,
            weight_user: self.weight_user(),
        }
    }

    /// Takes over the state of another process. Counters are limited to this server's settings. A
    /// maintenance that only this configuration has is kept; one that only the other configuration
    /// had is dropped; one that both have and that an operator ended there is ended here. Unknown
    /// numbers are ignored. There are no effects: call this before balancing begins, then read
    /// [`Health::balance`].
    pub fn restore(&mut self, snapshot: &Snapshot, now_ms: u64) {
        let own = self.admin();
        let mut told = Admin::from_bits(snapshot.admin_state);
        let mut kept = Admin::default();
        if own.has(Admin::CONFIGURED_MAINT) {
            kept = Admin::CONFIGURED_MAINT;
            if !told.has(Admin::CONFIGURED_MAINT) {
                // Only this configuration says so: no operator can have ended it.
                kept = kept.with(Admin::FORCED_MAINT);
            }
        }
        if own.has(Admin::RESOLUTION_MAINT) {
            kept = kept.with(Admin::RESOLUTION_MAINT);
        }
        if told.has(Admin::CONFIGURED_MAINT) && !own.has(Admin::CONFIGURED_MAINT) {
            // It came from the other configuration, and goes with it.
            told = told.without(Admin::FORCED_MAINT);
        }
        // Inherited states are set again by the tracked server, and names are resolved again.
        let admin = told
            .without(Admin::INHERITED_MAINT)
            .without(Admin::INHERITED_DRAIN)
            .without(Admin::CONFIGURED_MAINT)
            .without(Admin::RESOLUTION_MAINT)
            .without(Admin::HOST_SET)
            .with(kept);
        let operational = Operational::from_number(snapshot.op_state);
        let status = CheckStatus::from_number(snapshot.check_status)
            .filter(|status| status.result() as u8 == snapshot.check_result);
        let changed = (now_ms, snapshot.since_change_s);
        self.take_over(admin, operational, changed, snapshot.weight_user);
        let check_on = snapshot.check_state & Snapshot::ENABLED != 0;
        let agent_on = snapshot.agent_state & Snapshot::ENABLED != 0;
        self.take_over_checks(
            (
                snapshot.check_health,
                check_on,
                status.unwrap_or(CheckStatus::Init),
            ),
            (snapshot.agent_health, agent_on),
        );
    }
}
