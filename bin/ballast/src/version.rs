//! The versions, features and usage that the program prints.
//!
//! Tools parse the first line of `haproxy -v`, so under that name the program prints HAProxy's form
//! with the version of the language. Conditions (`version_atleast`) and `show info` use [`HAPROXY_VERSION`]
//! too.

use std::fmt::Write;

use ballast_syntax::{FixedFacts, HaproxyVersion, SslVersion};

use crate::args::{OWN_COMMANDS, OwnCommand};

/// The version of HAProxy's language that the program understands: the newest one that it was compared with.
pub(crate) const HAPROXY_VERSION: (u64, u64, u64) = (3, 2, 26);

/// The version of the language with ours, as tools parse it.
pub(crate) const VERSION: &str = concat!("3.2.26-ballast", env!("CARGO_PKG_VERSION"));

/// The date of this version.
pub(crate) const RELEASE_DATE: &str = "2026/11/21";

/// The name that the program was started by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProgramName {
    /// `ballast`, or anything else.
    Ballast,
    /// `haproxy`.
    Haproxy,
}

impl ProgramName {
    /// The name in the first word of a command line.
    pub(crate) fn of_command(word: &str) -> Self {
        match word.rsplit('/').next() {
            Some("haproxy") => Self::Haproxy,
            _ => Self::Ballast,
        }
    }

    /// The name as a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ballast => "ballast",
            Self::Haproxy => "haproxy",
        }
    }
}

/// Features that are built in, by HAProxy's names: for CRYPT_H and LIBCRYPT hashed passwords work, PCRE2 is
/// the dialect of regular expressions. `feature()` is false for all others.
const FEATURES: &[&str] = &[
    "ACCEPT4",
    "CPU_AFFINITY",
    "CRYPT_H",
    "EPOLL",
    "GETADDRINFO",
    "LIBCRYPT",
    "LINUX_SPLICE",
    "LINUX_TPROXY",
    "NETFILTER",
    "NS",
    "OPENSSL",
    "OPENSSL_AWSLC",
    "PCRE2",
    "PRCTL",
    "PROMEX",
    "RT",
    "SSL",
    "SYSTEMD",
    "TFO",
    "THREAD",
    "TPROXY",
];

/// Features of HAProxy that are not built in.
const MISSING_FEATURES: &[&str] = &[
    "51DEGREES",
    "BACKTRACE",
    "CLOSEFROM",
    "DEVICEATLAS",
    "DL",
    "ENGINE",
    "EVPORTS",
    "KQUEUE",
    "LIBATOMIC",
    "LINUX_CAP",
    "LUA",
    "MATH",
    "MEMORY_PROFILING",
    "OBSOLETE_LINKER",
    "OPENSSL_WOLFSSL",
    "OT",
    "PCRE",
    "PCRE2_JIT",
    "PCRE_JIT",
    "POLL",
    "PROCCTL",
    "PTHREAD_EMULATION",
    "QUIC",
    "QUIC_OPENSSL_COMPAT",
    "SLZ",
    "STATIC_PCRE",
    "STATIC_PCRE2",
    "THREAD_DUMP",
    "WURFL",
    "ZLIB",
];

/// The facts of the program that conditions of a configuration ask for.
pub(crate) fn facts() -> FixedFacts {
    let (major, minor, patch) = HAPROXY_VERSION;
    FixedFacts {
        version: HaproxyVersion::release(major, minor, patch),
        features: FEATURES.iter().map(|&name| name.to_owned()).collect(),
        enabled: [
            "EPOLL",
            "FAST-FORWARD",
            "GETADDRINFO",
            "REUSEPORT",
            "SPLICE",
        ]
        .map(str::to_owned)
        .to_vec(),
        // Files ask for it before they use words that came with it: those of 3.0 are here.
        openssl_version: SslVersion::parse("3.0.0"),
        ssl_library: Some("AWS-LC under rustls".to_owned()),
        awslc_api: None,
    }
}

/// The first line of the version and of the usage.
pub(crate) fn first_line(name: ProgramName) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let (major, minor, _) = HAPROXY_VERSION;
    match name {
        ProgramName::Haproxy => {
            format!(
                "HAProxy version {VERSION} {RELEASE_DATE} - https://docs.haproxy.org/{major}.{minor}/"
            )
        }
        ProgramName::Ballast => {
            format!("Ballast version {own} {RELEASE_DATE} - speaks HAProxy {major}.{minor}")
        }
    }
}

/// `-v`.
pub(crate) fn short(name: ProgramName) -> String {
    let (major, minor, _) = HAPROXY_VERSION;
    format!(
        "{}\nStatus: Ballast {}, a load balancer that reads haproxy.cfg (HAProxy {major}.{minor}).\n\
         Running on: {}",
        first_line(name),
        env!("CARGO_PKG_VERSION"),
        running_on()
    )
}

/// `-vv`: what it was built with.
pub(crate) fn long(name: ProgramName) -> String {
    let mut out = short(name);
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let mut features: Vec<String> = FEATURES.iter().map(|name| format!("+{name}")).collect();
    features.extend(MISSING_FEATURES.iter().map(|name| format!("-{name}")));
    features.sort_by(|a, b| a[1..].cmp(&b[1..]));
    let _ = write!(
        out,
        "\nBuild options :\n  TARGET  = {}-{}\n  OPTIONS = {build}\n\n\
         Feature list : {}\n\n\
         Default settings :\n  bufsize = 16384, maxrewrite = 1024, maxpollevents = 1024\n\n\
         Built with multi-threading support (MAX_TGROUPS={}, MAX_THREADS={}, default={}).\n\
         Built with the Prometheus exporter as a service\n\
         Built with rustls on AWS-LC : TLSv1.2 TLSv1.3\n\
         Built with network namespace support.\n\
         Built with transparent proxy support using: IP_TRANSPARENT IPV6_TRANSPARENT\n\
         Encrypted password support via crypt(3): yes\n\n\
         Available polling systems :\n      epoll : pref=300,  test result OK\n\
         Total: 1 (1 usable), will use epoll.\n\n\
         Available multiplexer protocols :\n\
         (protocols marked as <default> cannot be specified using 'proto' keyword)\n\
         \u{20}        h2 : mode=HTTP  side=FE|BE  mux=H2    flags=HTX|HOL_RISK|NO_UPG\n\
         \u{20} <default> : mode=HTTP  side=FE|BE  mux=H1    flags=HTX\n\
         \u{20}        h1 : mode=HTTP  side=FE|BE  mux=H1    flags=HTX|NO_UPG\n\
         \u{20} <default> : mode=TCP   side=FE|BE  mux=PASS  flags=\n\
         \u{20}      none : mode=TCP   side=FE|BE  mux=PASS  flags=NO_UPG\n\n\
         Available services : prometheus-exporter\n\
         Available filters : none",
        std::env::consts::OS,
        std::env::consts::ARCH,
        features.join(" "),
        ballast_topology::GROUPS_MAX,
        ballast_topology::THREADS_MAX,
        ballast_net::cpu_count(),
    );
    out
}

/// `-h`.
pub(crate) fn usage(name: ProgramName) -> String {
    let word = name.word();
    let own: Vec<String> = OWN_COMMANDS.iter().map(|own| own_line(word, own)).collect();
    format!(
        "Usage : {word} [-f <file|directory>]* [options] [-- <file>*]\n\
         \u{20}       -f <file>       configuration, in order; a directory gives its *.cfg; - is standard input\n\
         \u{20}       -c              check the configuration and leave (-V: say more, -q: say nothing)\n\
         \u{20}       -cc <condition> evaluate a condition: 0 true, 1 false, 2 unreadable\n\
         \u{20}       -C <directory>  go there before files are read\n\
         \u{20}       -v, -vv         version; how it was built; -h: this text\n\
         \u{20}       -D              go to the background; -p <file> writes the process number\n\
         \u{20}       -W, -Ws         a master watches the worker; -Ws tells systemd when it is ready\n\
         \u{20}       -S <address>    the master's command socket\n\
         \u{20}       -d, -db         stay in the foreground\n\
         \u{20}       -n <number>     connections at most (maxconn); -N <number> for each proxy\n\
         \u{20}       -m <MB>         memory at most\n\
         \u{20}       -L <name>       local peer name\n\
         \u{20}       -q, -V          quiet; in spite of quiet\n\
         \u{20}       -x <socket>     take listening sockets over from the process that answers there\n\
         \u{20}       -dC             print the configuration as it was read\n\
         \u{20}       -dD             tell suspicious statements\n\
         \u{20}       -dr             servers whose names do not resolve start without address\n\
         \u{20}       -dR, -dS        no SO_REUSEPORT, no splice\n\
         \u{20}       -dV             certificates of servers are not checked\n\
         \u{20}       -dc             print the processors, and where threads run\n\
         \u{20}       -dW             warnings are errors\n\
         \u{20}       -sf, -st <pid>* processes to be asked to finish, to be ended\n\
         \u{20}       -4, -dM, -dK, -dt, -dT, -de, -dp, -dk, -dG, -dl, -dL, -dv, -dZ, -dF, -dI\n\
         \u{20}                       understood, and without effect\n\
         \n\
         Commands of its own:\n{}",
        own.join("\n")
    )
}

/// The usage of a Ballast command: the call and the help.
fn own_line(word: &str, own: &OwnCommand) -> String {
    let call = format!("{word} {} {}", own.word, own.args);
    format!("        {call:<48} {}", own.help)
}

/// `--help` behind a command of our own.
pub(crate) fn usage_of(name: ProgramName, own: &OwnCommand) -> String {
    let OwnCommand {
        word,
        args,
        help,
        codes,
    } = own;
    let program = name.word();
    format!("Usage : {program} {word} {args}\n        {help}\n        exit codes: {codes}")
}

fn running_on() -> String {
    let kernel = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        text.map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    format!(
        "{} {} {}",
        kernel("ostype"),
        kernel("osrelease"),
        std::env::consts::ARCH
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_it_is_called_by_is_what_it_says() {
        assert_eq!(
            ProgramName::of_command("/usr/sbin/haproxy"),
            ProgramName::Haproxy
        );
        assert_eq!(ProgramName::of_command("./ballast"), ProgramName::Ballast);
        assert!(first_line(ProgramName::Haproxy).starts_with("HAProxy version 3.2.26-ballast"));
        assert!(first_line(ProgramName::Ballast).starts_with("Ballast version "));
        assert!(long(ProgramName::Haproxy).contains("Feature list : "));
    }

    #[test]
    fn conditions_know_what_is_there() {
        let env = ballast_syntax::Env::new();
        let ask = |text| ballast_syntax::evaluate_condition(text, &env, &facts()).unwrap();
        assert!(ask("version_atleast(2.6)") && ask("feature(PROMEX)"));
        assert!(!ask("version_atleast(3.3)") && !ask("feature(LUA)"));
        assert!(ask("feature(OPENSSL)") && ask("feature(SSL)"));
        assert!(ask("openssl_version_atleast(1.1.1)") && !ask("openssl_version_atleast(3.5.0)"));
        // What a file says of OpenSSL's own workings is not for this library.
        assert!(!ask("ssllib_name_startswith(Open)") && ask("ssllib_name_startswith(AWS-LC)"));
        assert!(ask("version_atleast(3.2.26)") && !ask("version_atleast(3.2.27)"));
        assert!(ask("feature(PCRE2)") && ask("feature(OPENSSL_AWSLC)"));
        assert!(ask("feature(CRYPT_H)") && ask("feature(LIBCRYPT)"));
        assert!(ask("enabled(FAST-FORWARD)"));
    }
}
