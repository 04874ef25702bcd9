//! The tables of the statistics page: one row of cells per frontend, listener, server, backend.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use ballast_model::ProxyCommon;

use crate::columns::{columns, columns_fixed};
use crate::format::plain;
use crate::markup::escaped;
use crate::metric::Metric;
use crate::page_view::PageView;
use crate::row::Row;
use crate::value::MetricValue;

/// Every column by its name.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Metric>> =
    LazyLock::new(|| columns().map(|metric| (metric.name, metric)).collect());

/// What a table says of its proxy.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) capability: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) description: Option<String>,
    /// It faces servers, which may be chosen.
    pub(crate) has_servers: bool,
}

impl Proxy {
    /// The proxy that a row belongs to.
    pub(crate) fn of(row: &Row) -> Self {
        let (common, alone): (&ProxyCommon, _) = match row {
            Row::Frontend(row) => (&row.frontend.model.common, "frontend"),
            Row::Listener(row) => (&row.frontend.model.common, "frontend"),
            Row::Server(row) => (&row.backend.model.common, "backend"),
            Row::Backend(row) => (&row.backend.model.common, "backend"),
        };
        let capability = if common.listen { "proxy" } else { alone };
        Self {
            id: common.id,
            name: common.name.clone(),
            capability,
            mode: common.mode.word(),
            description: common.description.clone(),
            has_servers: capability != "frontend",
        }
    }
}

/// The two lines of headings.
pub(crate) fn column_heads(view: &PageView, proxy: &Proxy, into: &mut String) {
    into.push_str("<tr class=\"titre\">");
    if view.may_admin && proxy.has_servers {
        let name = escaped(&proxy.name);
        let _ = write!(
            into,
            "<th rowspan=2><input type=\"checkbox\" onclick=\"for (const box of this.form.\
             querySelectorAll('input[name=s]')) box.checked = this.checked\" \
             title=\"{name}\"></th>"
        );
    }
    into.push_str(
        "<th rowspan=2></th><th colspan=3>Queue</th><th colspan=3>Session rate</th>\
         <th colspan=6>Sessions</th><th colspan=2>Bytes</th><th colspan=2>Denied</th>\
         <th colspan=3>Errors</th><th colspan=2>Warnings</th><th colspan=9>Server</th>",
    );
    if view.page.modules {
        let _ = write!(into, "<th colspan={}>Extra modules</th>", MODULES.len());
    }
    into.push_str("</tr>\n<tr class=\"titre\">");
    for head in [
        "Cur", "Max", "Limit", "Cur", "Max", "Limit", "Cur", "Max", "Limit", "Total", "LbTot",
        "Last", "In", "Out", "Req", "Resp", "Req", "Conn", "Resp", "Retr", "Redis", "Status",
        "LastChk", "Wght", "Act", "Bck", "Chk", "Dwn", "Dwntme", "Thrtle",
    ] {
        let _ = write!(into, "<th>{head}</th>");
    }
    if view.page.modules {
        for module in MODULES {
            let _ = write!(into, "<th>{module}</th>");
        }
    }
    into.push_str("</tr>\n");
}

/// The groups of columns after `-`, by what their names begin with.
const MODULES: [&str; 5] = ["ssl", "h2", "h1", "h3", "quic"];

/// One row, with an eye on its cells.
struct RowWriter<'r> {
    row: &'r Row,
    into: &'r mut String,
}

/// Appends a row.
pub(crate) fn row(view: &PageView, row: &Row, into: &mut String) {
    let mut line = RowWriter { row, into };
    let admin = view.may_admin && Proxy::of(row).has_servers;
    let class = match row {
        Row::Frontend(_) => "frontend",
        Row::Listener(_) => "socket",
        Row::Backend(_) => "backend",
        Row::Server(_) => line.server_class(),
    };
    let _ = write!(line.into, "<tr class=\"{class}\">");
    if admin {
        match row {
            Row::Server(server) => {
                let name = escaped(server.server.name());
                let _ = write!(
                    line.into,
                    "<td><input type=\"checkbox\" name=\"s\" value=\"{name}\"></td>"
                );
            }
            _ => line.into.push_str("<td></td>"),
        }
    }
    line.name(view);
    line.queue();
    line.rates();
    line.sessions();
    line.traffic();
    line.state();
    if view.page.modules {
        for module in MODULES {
            line.module(module);
        }
    }
    line.into.push_str("</tr>\n");
}

impl RowWriter<'_> {
    /// The value of a column; empty for one the row does not have.
    fn text(&self, column: &str) -> String {
        let mut text = String::new();
        if let Some(metric) = BY_NAME.get(column) {
            plain(&metric.read(self.row), &mut text);
        }
        text
    }

    fn number(&self, column: &str) -> u64 {
        let value = BY_NAME.get(column).map(|metric| metric.read(self.row));
        match value {
            Some(MetricValue::U32(number)) => u64::from(number),
            Some(MetricValue::U64(number)) => number,
            _ => 0,
        }
    }

    fn cell(&mut self, text: &str) {
        let text = escaped(text);
        let _ = write!(self.into, "<td>{text}</td>");
    }

    fn cells(&mut self, columns: &[&str]) {
        for column in columns {
            let text = self.text(column);
            self.cell(&text);
        }
    }

    /// A limit; `-` where there is none.
    fn limit(&mut self, column: &str) {
        let text = self.text(column);
        let is_none = text.is_empty() || text == "0";
        self.cell(if is_none { "-" } else { &text });
    }

    fn centred(&mut self, text: &str) {
        let _ = write!(self.into, "<td class=ac>{text}</td>");
    }

    /// A cell that tells more when it is pointed at: pairs of a text and a value.
    fn with_details(&mut self, text: &str, details: &[(&str, String)]) {
        let _ = write!(self.into, "<td><u>{text}<div class=tips><table class=det>");
        for (name, value) in details {
            let _ = write!(self.into, "<tr><th>{name}</th><td>{value}</td></tr>");
        }
        self.into.push_str("</table></div></u></td>");
    }

    fn server_class(&self) -> &'static str {
        let (status, backup) = (self.text("status"), self.number("bck") > 0);
        let begins = |word: &str| status.starts_with(word);
        let counts = status.contains('/') && !status.contains("via ");
        let pair = match () {
            () if begins("MAINT") => return "maintain",
            () if begins("DOWN") && counts => ["active_going_up", "backup_going_up"],
            () if begins("DOWN") => ["active_down", "backup_down"],
            () if begins("DRAIN") => ["active_draining", "backup_draining"],
            () if begins("NOLB") => ["active_nolb", "backup_nolb"],
            () if begins("UP") && counts => ["active_going_down", "backup_going_down"],
            () if begins("UP") => ["active_up", "backup_up"],
            () => ["active_no_check", "backup_no_check"],
        };
        pair[usize::from(backup)]
    }

    fn name(&mut self, view: &PageView) {
        let proxy = escaped(&self.text("pxname"));
        let (anchor, shown, legend) = match self.row {
            Row::Frontend(_) => ("Frontend".to_owned(), "Frontend".to_owned(), String::new()),
            Row::Backend(_) => {
                let mut legend = format!("balancing: {}", self.text("algo"));
                let cookie = self.text("cookie");
                if !cookie.is_empty() {
                    legend.push_str(&format!(", cookie: '{cookie}'"));
                }
                ("Backend".to_owned(), "Backend".to_owned(), legend)
            }
            Row::Listener(_) => {
                let name = self.text("svname");
                let legend = format!("{}, id: {}", self.text("addr"), self.text("sid"));
                (format!("+{name}"), name, legend)
            }
            Row::Server(_) => {
                let name = self.text("svname");
                let mut legend = format!("{}, id: {}", self.text("addr"), self.text("sid"));
                let cookie = self.text("cookie");
                if !cookie.is_empty() {
                    legend.push_str(&format!(", cookie: '{cookie}'"));
                }
                (name.clone(), name, legend)
            }
        };
        let (anchor, shown) = (escaped(&anchor), escaped(&shown));
        let link = format!("<a class=lfsb href=\"#{proxy}/{anchor}\">{shown}</a>");
        let _ = write!(self.into, "<td class=ac><a name=\"{proxy}/{anchor}\"></a>");
        if view.page.legends && !legend.is_empty() {
            let legend = escaped(&legend);
            let _ = write!(self.into, "<u>{link}<div class=tips>{legend}</div></u>");
        } else {
            self.into.push_str(&link);
        }
        self.into.push_str("</td>");
    }

    fn queue(&mut self) {
        match self.row {
            Row::Frontend(_) | Row::Listener(_) => self.into.push_str("<td colspan=3></td>"),
            Row::Server(_) => {
                self.cells(&["qcur", "qmax"]);
                self.limit("qlimit");
            }
            Row::Backend(_) => self.cells(&["qcur", "qmax", "qlimit"]),
        }
    }

    fn rates(&mut self) {
        match self.row {
            Row::Frontend(_) => {
                for (title, columns) in [
                    ("Current", ["conn_rate", "rate", "req_rate"]),
                    ("Max", ["conn_rate_max", "rate_max", "req_rate_max"]),
                ] {
                    let main = self.text(columns[1]);
                    let names = ["connection", "session", "request"];
                    let details: Vec<(String, String)> = names
                        .iter()
                        .zip(columns)
                        .map(|(name, column)| {
                            let value = format!("{}/s", self.text(column));
                            (format!("{title} {name} rate:"), value)
                        })
                        .collect();
                    let details: Vec<(&str, String)> = details
                        .iter()
                        .map(|(name, value)| (name.as_str(), value.clone()))
                        .collect();
                    self.with_details(&main, &details);
                }
                self.limit("rate_lim");
            }
            Row::Listener(_) => self.into.push_str("<td colspan=3></td>"),
            _ => self.cells(&["rate", "rate_max", "rate_lim"]),
        }
    }

    fn sessions(&mut self) {
        let now = self.text("scur");
        if let Row::Server(_) = self.row {
            let of = |column: &str| self.text(column);
            let details = [
                ("Current active connections:", now.clone()),
                ("Current used connections:", of("used_conn_cur")),
                ("Current idle connections:", of("srv_icur")),
                ("- unsafe:", of("idle_conn_cur")),
                ("- safe:", of("safe_conn_cur")),
                ("Estimated need of connections:", of("need_conn_est")),
                ("Active connections limit:", of("slim")),
                ("Idle connections limit:", of("src_ilim")),
            ];
            self.with_details(&now, &details);
        } else {
            self.cell(&now);
        }
        self.cells(&["smax"]);
        match self.row {
            Row::Server(_) => self.limit("slim"),
            _ => self.cells(&["slim"]),
        }
        self.total();
        self.cells(&["lbtot"]);
        let last = self.text("lastsess");
        let last = match last.parse::<i64>() {
            Ok(seconds) if seconds >= 0 => human(seconds.unsigned_abs()),
            Ok(_) => "?".to_owned(),
            Err(_) => String::new(),
        };
        self.cell(&last);
    }

    /// The sessions so far, and what became of them.
    fn total(&mut self) {
        let total = self.text("stot");
        let mut details: Vec<(&str, String)> = Vec::new();
        let mut tell = |line: &Self, name, column: &str| {
            let text = line.text(column);
            if !text.is_empty() {
                details.push((name, text));
            }
        };
        match self.row {
            Row::Listener(_) => return self.cell(&total),
            Row::Frontend(_) => tell(self, "Cum. connections:", "conn_tot"),
            Row::Server(_) | Row::Backend(_) => {
                tell(self, "New connections:", "connect");
                tell(self, "Reused connections:", "reuse");
            }
        }
        tell(self, "Cum. sessions:", "stot");
        if self.text("mode") == "http" {
            tell(self, "Cum. HTTP requests:", "req_tot");
            tell(self, "- HTTP 1xx responses:", "hrsp_1xx");
            tell(self, "- HTTP 2xx responses:", "hrsp_2xx");
            tell(self, "- HTTP 3xx responses:", "hrsp_3xx");
            tell(self, "- HTTP 4xx responses:", "hrsp_4xx");
            tell(self, "- HTTP 5xx responses:", "hrsp_5xx");
            tell(self, "- other responses:", "hrsp_other");
            tell(self, "Intercepted requests:", "intercepted");
        }
        tell(self, "Failed hdr rewrites:", "wrew");
        tell(self, "Internal errors:", "eint");
        if !self.text("qtime").is_empty() {
            for (name, of) in [
                ("- Queue time (max / avg):", "qtime"),
                ("- Connect time (max / avg):", "ctime"),
                ("- Responses time (max / avg):", "rtime"),
                ("- Total time (max / avg):", "ttime"),
            ] {
                let highest = self.text(&format!("{of}_max"));
                details.push((name, format!("{highest} / {} ms", self.text(of))));
            }
        }
        self.with_details(&total, &details);
    }

    fn traffic(&mut self) {
        self.cells(&[
            "bin", "bout", "dreq", "dresp", "ereq", "econ", "eresp", "wretr", "wredis",
        ]);
    }

    fn state(&mut self) {
        let status = self.text("status");
        match self.row {
            Row::Frontend(_) | Row::Listener(_) => {
                self.centred(&escaped(&status));
                self.into.push_str("<td class=ac colspan=8></td>");
            }
            Row::Backend(_) => {
                let since = human(self.number("lastchg"));
                let status = match status.as_str() {
                    "DOWN" => "<b>DOWN</b>".to_owned(),
                    other => escaped(other),
                };
                self.centred(&format!("{since} {status}"));
                self.centred("");
                let weights = format!("{}/{}", self.text("weight"), self.text("uweight"));
                self.centred(&weights);
                self.cells(&["act", "bck"]);
                self.centred("");
                self.cells(&["chkdown"]);
                let down = self.text("downtime");
                let down = down.parse().map(human).unwrap_or_default();
                self.cell(&down);
                self.cell("");
            }
            Row::Server(_) => self.server_state(&status),
        }
    }

    fn server_state(&mut self, status: &str) {
        if status == "no check" {
            self.centred("<i>no check</i>");
        } else {
            let since = human(self.number("lastchg"));
            self.centred(&format!("{since} {}", escaped(status)));
        }
        let check = self.text("check_status");
        if check.is_empty() {
            self.centred("");
        } else {
            let mut found = check;
            for (before, column, after) in
                [("/", "check_code", ""), (" in ", "check_duration", "ms")]
            {
                let text = self.text(column);
                if !text.is_empty() {
                    found.push_str(&format!("{before}{text}{after}"));
                }
            }
            let mut told = self.text("check_desc");
            let read = self.text("last_chk");
            if !read.is_empty() {
                told.push_str(&format!(": {read}"));
            }
            let (found, told) = (escaped(&found), escaped(&told));
            self.centred(&format!("<u>{found}<div class=tips>{told}</div></u>"));
        }
        let weights = format!("{}/{}", self.text("weight"), self.text("uweight"));
        self.centred(&weights);
        for column in ["act", "bck"] {
            self.centred(if self.number(column) > 0 { "Y" } else { "-" });
        }
        let tracked = escaped(&self.text("tracked"));
        let failed = self.text("chkfail");
        if !tracked.is_empty() {
            let _ = write!(
                self.into,
                "<td class=ac colspan=3><a class=lfsb href=\"#{tracked}\">via {tracked}</a></td>"
            );
        } else if failed.is_empty() {
            self.into.push_str("<td colspan=3></td>");
        } else {
            let observed = self.text("hanafail");
            let text = match observed.as_str() {
                "" => failed,
                observed => format!("{failed}/{observed}"),
            };
            self.with_details(&text, &[("Failed Health Checks", String::new())]);
            self.cells(&["chkdown"]);
            let down = human(self.number("downtime"));
            self.cell(&down);
        }
        let throttle = self.text("throttle");
        self.centred(&match throttle.as_str() {
            "" => "-".to_owned(),
            percent => format!("{percent} %"),
        });
    }

    /// One group of columns of a protocol.
    fn module(&mut self, module: &str) {
        let of_module = |metric: &&Metric| {
            let rest = metric.name.strip_prefix(module);
            rest.is_some_and(|rest| rest.starts_with('_'))
        };
        let details: Vec<(&str, String)> = columns()
            .skip(columns_fixed())
            .filter(of_module)
            .map(|metric| (metric.help, self.text(metric.name)))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        if details.is_empty() {
            self.cell("");
        } else {
            self.with_details(module, &details);
        }
    }
}

/// A time as people say it: the two largest units.
fn human(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm'), (1, 's')];
    let first = units.iter().position(|(length, _)| seconds >= *length);
    let Some(first) = first else {
        return "0s".to_owned();
    };
    let mut text = String::new();
    let mut rest = seconds;
    for (length, letter) in units.iter().skip(first).take(2) {
        if rest / length > 0 {
            let _ = write!(text, "{}{letter}", rest / length);
        }
        rest %= length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn times_are_told_in_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3661, "1h1m"),
            (90_000, "1d1h"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }
}
