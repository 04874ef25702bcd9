//! `set-map`, `del-map`, `add-acl`, `del-acl`: rules that change lists and maps.

use ballast_expr::{
    EntrySelector, ExpressionError, LinkSlot, Linker, LogFormat, NamedList, PatternError, Usage,
    text_of_bytes,
};

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-map",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "(<file-name>) <key fmt> <value fmt>",
        "set the value of a key of a map",
        |args| boxed(parse_list_edit(args, "set-map", ListEditKind::SetMap)),
    )
    .parens()
    .examples(
        &["set-map(a.map) %[src] x"],
        &["set-map(a.map) %[src]", "set-map a b"],
    ),
    ActionRow::new(
        "del-map",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "(<file-name>) <key fmt>",
        "remove a key from a map",
        |args| boxed(parse_list_edit(args, "del-map", ListEditKind::Del)),
    )
    .parens()
    .examples(
        &["del-map(a.map) %[src]"],
        &["del-map(a.map)", "del-map(a.map) a b"],
    ),
    ActionRow::new(
        "add-acl",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
        "(<file-name>) <key fmt>",
        "add a pattern to a list",
        |args| boxed(parse_list_edit(args, "add-acl", ListEditKind::AddAcl)),
    )
    .parens()
    .examples(&["add-acl(a.lst) %[src]"], &["add-acl(a.lst)"]),
    ActionRow::new(
        "del-acl",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "(<file-name>) <key fmt>",
        "remove a pattern from a list",
        |args| boxed(parse_list_edit(args, "del-acl", ListEditKind::Del)),
    )
    .parens()
    .examples(&["del-acl(a.lst) %[src]"], &["del-acl(a.lst)"]),
];

/// A change of a list or map by a rule.
#[derive(Clone, Debug, PartialEq)]
struct ListEdit {
    edit: ListEditKind,
    /// The name of its file, as it is written in the ACLs and converters that read it.
    name: String,
    key: LogFormat,
    value: Option<LogFormat>,
    list: LinkSlot<NamedList>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ListEditKind {
    AddAcl,
    Del,
    SetMap,
}

fn parse_list_edit(
    args: &mut Args<'_, '_, '_>,
    word: &'static str,
    edit: ListEditKind,
) -> Result<ListEdit, ExpressionError> {
    let (name, _) = args.parens(&format!("{word}(<file-name>)"))?;
    let missing = if edit == ListEditKind::SetMap {
        "expects exactly 2 arguments"
    } else {
        "expects exactly 1 arguments"
    };
    let raw_sample_count = args.env.raw_samples.len();
    let key = args.format(Usage::Http, missing)?;
    let value = match edit {
        ListEditKind::SetMap => Some(args.format(Usage::Http, missing)?),
        ListEditKind::AddAcl | ListEditKind::Del => None,
    };
    // HAProxy does not warn of raw bytes in keys and values.
    args.env.raw_samples.truncate(raw_sample_count);
    Ok(ListEdit {
        edit,
        name: name.to_owned(),
        key,
        value,
        list: LinkSlot::empty(),
    })
}

impl Perform for ListEdit {
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.list.fill(linker.store.list_to_change(&self.name));
        self.key.link(linker)?;
        self.value
            .iter_mut()
            .try_for_each(|value| value.link(linker))
    }

    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        // A list that no ACL or converter reads does not exist; HAProxy ignores it too.
        let Some(list) = self.list.filled().and_then(NamedList::list) else {
            return ActionOutcome::Next;
        };
        // `render` writes into `text`: the key is kept aside, since the value is rendered there too.
        run_state.render(&self.key);
        let mut key = std::mem::take(&mut run_state.workspace.out);
        std::mem::swap(&mut key, &mut run_state.workspace.text);
        if let Some(value) = &self.value {
            run_state.render(value);
        }
        let changed = {
            let key = text_of_bytes(&key);
            let value = text_of_bytes(&run_state.workspace.text);
            match self.edit {
                ListEditKind::AddAcl => list.add_new(&key, list.is_map().then_some("")),
                ListEditKind::Del => list.del(EntrySelector::Key(&key)),
                ListEditKind::SetMap => list.set_or_add(&key, &value),
            }
        };
        run_state.workspace.out = key;
        if !matches!(changed, Ok(()) | Err(PatternError::NotFound)) {
            // A value that the list cannot hold leaves it unchanged; the exchange continues.
            run_state.transaction.rewrite_failed();
        }
        ActionOutcome::Next
    }
}
