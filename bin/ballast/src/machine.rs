//! This machine, as a configuration asks about it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use ballast_config::Surroundings;
use ballast_syntax::{Env, FixedFacts};

use crate::states::StateFile;
use crate::version;

/// Answers from the system the program runs on.
#[derive(Debug)]
pub(crate) struct Machine {
    environment: Env,
    state_files: RefCell<HashMap<String, Option<StateFile>>>,
}

impl Machine {
    /// This machine, with the variables HAProxy gives to its configuration (configuration manual,
    /// section 2.3).
    pub(crate) fn new(files: &[String], local_peer: Option<&str>, master_worker: bool) -> Self {
        let mut environment = Env::new();
        for (name, value) in std::env::vars_os() {
            // A name the system took is one.
            let _ = environment.set(&name.to_string_lossy(), &value.to_string_lossy());
        }
        let hostname = hostname();
        let (major, minor, _) = version::LANGUAGE;
        let branch = format!("{major}.{minor}");
        let mut own = vec![
            ("HAPROXY_BRANCH", branch),
            ("HAPROXY_CFGFILES", files.join(";")),
            (
                "HAPROXY_LOCALPEER",
                local_peer.unwrap_or(&hostname).to_owned(),
            ),
        ];
        if master_worker {
            own.push(("HAPROXY_MWORKER", "1".to_owned()));
        }
        for (name, value) in own {
            environment
                .set(name, &value)
                .expect("these are names of variables");
        }
        Self {
            environment,
            state_files: RefCell::default(),
        }
    }
}

impl Surroundings for Machine {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| plain(&error))
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let found = (host, 0).to_socket_addrs().map_err(|error| plain(&error))?;
        let mut addresses = Vec::new();
        for address in found {
            if !addresses.contains(&address.ip()) {
                addresses.push(address.ip());
            }
        }
        Ok(addresses)
    }

    fn user(&self, name: &str) -> bool {
        matches!(ballast_net::user_by_name(name), Ok(Some(_)))
    }

    fn group(&self, name: &str) -> bool {
        matches!(ballast_net::group_by_name(name), Ok(Some(_)))
    }

    fn saved_address(&self, file: &str, backend: &str, server: &str) -> Option<IpAddr> {
        let mut files = self.state_files.borrow_mut();
        let known = files.entry(file.to_owned());
        // What is wrong with a file is said when the states are read.
        let file = known.or_insert_with(|| StateFile::open(file).ok());
        file.as_ref()?.address(backend, server)
    }

    fn hostname(&self) -> String {
        hostname()
    }

    fn processor_count(&self) -> usize {
        ballast_net::cpu_count()
    }

    fn interface(&self, name: &str) -> bool {
        !name.contains('/') && Path::new("/sys/class/net").join(name).exists()
    }

    fn environment(&self) -> Env {
        self.environment.clone()
    }

    fn facts(&self) -> FixedFacts {
        version::facts()
    }
}

/// The machine's name.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// What the system said, without the number that Rust adds.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
