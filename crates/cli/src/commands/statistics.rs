//! Commands that show counters and invalid messages.

use std::sync::Arc;
use std::time::SystemTime;

use ballast_engine::Generation;
use ballast_model::CliLevel;
use ballast_stats::{Filter, Stat, StatisticsRows, StatsHost};

use super::invalid::{self, moment};
use super::process::form;
use super::target::is_called;
use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["dump", "stats-file"],
        "dump stats-file",
        "dump the counters of what has a guid, for a stats-file",
        |call| match &call.shared.role {
            ProcessRole::Worker(host) => {
                let host = Arc::clone(host) as Arc<dyn StatsHost>;
                CommandAnswer::Report(ballast_stats::stats_file(&host))
            }
            _ => CommandAnswer::Done,
        },
    ),
    Command::new(
        &["show", "errors"],
        "show errors [<px>] [request|response]",
        "show requests and responses that were not valid",
        errors,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "schema", "json"],
        "show schema json",
        "tell what the JSON forms look like",
        |_| CommandAnswer::Report(ballast_stats::SCHEMA.into()),
    ),
    Command::new(
        &["show", "stat"],
        "show stat [desc|json|no-maint|typed|up]*",
        "show the counters of proxies and servers",
        stat,
    ),
];

fn stat(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(host) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let mut words = call.args;
    if let [first, rest @ ..] = words
        && first == "domain"
    {
        match rest.split_first() {
            Some((domain, after)) if domain == "proxy" => words = after,
            _ => return CommandAnswer::error("Invalid statistics domain."),
        }
    }
    let mut filter = Filter::default();
    if let [proxy, types, id, ..] = words {
        let Ok(proxy) = proxy_number(&host.generation(), proxy) else {
            return CommandAnswer::error("No such proxy.");
        };
        filter = filter.with_numbers(proxy, types, id);
    }
    filter.up = words.iter().any(|word| word == "up");
    filter.no_maint = words.iter().any(|word| word == "no-maint");
    let host = Arc::clone(host) as Arc<dyn StatsHost>;
    let rows = StatisticsRows::new(host, filter);
    let mut stat = Stat::new(rows, form(words).0);
    CommandAnswer::Pieces(Box::new(move |into| stat.write_next(into)))
}

struct NoSuchProxy;

/// The proxy that a word names by number or name; `None` for any (a number below zero).
fn proxy_number(generation: &Generation, word: &str) -> Result<Option<u32>, NoSuchProxy> {
    if let Ok(number) = word.parse::<i64>() {
        return Ok(u32::try_from(number).ok());
    }
    let frontends = generation
        .config
        .frontends
        .iter()
        .map(|proxy| &proxy.common);
    let backends = generation.config.backends.iter().map(|proxy| &proxy.common);
    frontends
        .chain(backends)
        .find(|common| is_called(&common.name, common.id, word))
        .map(|common| Some(common.id))
        .ok_or(NoSuchProxy)
}

/// The last invalid request and response of each proxy.
fn errors(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(control) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let generation = control.generation();
    let words = call.args;
    let wanted = match words.first().map(String::as_str) {
        None => None,
        Some(word) => match proxy_number(&generation, word) {
            Ok(number) => number,
            Err(NoSuchProxy) => return CommandAnswer::error("No such proxy."),
        },
    };
    let side = words.get(1).map(String::as_str);
    let count = control.registry().process().invalid_message_count();
    let head = format!(
        "Total events captured on [{}] : {count}\n",
        moment(SystemTime::now())
    );
    // One message after the other: a copy for each of thousands of proxies would need much memory.
    let frontends = generation.frontends.len();
    let all = frontends + generation.backends.len();
    let (requests, responses) = (side != Some("response"), side != Some("request"));
    let mut next = 0;
    let mut head = Some(head);
    CommandAnswer::Pieces(Box::new(move |into| {
        if let Some(head) = head.take() {
            into.push_str(&head);
            return true;
        }
        while next < all {
            let proxy_index = next;
            next += 1;
            let last = match proxy_index.checked_sub(frontends) {
                None if requests => generation.frontends[proxy_index]
                    .state
                    .invalid_request
                    .last(),
                Some(proxy_index) if responses => generation.backends[proxy_index]
                    .state
                    .invalid_response
                    .last(),
                _ => None,
            };
            let Some(invalid) = last else { continue };
            let ids = [
                Some(invalid.frontend.1),
                invalid.backend.as_ref().map(|one| one.1),
            ];
            if wanted.is_none_or(|wanted| ids.contains(&Some(wanted))) {
                invalid::write(&invalid, proxy_index < frontends, into);
                return true;
            }
        }
        false
    }))
}
