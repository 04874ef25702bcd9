//! The statistics page over HTTP: the query of its URL, its formats, and the actions of a posted form.

use std::sync::Arc;

use ballast_model::StatsPage;

use crate::filter::Filter;
use crate::format::{Stat, StatForm};
use crate::host::{ServerAction, StatsHost};
use crate::html::Html;
use crate::page_query::{PageFormat, PageQuery};
use crate::page_view::PageView;
use crate::rows::StatisticsRows;
use crate::schema::SCHEMA;
use crate::urlencoded::{decoded, url_encoded};

/// A request for a statistics page.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// The settings of the page in its proxy.
    pub page: &'a StatsPage,
    /// The name of the proxy.
    pub proxy: &'a str,
    /// Whether servers may be changed.
    pub may_admin: bool,
    /// Path and query; they begin with the page's prefix.
    pub target: &'a [u8],
    /// The posted form, when the request is a POST.
    pub form: Option<&'a [u8]>,
    /// Whether the form is whole.
    pub form_is_whole: bool,
}

/// Appends the next piece of a body; false when there is none left.
pub type BodyPieces = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

type TextPieces = Box<dyn FnMut(&mut String) -> bool>;

/// The answer to a client.
pub struct WebAnswer {
    /// Status.
    pub status: u16,
    /// Fields besides those about the length of the body.
    pub fields: Vec<(&'static str, String)>,
    /// The body; `None` for none, or the default page of the status.
    pub pieces: Option<BodyPieces>,
}

/// Answers a request for a statistics page.
pub fn page(host: Arc<dyn StatsHost>, request: &PageRequest<'_>) -> WebAnswer {
    let prefix = request.page.prefix();
    let rest = request.target.get(prefix.len()..).unwrap_or_default();
    let query = PageQuery::read(&String::from_utf8_lossy(rest));
    if let Some(form) = request.form {
        let outcome = outcome(&*host, request, form);
        return back_to_page(request.page, &query, outcome);
    }
    let kind = match query.format {
        PageFormat::Html => "text/html",
        PageFormat::Csv | PageFormat::Typed => "text/plain",
        PageFormat::Json | PageFormat::Schema => "application/json",
    };
    let mut fields = vec![
        ("cache-control", "no-cache".to_owned()),
        ("content-type", kind.to_owned()),
    ];
    if let Some(refresh) = request.page.refresh.filter(|_| !query.no_refresh) {
        fields.push(("refresh", refresh.as_secs().max(1).to_string()));
    }
    let filter = Filter {
        up: query.up,
        no_maint: query.no_maint,
        names: shown_names(request),
        name_part: query.scope.clone(),
        ..Filter::default()
    };
    let rows = StatisticsRows::new(Arc::clone(&host), filter);
    let stat = |rows, form| {
        let mut stat = Stat::new(rows, form);
        Box::new(move |into: &mut String| stat.write_next(into)) as TextPieces
    };
    let mut pieces: TextPieces = match query.format {
        PageFormat::Csv => stat(rows, StatForm::Text),
        PageFormat::Typed => stat(
            rows,
            StatForm::Typed {
                has_descriptions: false,
            },
        ),
        PageFormat::Json => stat(rows, StatForm::Json),
        PageFormat::Schema => Box::new(|into| {
            into.push_str(SCHEMA);
            false
        }),
        PageFormat::Html => {
            let view = PageView::new(&*host, request.page, query, request.may_admin);
            let mut html = Html::new(rows, view);
            Box::new(move |into| html.write_next(into))
        }
    };
    WebAnswer {
        status: 200,
        fields,
        pieces: Some(Box::new({
            let mut text = String::new();
            move |into| {
                text.clear();
                let more = pieces(&mut text);
                into.extend_from_slice(text.as_bytes());
                more
            }
        })),
    }
}

/// The names of the proxies that the page shows (`stats scope`); none: all.
fn shown_names(request: &PageRequest<'_>) -> Vec<String> {
    let own = |name: &String| match name.as_str() {
        "." => request.proxy.to_owned(),
        other => other.to_owned(),
    };
    request.page.scope.iter().map(own).collect()
}

/// Sends the browser back to the page, which then says what became of the form.
fn back_to_page(page: &StatsPage, query: &PageQuery, outcome: &str) -> WebAnswer {
    let mut location = format!("{};st={outcome}", page.prefix());
    if query.up {
        location.push_str(";up");
    }
    if query.no_refresh && page.refresh.is_some() {
        location.push_str(";norefresh");
    }
    if !query.scope.is_empty() {
        location.push_str("?scope=");
        location.push_str(&url_encoded(&query.scope));
    }
    WebAnswer {
        status: 303,
        fields: vec![
            ("cache-control", "no-cache".to_owned()),
            ("content-type", "text/plain".to_owned()),
            ("location", location),
        ],
        pieces: None,
    }
}

/// Does what a form asks for; the word for what became of it.
fn outcome(host: &dyn StatsHost, request: &PageRequest<'_>, form: &[u8]) -> &'static str {
    if !request.may_admin {
        return "DENY";
    }
    if !request.form_is_whole {
        return "EXCD";
    }
    let (mut backend, mut action, mut servers) = (None, None, Vec::new());
    for pair in form.split(|byte| *byte == b'&') {
        let equals = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = pair.split_at(equals.unwrap_or(pair.len()));
        let value = decoded(value.get(1..).unwrap_or_default());
        match name {
            b"b" => backend = Some(value),
            b"action" => action = Some(value),
            b"s" => servers.push(value),
            _ => {}
        }
    }
    let generation = host.generation();
    let backend = match backend.as_deref() {
        None => None,
        Some(name) => {
            let backend_index = match name.strip_prefix('#') {
                Some(number) => number.parse::<u32>().ok().and_then(|number| {
                    let mut backends = generation.backends.iter();
                    backends.position(|backend| backend.model.common.id == number)
                }),
                None => generation.backend_named(name),
            };
            match backend_index {
                Some(backend_index) => Some(&generation.backends[backend_index]),
                None => return "ERRP",
            }
        }
    };
    // What the page does not show cannot be changed by its forms.
    let shown = shown_names(request);
    let is_hidden = |name: &str| !shown.is_empty() && shown.iter().all(|known| known != name);
    if backend.is_some_and(|backend| is_hidden(backend.name())) {
        return "DENY";
    }
    let action = match action.as_deref() {
        None => None,
        Some(word) => match ServerAction::ALL
            .iter()
            .find(|(_, known, _)| *known == word)
        {
            Some((action, _, _)) => Some(*action),
            None => return "ERRP",
        },
    };
    let (Some(backend), Some(action)) = (backend, action) else {
        return "NONE";
    };
    let (mut known, mut changed) = (0, 0);
    for server in &servers {
        if backend.server_named(server).is_some() {
            known += 1;
            changed += usize::from(host.act(backend.name(), server, action));
        }
    }
    match (servers.len(), known, changed) {
        (0, _, _) => "NONE",
        (_, 0, _) => "ERRP",
        (all, known, changed) if known < all && changed > 0 => "PART",
        (_, _, 0) => "NONE",
        _ => "DONE",
    }
}
