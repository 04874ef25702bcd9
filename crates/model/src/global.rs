//! The `global` section: the process, its limits and its tuning.

use std::time::Duration;

use ballast_expr::{Expr, LogFormat, VarName};
use ballast_topology::CpuWords;

use crate::{Bind, CountedStatuses, GlobalTls, H2Tuning, LogTarget};

/// The `global` section(s), merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Global {
    /// `daemon`.
    pub daemon: bool,
    /// `master-worker`, with `-W`.
    pub master_worker: bool,
    /// `pidfile`.
    pub pidfile: Option<String>,
    /// `http-err-codes` and `http-fail-codes`.
    pub status_counts: CountedStatuses,
    /// `chroot`.
    pub chroot: Option<String>,
    /// `user` or `uid`, as written.
    pub user: Option<String>,
    /// `group` or `gid`, as written.
    pub group: Option<String>,
    /// Which processors are used, and how many threads: `nbthread`, `thread-group`, `cpu-map` and
    /// others.
    pub cpu: CpuWords,
    /// `maxconn`; computed from the descriptor limit when `None`.
    pub connection_count_max: Option<u32>,
    /// `ulimit-n`; computed from `maxconn` when `None`.
    pub descriptor_count_max: Option<u32>,
    /// `fd-hard-limit`.
    pub descriptor_hard_limit: Option<u32>,
    /// False after `no strict-limits`: then a limit that cannot be raised is only a warning.
    pub strict_limits: bool,
    /// `maxconnrate`.
    pub connection_rate_max: Option<u32>,
    /// `maxsessrate`.
    pub session_rate_max: Option<u32>,
    /// `maxpipes`.
    pub pipe_count_max: Option<u32>,
    /// `hard-stop-after`.
    pub hard_stop_after: Option<Duration>,
    /// `grace`.
    pub grace: Option<Duration>,
    /// `close-spread-time`: connections are closed at once when `None`.
    pub close_spread: Option<CloseSpread>,
    /// `log` lines.
    pub log_targets: Vec<LogTarget>,
    /// `log-tag`; the program's name when `None`.
    pub log_tag: Option<String>,
    /// `log-send-hostname`: `Some("")` is the machine's own name.
    pub log_send_hostname: Option<String>,
    /// `node`; the machine's name when `None`.
    pub node: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `localpeer`.
    pub localpeer: Option<String>,
    /// `stats socket` lines.
    pub stats_sockets: Vec<StatsSocket>,
    /// `stats timeout`; 10 s by default.
    pub stats_timeout: Option<Duration>,
    /// `stats maxconn`; 10 by default.
    pub stats_connection_count_max: Option<u32>,
    /// `server-state-file`, after `server-state-base`.
    pub server_state_file: Option<String>,
    /// `stats-file`.
    pub stats_file: Option<String>,
    /// `spread-checks`, percent.
    pub spread_checks_percent: u8,
    /// `max-spread-checks`.
    pub spread_checks_max: Option<Duration>,
    /// `external-check`: such checks are allowed.
    pub external_check: bool,
    /// `insecure-fork-wanted`: programs may be started by a process without root privileges.
    pub fork_allowed: bool,
    /// `nosplice`.
    pub no_splice: bool,
    /// `noreuseport`.
    pub no_reuseport: bool,
    /// `set-dumpable`.
    pub dumpable: bool,
    /// `h1-case-adjust`: from, to.
    pub case_adjust: Vec<(String, String)>,
    /// The environment behind the last line: what `setenv` and its like made of the process's. It is in the
    /// text already; this is for samples (`env`) and `show env`.
    pub environment: Vec<(String, String)>,
    /// `set-var`, `set-var-fmt`, in the order of the file.
    pub variables: Vec<ProcessVariable>,
    /// `quiet`.
    pub quiet: bool,
    /// `zero-warning`.
    pub zero_warning: bool,
    /// `reload-keep-overrides`, a keyword of Ballast: a reload keeps the overrides whose objects
    /// did not change in the file.
    pub reload_keeps_overrides: bool,
    /// `tune.*`.
    pub tune: Tune,
    /// `busy-polling`.
    pub busy_polling: bool,
    /// TLS words that are not defaults of lines, and `crt-store` sections.
    pub tls: GlobalTls,
}

/// How connections of HTTP are closed at a soft stop (`close-spread-time`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CloseSpread {
    /// At moments that are spread over this time.
    Over(Duration),
    /// Not at all: they end by themselves.
    Never,
}

impl Global {
    /// The keywords that changed in `next` and that a process applies only at its start. Every
    /// field is named here, so that whoever adds one must decide; those that are not compared are
    /// applied at run time.
    pub fn fixed_words_changed(&self, next: &Self) -> Vec<&'static str> {
        let Self {
            // Applied at run time: `maxconn` as far as the descriptors of the start allow.
            connection_count_max: _,
            status_counts: _,
            connection_rate_max: _,
            session_rate_max: _,
            hard_stop_after: _,
            grace: _,
            close_spread: _,
            log_targets: _,
            log_tag: _,
            log_send_hostname: _,
            spread_checks_percent: _,
            spread_checks_max: _,
            external_check: _,
            fork_allowed: _,
            no_reuseport: _,
            case_adjust: _,
            variables: _,
            zero_warning: _,
            reload_keeps_overrides: _,
            environment: _,
            tls: _,
            // Applied at the start only.
            node,
            daemon,
            master_worker,
            pidfile,
            chroot,
            user,
            group,
            cpu,
            descriptor_count_max,
            descriptor_hard_limit,
            strict_limits,
            no_splice,
            pipe_count_max,
            description,
            localpeer,
            stats_sockets,
            stats_timeout,
            stats_connection_count_max,
            server_state_file,
            stats_file,
            dumpable,
            quiet,
            busy_polling,
            tune,
        } = self;
        let pairs = [
            ("daemon", *daemon != next.daemon),
            ("master-worker", *master_worker != next.master_worker),
            ("pidfile", *pidfile != next.pidfile),
            ("chroot", *chroot != next.chroot),
            ("user", *user != next.user),
            ("group", *group != next.group),
            (
                "ulimit-n",
                *descriptor_count_max != next.descriptor_count_max,
            ),
            (
                "fd-hard-limit",
                *descriptor_hard_limit != next.descriptor_hard_limit,
            ),
            ("strict-limits", *strict_limits != next.strict_limits),
            ("nosplice", *no_splice != next.no_splice),
            ("maxpipes", *pipe_count_max != next.pipe_count_max),
            ("description", *description != next.description),
            ("localpeer", *localpeer != next.localpeer),
            ("stats socket", *stats_sockets != next.stats_sockets),
            ("stats timeout", *stats_timeout != next.stats_timeout),
            (
                "stats maxconn",
                *stats_connection_count_max != next.stats_connection_count_max,
            ),
            (
                "server-state-file",
                *server_state_file != next.server_state_file,
            ),
            ("stats-file", *stats_file != next.stats_file),
            ("set-dumpable", *dumpable != next.dumpable),
            ("quiet", *quiet != next.quiet),
            ("busy-polling", *busy_polling != next.busy_polling),
            ("node", *node != next.node),
            ("tune.bufsize", tune.buffer_bytes != next.tune.buffer_bytes),
            ("tune.pipesize", tune.pipe_bytes != next.tune.pipe_bytes),
        ];
        let changed = pairs.into_iter().filter(|(_, differs)| *differs);
        let changed = changed.map(|(word, _)| word);
        changed.chain(cpu.words_changed(&next.cpu)).collect()
    }
}

/// A variable of the process, and its initial value.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessVariable {
    /// Its name, of the scope `proc`.
    pub name: VarName,
    /// Its value.
    pub source: VariableSource,
}

/// The value of a variable of the process.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableSource {
    /// The value of an expression.
    Expr(Expr),
    /// A text.
    Format(LogFormat),
}

/// `tune.vars.*-max-size`: bytes that variables may take; `None` is no limit beside that of the
/// program. A wider scope includes the narrower ones.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct VariableLimits {
    /// `tune.vars.global-max-size`: all variables.
    pub global: Option<u32>,
    /// `tune.vars.proc-max-size`: variables of the process, which include all others, so that it is
    /// the same as `global`.
    pub process: Option<u32>,
    /// `tune.vars.sess-max-size`: those of a session and of its exchanges.
    pub session: Option<u32>,
    /// `tune.vars.txn-max-size`: those of an exchange.
    pub transaction: Option<u32>,
    /// `tune.vars.reqres-max-size`: those of a request, and those of a response.
    pub message: Option<u32>,
    /// `tune.vars.check-max-size`: those of one run of a health check.
    pub check: Option<u32>,
}

impl VariableLimits {
    /// Bytes that each variable takes beside its text, as HAProxy 3.2 counts them.
    pub const VARIABLE_BYTES: usize = 80;

    /// Whether any limit is set.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

/// `tune.*`, with the documented defaults.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tune {
    /// `tune.bufsize`, in bytes.
    pub buffer_bytes: u32,
    /// `tune.maxrewrite`, in bytes: space reserved for headers that rules add.
    pub rewrite_bytes: u32,
    /// `tune.h2.*`.
    pub h2: H2Tuning,
    /// `tune.http.maxhdr`: the maximum number of fields in a head.
    pub header_count_max: u16,
    /// `tune.http.logurilen`, in bytes of the whole request line. HAProxy was observed to cut at
    /// 1023 when it is not set, and at the number itself when it is.
    pub log_uri_bytes: u32,
    /// `tune.pool-low-fd-ratio`: percentage of descriptors up to which idle connections to servers are kept.
    pub idle_percent_low: u32,
    /// `tune.pool-high-fd-ratio`: percentage of descriptors from which on they are closed.
    pub idle_percent_high: u32,
    /// `tune.http.cookielen`, in bytes.
    pub cookie_bytes: u32,
    /// `tune.stick-counters`: how many entries a connection and each of its requests may track.
    pub stick_counters: u32,
    /// `tune.vars.*-max-size`.
    pub variables: VariableLimits,
    /// `tune.maxaccept`: connections accepted per wake-up; `None` leaves it to the listener.
    pub accept_count_max: Option<i32>,
    /// `tune.pipesize`, in bytes.
    pub pipe_bytes: Option<u32>,
    /// `tune.regex.max-steps`: steps of one search for an expression that has to turn back; `None`
    /// leaves it to the search.
    pub regex_steps_max: Option<u64>,
    /// `tune.rcvbuf.client`, in bytes.
    pub receive_buffer_client: Option<u32>,
    /// `tune.rcvbuf.server`, in bytes.
    pub receive_buffer_server: Option<u32>,
    /// `tune.sndbuf.client`, in bytes.
    pub send_buffer_client: Option<u32>,
    /// `tune.sndbuf.server`, in bytes.
    pub send_buffer_server: Option<u32>,
}

impl Default for Tune {
    fn default() -> Self {
        Self {
            buffer_bytes: 16_384,
            rewrite_bytes: 1024,
            h2: H2Tuning::default(),
            header_count_max: 101,
            log_uri_bytes: 1023,
            idle_percent_low: 20,
            idle_percent_high: 25,
            cookie_bytes: 63,
            stick_counters: 3,
            variables: VariableLimits::default(),
            accept_count_max: None,
            pipe_bytes: None,
            regex_steps_max: None,
            receive_buffer_client: None,
            receive_buffer_server: None,
            send_buffer_client: None,
            send_buffer_server: None,
        }
    }
}

/// One `stats socket` line.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsSocket {
    /// Address and ownership.
    pub bind: Bind,
    /// `level`: the permissions of its clients.
    pub level: CliLevel,
    /// `severity-output`: how responses show their severity.
    pub severity: SeverityOutput,
    /// `expose-fd listeners`.
    pub expose_listeners: bool,
}

/// `level` of a `stats socket`.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum CliLevel {
    /// `user`: may read what is not sensitive.
    User,
    /// `operator`, the default: may read everything.
    #[default]
    Operator,
    /// `admin`: may change things.
    Admin,
}

/// `severity-output` of a `stats socket`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SeverityOutput {
    /// `none`, the default.
    #[default]
    None,
    /// `number`: `[3]: `.
    Number,
    /// `string`: `[err]: `.
    String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_living_process_cannot_follow_is_named() {
        let was = Global::default();
        let mut is = was.clone();
        is.connection_rate_max = Some(7);
        assert!(was.fixed_words_changed(&is).is_empty());
        (is.cpu.thread_count, is.descriptor_count_max) = (Some(3), Some(9));
        is.tune.buffer_bytes += 1;
        let words = was.fixed_words_changed(&is);
        assert_eq!(words, ["ulimit-n", "tune.bufsize", "nbthread"]);
    }
}
