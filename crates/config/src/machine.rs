//! What the configuration needs to know about the machine it will run on.
//!
//! This crate does no I/O: access to files, names, users and the environment goes through
//! [`Machine`]. [`EmptyMachine`] has none of them; [`StandInMachine`] replaces what another implementation
//! does not find by stand-ins, so that a file can be checked on another machine.

use std::net::IpAddr;

use ballast_syntax::{Env, FixedFacts};
use ballast_topology::{Machine as Processors, PROCESSORS_MAX};

/// Access to the machine.
pub trait Machine {
    /// The content of a file.
    ///
    /// # Errors
    /// The system's error.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// The names of the files in a directory; `None` where the path is no directory.
    ///
    /// # Errors
    /// The system's error.
    fn list(&self, _directory: &str) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }

    /// Whether a path exists.
    fn exists(&self, path: &str) -> bool;

    /// The addresses of a name, in the system resolver's order.
    ///
    /// # Errors
    /// Why there are none.
    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String>;

    /// Whether a user exists.
    fn has_user(&self, name: &str) -> bool;

    /// Whether a group exists.
    fn has_group(&self, name: &str) -> bool;

    /// The address that a state file has for a server (`init-addr last`).
    fn saved_address(&self, _file: &str, _backend: &str, _server: &str) -> Option<IpAddr> {
        None
    }

    /// The machine's name.
    fn hostname(&self) -> String;

    /// The processors, and which of them this process may use.
    fn processors(&self) -> Processors;

    /// Whether an interface of this name exists.
    fn has_interface(&self, name: &str) -> bool;

    /// The environment the text is expanded in.
    fn environment(&self) -> Env;

    /// What conditional blocks may ask about the program.
    fn facts(&self) -> FixedFacts;

    /// The name of the stand-in for something missing; `None` makes it an error, as on the machine
    /// itself.
    fn stand_in(&self, _what: &str) -> Option<String> {
        None
    }
}

/// A machine without files, names and users: for tests and fuzzing.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyMachine;

impl Machine for EmptyMachine {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("No such file or directory".to_owned())
    }

    fn exists(&self, _path: &str) -> bool {
        false
    }

    fn resolve(&self, _host: &str) -> Result<Vec<IpAddr>, String> {
        Err("Name or service not known".to_owned())
    }

    fn has_user(&self, _name: &str) -> bool {
        false
    }

    fn has_group(&self, _name: &str) -> bool {
        false
    }

    fn hostname(&self) -> String {
        "localhost".to_owned()
    }

    fn processors(&self) -> Processors {
        Processors::alike(64)
    }

    fn has_interface(&self, _name: &str) -> bool {
        false
    }

    fn environment(&self) -> Env {
        Env::new()
    }

    fn facts(&self) -> FixedFacts {
        FixedFacts::default()
    }
}

/// Another machine, with stand-ins for what it does not have. The stand-in of a file is empty, of a
/// name an address of the documentation range (RFC 5737), of a user or group one that exists.
#[derive(Clone, Copy, Debug)]
pub struct StandInMachine<S>(pub S);

impl<S: Machine> Machine for StandInMachine<S> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.read(path)
    }

    fn exists(&self, path: &str) -> bool {
        self.0.exists(path)
    }

    /// Names are not resolved: another machine may give other addresses.
    fn resolve(&self, _host: &str) -> Result<Vec<IpAddr>, String> {
        Err("names are not looked up".to_owned())
    }

    fn has_user(&self, name: &str) -> bool {
        self.0.has_user(name)
    }

    fn has_group(&self, name: &str) -> bool {
        self.0.has_group(name)
    }

    fn saved_address(&self, file: &str, backend: &str, server: &str) -> Option<IpAddr> {
        self.0.saved_address(file, backend, server)
    }

    fn hostname(&self) -> String {
        self.0.hostname()
    }

    /// Another machine may have any number of them.
    fn processors(&self) -> Processors {
        Processors::alike(PROCESSORS_MAX)
    }

    fn has_interface(&self, name: &str) -> bool {
        self.0.has_interface(name)
    }

    fn environment(&self) -> Env {
        self.0.environment()
    }

    fn facts(&self) -> FixedFacts {
        self.0.facts()
    }

    fn stand_in(&self, what: &str) -> Option<String> {
        Some(format!("{what}: a stand-in was used"))
    }
}
