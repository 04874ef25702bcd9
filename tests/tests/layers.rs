//! Crates depend on each other only as `layers.toml` says, and external crates have acceptable
//! licences.

use std::collections::{BTreeMap, BTreeSet};

use ballast_tests::repository;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use serde::Deserialize;

/// `layers.toml` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    /// The lowest first.
    floors: Vec<Floor>,
    /// External libraries that only the named crates may use.
    libraries: BTreeMap<String, BTreeSet<String>>,
    /// For each crate, its dependencies; `*` stands for all crates below.
    rooms: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    name: String,
    rooms: Vec<String>,
}

impl Layers {
    fn read() -> Self {
        let text = std::fs::read_to_string(repository().join("layers.toml"))
            .expect("layers.toml stands at the root");
        toml::from_str(&text).expect("layers.toml has the form described at its head")
    }

    /// The number of a crate's layer.
    fn floor(&self, room: &str) -> Option<usize> {
        self.floors
            .iter()
            .position(|floor| floor.rooms.iter().any(|name| name == room))
    }
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(repository().join("Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()
        .expect("cargo metadata answers for the workspace, and Cargo.lock is up to date")
}

fn room(package: &str) -> &str {
    package.strip_prefix("ballast-").unwrap_or(package)
}

fn is_ours(metadata: &Metadata, name: &str) -> bool {
    metadata
        .workspace_packages()
        .iter()
        .any(|package| package.name.as_str() == name)
}

#[test]
fn every_room_is_drawn_and_nothing_else() {
    let (layers, metadata) = (Layers::read(), metadata());
    let drawn: BTreeSet<&str> = layers.rooms.keys().map(String::as_str).collect();
    let workspace = metadata.workspace_packages();
    let built: BTreeSet<&str> = workspace
        .iter()
        .map(|package| room(&package.name))
        .collect();
    assert_eq!(
        drawn, built,
        "rooms in layers.toml (left) and packages in the workspace (right)"
    );

    let mut placed: Vec<&str> = layers
        .floors
        .iter()
        .flat_map(|floor| floor.rooms.iter().map(String::as_str))
        .collect();
    placed.sort_unstable();
    let once: Vec<&str> = drawn.into_iter().collect();
    assert_eq!(placed, once, "each room stands on exactly one floor");
}

#[test]
fn drawn_edges_go_down() {
    let layers = Layers::read();
    let mut wrong = Vec::new();
    for (from, known) in &layers.rooms {
        for to in known.iter().filter(|to| *to != "*") {
            match (layers.floor(from), layers.floor(to)) {
                (Some(high), Some(low)) if low < high => {}
                (Some(high), Some(_)) => {
                    wrong.push(format!("{from} ({}) -> {to}", layers.floors[high].name));
                }
                _ => wrong.push(format!("{from} -> {to}: not on any floor")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "edges that do not go to a lower floor: {wrong:#?}"
    );
}

#[test]
fn rooms_know_what_is_drawn() {
    let (layers, metadata) = (Layers::read(), metadata());
    let (mut undrawn, mut unused) = (Vec::new(), Vec::new());
    for package in metadata.workspace_packages() {
        let from = room(&package.name);
        let Some(drawn) = layers.rooms.get(from) else {
            continue;
        };
        let used: BTreeSet<&str> = our_edges(&metadata, package)
            .filter(|(_, kind)| *kind != DependencyKind::Development)
            .map(|(to, _)| to)
            .collect();
        if drawn.contains("*") {
            continue;
        }
        for to in &used {
            if !drawn.contains(*to) {
                undrawn.push(format!("{from} -> {to}"));
            }
        }
        for to in drawn.iter().filter(|to| !used.contains(to.as_str())) {
            unused.push(format!("{from} -> {to}"));
        }
    }
    assert!(
        undrawn.is_empty(),
        "edges in Cargo.toml that layers.toml does not draw (a new edge is a change of the \
         architecture: draw it and say why, or ask a lower room): {undrawn:#?}"
    );
    assert!(
        unused.is_empty(),
        "edges in layers.toml that nobody uses any more: {unused:#?}"
    );
}

#[test]
fn tests_of_a_room_look_down_too() {
    let (layers, metadata) = (Layers::read(), metadata());
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let from = room(&package.name);
        for (to, _) in our_edges(&metadata, package) {
            if layers.floor(to) >= layers.floor(from) {
                wrong.push(format!("{from} -> {to}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "edges (of tests as well) that do not go down: {wrong:#?}"
    );
}

#[test]
fn guarded_libraries_stay_in_their_rooms() {
    let (layers, metadata) = (Layers::read(), metadata());
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let from = room(&package.name);
        for dependency in &package.dependencies {
            // The tests of a crate may use whatever they need.
            if dependency.kind == DependencyKind::Development {
                continue;
            }
            if let Some(homes) = layers.libraries.get(&dependency.name)
                && !homes.contains(from)
            {
                wrong.push(format!("{from} uses {}", dependency.name));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "libraries outside the rooms layers.toml gives them: {wrong:#?}"
    );
}

/// The dependencies of one package within this workspace.
fn our_edges<'a>(
    metadata: &'a Metadata,
    package: &'a Package,
) -> impl Iterator<Item = (&'a str, DependencyKind)> {
    package
        .dependencies
        .iter()
        .filter(|dependency| is_ours(metadata, &dependency.name))
        .map(|dependency| (room(&dependency.name), dependency.kind))
}

/// `deny.toml`, as far as this test reads it: cargo-deny reads the same list.
#[derive(Deserialize)]
struct Deny {
    bans: Bans,
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

fn deny() -> Deny {
    let text = std::fs::read_to_string(repository().join("deny.toml"))
        .expect("deny.toml stands at the root");
    toml::from_str(&text).expect("deny.toml holds [bans] deny and [licenses] allow")
}

/// True when the SPDX expression can be met with allowed licences alone: `A/B` and `A OR B`
/// need one side, `A AND B` both; `WITH` belongs to the licence before it.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any_of(&words, allowed);
    met && rest.is_empty()
}

fn any_of<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = all_of(words, allowed);
    while let Some((&"OR", after)) = rest.split_first() {
        let (other, then) = all_of(after, allowed);
        met |= other;
        rest = then;
    }
    (met, rest)
}

fn all_of<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = one_licence(words, allowed);
    while let Some((&"AND", after)) = rest.split_first() {
        let (other, then) = one_licence(after, allowed);
        met &= other;
        rest = then;
    }
    (met, rest)
}

fn one_licence<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    match words {
        ["(", inside @ ..] => {
            let (met, rest) = any_of(inside, allowed);
            match rest.split_first() {
                Some((&")", after)) => (met, after),
                _ => (false, rest),
            }
        }
        [licence, "WITH", exception, rest @ ..] => (
            allowed.contains(*licence) || allowed.contains(&format!("{licence} WITH {exception}")),
            rest,
        ),
        [licence, rest @ ..] => (allowed.contains(*licence), rest),
        [] => (false, words),
    }
}

#[test]
fn licence_expressions_are_understood() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0"].map(str::to_owned).into();
    for met in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0-only OR MIT",
        "(GPL-3.0-only OR MIT) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for refused in [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "MIT MIT",
        "(MIT",
    ] {
        assert!(!is_met(refused, &allowed), "{refused}");
    }
}

#[test]
fn licences_are_allowed() {
    let (metadata, deny) = (metadata(), deny());
    let refused: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| {
            !package
                .license
                .as_deref()
                .is_some_and(|text| is_met(text, &deny.licenses.allow))
        })
        .map(|package| {
            format!(
                "{} {}: {:?}",
                package.name, package.version, package.license
            )
        })
        .collect();
    assert!(
        refused.is_empty(),
        "licences that deny.toml does not allow: {refused:#?}"
    );
}

#[test]
fn banned_packages_are_absent() {
    let (metadata, deny) = (metadata(), deny());
    let present: Vec<String> = deny
        .bans
        .deny
        .iter()
        .filter(|ban| {
            metadata
                .packages
                .iter()
                .any(|package| package.name.as_str() == ban.name)
        })
        .map(|ban| format!("{}: {}", ban.name, ban.reason))
        .collect();
    assert!(
        present.is_empty(),
        "packages that deny.toml bans: {present:#?}"
    );
}

#[test]
fn packages_come_from_the_registry_or_from_here() {
    let foreign: Vec<String> = metadata()
        .packages
        .iter()
        .filter_map(|package| package.source.as_ref().map(|source| (package, source)))
        .filter(|(_, source)| !source.is_crates_io())
        .map(|(package, source)| format!("{} from {source}", package.name))
        .collect();
    assert!(
        foreign.is_empty(),
        "packages from elsewhere than crates.io: {foreign:#?}"
    );
}
