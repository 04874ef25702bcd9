//! A start, step by step, each of which may end it.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_handover::{Channel, Message, SnapshotFile};
use ballast_listen::{OpenError, OpenSettings, Opened};
use ballast_model::{Config, Global};
use ballast_net::{PassedSocket, Signal};
use ballast_reconcile::{MachineAnswers, OperatorChanges, StartFiles, StartHost, has_listener};

use crate::args::Options;
use crate::host::{machine, state_file};
use crate::identity::Identity;
use crate::instance::open_cli_binds;
use crate::limits::{Limits, Needs, system_descriptors};
use crate::old_processes::OldProcesses;
use crate::ready::{ReadyNotifier, Side};
use crate::renewal::Inheritance;
use crate::serve::{self, StartState};
use crate::version::Name;
use crate::worker::{self, MasterLink, WorkerKind};
use crate::{check, master, process, say};

/// How long former processes have to free their addresses.
const PAUSE_PATIENCE: Duration = Duration::from_secs(2);

/// Between two tries to open these addresses.
const PAUSE_STEP: Duration = Duration::from_millis(10);

/// HAProxy's command line: checks, or serves until the end. Answers the exit code.
pub(crate) fn run(options: &Options) -> u8 {
    match start(options) {
        Ok(code) | Err(code) => code,
    }
}

fn start(options: &Options) -> Result<u8, u8> {
    say::be_quiet(options.quiet && !options.verbose);
    let line = worker::line();
    if line.is_some() {
        // Started from /proc/self/exe, the process would be called `exe`.
        let called = std::env::args().next().unwrap_or_default();
        ballast_net::set_process_name(Name::called(&called).word());
    }
    match line {
        Some((line, WorkerKind::Serve)) => return serve_for_master(options, line),
        Some((line, WorkerKind::Scout)) => return scout(options, line),
        None => {}
    }
    if let Some(inheritance) = Inheritance::of_this_process() {
        return master::resume(options, inheritance);
    }
    if let Some(directory) = &options.directory
        && let Err(error) = ballast_net::change_working_directory(directory.as_ref())
    {
        say::alert(&format!(
            "Could not change to directory {directory} : {error}"
        ));
        return Err(1);
    }
    if options.files.is_empty() {
        return Err(no_files());
    }
    let machine_answers = MachineAnswers::new();
    let read = {
        let _open = machine_answers.open();
        check::for_start(options, &[])?
    };
    if options.check_only {
        let quiet = options.quiet && !options.verbose;
        return Ok(check::conclude(&read.loaded, quiet, options.verbose));
    }
    let global = Arc::clone(&read.loaded.config.global);
    let daemon = is_daemon(options, &global);
    let wants_master = options.master_worker || global.master_worker;
    if !wants_master && !options.master_sockets.is_empty() {
        say::alert("a master CLI socket was defined, but master-worker mode (-W) is not enabled.");
        return Err(1);
    }
    let is_master = wants_master && !foreground_only(options);
    let pidfile = options.pidfile.clone().or_else(|| global.pidfile.clone());
    let former = OldProcesses::of(options);
    former.look()?;
    let mut notifier = ReadyNotifier::default();
    let leave = |notifier: &mut ReadyNotifier, former: OldProcesses| match daemon {
        true => process::to_background(notifier, &former),
        false => former.tell_when_ready(notifier),
    };
    if is_master {
        // The worker opens the listening sockets, and checks the rest.
        drop(read);
        if let Side::Leaves(code) = leave(&mut notifier, former) {
            return Ok(code);
        }
        return master::run(options, &global, notifier, daemon);
    }
    let from = ListenerSources::of(options);
    let changes = OperatorChanges::default();
    let start_state = prepare(options, (read, machine_answers), changes, &from)?;
    if let Side::Leaves(code) = leave(&mut notifier, former) {
        return Ok(code);
    }
    if let Some(path) = pidfile.filter(|_| daemon) {
        process::write_pid(&path)?;
    }
    serve::run(start_state, notifier, daemon, None)
}

/// The processes whose listening sockets the first process of a start takes over.
#[derive(Debug, Default)]
struct ListenerSources {
    /// `-x`: the socket of a process that gives them.
    socket: Option<String>,
    /// `-sf` and `-st`: the former processes.
    former: OldProcesses,
}

impl ListenerSources {
    fn of(options: &Options) -> Self {
        Self {
            socket: options.listeners_from.clone(),
            former: OldProcesses::of(options),
        }
    }

    /// Offers their sockets: they are used instead of new ones.
    fn offer(&self) -> Result<(), u8> {
        let looked_through = || ballast_net::sockets_of(&self.former.trees());
        let Some(path) = &self.socket else {
            // Without the right to read another process, both processes bind the address while both
            // live.
            if !self.former.is_empty()
                && let Ok(sockets) = looked_through()
            {
                ballast_net::offer_sockets(sockets);
            }
            return Ok(());
        };
        let error = match ballast_handover::fetch(path.as_ref()) {
            Ok(sockets) => {
                ballast_net::offer_sockets(sockets);
                return Ok(());
            }
            Err(error) => error,
        };
        say::warn(&format!("-x {path}: {error}."));
        match looked_through() {
            Ok(sockets) if !sockets.is_empty() => {
                say::notice("The listening sockets are taken from the process that is to go.");
                ballast_net::offer_sockets(sockets);
                Ok(())
            }
            _ => {
                say::alert("Failed to get the sockets from the old process!");
                Err(1)
            }
        }
    }
}

/// Whether the process goes to the background. One that a service manager watches (`-Ws`) stays
/// where it was started, whatever the file says.
fn is_daemon(options: &Options, global: &Global) -> bool {
    (options.daemon || (global.daemon && !options.notify)) && !options.foreground
}

/// Starts as a worker. The master has gone to the background, written its pid file, and printed the
/// messages about the configuration.
fn serve_for_master(options: &Options, line: Channel) -> Result<u8, u8> {
    let master_link = MasterLink::take(line)?;
    let line = master_link.line();
    let served = prepare_for_master(options, &master_link).and_then(|start_state| {
        let daemon = is_daemon(options, &start_state.target.config.global);
        serve::run(
            start_state,
            ReadyNotifier::default(),
            daemon,
            Some(master_link),
        )
    });
    if served.is_err() {
        // The master may be gone too.
        let _ = line.send(&Message::Failed(say::take_startup_log()), &[]);
    }
    served
}

/// Runs as a scout: reads the configuration with rights that the worker has given up, opens new
/// listening sockets, and sends the answers of the machine and the sockets to the master.
fn scout(options: &Options, line: Channel) -> Result<u8, u8> {
    let master_link = MasterLink::take(line)?;
    let line = master_link.line();
    let was_quiet = say::is_quiet();
    // The worker tells the caller of the reload.
    say::be_quiet(true);
    let found = look(options, &master_link.operator_changes());
    say::be_quiet(was_quiet);
    let sent = found.and_then(|(sockets, machine_answers)| {
        let file = SnapshotFile::write(&machine_answers.write());
        let sent = file.and_then(|file| {
            line.send_sockets(&sockets)?;
            line.send(&Message::Scouted, &[file.as_fd()])
        });
        sent.map_err(|error| {
            say::alert(&format!("the master cannot be told: {error}."));
            1
        })
    });
    if sent.is_err() {
        // The master may be gone too.
        let _ = line.send(&Message::Failed(say::take_startup_log()), &[]);
    }
    sent.map(|()| 0)
}

fn look(
    options: &Options,
    changes: &OperatorChanges,
) -> Result<(Vec<PassedSocket>, Arc<MachineAnswers>), u8> {
    let machine_answers = MachineAnswers::new();
    let _open = machine_answers.open();
    let mut loaded = check::for_start(options, &[])?.loaded;
    let section_edits = &changes.config.section_edits;
    if loaded.config.global.reload_keeps_overrides && !section_edits.is_empty() {
        // The worker will read the files with these sections, and needs the answers to them.
        loaded = check::for_start(options, section_edits)?.loaded;
    }
    if check::tell_unserved(&loaded) {
        return Err(1);
    }
    let mut config = loaded.config;
    options.read_options().apply(&mut config);
    let thread_count = threads(&config);
    let limits = limits(options, &config, thread_count)?;
    // No process ends for it: an address in use is an error.
    let nobody = OldProcesses::default();
    let opened = open_listeners(
        options,
        &config,
        (limits.connections, thread_count),
        &nobody,
    )?;
    let sockets = opened.sockets.iter().map(|socket| PassedSocket {
        fd: Arc::clone(&socket.fd),
        interface: socket.bind.interface.clone().unwrap_or_default(),
        namespace: socket.bind.namespace.clone().unwrap_or_default(),
    });
    Ok((sockets.collect(), machine_answers))
}

fn prepare_for_master(options: &Options, master_link: &MasterLink) -> Result<StartState, u8> {
    let was_quiet = say::is_quiet();
    say::be_quiet(was_quiet || master_link.first);
    let changes = master_link.operator_changes();
    let machine_answers = MachineAnswers::new();
    let read = {
        let _open = machine_answers.open();
        check::for_start(options, &changes.config.section_edits)
    };
    say::be_quiet(was_quiet);
    // Later workers get the sockets from their master, and the former processes are gone.
    let from = if master_link.first {
        ListenerSources::of(options)
    } else {
        ListenerSources::default()
    };
    prepare(options, (read?, machine_answers), changes, &from)
}

/// `-d` and `-db` take the master away only where the file, not the command line, asks for one.
fn foreground_only(options: &Options) -> bool {
    options.foreground && !options.master_worker
}

/// All that must be done with full rights, before any fork: limits, sockets, names of users.
/// `machine_answers` were recorded while files were `read`, `changes` are those of operators in the
/// former process, `from` says where listening sockets of another process are.
fn prepare(
    options: &Options,
    (read, machine_answers): (StartFiles, Arc<MachineAnswers>),
    changes: OperatorChanges,
    from: &ListenerSources,
) -> Result<StartState, u8> {
    if check::tell_unserved(&read.loaded) {
        return Err(1);
    }
    if !has_listener(&read.loaded.config) {
        say::alert(
            "[haproxy.main()] No enabled listener found (check for 'bind' directives) ! Exiting.",
        );
        return Err(1);
    }
    if read.loaded.config.global.quiet && !options.verbose && !options.debug {
        say::be_quiet(true);
    }
    let host = StartHost {
        surroundings: &machine(options, &read.sections.files),
        state_file: &state_file,
        warn: &say::warn,
    };
    let target = read.target(&options.read_options(), changes, machine_answers, &host);
    let config = &target.config;
    let thread_count = threads(config);
    let limits = limits(options, config, thread_count)?;
    from.offer()?;
    let room = (limits.connections, thread_count);
    let opened = open_listeners(options, config, room, &from.former)?;
    let cli_binds = open_cli_binds(&config.global.stats_sockets)?;
    // Close the sockets of the other process that this configuration does not use.
    let _ = ballast_net::withdraw_sockets();
    let identity = Identity::of(&config.global)?;
    Ok(StartState {
        options: options.clone(),
        target,
        thread_count,
        limits,
        opened,
        cli_binds,
        identity,
        memory_megabytes: options.memory_megabytes_max.unwrap_or(0),
    })
}

/// `nbthread`, else as many as there are processors to run on.
fn threads(config: &Config) -> usize {
    let written = config.global.thread_count.map(usize::from);
    written.unwrap_or_else(ballast_net::cpu_count).max(1)
}

fn limits(options: &Options, config: &Config, thread_count: usize) -> Result<Limits, u8> {
    let global = &config.global;
    let enabled = config
        .frontends
        .iter()
        .filter(|frontend| !frontend.common.disabled);
    let binds: usize = enabled.map(|frontend| frontend.binds.len()).sum();
    let servers = config.backends.iter().flat_map(|backend| &backend.servers);
    let checks = servers
        .map(|server| {
            usize::from(server.checks.enabled) + 2 * usize::from(server.checks.agent_enabled)
        })
        .sum();
    let needs = Needs {
        listeners: binds + global.stats_sockets.len(),
        threads: thread_count,
        checks,
        connections: options.connection_count_max,
        memory_megabytes: options
            .memory_megabytes_max
            .filter(|&megabytes| megabytes > 0),
    };
    let mut limits = Limits::of(global, &needs, system_descriptors());
    limits.apply(global.strict_limits, options.memory_megabytes_max)?;
    if options.debug || options.verbose {
        say::line!("Note: setting global.maxconn to {}.", limits.connections);
    }
    Ok(limits)
}

fn open_listeners(
    options: &Options,
    config: &Config,
    (connection_count_max, worker_count): (u32, usize),
    former: &OldProcesses,
) -> Result<Opened, u8> {
    let settings = OpenSettings {
        connection_count_max,
        no_reuseport: options.no_reuseport,
        worker_count,
    };
    match open_patiently(config, settings, former) {
        Ok(opened) => {
            for refused in &opened.refused {
                say::warn(&refused.to_string());
            }
            Ok(opened)
        }
        Err(errors) => {
            for error in &errors {
                say::alert(&error.to_string());
            }
            say::alert("[haproxy.main()] Some protocols failed to start their listeners! Exiting.");
            Err(1)
        }
    }
}

/// Opens the sockets. Where a former process has an address, it is told to pause (`SIGTTOU`), and to
/// resume (`SIGTTIN`) when the sockets cannot be opened even so.
fn open_patiently(
    config: &Config,
    settings: OpenSettings,
    former: &OldProcesses,
) -> Result<Opened, Vec<OpenError>> {
    let first = ballast_listen::open(config, settings);
    let in_use = |errors: &Vec<OpenError>| {
        let mut errors = errors.iter();
        errors.any(|error| error.error.io().kind() == std::io::ErrorKind::AddrInUse)
    };
    if former.is_empty() || !first.as_ref().is_err_and(in_use) {
        return first;
    }
    former.tell(Signal::Ttou, Signal::Ttou);
    let until = Instant::now() + PAUSE_PATIENCE;
    loop {
        std::thread::sleep(PAUSE_STEP);
        let again = ballast_listen::open(config, settings);
        if !again.as_ref().is_err_and(in_use) {
            return again;
        }
        if Instant::now() >= until {
            former.tell(Signal::Ttin, Signal::Ttin);
            return again;
        }
    }
}

fn no_files() -> u8 {
    let name = Name::called(&std::env::args().next().unwrap_or_default());
    say::line!(
        "{}\n\n{}",
        crate::version::line(name),
        crate::version::usage(name)
    );
    1
}
