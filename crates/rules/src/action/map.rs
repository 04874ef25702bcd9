//! `set-map`, `del-map`, `add-acl`, `del-acl`: lists and maps changed by traffic.

use ballast_expr::{Error, LogFormat, NamedList, PatternError, Slot, Store, Usage, Which};

use super::Action;
use crate::args::Args;
use crate::row::Row;
use crate::run::{Stage, Step};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "set-map",
        ".....XXX",
        "(<file-name>) <key fmt> <value fmt>",
        "set the value of a key of a map",
        |args| keyed(args, "set-map", Deed::SetMap),
    )
    .parens()
    .examples(
        &["set-map(a.map) %[src] x"],
        &["set-map(a.map) %[src]", "set-map a b"],
    ),
    Row::new(
        "del-map",
        ".....XXX",
        "(<file-name>) <key fmt>",
        "remove a key from a map",
        |args| keyed(args, "del-map", Deed::Del),
    )
    .parens()
    .examples(
        &["del-map(a.map) %[src]"],
        &["del-map(a.map)", "del-map(a.map) a b"],
    ),
    Row::new(
        "add-acl",
        ".....XX.",
        "(<file-name>) <key fmt>",
        "add a pattern to a list",
        |args| keyed(args, "add-acl", Deed::AddAcl),
    )
    .parens()
    .examples(&["add-acl(a.lst) %[src]"], &["add-acl(a.lst)"]),
    Row::new(
        "del-acl",
        ".....XXX",
        "(<file-name>) <key fmt>",
        "remove a pattern from a list",
        |args| keyed(args, "del-acl", Deed::Del),
    )
    .parens()
    .examples(&["del-acl(a.lst) %[src]"], &["del-acl(a.lst)"]),
];

/// A change of a list or map, by traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    deed: Deed,
    /// The name of its file, as ACLs and converters that read it give it.
    name: String,
    pub(super) key: LogFormat,
    pub(super) value: Option<LogFormat>,
    list: Slot<NamedList>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Deed {
    AddAcl,
    Del,
    SetMap,
}

fn keyed(args: &mut Args<'_, '_, '_>, word: &'static str, deed: Deed) -> Result<Action, Error> {
    let (name, _) = args.parens(&format!("{word}(<file-name>)"))?;
    let missing = if deed == Deed::SetMap {
        "expects exactly 2 arguments"
    } else {
        "expects exactly 1 arguments"
    };
    let key = args.format(Usage::Http, missing)?;
    let value = match deed {
        Deed::SetMap => Some(args.format(Usage::Http, missing)?),
        Deed::AddAcl | Deed::Del => None,
    };
    Ok(Action::List(Box::new(List {
        deed,
        name: name.to_owned(),
        key,
        value,
        list: Slot::empty(),
    })))
}

impl List {
    pub(super) fn link(&mut self, store: &Store) {
        self.list.fill(store.named(&self.name));
    }

    pub(super) fn perform(&self, stage: &mut Stage<'_>) -> Step {
        // A list that nothing reads is not there; HAProxy passes it over, too.
        let Some(list) = self.list.filled().and_then(NamedList::list) else {
            return Step::Next;
        };
        stage.render(&self.key);
        let mut key = std::mem::take(&mut stage.space.out);
        std::mem::swap(&mut key, &mut stage.space.text);
        if let Some(value) = &self.value {
            stage.render(value);
        }
        let changed = {
            let key = String::from_utf8_lossy(&key);
            let value = String::from_utf8_lossy(&stage.space.text);
            match self.deed {
                Deed::AddAcl => list.add_new(&key, list.is_map().then_some("")),
                Deed::Del => list.del(Which::Key(&key)),
                Deed::SetMap => list.set_or_add(&key, &value),
            }
        };
        stage.space.out = key;
        if !matches!(changed, Ok(()) | Err(PatternError::NotFound)) {
            // What the list cannot hold leaves it as it was; the exchange goes on.
            stage.transaction.rewrite_failed();
        }
        Step::Next
    }
}
