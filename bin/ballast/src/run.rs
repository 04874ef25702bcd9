//! The start of a process. Each step may end it with an exit code.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_handover::{
    Channel, MemoryFile, Message, TableChannel, fetch_table_channel, table_channel_of,
};
use ballast_listen::{ListenError, OpenSettings, OpenSockets};
use ballast_model::{Config, Global};
use ballast_net::{PassedSocket, Signal};
use ballast_reconcile::{MachineAnswers, OperatorChanges, StartFiles, StartHost, has_listener};
use ballast_tls::shared_store::SharedStore;
use ballast_topology::Layout;

use crate::args::Options;
use crate::host::{machine, state_file};
use crate::identity::ProcessIdentity;
use crate::instance::open_cli_binds;
use crate::limits::{ProcessLimits, ResourceNeeds, spliced_connections, system_descriptors};
use crate::memory::{self, CgroupMemory, MemoryLimitKind};
use crate::old_processes::OldProcesses;
use crate::ready::{ForkSide, ReadyNotifier};
use crate::reexec::Inheritance;
use crate::serve::{self, StartState};
use crate::version::ProgramName;
use crate::worker::{self, MasterLink, StartedBy, WorkerKind};
use crate::{check, console, file_helper, master, process, processors, secrets};

/// How long the start waits until former processes have freed their addresses.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time between two attempts to open these addresses.
const PAUSE_RETRY_PERIOD: Duration = Duration::from_millis(10);

/// Runs HAProxy's command line: checks the configuration, or serves until the end. Returns the exit
/// code.
pub(crate) fn run(options: &Options) -> u8 {
    match start(options) {
        Ok(code) | Err(code) => code,
    }
}

fn start(options: &Options) -> Result<u8, u8> {
    console::set_quiet(options.quiet && !options.verbose);
    let started_by = worker::started_by();
    if matches!(started_by, StartedBy::Process(..)) {
        // Without this the process would be named `exe`: it was started from /proc/self/exe.
        let program = std::env::args().next().unwrap_or_default();
        ballast_net::set_process_name(ProgramName::of_command(&program).word());
    }
    match started_by {
        StartedBy::Process(channel, WorkerKind::Serve) => {
            return serve_for_master(options, channel);
        }
        StartedBy::Process(channel, WorkerKind::PrivilegedHelper) => {
            return run_privileged_helper(options, channel);
        }
        StartedBy::Process(channel, WorkerKind::FileHelper) => {
            return Ok(file_helper::run(options, &channel, |options| {
                // What is wrong with it is said by the process that is to have it.
                let _ = check::read_for_start(options, &[], &SharedStore::default());
            }));
        }
        // It would start as one of its own, beside whoever serves now.
        StartedBy::Gone => {
            console::notice("Whoever started this process is gone: it ends.");
            return Err(1);
        }
        StartedBy::Other => {}
    }
    if let Some(inheritance) = Inheritance::of_this_process() {
        return master::resume(options, inheritance);
    }
    if let Some(directory) = &options.directory
        && let Err(error) = ballast_net::change_working_directory(directory.as_ref())
    {
        console::alert(&format!(
            "Could not change to directory {directory} : {error}"
        ));
        return Err(1);
    }
    if options.files.is_empty() {
        return Err(no_files());
    }
    let former = OldProcesses::of(options);
    let secrets = match options.check_only {
        true => SharedStore::default(),
        false => secrets::of_former(&former),
    };
    let machine_answers = MachineAnswers::new();
    let read = {
        let _open = machine_answers.open();
        check::read_for_start(options, &[], &secrets)?
    };
    if options.show_processors {
        let layout = layout(&read.loaded.config)?;
        console::print_line!("{}", layout.report().trim_end_matches('\n'));
    }
    if options.check_only {
        let quiet = options.quiet && !options.verbose;
        return Ok(check::finish(&read.loaded, quiet, options.verbose));
    }
    let global = Arc::clone(&read.loaded.config.global);
    let daemon = is_daemon(options, &global);
    let wants_master = options.master_worker || global.master_worker;
    if !wants_master && !options.master_sockets.is_empty() {
        console::alert(
            "a master CLI socket was defined, but master-worker mode (-W) is not enabled.",
        );
        return Err(1);
    }
    let is_master = wants_master && !disables_master(options);
    let pidfile = options.pidfile.clone().or_else(|| global.pidfile.clone());
    former.check_signalable()?;
    let mut notifier = ReadyNotifier::default();
    let fork_helpers = |notifier: &mut ReadyNotifier, former: OldProcesses| match daemon {
        true => process::to_background(notifier, &former),
        false => former.retire_when_ready(notifier),
    };
    if is_master {
        // The worker opens the listening sockets, and checks the rest.
        drop(read);
        if let ForkSide::Exit(code) = fork_helpers(&mut notifier, former) {
            return Ok(code);
        }
        return master::run(options, &global, notifier, daemon);
    }
    let from = ListenerSources::of(options);
    let changes = OperatorChanges::default();
    let start_state = prepare(options, (read, machine_answers), changes, &from)?;
    if let ForkSide::Exit(code) = fork_helpers(&mut notifier, former) {
        return Ok(code);
    }
    if let Some(path) = pidfile.filter(|_| daemon) {
        process::write_pid(&path)?;
    }
    serve::run(start_state, notifier, daemon, None)
}

/// The processes whose listening sockets and stick tables the first process of a start takes over.
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

    /// Whether there is such a process.
    fn are_there(&self) -> bool {
        self.socket.is_some() || !self.former.pids_with_descendants().is_empty()
    }

    /// A channel to ask one of them for its stick tables: the first that offers them, which one that
    /// accepts no connections any more does not.
    fn table_channel(&self) -> Option<TableChannel> {
        let at_socket = self.socket.as_ref();
        let at_socket = at_socket.and_then(|path| fetch_table_channel(path.as_ref()));
        at_socket.or_else(|| {
            let pids = self.former.pids_with_descendants().into_iter();
            pids.filter_map(table_channel_of).next()
        })
    }

    /// Offers their sockets to the listeners, which use them instead of new ones. Returns whether there are any.
    fn offer(&self) -> Result<bool, u8> {
        let sockets_of_former = || ballast_net::sockets_of(&self.former.pids_with_descendants());
        let Some(path) = &self.socket else {
            // Without the right to read the former process, both processes listen on the address
            // until the former one ends.
            if !self.former.is_empty()
                && let Ok(sockets) = sockets_of_former()
            {
                let is_any = !sockets.is_empty();
                ballast_net::offer_sockets(sockets);
                return Ok(is_any);
            }
            return Ok(false);
        };
        let error = match ballast_handover::fetch(path.as_ref()) {
            Ok(sockets) => {
                let is_any = !sockets.is_empty();
                ballast_net::offer_sockets(sockets);
                return Ok(is_any);
            }
            Err(error) => error,
        };
        console::warn(&format!("-x {path}: {error}."));
        match sockets_of_former() {
            Ok(sockets) if !sockets.is_empty() => {
                console::notice("The listening sockets are taken from the process that is to go.");
                ballast_net::offer_sockets(sockets);
                Ok(true)
            }
            _ => {
                console::alert("Failed to get the sockets from the old process!");
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
fn serve_for_master(options: &Options, channel: Channel) -> Result<u8, u8> {
    let master_link = MasterLink::take(channel)?;
    let channel = master_link.channel();
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
        let _ = channel.send(&Message::Failed(console::take_startup_log()), &[]);
    }
    served
}

/// Runs as the privileged helper: reads the configuration with rights that the worker has given up,
/// opens new listening sockets, and sends the answers of the machine and the sockets to the master.
fn run_privileged_helper(options: &Options, channel: Channel) -> Result<u8, u8> {
    let master_link = MasterLink::take(channel)?;
    let channel = master_link.channel();
    let was_quiet = console::is_quiet();
    // The worker reports to the caller of the reload.
    console::set_quiet(true);
    let opened = open_for_worker(options, &master_link.operator_changes());
    console::set_quiet(was_quiet);
    let sent = opened.and_then(|(sockets, machine_answers)| {
        let file = MemoryFile::write(&machine_answers.write());
        let sent = file.and_then(|file| {
            channel.send_sockets(&sockets)?;
            channel.send(&Message::HelperDone, &[file.as_fd()])
        });
        sent.map_err(|error| {
            console::alert(&format!("the master cannot be told: {error}."));
            1
        })
    });
    if sent.is_err() {
        // The master may be gone too.
        let _ = channel.send(&Message::Failed(console::take_startup_log()), &[]);
    }
    sent.map(|()| 0)
}

fn open_for_worker(
    options: &Options,
    changes: &OperatorChanges,
) -> Result<(Vec<PassedSocket>, Arc<MachineAnswers>), u8> {
    let machine_answers = MachineAnswers::new();
    let _open = machine_answers.open();
    let no_secrets = SharedStore::default();
    let mut loaded = check::read_for_start(options, &[], &no_secrets)?.loaded;
    let section_edits = &changes.config.section_edits;
    if loaded.config.global.reload_keeps_overrides && !section_edits.is_empty() {
        // The worker will read the files with these sections, and needs the answers to them.
        loaded = check::read_for_start(options, section_edits, &no_secrets)?.loaded;
    }
    if check::report_unimplemented(&loaded) {
        return Err(1);
    }
    let mut config = loaded.config;
    options.read_options().apply(&mut config);
    let thread_count = layout(&config)?.threads.len();
    let limits = limits(options, &config, thread_count, None)?;
    // No former process is asked to free an address: an address in use is an error.
    let no_former = OldProcesses::default();
    let opened = open_listeners(
        options,
        &config,
        (limits.connections, thread_count),
        &no_former,
    )?;
    let sockets = opened.sockets.iter().map(|socket| PassedSocket {
        fd: Arc::clone(&socket.fd),
        interface: socket.bind.interface.clone().unwrap_or_default(),
        namespace: socket.bind.namespace.clone().unwrap_or_default(),
    });
    Ok((sockets.collect(), machine_answers))
}

fn prepare_for_master(options: &Options, master_link: &MasterLink) -> Result<StartState, u8> {
    let was_quiet = console::is_quiet();
    console::set_quiet(was_quiet || master_link.is_first_worker);
    let changes = master_link.operator_changes();
    let secrets = match &master_link.secrets {
        Some(file) => secrets::read(file),
        // Only the first worker has former processes: later ones are told by their master.
        None if master_link.is_first_worker => secrets::of_former(&OldProcesses::of(options)),
        None => SharedStore::default(),
    };
    let machine_answers = MachineAnswers::new();
    let read = {
        let _open = machine_answers.open();
        check::read_for_start(options, &changes.config.section_edits, &secrets)
    };
    console::set_quiet(was_quiet);
    // Later workers get the sockets from their master, and the former processes are gone.
    let from = if master_link.is_first_worker {
        ListenerSources::of(options)
    } else {
        ListenerSources::default()
    };
    prepare(options, (read?, machine_answers), changes, &from)
}

/// Whether `-d` or `-db` turns the master off: only a master of the file, not of the command line.
fn disables_master(options: &Options) -> bool {
    options.foreground && !options.master_worker
}

/// Does what needs full rights, before any fork: limits, sockets, names of users.
///
/// `machine_answers` were recorded while files were `read`. `changes` were made by operators in the
/// former process. `from` names the processes whose listening sockets are taken over.
fn prepare(
    options: &Options,
    (read, machine_answers): (StartFiles, Arc<MachineAnswers>),
    changes: OperatorChanges,
    from: &ListenerSources,
) -> Result<StartState, u8> {
    if check::report_unimplemented(&read.loaded) {
        return Err(1);
    }
    if !has_listener(&read.loaded.config) {
        console::alert(
            "[haproxy.main()] No enabled listener found (check for 'bind' directives) ! Exiting.",
        );
        return Err(1);
    }
    if read.loaded.config.global.quiet && !options.verbose && !options.debug {
        console::set_quiet(true);
    }
    let host = StartHost {
        machine: &machine(options, &read.sections.files),
        state_file: &state_file,
        warn: &console::warn,
    };
    let target = read.target(&options.read_options(), changes, machine_answers, &host);
    let config = &target.config;
    let layout = layout(config)?;
    let thread_count = layout.threads.len();
    if let Some(notice) = processors::cpu_time().and_then(|time| time.notice(thread_count)) {
        console::notice(&notice);
    }
    let cgroup = CgroupMemory::of_process();
    let limits = limits(options, config, thread_count, cgroup.as_ref())?;
    memory::keep_reserve(limits.memory);
    // An address that is in use although its sockets were given is not theirs: it would be in vain that they
    // refuse connections for a while.
    let has_their_sockets = from.offer()?;
    let nobody = OldProcesses::default();
    let pausable = match has_their_sockets {
        true => &nobody,
        false => &from.former,
    };
    let sizes = (limits.connections, thread_count);
    let opened = open_listeners(options, config, sizes, pausable)?;
    let cli_binds = open_cli_binds(&config.global.stats_sockets)?;
    // Close the sockets of the other process that this configuration does not use.
    let _ = ballast_net::withdraw_sockets();
    let identity = ProcessIdentity::of(&config.global)?;
    let has_tables = !config.tables.is_empty();
    let table_channel = has_tables.then(|| from.table_channel()).flatten();
    if has_tables && table_channel.is_none() && from.are_there() {
        console::warn(
            "The former process hands over no stick tables: those of this one begin empty.",
        );
    }
    Ok(StartState {
        options: options.clone(),
        target,
        layout,
        limits,
        opened,
        cli_binds,
        identity,
        table_channel,
        memory_megabytes: options.memory_megabytes_max.unwrap_or(0),
    })
}

/// The threads of a configuration, and where they run.
fn layout(config: &Config) -> Result<Layout, u8> {
    processors::layout(&config.global.cpu).map_err(|error| {
        console::alert(&error.to_string());
        1
    })
}

fn limits(
    options: &Options,
    config: &Config,
    thread_count: usize,
    cgroup: Option<&CgroupMemory>,
) -> Result<ProcessLimits, u8> {
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
    let memory_megabytes = options.memory_megabytes_max.filter(|&count| count > 0);
    let needs = ResourceNeeds {
        listeners: binds + global.stats_sockets.len(),
        threads: thread_count,
        checks,
        spliced: spliced_connections(config),
        connections: options.connection_count_max,
        memory: memory::budget(memory_megabytes, cgroup, thread_count),
    };
    let mut limits = ProcessLimits::of(global, &needs, system_descriptors());
    let is_written = needs.connections.or(global.connection_count_max).is_some();
    if let Some(memory) = limits.memory
        && limits.wished > limits.connections
        && (is_written || memory.kind != MemoryLimitKind::CommandLine)
    {
        console::notice(&format!(
            "[haproxy.main()] maxconn {} is limited to {}: {} of {} MB leaves no memory for more.",
            limits.wished,
            limits.connections,
            memory.kind.name(),
            memory.limit_bytes >> 20,
        ));
    }
    limits.apply(global.strict_limits, memory_megabytes, thread_count)?;
    limits.allow_some_pipes(global);
    if options.debug || options.verbose {
        console::print_line!("Note: setting global.maxconn to {}.", limits.connections);
    }
    Ok(limits)
}

fn open_listeners(
    options: &Options,
    config: &Config,
    (connection_count_max, worker_count): (u32, usize),
    former: &OldProcesses,
) -> Result<OpenSockets, u8> {
    let settings = OpenSettings {
        connection_count_max,
        no_reuseport: options.no_reuseport,
        worker_count,
    };
    match open_with_retry(config, settings, former) {
        Ok(opened) => {
            for refused in &opened.refused {
                console::warn(&refused.to_string());
            }
            Ok(opened)
        }
        Err(errors) => {
            for error in &errors {
                console::alert(&error.to_string());
            }
            console::alert(
                "[haproxy.main()] Some protocols failed to start their listeners! Exiting.",
            );
            Err(1)
        }
    }
}

/// Opens the sockets. If a former process has an address, pauses that process (`SIGTTOU`) and tries
/// again; resumes it (`SIGTTIN`) when the sockets still cannot be opened.
fn open_with_retry(
    config: &Config,
    settings: OpenSettings,
    former: &OldProcesses,
) -> Result<OpenSockets, Vec<ListenError>> {
    let first = ballast_listen::open(config, settings);
    let in_use = |errors: &Vec<ListenError>| {
        let mut errors = errors.iter();
        errors.any(|error| error.error.io().kind() == std::io::ErrorKind::AddrInUse)
    };
    if former.is_empty() || !first.as_ref().is_err_and(in_use) {
        return first;
    }
    former.signal(Signal::Ttou, Signal::Ttou);
    let until = Instant::now() + PAUSE_TIMEOUT;
    loop {
        std::thread::sleep(PAUSE_RETRY_PERIOD);
        let again = ballast_listen::open(config, settings);
        if !again.as_ref().is_err_and(in_use) {
            return again;
        }
        if Instant::now() >= until {
            former.signal(Signal::Ttin, Signal::Ttin);
            return again;
        }
    }
}

fn no_files() -> u8 {
    let name = ProgramName::of_command(&std::env::args().next().unwrap_or_default());
    console::print_line!(
        "{}\n\n{}",
        crate::version::first_line(name),
        crate::version::usage(name)
    );
    1
}
