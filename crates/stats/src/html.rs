//! The statistics page: head, one table per proxy, foot, made piece by piece.
//!
//! The columns, their order, the names of anchors and the classes of rows are HAProxy's, since
//! tools and habits look for them. Whatever comes from a client or from names is escaped.

use std::fmt::Write as _;

use crate::host::ServerAction;
use crate::html_rows::{Proxy, column_heads, row};
use crate::markup::escaped;
use crate::page_view::PageView;
use crate::rows::StatisticsRows;

/// A page under way.
pub(crate) struct Html {
    rows: StatisticsRows,
    view: PageView,
    stage: PagePart,
}

enum PagePart {
    Head,
    Rows(Option<Proxy>),
    End,
}

impl Html {
    pub(crate) fn new(rows: StatisticsRows, view: PageView) -> Self {
        Self {
            rows,
            view,
            stage: PagePart::Head,
        }
    }

    /// Appends the next piece; false when all was written.
    pub(crate) fn write_next(&mut self, into: &mut String) -> bool {
        match &mut self.stage {
            PagePart::Head => {
                head(&self.view, into);
                self.stage = PagePart::Rows(None);
            }
            PagePart::End => return false,
            PagePart::Rows(open) => {
                let Some(next) = self.rows.next() else {
                    if let Some(open) = open {
                        end_table(&self.view, open, into);
                    }
                    into.push_str("</body></html>\n");
                    self.stage = PagePart::End;
                    return true;
                };
                let proxy = Proxy::of(&next);
                if open.as_ref().is_none_or(|open| open.id != proxy.id) {
                    if let Some(open) = open {
                        end_table(&self.view, open, into);
                    }
                    begin_table(&self.view, &proxy, into);
                    *open = Some(proxy);
                }
                row(&self.view, &next, into);
            }
        }
        true
    }
}

/// How the page looks: our own.
const STYLE: &str = "
:root { color-scheme: light dark; --line: #8a94a0; --head: #12445e; --quiet: #eef1f4; }
body { font: 13px/1.4 system-ui, sans-serif; margin: 1em; }
h1 { font-size: 1.5em; margin: 0; } h2 { font-size: 1.2em; margin: 0 0 .6em; }
h3 { font-size: 1em; background: var(--head); color: #fff; padding: .2em .5em; }
.facts { display: flex; flex-wrap: wrap; gap: 2em; margin-bottom: 1.2em; }
.facts p { margin: 0; } .facts ul { margin: .2em 0; padding-left: 1.2em; }
table.tbl { border-collapse: collapse; width: 100%; margin-bottom: 1.2em; font-size: 11px; }
table.tbl th, table.tbl td { border: 1px solid var(--line); padding: 2px 4px; white-space: nowrap; }
table.tbl td { text-align: right; } table.tbl td.ac { text-align: center; }
table.tbl caption { text-align: left; font-weight: bold; padding: .2em 0; }
.titre { background: var(--head); color: #fff; }
a.px, a.lfsb { color: inherit; text-decoration: none; }
u { position: relative; text-decoration: none; border-bottom: 1px dotted; }
div.tips { display: none; position: absolute; z-index: 9; top: 1.4em; left: 0; text-align: left;
 background: #fffbe0; color: #000; border: 1px solid var(--line); padding: 3px 6px; }
u:hover div.tips { display: block; }
table.det td, table.det th { border: 0 !important; text-align: left !important; padding: 0 4px; }
tr, .lgd td, .note { color: #111; } .titre, .titre th { color: #fff; }
.frontend, .backend { background: #dde5ea; } .socket { background: var(--quiet); }
.active_up { background: #c4ecc4; } .backup_up { background: #c4dcf4; }
.active_going_down { background: #f4f0a0; } .backup_going_down { background: #d8b4ec; }
.active_going_up { background: #f4cc70; } .backup_going_up { background: #ecb4ec; }
.active_down, .backup_down { background: #f4a0a0; } .maintain { background: #c89458; }
.active_nolb, .active_draining { background: #78b8f0; }
.backup_nolb, .backup_draining { background: #d8b050; }
.active_no_check, .backup_no_check { background: #e0e0e0; }
.lgd td { padding: 0 .5em; } .note { padding: .4em .6em; margin-bottom: 1em; }
@media print { .facts form { display: none; } }
";

/// The classes of rows and what they mean.
const LEGEND: [(&str, &str); 10] = [
    ("active_up", "active UP"),
    ("backup_up", "backup UP"),
    ("active_going_down", "active UP, going down"),
    ("backup_going_down", "backup UP, going down"),
    ("active_going_up", "active DOWN, going up"),
    ("backup_going_up", "backup DOWN, going up"),
    ("active_down", "active or backup DOWN"),
    ("active_no_check", "not checked"),
    ("maintain", "active or backup DOWN for maintenance (MAINT)"),
    (
        "active_draining",
        "active or backup SOFT STOPPED for maintenance (DRAIN, NOLB)",
    ),
];

fn head(view: &PageView, into: &mut String) {
    let page = &view.page;
    let node = match page.node.as_deref() {
        None => String::new(),
        Some("") => format!(" on {}", escaped(&view.process_info.node)),
        Some(name) => format!(" on {}", escaped(name)),
    };
    // What the configuration says of itself may hold markup, as it may in HAProxy.
    let description = match page.description.as_deref() {
        None => String::new(),
        Some("") => format!(": {}", view.process_info.description),
        Some(text) => format!(": {text}"),
    };
    let name = &view.process_info.name;
    let version = if page.hide_version {
        name.clone()
    } else {
        let (version, date) = (&view.process_info.version, &view.process_info.release_date);
        format!("{name} version {version}, released {date}")
    };
    let _ = write!(
        into,
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">\n\
         <title>Statistics Report for {name}{node}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style></head>\n<body><h1>{version}</h1>\n\
         <h2>Statistics Report for pid {}{node}{description}</h2>\n\
         <h3>General process information</h3>\n<div class=\"facts\">\n",
        view.process_info.process_id
    );
    facts(view, into);
    legend(into);
    options(view, into);
    into.push_str("</div>\n");
    if let Some(outcome) = &view.query.outcome {
        note(view, outcome, into);
    }
}

fn facts(view: &PageView, into: &mut String) {
    let facts = &view.process_info;
    let seconds = view.uptime.as_secs();
    let memory = match facts.memory_megabytes_max {
        0 => "unlimited".to_owned(),
        limit => format!("{limit} MB"),
    };
    let _ = write!(
        into,
        "<p><b>pid = </b> {} (process #1, nbproc = 1, nbthread = {})<br>\n\
         <b>uptime = </b> {}d {}h{:02}m{:02}s<br>\n\
         <b>system limits:</b> memmax = {memory}; ulimit-n = {}<br>\n\
         <b>maxsock = </b> {}; <b>maxconn = </b> {}; <b>maxpipes = </b> {}<br>\n\
         current conns = {}; current pipes = {}/{}; conn rate = {}/sec<br>\n\
         idle = {} %</p>\n",
        facts.process_id,
        facts.thread_count,
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        facts.descriptor_count_max,
        facts.socket_count_max,
        view.connection_count_max,
        facts.pipe_count_max,
        view.connections,
        view.pipes.used,
        view.pipes.used + view.pipes.free,
        view.connection_rate,
        view.idle_percent,
    );
}

fn legend(into: &mut String) {
    into.push_str("<table class=\"lgd\">");
    for two in LEGEND.chunks(2) {
        into.push_str("<tr>");
        for (class, text) in two {
            let _ = write!(into, "<td class=\"{class}\">{text}</td>");
        }
        into.push_str("</tr>\n");
    }
    into.push_str("</table>\n");
}

fn options(view: &PageView, into: &mut String) {
    let query = &view.query;
    let (up, still) = (query.up, query.no_refresh);
    let refreshes = view.page.refresh.is_some();
    let _ = write!(
        into,
        "<div><b>Display option:</b><ul>\n<li><form method=\"GET\">Scope : <input \
         name=\"scope\" value=\"{}\" size=\"8\" maxlength=\"20\"></form></li>\n",
        escaped(&query.scope)
    );
    let mut item = |link: String, text: &str| {
        let _ = writeln!(into, "<li><a href=\"{link}\">{text}</a></li>");
    };
    let text = if up {
        "Show all servers"
    } else {
        "Hide 'DOWN' servers"
    };
    item(view.link("", !up, still), text);
    if refreshes {
        let text = if still {
            "Enable refresh"
        } else {
            "Disable refresh"
        };
        item(view.link("", up, !still), text);
    }
    item(view.link("", up, still), "Refresh now");
    item(view.link(";csv", false, refreshes), "CSV export");
    item(view.link(";json", false, refreshes), "JSON export");
    item(view.link(";json-schema", false, false), "JSON schema");
    into.push_str("</ul></div>\n");
}

/// What became of a form, in words.
fn note(view: &PageView, outcome: &str, into: &mut String) {
    let (class, text) = match outcome {
        "DONE" => ("active_up", "Action processed successfully."),
        "NONE" => ("active_going_down", "Nothing has changed."),
        "PART" => (
            "active_going_down",
            "Action partially processed.<br>Some server names are unknown in the backend.",
        ),
        "ERRP" => (
            "active_down",
            "Action not processed because of invalid parameters: the action, the backend or all \
             servers are unknown.",
        ),
        "EXCD" => (
            "active_down",
            "<b>Action not processed : the buffer couldn't store all the data.<br>You should \
             retry with less servers at a time.</b>",
        ),
        "DENY" => ("active_down", "<b>Action denied.</b>"),
        _ => ("active_no_check", "Unexpected result."),
    };
    let link = view.link("", view.query.up, view.query.no_refresh);
    let _ = writeln!(
        into,
        "<div class=\"note {class}\"><a class=lfsb href=\"{link}\" \
         title=\"Remove this message\">[X]</a> {text}</div>"
    );
}

fn begin_table(view: &PageView, proxy: &Proxy, into: &mut String) {
    let name = escaped(&proxy.name);
    if view.may_admin && proxy.has_servers {
        into.push_str("<form method=\"post\">");
    }
    let _ = write!(
        into,
        "<table class=\"tbl\">\n<caption class=\"pxname\"><a name=\"{name}\"></a>"
    );
    if view.page.legends {
        let _ = write!(
            into,
            "<u><a class=px href=\"#{name}\">{name}</a><div class=tips>cap: {}, mode: {}, id: {}\
             </div></u>",
            proxy.capability, proxy.mode, proxy.id
        );
    } else {
        let _ = write!(into, "<a class=px href=\"#{name}\">{name}</a>");
    }
    if let Some(text) = &proxy.description {
        let _ = write!(into, " <span class=\"desc\">{}</span>", escaped(text));
    }
    into.push_str("</caption>\n");
    column_heads(view, proxy, into);
}

fn end_table(view: &PageView, proxy: &Proxy, into: &mut String) {
    into.push_str("</table>\n");
    if !view.may_admin || !proxy.has_servers {
        return;
    }
    into.push_str(
        "Choose the action to perform on the checked servers : <select name=action>\
         <option value=\"\"></option>",
    );
    for (_, word, text) in ServerAction::ALL {
        let _ = write!(into, "<option value=\"{word}\">{text}</option>");
    }
    let _ = writeln!(
        into,
        "</select><input type=\"hidden\" name=\"b\" value=\"#{}\">&nbsp;\
         <input type=\"submit\" value=\"Apply\"></form><p>",
        proxy.id
    );
}
