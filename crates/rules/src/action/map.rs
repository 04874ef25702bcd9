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
        |args| keyed(args, "set-map", MapEdit::SetMap),
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
        |args| keyed(args, "del-map", MapEdit::Del),
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
        |args| keyed(args, "add-acl", MapEdit::AddAcl),
    )
    .parens()
    .examples(&["add-acl(a.lst) %[src]"], &["add-acl(a.lst)"]),
    Row::new(
        "del-acl",
        ".....XXX",
        "(<file-name>) <key fmt>",
        "remove a pattern from a list",
        |args| keyed(args, "del-acl", MapEdit::Del),
    )
    .parens()
    .examples(&["del-acl(a.lst) %[src]"], &["del-acl(a.lst)"]),
];

/// A change of a list or map, by traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    handler: MapEdit,
    /// The name of its file, as ACLs and converters that read it give it.
    name: String,
    pub(super) key: LogFormat,
    pub(super) value: Option<LogFormat>,
    list: Slot<NamedList>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MapEdit {
    AddAcl,
    Del,
    SetMap,
}

fn keyed(
    args: &mut Args<'_, '_, '_>,
    word: &'static str,
    handler: MapEdit,
) -> Result<Action, Error> {
    let (name, _) = args.parens(&format!("{word}(<file-name>)"))?;
    let missing = if handler == MapEdit::SetMap {
        "expects exactly 2 arguments"
    } else {
        "expects exactly 1 arguments"
    };
    let key = args.format(Usage::Http, missing)?;
    let value = match handler {
        MapEdit::SetMap => Some(args.format(Usage::Http, missing)?),
        MapEdit::AddAcl | MapEdit::Del => None,
    };
    Ok(Action::List(Box::new(List {
        handler,
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
            match self.handler {
                MapEdit::AddAcl => list.add_new(&key, list.is_map().then_some("")),
                MapEdit::Del => list.del(Which::Key(&key)),
                MapEdit::SetMap => list.set_or_add(&key, &value),
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
