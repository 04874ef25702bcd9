//! Modules inside a crate do not depend on each other in circles, so that a file can be read
//! without many others.
//!
//! A parent and its children may depend on each other; no other circles are allowed. Dependencies
//! are read from the text: `use` and paths that begin with `crate`, `self` or `super`, followed
//! through the parent's imports from its children. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ballast_tests::repository;
use regex::Regex;

/// The path of a module, or of something in one, from the root of a crate.
type Names = Vec<String>;

/// The modules of a crate and their dependencies.
#[derive(Default)]
struct Crate {
    /// The dependencies of each module, by path.
    paths: BTreeMap<Names, Vec<Names>>,
    /// What an imported name in a module refers to.
    taken_up: BTreeMap<(Names, String), Names>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let mut read = Self::default();
        let mut texts = Vec::new();
        files(source, &mut Names::new(), &mut texts);
        for (module, _) in &texts {
            read.paths.entry(module.clone()).or_default();
        }
        for (module, text) in &texts {
            read.add(module, text);
        }
        read
    }

    /// Adds the dependencies in a text.
    fn add(&mut self, module: &Names, text: &str) {
        let pattern = |text| Regex::new(text).expect("the pattern is right");
        let text = pattern(r"//[^\n]*").replace_all(text, "");
        // A module of tests ends a file; `mod tests;` stands among the others.
        let tests = pattern(r"#\[cfg\(test\)\]\nmod \w+ \{");
        let text = tests.split(&text).next().unwrap_or_default();
        let uses = pattern(r"(?s)\buse\s+([\w:{},\s*]+);");
        let mut known = Vec::new();
        for found in uses.captures_iter(text) {
            for (path, name) in expanded(&Names::new(), &found[1]) {
                let Some(path) = self.absolute(module, path) else {
                    continue;
                };
                self.taken_up.insert((module.clone(), name), path.clone());
                known.push(path);
            }
        }
        let rest = uses.replace_all(text, "");
        for found in pattern(r"\b(?:crate|self|super)(?:::\w+)+").find_iter(&rest) {
            let path = found.as_str().split("::").map(str::to_owned).collect();
            known.extend(self.absolute(module, path));
        }
        self.paths.entry(module.clone()).or_default().extend(known);
    }

    /// The path from the root; `None` for anything outside of this crate.
    fn absolute(&self, module: &Names, path: Names) -> Option<Names> {
        let mut base = match path.first()?.as_str() {
            "crate" => Names::new(),
            "self" | "super" => module.clone(),
            child => {
                let mut own = module.clone();
                own.push(child.to_owned());
                return self
                    .paths
                    .contains_key(&own)
                    .then(|| [module.clone(), path].concat());
            }
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(base.pop()),
                _ => base.push(name),
            }
        }
        Some(base)
    }

    /// The module that contains a path.
    fn module_of(&self, path: &Names, depth: usize) -> Names {
        let is_module = |at: &usize| self.paths.contains_key(&path[..*at]);
        let at = (0..=path.len()).rev().find(is_module).unwrap_or(0);
        let module = path[..at].to_vec();
        let Some(name) = path.get(at).filter(|_| depth < 8) else {
            return module;
        };
        match self.taken_up.get(&(module.clone(), name.clone())) {
            Some(target) => self.module_of(target, depth + 1),
            None => module,
        }
    }

    /// The dependencies between modules, except between parent and child.
    fn edges(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let edges = self.paths.iter().map(|(from, known)| {
            let is_kin = |to: &Names| {
                let (short, long) = if to.len() < from.len() {
                    (to, from)
                } else {
                    (from, to)
                };
                short == long || (short.len() + 1 == long.len() && long.starts_with(short))
            };
            let known = known.iter().map(|path| self.module_of(path, 0));
            (from, known.filter(|to| !is_kin(to)).collect())
        });
        edges.collect()
    }

    /// The circles, each with the names of its modules, the largest first.
    fn circles(&self) -> Vec<Vec<String>> {
        let edges = self.edges();
        let reached = |from: &Names| {
            let mut seen = BTreeSet::new();
            let mut next = vec![from.clone()];
            while let Some(one) = next.pop() {
                for to in edges.get(&one).into_iter().flatten() {
                    if seen.insert(to.clone()) {
                        next.push(to.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Names, BTreeSet<Names>> =
            edges.keys().map(|from| (*from, reached(from))).collect();
        let mut circles = BTreeSet::new();
        for (from, known) in &reached {
            let circle: BTreeSet<&Names> = known
                .iter()
                .filter(|to| reached.get(to).is_some_and(|back| back.contains(*from)))
                .collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        let named = |circle: BTreeSet<&Names>| {
            let names = circle.into_iter().map(|module| module.join("::"));
            names.collect::<Vec<_>>()
        };
        let mut circles: Vec<Vec<String>> = circles.into_iter().map(named).collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

/// The texts below a directory, with their module paths.
fn files(directory: &Path, module: &mut Names, texts: &mut Vec<(Names, String)>) {
    let entries = fs::read_dir(directory).expect("the directory is there");
    for entry in entries {
        let path = entry.expect("the entry is readable").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            module.push(name.into_owned());
            files(&path, module, texts);
            module.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut own = module.clone();
            if !["lib", "main", "mod"].contains(&&*name) {
                own.push(name.into_owned());
            }
            let text = fs::read_to_string(&path).expect("the file is text");
            texts.push((own, text));
        }
    }
}

/// The paths of a `use`, each with the imported name.
fn expanded(before: &Names, tree: &str) -> Vec<(Names, String)> {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let path = path.split("::").map(|name| name.trim().to_owned());
        let mut path: Names = before.iter().cloned().chain(path).collect();
        path.retain(|name| !name.is_empty());
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let last = path.last().cloned().unwrap_or_default();
        let name = if name.is_empty() {
            last
        } else {
            name.to_owned()
        };
        return vec![(path, name)];
    };
    let head = head.split("::").map(|name| name.trim().to_owned());
    let mut before: Names = before.iter().cloned().chain(head).collect();
    before.retain(|name| !name.is_empty());
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, byte) in inner.bytes().chain([b',']).enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    found.extend(expanded(&before, part));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn modules_form_no_circles() {
    let mut wrong = Vec::new();
    for directory in ["crates", "bin"] {
        let rooms = fs::read_dir(repository().join(directory)).expect("rooms are there");
        for room in rooms {
            let path = room.expect("the room is readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            for circle in Crate::read(&path.join("src")).circles() {
                wrong.push(format!("{directory}/{name}: {}", circle.join(", ")));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "circles of modules (move what both sides need to a third): {wrong:#?}"
    );
}

#[test]
fn a_circle_would_be_seen() {
    let mut read = Crate::default();
    let modules = ["a", "b", "c", "d"];
    let names = |path: &str| path.split("::").map(str::to_owned).collect::<Names>();
    read.paths.insert(Names::new(), Vec::new());
    for module in modules {
        read.paths.insert(names(module), Vec::new());
    }
    read.paths.insert(names("d::x"), Vec::new());
    read.add(
        &Names::new(),
        "mod a;\n#[cfg(test)]\nmod tests;\npub use c::Thing; use a::{self, Other};",
    );
    read.add(&names("a"), "use crate::{b::{One, Two}, std};");
    // Through the root's imports.
    read.add(&names("b"), "fn f() { crate::Thing::new() }");
    read.add(&names("c"), "// use crate::d;\nuse super::a;");
    // A child and its parent may depend on each other.
    read.add(
        &names("d"),
        "use x::Inner;\n#[cfg(test)]\nmod tests { use crate::a; }",
    );
    read.add(&names("d::x"), "use super::Outer; use crate::a::One;");
    assert_eq!(read.circles(), [["a", "b", "c"]]);
}
