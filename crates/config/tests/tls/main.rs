//! TLS words: what each line says in the model, and what is wrong, in HAProxy's words.

mod binds;
mod crt_lists;
mod global;
mod servers;

use std::net::IpAddr;
use std::time::Duration;

use ballast_config::{
    EmptyMachine, LoadedConfig, Machine, Options, StandInMachine, certificate_list, load,
};
use ballast_model::{
    AuthoritySource, BindTls, CertificateSource, ExtraFiles, FileBases, GlobalTls, ServerTls,
    TlsFile, VerifyErrors,
};
use ballast_syntax::{Env, FixedFacts, Severity};
use ballast_tls::context::{BindContext, ServerContext};
use ballast_tls::options::{TlsVersion, VerifyMode};

/// A machine with these files.
struct Files(&'static [(&'static str, &'static str)]);

impl Machine for Files {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|(name, _)| *name == path);
        let text = found.map(|(_, text)| text.as_bytes().to_vec());
        text.ok_or_else(|| "No such file or directory".to_owned())
    }

    fn exists(&self, path: &str) -> bool {
        self.0.iter().any(|(name, _)| *name == path)
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        EmptyMachine.resolve(host)
    }

    fn has_user(&self, _: &str) -> bool {
        false
    }

    fn has_group(&self, _: &str) -> bool {
        false
    }

    fn hostname(&self) -> String {
        EmptyMachine.hostname()
    }

    fn processors(&self) -> ballast_topology::Machine {
        ballast_topology::Machine::alike(1)
    }

    fn has_interface(&self, _: &str) -> bool {
        false
    }

    fn environment(&self) -> Env {
        Env::new()
    }

    fn facts(&self) -> FixedFacts {
        FixedFacts::default()
    }
}

/// The code of diagnostics about what stands in the files: these tests have none that are real.
const COMPILING: &str = "tls";

fn is_refused(loaded: &LoadedConfig) -> bool {
    !said(loaded, Severity::Alert).is_empty()
}

fn read(text: &str, machine: &dyn Machine) -> LoadedConfig {
    let files = vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
    load(files, machine, Options::default())
}

fn said(loaded: &LoadedConfig, severity: Severity) -> Vec<&str> {
    let all = loaded.diagnostics.iter();
    let all = all.filter(|one| one.severity == severity && one.code != COMPILING);
    all.map(|one| one.message.as_str()).collect()
}

fn good(text: &str) -> LoadedConfig {
    let loaded = read(text, &StandInMachine(EmptyMachine));
    assert!(!is_refused(&loaded), "{text}: {:#?}", loaded.diagnostics);
    loaded
}

fn alerts(text: &str) -> Vec<String> {
    let loaded = read(text, &StandInMachine(EmptyMachine));
    let alerts = said(&loaded, Severity::Alert);
    alerts.into_iter().map(str::to_owned).collect()
}

/// The bind of a frontend after these global lines.
fn bind_after(global: &str, words: &str, mode: &str) -> BindTls {
    let text = format!(
        "global\n{global}\ndefaults\n mode {mode}\n timeout client 1s\nfrontend f\n bind :443 {words}\n"
    );
    let loaded = good(&text);
    let tls = loaded.config.frontends[0].binds[0].tls.clone();
    BindTls {
        context: BindContext::default(),
        ..*tls.expect("the line has TLS")
    }
}

fn bind(words: &str) -> BindTls {
    bind_after("", &format!("ssl crt /a.pem {words}"), "tcp")
}

fn server_after(global: &str, before: &str, words: &str, mode: &str) -> Option<Box<ServerTls>> {
    let text = format!(
        "global\n{global}\ndefaults\n mode {mode}\n timeout connect 1s\n timeout server 1s\n\
         backend b\n{before}\n server s 192.0.2.1:443 {words}\n"
    );
    let tls = good(&text).config.backends[0].servers[0].tls.clone()?;
    Some(Box::new(ServerTls {
        context: ServerContext::default(),
        ..*tls
    }))
}

fn server(words: &str) -> ServerTls {
    let tls = server_after("", "", &format!("ssl verify none {words}"), "tcp");
    *tls.expect("the line has TLS")
}

fn file(path: &str) -> TlsFile {
    TlsFile {
        path: path.to_owned(),
        ..TlsFile::default()
    }
}

fn crt(path: &str) -> CertificateSource {
    CertificateSource::Crt(file(path))
}

fn said_warning(loaded: &LoadedConfig) -> String {
    said(loaded, Severity::Warning).join("\n")
}
