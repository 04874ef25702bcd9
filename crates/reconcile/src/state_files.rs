//! `load-server-state-from-file`: the state of servers as another process saved it.
//!
//! A state has two parts. Ports and addresses go into the configuration before it is compiled;
//! administrative states and results of checks go to the health of servers before they are balanced.
//! The addresses of servers with a name are read with the configuration (`init-addr last`);
//! addresses in the configuration stay.
//!
//! A file that cannot be read and a row with an impossible value are warned of and left out.
//!
//! Source: HAProxy configuration manual, "load-server-state-from-file"; the words, and what is
//! taken over, as seen of HAProxy 3.2.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ballast_engine::Generation;
use ballast_health::{Admin, CheckStatus, Health, HealthSettings, Operational, Snapshot};
use ballast_model::{Address, Config, PortSpec, Server, ServerStates};
use ballast_wire::server_state::{ServerStateValues, StateFormatError, rows};

use crate::machine_answers::MachineAnswers;

/// The longest state file that is read, in bytes: some 400,000 servers.
pub const STATE_FILE_BYTES_MAX: usize = 64 << 20;

/// Reads a file by its path, or answers the error of the system.
pub(crate) type ReadContent<'c> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'c;

/// The rows of a state file, by backend and server. Of two rows of one server the first counts.
#[derive(Debug, Default)]
pub struct StateFile {
    rows: HashMap<(String, String), Result<ServerStateValues, String>>,
}

/// Why a state file is left out.
#[derive(Debug, Eq, PartialEq)]
pub enum StateFileError {
    /// It cannot be read: the error of the system.
    Open(String),
    /// Its version is not known.
    Version,
    /// The row on this line is none.
    Row(usize),
}

impl StateFile {
    /// Reads the file of this path by `content`.
    fn open(path: &str, content: &ReadContent<'_>) -> Result<Self, StateFileError> {
        Self::read(&content(path).map_err(StateFileError::Open)?)
    }

    /// Reads what a file holds.
    ///
    /// # Errors
    /// It is no state file, or a row of it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, StateFileError> {
        let error_of = |unreadable| match unreadable {
            StateFormatError::Version => StateFileError::Version,
            StateFormatError::Row { line } => StateFileError::Row(line),
        };
        let mut file = Self::default();
        for row in rows(bytes).map_err(error_of)? {
            let row = row.map_err(error_of)?;
            let values = row.values().map_err(|invalid| invalid.to_string());
            let values = values.and_then(|saved| {
                let known = CheckStatus::from_number(saved.check_status).is_some();
                known.then_some(saved).ok_or_else(|| {
                    format!("invalid srv_check_status value '{}'", saved.check_status)
                })
            });
            let name = (row.backend().to_owned(), row.server().to_owned());
            file.rows.entry(name).or_insert(values);
        }
        Ok(file)
    }

    fn row(&self, backend: &str, server: &str) -> Option<&Result<ServerStateValues, String>> {
        self.rows.get(&(backend.to_owned(), server.to_owned()))
    }

    /// The address that the file holds for a server.
    pub fn address(&self, backend: &str, server: &str) -> Option<IpAddr> {
        self.row(backend, server)?.as_ref().ok()?.address
    }
}

/// The saved state of a server, by the indexes of its backend and itself.
#[derive(Clone, Copy, Debug)]
pub struct SavedState {
    backend: usize,
    server: usize,
    saved: ServerStateValues,
}

/// The saved states of servers, and warnings about the files.
pub fn read_states(config: &Config, content: &ReadContent<'_>) -> (Vec<SavedState>, Vec<String>) {
    let (mut states, mut warnings) = (Vec::new(), Vec::new());
    let global = config.global.server_state_file.as_ref().and_then(|path| {
        let opened = StateFile::open(path, content);
        opened
            .map_err(|error| warnings.push(error_of_process(path, &error)))
            .ok()
    });
    for (backend_index, backend) in config.backends.iter().enumerate() {
        let name = &backend.common.name;
        if backend.common.disabled {
            continue;
        }
        let own;
        let (file, is_own) = match &backend.server_states {
            None => continue,
            Some(ServerStates::Global) => (global.as_ref(), false),
            Some(ServerStates::Local(path)) => {
                let opened = StateFile::open(path, content);
                own = opened
                    .map_err(|error| warnings.push(error_of_backend(name, path, &error)))
                    .ok();
                (own.as_ref(), true)
            }
        };
        let Some(file) = file else { continue };
        let mut mismatch = None;
        for (server, one) in backend.servers.iter().enumerate() {
            match file.row(name, &one.name) {
                None => {}
                Some(Ok(saved)) => {
                    if is_own && saved.backend_id != backend.common.id {
                        mismatch = Some(saved.backend_id);
                    }
                    states.push(SavedState {
                        backend: backend_index,
                        server,
                        saved: *saved,
                    });
                }
                Some(Err(invalid)) => warnings.push(format!(
                    "server-state application failed for server '{name}/{}', {invalid}",
                    one.name
                )),
            }
        }
        if let Some(id) = mismatch {
            warnings.push(format!(
                "Proxy '{name}': backend ID mismatch: from server state file: '{id}', from running \
                 config '{}'",
                backend.common.id
            ));
        }
    }
    (states, warnings)
}

fn error_of_process(path: &str, error: &StateFileError) -> String {
    match error {
        StateFileError::Open(error) => {
            format!("config: Can't open global server state file '{path}': {error}")
        }
        StateFileError::Version => {
            format!("config: Can't get version of the global server state file '{path}'.")
        }
        StateFileError::Row(line) => {
            format!("config: corrupted global server state file '{path}' at line {line}.")
        }
    }
}

fn error_of_backend(backend: &str, path: &str, error: &StateFileError) -> String {
    let what = match error {
        StateFileError::Open(error) => format!("Can't open server state file '{path}': {error}."),
        StateFileError::Version => format!("Can't get version of the server state file '{path}'."),
        StateFileError::Row(line) => {
            format!("corrupted server state file '{path}' at line {line}.")
        }
    };
    format!("Proxy '{backend}': {what}")
}

/// Puts ports and addresses into the configuration.
pub(crate) fn configure_states(config: &mut Config, states: &[SavedState]) {
    for state in states {
        let backend = Arc::make_mut(&mut config.backends[state.backend]);
        let server = Arc::make_mut(&mut backend.servers[state.server]);
        configure_server(server, &state.saved);
    }
}

fn configure_server(server: &mut Server, saved: &ServerStateValues) {
    if let (Some(port), PortSpec::Fixed) = (saved.port, server.port_mapping) {
        server.address = server.address.with_port(port);
    }
    let is_checked_as_written = saved.check_port.is_none()
        && saved.agent_port.is_none()
        && saved.check_address.is_none()
        && saved.agent_address.is_none();
    if is_checked_as_written {
        return;
    }
    let checks = &mut server.checks;
    checks.port = saved.check_port.or(checks.port);
    checks.agent_port = saved.agent_port.or(checks.agent_port);
    // The check finds the port that goes with the address.
    let address = |ip: IpAddr| Address::Inet(SocketAddr::new(ip, 0));
    if let Some(ip) = saved.check_address {
        checks.address = Some(address(ip));
    }
    if let Some(ip) = saved.agent_address {
        checks.agent_address = Some(address(ip));
    }
}

/// Drops the content of state files: they are read anew each time.
pub(crate) fn forget_state_files(machine_answers: &MachineAnswers, config: &Config) {
    let global = config.global.server_state_file.iter();
    let own = config.backends.iter().filter_map(|backend| {
        let Some(ServerStates::Local(path)) = &backend.server_states else {
            return None;
        };
        Some(path)
    });
    let counts = config.global.stats_file.iter();
    machine_answers.forget_content(global.chain(own).chain(counts).map(String::as_str));
}

/// Restores the saved states in a new generation, and warns of servers that are not in use because
/// of them.
pub fn restore_states(
    generation: &Generation,
    states: &[SavedState],
    now_ms: u64,
    warn: &dyn Fn(&str),
) {
    for state in states {
        let backend = &generation.backends[state.backend];
        let server = &backend.servers[state.server];
        let was_usable = server.state.is_usable();
        state.restore(&mut server.state.health(), now_ms);
        backend.apply_health(state.server);
        state.warn(generation, was_usable, warn);
    }
}

impl SavedState {
    /// The indexes of backend and server in the generation it was read for.
    pub(crate) fn server_position(&self) -> (usize, usize) {
        (self.backend, self.server)
    }

    /// Restores the health of a server.
    pub(crate) fn restore(&self, health: &mut Health, now_ms: u64) {
        let snapshot = snapshot(&self.saved, health.settings());
        health.restore(&snapshot, now_ms);
    }

    /// Warns of a server that is not in use because of its saved state.
    pub(crate) fn warn(&self, generation: &Generation, was_usable: bool, warn: &dyn Fn(&str)) {
        let backend = &generation.backends[self.backend];
        let server = &backend.servers[self.server];
        let (operational, admin) = {
            let health = server.state.health();
            (health.operational(), health.admin())
        };
        let name = format!("{}/{}", backend.name(), server.name());
        let (active, backup) = backend.usable_servers();
        if was_usable && operational == Operational::Stopped {
            warn(&format!(
                "config : Server {name} is DOWN, changed from server-state after a reload. {active} \
                 active and {backup} backup servers left. 0 sessions active, 0 requeued, 0 \
                 remaining in queue."
            ));
        } else if operational == Operational::Stopping {
            warn(&format!(
                "config : Server {name} is stopping, changed from server-state after a reload. \
                 {active} active and {backup} backup servers online. 0 sessions requeued, 0 total \
                 in queue."
            ));
        } else if admin.has(Admin::FORCED_DRAIN) && !admin.is_maint() {
            warn(&format!(
                "config : Server {name} remains in forced drain mode."
            ));
        }
    }
}

/// The part of a row that is about health. Where the configuration has another weight by now, its
/// weight wins.
fn snapshot(saved: &ServerStateValues, settings: &HealthSettings) -> Snapshot {
    let weight = settings.weight;
    let weight_user = if u32::from(saved.weight_initial) == weight {
        u32::from(saved.weight_user)
    } else {
        weight
    };
    let (operational, check_health) = judged(saved, settings);
    Snapshot {
        admin_state: saved.admin,
        // Not in the file: an agent's server is as the server is.
        agent_health: u32::from(operational != Operational::Stopped as u8),
        agent_state: saved.agent_state,
        check_health,
        check_result: saved.check_result,
        check_state: saved.check_state,
        check_status: saved.check_status,
        op_state: operational,
        since_change_s: saved.since_change_s,
        weight_initial: u32::from(saved.weight_initial),
        weight_user,
    }
}

/// The operational state and the health of a row, as HAProxy restores them: what was up or down is so without
/// a doubt; what was going down takes no more failures than it had left, or the fewest where that is no such
/// number; what was coming up is not up yet. Where one check decides, there is nothing between.
fn judged(saved: &ServerStateValues, settings: &HealthSettings) -> (u8, u32) {
    let (rise, fall) = match &settings.check {
        Some(check) => (check.rise, check.fall),
        None => (1, 1),
    };
    let health = saved.check_health;
    match Operational::from_number(saved.operational) {
        Some(Operational::Running) => (saved.operational, u32::MAX),
        Some(Operational::Stopped) => (saved.operational, 0),
        Some(Operational::Stopping) if fall < 2 => (Operational::Stopped as u8, 0),
        Some(Operational::Stopping) if (rise..rise.saturating_add(fall) - 1).contains(&health) => {
            (saved.operational, health)
        }
        Some(Operational::Stopping) => (saved.operational, rise),
        Some(Operational::Starting) if rise < 2 => (Operational::Running as u8, u32::MAX),
        Some(Operational::Starting) if (1..rise).contains(&health) => (saved.operational, health),
        Some(Operational::Starting) => (saved.operational, rise - 1),
        None => (saved.operational, health),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "1\n# be_id be_name\n";

    fn file(rows: &str) -> Result<StateFile, StateFileError> {
        StateFile::read(format!("{HEAD}{rows}").as_bytes())
    }

    #[test]
    fn the_first_row_of_a_server_holds_and_a_broken_one_takes_all_with_it() {
        let one = "1 b 1 s 127.0.0.8 2 0 1 1 5 1 0 1 0 0 0 0 - 80 -\n";
        let other = one.replace("127.0.0.8", "127.0.0.9");
        let found = file(&format!("{one}{other}")).unwrap();
        assert_eq!(found.address("b", "s"), Some(IpAddr::from([127, 0, 0, 8])));
        assert_eq!(found.address("b", "t"), None);
        let broken = file(&format!("{one}1 b 2 t\n")).unwrap_err();
        assert_eq!(broken, StateFileError::Row(3));
        let odd = file(&one.replace(" 5 1 0 1 ", " 5 99 0 1 ")).unwrap();
        let said = odd.row("b", "s").unwrap().as_ref().unwrap_err();
        assert_eq!(said, "invalid srv_check_status value '99'");
    }

    #[test]
    fn a_weight_holds_until_the_configuration_has_another() {
        let found = file("1 b 1 s - 2 0 5 10 5 1 0 1 0 0 0 0 - 80 -\n").unwrap();
        let saved = found.row("b", "s").unwrap().as_ref().unwrap();
        let of_weight = |weight| HealthSettings {
            weight,
            ..HealthSettings::default()
        };
        assert_eq!(snapshot(saved, &of_weight(10)).weight_user, 5);
        assert_eq!(snapshot(saved, &of_weight(12)).weight_user, 12);
    }

    #[test]
    fn operational_state_and_health_are_restored_as_haproxy_does() {
        // Saved state and health, rise and fall, restored state and health.
        for (saved, (rise, fall), restored) in [
            ((2, 1), (2, 3), (2, u32::MAX)),
            ((0, 2), (2, 3), (0, 0)),
            // Starting.
            ((1, 1), (3, 2), (1, 1)),
            ((1, 0), (3, 2), (1, 2)),
            ((1, 7), (3, 2), (1, 2)),
            ((1, 3), (1, 3), (2, u32::MAX)),
            // Stopping.
            ((3, 2), (2, 1), (0, 0)),
            ((3, 6), (2, 5), (3, 2)),
            ((3, 5), (2, 5), (3, 5)),
            ((3, 9), (2, 2), (3, 2)),
            ((3, 2), (2, 2), (3, 2)),
            ((3, 1), (2, 2), (3, 2)),
        ] {
            let (operational, health) = saved;
            let row = format!("1 b 1 s - {operational} 0 1 1 5 1 0 {health} 0 0 0 0 - 80 -\n");
            let found = file(&row).unwrap();
            let saved = found.row("b", "s").unwrap().as_ref().unwrap();
            let settings = HealthSettings {
                check: Some(ballast_health::CheckSettings {
                    rise,
                    fall,
                    ..ballast_health::CheckSettings::HEALTH
                }),
                ..HealthSettings::default()
            };
            let seen = snapshot(saved, &settings);
            assert_eq!(
                (seen.op_state, seen.check_health),
                restored,
                "{row} rise {rise} fall {fall}"
            );
        }
    }

    #[test]
    fn ports_and_the_addresses_of_checks_are_taken_over() {
        let found = file("1 b 1 s ::9 2 0 1 1 5 1 0 1 0 0 0 0 - 81 - 0 99 127.0.0.5 - 7\n");
        let saved = *found.unwrap().row("b", "s").unwrap().as_ref().unwrap();
        let address = Address::Inet("127.0.0.1:80".parse().unwrap());
        let mut server = Server::new("s".into(), address);
        configure_server(&mut server, &saved);
        assert_eq!(server.address.to_string(), "127.0.0.1:81");
        assert_eq!(
            (server.checks.port, server.checks.agent_port),
            (Some(99), Some(7))
        );
        assert_eq!(
            server.checks.address.as_ref().unwrap().to_string(),
            "127.0.0.5:0"
        );
        assert_eq!(server.checks.agent_address, None);
    }
}
