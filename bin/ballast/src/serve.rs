//! Builds the parts of a serving process. `stop` shuts them down.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ballast_cli::{CliBind, CliLimits};
use ballast_engine::{Generation, Process, Registry};
use ballast_handover::TableChannel;
use ballast_listen::{ArrivalHandler, Listeners, OpenSockets, WorkerListeners};
use ballast_log::{Level, Logs};
use ballast_net::{CpuSet, Signal};
use ballast_reconcile::{Controller, Reconciler, StartRecord, StartTarget, restore_states};
use ballast_stats::{ProcessInfo, StatsHost};
use ballast_stream::{Client, RunningGeneration, WorkerLocal, tend_idle_clients};
use ballast_topology::Layout;
use ballast_upstream::probe::{EventLog, HealthController, Probes};
use ballast_upstream::{pool, probe};
use ballast_worker::{
    BufferLimits, Interval, Mailbox, PanicHook, PipeCounts, PipeOptions, Signals, WorkerOptions,
    Workers,
};
use ballast_worker::{TaskHandle, now, set_local, spawn_service, yield_now};

use crate::args::Options;
use crate::former_tables::FormerTables;
use crate::host::ServingProcess;
use crate::identity::ProcessIdentity;
use crate::limits::ProcessLimits;
use crate::logs::{self, LogTargets, LossReporter};
use crate::machine::hostname;
use crate::memory::{CgroupMemory, MemoryBudget, MemoryWatch};
use crate::ready::ReadyNotifier;
use crate::search_report::SearchReporter;
use crate::stop::{ProcessExit, Shutdown};
use crate::version::{RELEASE_DATE, VERSION};
use crate::worker::{self, MasterLink, Reporter, WorkerKind};
use crate::worker_set::spawn_worker;
use crate::{
    console, file_helper, instance, ocsp, participants, processors, services, table_donor,
};

/// The parts of a process that are prepared with full rights and before any thread.
#[derive(Debug)]
pub(crate) struct StartState {
    pub(crate) options: Options,
    pub(crate) target: StartTarget,
    pub(crate) layout: Layout,
    pub(crate) limits: ProcessLimits,
    pub(crate) opened: OpenSockets,
    pub(crate) cli_binds: Vec<CliBind>,
    pub(crate) identity: ProcessIdentity,
    /// The channel over which a process that this one replaces gives its stick tables.
    pub(crate) table_channel: Option<TableChannel>,
    pub(crate) memory_megabytes: u32,
}

/// Serves until the end. Returns the exit code. `master_link` is the link to the master, if any.
pub(crate) fn run(
    mut start_state: StartState,
    mut notifier: ReadyNotifier,
    background: bool,
    mut master_link: Option<MasterLink>,
) -> Result<u8, u8> {
    let started_at = Instant::now();
    // Before the chroot, which hides its files.
    let memory_limits = (start_state.limits.memory, CgroupMemory::of_process());
    stay_with_workers(&start_state.layout);
    // Before any thread: signals interrupt none of them.
    let signals = Signals::open(&Signal::OF_OPERATORS).map_err(|error| fail(&error))?;
    let logs = Logs::start().map_err(|error| fail(&error))?;
    // Before the chroot, which hides names.
    let open_logs = logs::open(&logs, &start_state.target.config, background).map_err(|why| {
        console::alert(&format!("[haproxy.main()] {why}"));
        1
    })?;
    let null = background.then(ballast_net::null_device).transpose();
    let null = null.map_err(|error| fail(&error))?;
    file_helper::start(&start_state.identity, || {
        spawn_worker(WorkerKind::FileHelper)
    });
    start_state.identity.apply()?;
    let prints_events = !background && !console::is_quiet();
    let server_events = EventLog::new(&logs, open_logs.backends.clone(), prints_events);
    let server_events = Arc::new(server_events.map_err(|error| fail(&error))?);
    let options = start_state.options.clone();
    let snapshot = master_link
        .as_mut()
        .and_then(|master_link| master_link.snapshot.take());
    let table_channel = master_link.as_mut().and_then(|link| link.tables.take());
    let table_channel = table_channel.or(start_state.table_channel.take());
    let (instance, start, record) = compile(
        start_state,
        started_at,
        snapshot.as_deref(),
        master_link.is_some(),
    );
    let instance = Arc::new(instance);
    let host: Arc<dyn StatsHost> = instance.clone();
    instance.table_donor.set_host(Arc::downgrade(&host));
    let former_tables = table_channel.and_then(|channel| FormerTables::copy(channel, &instance));
    instance.set_logs(LogTargets {
        logs: logs.clone(),
        open: ArcSwap::from_pointee(open_logs),
        server_events: Arc::clone(&server_events),
        background,
    });
    let config = Arc::clone(&instance.generation().config);
    let (controller, requests) = Controller::new(config, record, options.read_options());
    let controller = Arc::new(controller);
    instance.set_controller(Arc::clone(&controller));
    let reconciler = Arc::new(Reconciler::new(
        controller,
        Arc::new(ServingProcess {
            instance: Arc::clone(&instance),
            options: options.clone(),
        }),
        participants::all(&instance, options.no_reuseport),
    ));
    let started = reconciler.start(requests);
    started.map_err(|error| fail(&error))?;
    let workers = instance.set_workers(start_workers(&instance, &start)?);
    let health_controller =
        instance.set_health_controller(new_health_controller(&instance, workers, server_events));
    // All workers are set up before the first one accepts: they hand connections to each other.
    for mailbox in workers.mailboxes() {
        let setup = WorkerSetup {
            instance: Arc::clone(&instance),
            logs: logs.clone(),
            health_controller: Arc::clone(health_controller),
            worker: mailbox.index(),
            worker_count: workers.count(),
        };
        run_on(mailbox, move || setup.set_up())?;
    }
    watch_memory(&instance, memory_limits, workers)?;
    ocsp::begin(&instance);
    let reporter = open_cli(&instance, workers, start, master_link)?;
    let former_tables = former_tables.and_then(|tables| tables.follow(&instance));
    start_listeners(&instance, workers)?;
    reconciler.restore_overrides();
    if let Some(null) = null
        && ballast_net::redirect_standard_to(null).is_err()
    {
        console::warn("[haproxy.main()] the terminal cannot be left.");
    }
    if let Some(former_tables) = former_tables {
        former_tables.follow_to_the_end(&instance);
    }
    if let Some(reporter) = &reporter {
        reporter.ready();
    }
    notifier.ready();
    let shutdown = Shutdown {
        instance: &instance,
        workers,
        logs: &logs,
    };
    let exit = shutdown.wait(&signals);
    if let Some(reporter) = &reporter {
        reporter.report_late_counts();
    }
    Ok(match exit {
        ProcessExit::Code(code) => code,
        ProcessExit::Signal(signal) => ballast_net::end_by(signal),
    })
}

/// Looks after memory from now on.
fn watch_memory(
    instance: &Arc<instance::Instance>,
    limits: (Option<MemoryBudget>, Option<CgroupMemory>),
    workers: &Workers,
) -> Result<(), u8> {
    let watch = MemoryWatch::new(instance, limits, workers.mailboxes());
    let Some(mailbox) = workers.mailbox(0) else {
        return Ok(());
    };
    run_on(mailbox, move || drop(spawn_service(watch.run())))
}

/// Accepts connections from now on.
fn start_listeners(instance: &instance::Instance, workers: &Workers) -> Result<(), u8> {
    for mailbox in workers.mailboxes() {
        let worker_listeners = instance
            .listeners()
            .as_ref()
            .map(|listeners| listeners.of_worker(mailbox.index()));
        if let Some(worker_listeners) = worker_listeners {
            run_on(mailbox, move || WorkerListeners::start(worker_listeners))?
                .map_err(|error| fail(&error))?;
        }
    }
    Ok(())
}

/// The parts of the start state that are used after the generation is compiled.
struct CompiledStart {
    cli_binds: Vec<CliBind>,
    tune: ballast_model::Tune,
    layout: Layout,
}

fn compile(
    start_state: StartState,
    started_at: Instant,
    snapshot: Option<&[u8]>,
    has_master: bool,
) -> (instance::Instance, CompiledStart, StartRecord) {
    let StartState {
        target,
        layout,
        limits,
        opened,
        cli_binds,
        memory_megabytes,
        ..
    } = start_state;
    let StartTarget {
        config,
        states,
        counts,
        record,
    } = target;
    let global = &config.global;
    let thread_count = layout.threads.len();
    let start = CompiledStart {
        cli_binds,
        tune: global.tune.clone(),
        layout,
    };
    let process_info = ProcessInfo {
        name: "HAProxy".to_owned(),
        version: VERSION.to_owned(),
        release_date: RELEASE_DATE.to_owned(),
        build_info: VERSION.to_owned(),
        node: global.node.clone().unwrap_or_else(hostname),
        description: global.description.clone().unwrap_or_default(),
        process_id: std::process::id(),
        thread_count: u32::try_from(thread_count).unwrap_or(u32::MAX),
        descriptor_count_max: limits.descriptors,
        socket_count_max: limits.sockets,
        connection_count_hard_max: limits.connections,
        pipe_count_max: limits.pipes,
        memory_megabytes_max: u64::from(memory_megabytes),
        warning_count: console::warning_count(),
        boot_ms: u32::try_from(started_at.elapsed().as_millis()).unwrap_or(u32::MAX),
    };
    let process = Arc::new(Process::new(thread_count, limits.connections));
    process
        .idle_connections
        .limit_descriptors(limits.descriptors);
    let registry = Registry::new(thread_count, Arc::clone(&process));
    let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
    restore_states(&generation, &states, process.age_ms(), &console::warn);
    match snapshot {
        Some(snapshot) => worker::restore(&generation, &process, snapshot),
        None => counts.restore(&generation),
    }
    let listeners = Listeners::new(&generation, &process, opened, thread_count);
    let instance = instance::Instance::new(
        (generation, registry),
        process_info,
        Arc::new(PipeCounts::new(
            usize::try_from(limits.pipes_allowed).unwrap_or(usize::MAX),
        )),
        console::take_startup_log(),
        listeners,
        has_master,
    );
    (instance, start, record)
}

fn start_workers(instance: &Arc<instance::Instance>, start: &CompiledStart) -> Result<Workers, u8> {
    let process = Arc::clone(instance.registry.process());
    let on_panic: PanicHook = Arc::new(move |report| {
        let worker = report.worker.unwrap_or(0);
        process.counters.of(worker).panics.increment();
        console::alert(&format!(
            "a task of worker {worker} ended in a panic and was contained: {}",
            report.message
        ));
    });
    let options = WorkerOptions {
        buffers: BufferLimits {
            bytes: start.tune.buffer_bytes as usize,
            ..BufferLimits::default()
        },
        count: start.layout.threads.len(),
        name: "ballast".to_owned(),
        on_panic: Some(on_panic),
        pins: pins(&start.layout),
        pipes: PipeOptions {
            counts: Arc::clone(&instance.pipes),
            pipe_bytes: start.tune.pipe_bytes.map(|bytes| bytes as usize),
        },
        ..WorkerOptions::default()
    };
    Workers::start(&options, |_| || {}).map_err(|error| fail(&error))
}

/// The processors of each worker.
fn pins(layout: &Layout) -> Vec<CpuSet> {
    let threads = layout.threads.iter();
    threads
        .map(|thread| processors::pin(&thread.cpus))
        .collect()
}

/// Keeps the threads that are started from now on where the workers are: threads for logs, commands
/// and look-ups. A worker that may run anywhere leaves them free.
fn stay_with_workers(layout: &Layout) {
    let online = processors::machine().online();
    let mut threads = layout.threads.iter();
    let is_free = threads.any(|thread| thread.cpus.intersection(&online).is_empty());
    let of_all = layout
        .threads
        .iter()
        .fold(ballast_topology::CpuSet::EMPTY, |all, thread| {
            all.union(&thread.cpus)
        });
    if !is_free {
        // HAProxy does not mind processors that there are not.
        let _ = ballast_net::pin_thread(&processors::pin(&of_all));
    }
}

fn new_health_controller(
    instance: &Arc<instance::Instance>,
    workers: &Workers,
    server_events: Arc<EventLog>,
) -> Arc<HealthController> {
    HealthController::new(
        instance.generation(),
        Arc::clone(instance.registry.process()),
        Box::new(server_events),
        &hostname(),
        workers.mailboxes().to_vec(),
    )
}

/// Serves the command sockets from the first worker.
fn open_cli(
    instance: &Arc<instance::Instance>,
    workers: &Workers,
    start: CompiledStart,
    master_link: Option<MasterLink>,
) -> Result<Option<Reporter>, u8> {
    let Some(mailbox) = workers.mailbox(0) else {
        return Ok(None);
    };
    let limits = CliLimits::of(&instance.generation().config.global);
    let instance = Arc::clone(instance);
    let opened = run_on(mailbox, move || {
        let cli_binds: Vec<_> = start
            .cli_binds
            .iter()
            .map(|cli_bind| Arc::clone(&cli_bind.socket))
            .collect();
        let reporter = match master_link {
            Some(master_link) => Some(master_link.start_reporting(&instance, &cli_binds, limits)?),
            None => None,
        };
        ballast_cli::serve(instance, start.cli_binds, limits)?;
        Ok(reporter)
    })?;
    opened.map_err(|error: ballast_worker::SystemCallError| fail(&error))
}

/// What a worker gets before it serves.
struct WorkerSetup {
    instance: Arc<instance::Instance>,
    logs: Logs,
    health_controller: Arc<HealthController>,
    worker: usize,
    worker_count: usize,
}

impl WorkerSetup {
    /// Sets the worker up, on its thread.
    fn set_up(self) {
        let generation = self.instance.generation();
        let process = Arc::clone(self.instance.registry.process());
        let running = Rc::new(RunningGeneration::new(
            generation,
            self.instance.open_log_targets().frontends.clone(),
        ));
        let log = self.logs.worker();
        let local = Rc::new(WorkerLocal::new(
            self.worker,
            process,
            log,
            hostname(),
            running,
        ));
        local.install(Rc::new(services::ServiceResponder(Arc::clone(
            &self.instance,
        ))));
        set_local(Rc::clone(&local));
        arrivals(&local, &self.instance).install();
        spawn_service(tend_idle_clients(Rc::clone(&local)));
        spawn_service(pool::watch());
        // They live as long as the worker: dropping them ends the probes.
        let probes: Probes = probe::start(&self.health_controller, self.worker, self.worker_count);
        set_local(Rc::new(RefCell::new(probes)));
        let mut losses = (self.worker == 0).then(|| LossReporter::new(self.logs));
        let mut searches = (self.worker == 0).then(SearchReporter::default);
        let hands_over_secrets = self.worker == 0 && !self.instance.has_master();
        spawn_service(async move {
            let mut timer = Interval::every(Duration::from_secs(1));
            let (mut cleaning, mut offers_tables) = (None, false);
            loop {
                // It runs only where there are tables: it wakes the worker often.
                let is_cleaned = cleaning
                    .as_ref()
                    .is_some_and(|task: &TaskHandle<()>| !task.is_finished());
                if self.worker == 0 && !is_cleaned && has_tables(&self.instance) {
                    cleaning = Some(spawn_service(clean_tables(Arc::clone(&self.instance))));
                    if !std::mem::replace(&mut offers_tables, true) {
                        table_donor::offer(&self.instance.table_donor);
                    }
                }
                if hands_over_secrets {
                    let secrets = &self.instance.own_secrets;
                    secrets.update(&self.instance.generation().config.global.tls.shared_store);
                }
                timer.tick().await;
                pool::purge(now());
                if let Some(losses) = &mut losses {
                    losses.check(self.instance.registry.process());
                }
                if let Some(searches) = &mut searches {
                    searches.check(&self.instance);
                }
            }
        });
    }
}

/// The time between two cleanings of the stick tables. Nobody reads an expired entry meanwhile; it
/// takes up memory.
const TABLE_CLEANING_PERIOD: Duration = Duration::from_millis(250);

fn has_tables(instance: &instance::Instance) -> bool {
    !instance.generation().tables.all().is_empty()
}

/// Removes expired entries of stick tables, a bounded number in each turn of this task. It ends when
/// there is no table any more.
async fn clean_tables(instance: Arc<instance::Instance>) {
    let mut timer = Interval::every(TABLE_CLEANING_PERIOD);
    while has_tables(&instance) {
        timer.tick().await;
        let tables = Arc::clone(&instance.generation().tables);
        while tables.purge(instance.registry.process().now_ms()) {
            yield_now().await;
        }
    }
}

fn arrivals(local: &Rc<WorkerLocal>, instance: &Arc<instance::Instance>) -> ArrivalHandler {
    let (serving, instance) = (Rc::clone(local), Arc::clone(instance));
    ArrivalHandler {
        serve: Box::new(move |arrival| serving.serve(Client::New(arrival))),
        // In the log, too: standard error is closed where the process runs in the background.
        event: Box::new(move |event| {
            let line = event.to_string();
            console::warn(&line);
            instance.log_of_process(Level::Emerg, &line);
        }),
    }
}

/// Runs a function on a worker, and waits for it.
fn run_on<T: Send + 'static>(
    mailbox: &Mailbox,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, u8> {
    mailbox.call_blocking(work).map_err(|error| fail(&error))
}

fn fail(error: &dyn std::fmt::Display) -> u8 {
    console::alert(&format!("[haproxy.main()] {error}."));
    1
}
