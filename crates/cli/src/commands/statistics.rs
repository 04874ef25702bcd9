//! Commands that show what was counted and what went wrong.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_engine::Generation;
use ballast_model::CliLevel;
use ballast_net::local_time;
use ballast_stats::{Filter, Rows, Stat, Surroundings};

use super::process::form;
use crate::answer::Answer;
use crate::catalogue::{Call, Command};
use crate::desk::House;

pub(crate) static COMMANDS: &[Command] = &[
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
        |_| Answer::Report(ballast_stats::SCHEMA.into()),
    ),
    Command::new(
        &["show", "stat"],
        "show stat [desc|json|no-maint|typed|up]*",
        "show the counters of proxies and servers",
        stat,
    ),
];

fn stat(call: &mut Call<'_>) -> Answer {
    let House::Worker(surroundings) = &call.desk.house else {
        return Answer::Done;
    };
    let mut words = call.args;
    if let [first, rest @ ..] = words
        && first == "domain"
    {
        match rest.split_first() {
            Some((domain, after)) if domain == "proxy" => words = after,
            _ => return Answer::error("Invalid statistics domain."),
        }
    }
    let mut filter = Filter::default();
    if let [proxy, types, id, ..] = words {
        let Ok(proxy) = proxy_number(&surroundings.generation(), proxy) else {
            return Answer::error("No such proxy.");
        };
        filter = filter.with_numbers(proxy, types, id);
    }
    filter.up = words.iter().any(|word| word == "up");
    filter.no_maint = words.iter().any(|word| word == "no-maint");
    let surroundings = Arc::clone(surroundings) as Arc<dyn Surroundings>;
    let rows = Rows::new(surroundings, filter);
    let mut stat = Stat::new(rows, form(words).0);
    Answer::Pieces(Box::new(move |into| stat.write_next(into)))
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
        .find(|common| common.name == word)
        .map(|common| Some(common.id))
        .ok_or(NoSuchProxy)
}

/// Messages that were not valid are refused and counted, and not kept.
fn errors(_: &mut Call<'_>) -> Answer {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let time = local_time(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let month = MONTHS[usize::from(time.month.clamp(1, 12)) - 1];
    Answer::Report(format!(
        "Total events captured on [{:02}/{month}/{:04}:{:02}:{:02}:{:02}.{:03}] : 0\n",
        time.day,
        time.year,
        time.hour,
        time.minute,
        time.second,
        now.subsec_millis()
    ))
}
