//! The statistics page.
//!
//! Source: HAProxy configuration manual, "stats admin" to "stats uri".

use ballast_expr::{Condition, Phase};
use ballast_model::{StatsAccess, StatsPage, StatsRule};
use ballast_syntax::{Diagnostic, TimeUnit};

use super::expressions;
use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The page of the section. The first `stats` line of a section starts a new one: the page of its
/// defaults is dropped, as in HAProxy.
fn page<'d>(draft: &'d mut ProxyDraft, args: &Args<'_>) -> &'d mut StatsPage {
    if draft.section_state.stats.is_none() {
        draft.section_state.stats = Some(args.keyword_span());
        draft.common.stats = None;
    }
    draft.common.stats.get_or_insert_default()
}

/// The rest of the line as one text.
fn text(args: &mut Args<'_>) -> String {
    let words: Vec<&str> = args.rest().iter().map(|word| word.text()).collect();
    words.join(" ")
}

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "stats enable",
        Sections::PROXIES,
        "",
        "the statistics page",
        |draft, args, _| {
            page(draft, args);
            args.rest();
            Ok(())
        },
    )
    .http(),
    R::new(
        "stats uri",
        Sections::PROXIES,
        "<prefix>",
        "where the statistics page is",
        |draft, args, _| {
            let uri = args.text("a URI prefix")?.to_owned();
            page(draft, args).uri = Some(uri);
            args.end()
        },
    )
    .examples("stats uri /stats", "stats uri")
    .http(),
    R::new(
        "stats realm",
        Sections::PROXIES,
        "<realm>",
        "what the statistics page calls itself",
        |draft, args, _| {
            let realm = args.text("a realm")?.to_owned();
            page(draft, args).realm = Some(realm);
            args.end()
        },
    )
    .examples("stats realm Shop", "stats realm")
    .http(),
    R::new(
        "stats refresh",
        Sections::PROXIES,
        "<delay>",
        "how often the page loads itself again",
        |draft, args, _| {
            let delay = args.time_in("a time", TimeUnit::Second)?;
            page(draft, args).refresh = (!delay.is_zero()).then_some(delay);
            args.end()
        },
    )
    .examples("stats refresh 5s", "stats refresh x")
    .http(),
    R::new(
        "stats auth",
        Sections::PROXIES,
        "<user>:<password>",
        "who may see the page",
        |draft, args, _| {
            let credentials = args.text("a user and a password")?.to_owned();
            let known = &mut page(draft, args).credentials;
            if !known.contains(&credentials) {
                known.push(credentials);
            }
            args.rest();
            Ok(())
        },
    )
    .examples("stats auth admin:secret", "stats auth")
    .http(),
    R::new(
        "stats scope",
        Sections::PROXIES,
        "{ <proxy> | . }",
        "which proxies the page shows",
        |draft, args, _| {
            let name = args.text("the name of a proxy, or '.'")?.to_owned();
            page(draft, args).scope.push(name);
            args.end()
        },
    )
    .examples("stats scope .", "stats scope")
    .http(),
    R::new(
        "stats hide-version",
        Sections::PROXIES,
        "",
        "do not show the version",
        |draft, args, _| {
            page(draft, args).hide_version = true;
            args.rest();
            Ok(())
        },
    )
    .http(),
    R::new(
        "stats show-version",
        Sections::PROXIES,
        "",
        "show the version",
        |draft, args, _| {
            page(draft, args).hide_version = false;
            args.rest();
            Ok(())
        },
    )
    .http(),
    R::new(
        "stats show-legends",
        Sections::PROXIES,
        "",
        "show more about proxies",
        |draft, args, _| {
            page(draft, args).legends = true;
            args.rest();
            Ok(())
        },
    )
    .http(),
    R::new(
        "stats show-modules",
        Sections::PROXIES,
        "",
        "show counters of parts",
        |draft, args, _| {
            page(draft, args).modules = true;
            args.rest();
            Ok(())
        },
    )
    .http(),
    R::new(
        "stats show-node",
        Sections::PROXIES,
        "[ <name> ]",
        "show the machine's name",
        |draft, args, _| {
            let name = args.next().unwrap_or_default().to_owned();
            let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !name.chars().all(is_fit) {
                let message = format!(
                    "'stats show-node' : a name has letters, digits, '-', '_' and '.' (got '{name}')"
                );
                return Err(args.wrong(message));
            }
            page(draft, args).node = Some(name);
            args.rest();
            Ok(())
        },
    )
    .examples("stats show-node", "")
    .http(),
    R::new(
        "stats show-desc",
        Sections::PROXIES,
        "[ <text> ]",
        "show a description",
        |draft, args, context| {
            let description = text(args);
            if description.is_empty() && !context.declarations.has_description {
                let message = "'stats show-desc' has nothing to show: it needs a text, or 'description' in the global section";
                context.warn("no-description", message.to_owned(), args.keyword_span());
            }
            page(draft, args).description = Some(description);
            Ok(())
        },
    )
    .examples("stats show-desc shop", "")
    .http(),
    R::new(
        "stats admin",
        Sections::NAMED,
        "{ if | unless } <condition>",
        "who may change servers on the page",
        |draft, args, context| {
            page(draft, args);
            let phases =
                expressions::phases_of_sides(draft, Phase::FrontendRequest, Phase::BackendRequest);
            let condition = expressions::required_condition(draft, args, context, &phases)?;
            page(draft, args).admin.push(Some(condition));
            Ok(())
        },
    )
    .examples("stats admin if { src 192.0.2.0/24 }", "stats admin")
    .http(),
    R::new(
        "stats http-request",
        Sections::NAMED,
        "{ allow | deny | auth [realm <realm>] } [ { if | unless } <condition> ]",
        "who may see the page",
        access,
    )
    .examples(
        "stats http-request auth realm Shop",
        "stats http-request nosuch",
    )
    .http(),
];

fn access(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    page(draft, args);
    let mut access = match args.choice(&[("allow", 0), ("deny", 1), ("auth", 2)])? {
        0 => StatsAccess::Allow,
        1 => StatsAccess::Deny,
        _ => StatsAccess::Auth(None),
    };
    if let StatsAccess::Auth(realm) = &mut access
        && args.take("realm")
    {
        *realm = Some(args.text("a realm")?.to_owned());
    }
    let phases = expressions::phases_of_sides(draft, Phase::FrontendRequest, Phase::BackendRequest);
    let condition = expressions::condition(draft, args, context, &phases)?;
    page(draft, args)
        .rules
        .push(StatsRule { access, condition });
    Ok(())
}

/// Reports two different ways to restrict access to the page.
pub(super) fn finish(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let (Some(page), Some(span)) = (&draft.common.stats, draft.section_state.stats) else {
        return;
    };
    let simple = !page.credentials.is_empty() || page.realm.is_some();
    if simple && !page.rules.is_empty() {
        let message = format!(
            "{}: stats 'auth'/'realm' and 'http-request' can't be used at the same time",
            draft.title()
        );
        context.report(Diagnostic::alert("conflict", message).at(span));
    }
}

/// The conditions of a page, to be linked to their ACLs.
pub(super) fn conditions(page: &mut Option<Box<StatsPage>>) -> Vec<&mut Condition> {
    let Some(page) = page else {
        return Vec::new();
    };
    let rules = page.rules.iter_mut().map(|rule| &mut rule.condition);
    rules.chain(&mut page.admin).flatten().collect()
}
