//! A start, step by step, each of which may end it.

use std::sync::Arc;

use ballast_config::Loaded;
use ballast_listen::{OpenSettings, Opened};
use ballast_model::Config;

use crate::args::Options;
use crate::desk::open_doors;
use crate::identity::Identity;
use crate::limits::{Limits, Needs, system_descriptors};
use crate::process::{Herald, Side};
use crate::serve::{self, Premises};
use crate::{check, master, process, say, states};

/// HAProxy's command line: checks, or serves until the end. Answers the exit code.
pub(crate) fn run(options: &Options) -> u8 {
    match start(options) {
        Ok(code) | Err(code) => code,
    }
}

fn start(options: &Options) -> Result<u8, u8> {
    say::be_quiet(options.quiet && !options.verbose);
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
    let loaded = check::for_start(options)?;
    if options.check_only {
        return Ok(check::conclude(&loaded, options.quiet && !options.verbose));
    }
    let premises = prepare(options, loaded)?;
    let global = &premises.config.global;
    let daemon = (options.daemon || global.daemon) && !options.foreground;
    let master = (options.master_worker || global.master_worker) && !foreground_only(options);
    let pidfile = options.pidfile.clone().or_else(|| global.pidfile.clone());
    let mut herald = Herald::default();
    if daemon && let Side::Leaves(code) = process::to_background(&mut herald) {
        return Ok(code);
    }
    if let Some(path) = pidfile.filter(|_| daemon || master) {
        process::write_pid(&path)?;
    }
    replace_former(options);
    if master {
        return master::run(options, premises, herald, daemon);
    }
    serve::run(premises, herald, daemon, None)
}

/// `-d` and `-db` take the master away only where the file, not the command line, asks for one.
fn foreground_only(options: &Options) -> bool {
    options.foreground && !options.master_worker
}

/// All that must be done with full rights, before any fork: limits, sockets, names of users.
fn prepare(options: &Options, loaded: Loaded) -> Result<Premises, u8> {
    if check::tell_unserved(&loaded, say::Grade::Alert) {
        return Err(1);
    }
    let mut config = loaded.config;
    if !check::has_listener(&config) {
        say::alert(
            "[haproxy.main()] No enabled listener found (check for 'bind' directives) ! Exiting.",
        );
        return Err(1);
    }
    if config.global.quiet && !options.verbose && !options.debug {
        say::be_quiet(true);
    }
    apply_options(options, &mut config);
    // What is wrong with the files was said when the configuration was judged.
    let (states, _) = states::read(&config);
    states::configure(&mut config, &states);
    let thread_count = threads(&config);
    let limits = limits(options, &config, thread_count)?;
    let opened = open_listeners(options, &config, limits.connections, thread_count)?;
    let doors = open_doors(&config.global.stats_sockets)?;
    let identity = Identity::of(&config.global)?;
    Ok(Premises {
        config,
        thread_count,
        limits,
        opened,
        doors,
        identity,
        memory_megabytes: options.memory_megabytes_max.unwrap_or(0),
        states,
    })
}

/// What the command line says about the configuration.
fn apply_options(options: &Options, config: &mut Config) {
    if let Some(count) = options.proxy_connection_count_max {
        for frontend in &mut config.frontends {
            Arc::make_mut(frontend)
                .connection_count_max
                .get_or_insert(count);
        }
    }
    let global = Arc::make_mut(&mut config.global);
    global.no_reuseport |= options.no_reuseport;
    global.no_splice |= options.no_splice;
    if let Some(name) = &options.local_peer {
        global.localpeer = Some(name.clone());
    }
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
        .map(|server| usize::from(server.checks.enabled) + usize::from(server.checks.agent_enabled))
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
    let limits = Limits::of(global, &needs, system_descriptors());
    limits.apply(global.strict_limits, options.memory_megabytes_max)?;
    if options.debug || options.verbose {
        println!("Note: setting global.maxconn to {}.", limits.connections);
    }
    Ok(limits)
}

fn open_listeners(
    options: &Options,
    config: &Config,
    connection_count_max: u32,
    worker_count: usize,
) -> Result<Opened, u8> {
    let settings = OpenSettings {
        connection_count_max,
        no_reuseport: options.no_reuseport,
        worker_count,
    };
    match ballast_listen::open(config, settings) {
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

/// `-sf` and `-st`: the sockets are open, so the former processes may go.
fn replace_former(options: &Options) {
    let lists = [
        (&options.finish, ballast_net::Signal::Usr1),
        (&options.terminate, ballast_net::Signal::Term),
    ];
    for (pids, signal) in lists {
        for &pid in pids {
            // One that is gone already is what was wanted.
            let _ = ballast_net::kill(pid, signal);
        }
    }
}

fn no_files() -> u8 {
    let name = crate::version::Name::called(&std::env::args().next().unwrap_or_default());
    println!(
        "{}\n\n{}",
        crate::version::line(name),
        crate::version::usage(name)
    );
    1
}
