//! Diagnostics as JSON, one object a line, for programs.

use ballast_syntax::{Diagnostic, SourceMap, Span};
use serde_json::{Map, Value, json};

use crate::{LoadedConfig, Unimplemented};

/// All diagnostics, one object per line: `severity` (`alert`, `warning`, `notice`, `diag`), `lint`
/// (true with `diag` and `stub`), `code`, `message`, and where known `file`, `line`,
/// `column`, `end` (line and column after the last byte), `notes`, `help`, `replacement` (`line`,
/// `column`, `end`, `text`). Lines and columns count from 1, columns in bytes. Then
/// words that are not implemented: severity `unserved`, `word`, and their feature as `area`. Last
/// stand-ins for what this machine lacks: severity `stub`.
#[must_use]
pub fn json_lines(loaded: &LoadedConfig) -> String {
    let diagnostics = loaded
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic_json(diagnostic, &loaded.sources));
    let unimplemented = loaded
        .unimplemented
        .iter()
        .map(|word| unimplemented_json(word, &loaded.sources));
    let stand_ins = loaded
        .stand_ins
        .iter()
        .map(|what| json!({"severity": "stub", "lint": true, "code": "stub", "message": what}));
    diagnostics
        .chain(unimplemented)
        .chain(stand_ins)
        .map(|object| format!("{object}\n"))
        .collect()
}

fn diagnostic_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let severity = diagnostic.severity.word().to_ascii_lowercase();
    let mut object = Map::new();
    object.insert("severity".into(), json!(severity));
    object.insert("lint".into(), json!(severity == "diag"));
    object.insert("code".into(), json!(diagnostic.code));
    insert_location(&mut object, diagnostic.span, sources);
    object.insert("message".into(), json!(diagnostic.message));
    if !diagnostic.notes.is_empty() {
        object.insert("notes".into(), json!(diagnostic.notes));
    }
    if let Some(help) = &diagnostic.help {
        object.insert("help".into(), json!(help));
    }
    if let Some(edit) = &diagnostic.replacement {
        let mut replacement = Map::new();
        insert_location(&mut replacement, Some(edit.span), sources);
        replacement.insert("text".into(), json!(edit.text));
        object.insert("replacement".into(), Value::Object(replacement));
    }
    Value::Object(object)
}

fn unimplemented_json(word: &Unimplemented, sources: &SourceMap) -> Value {
    let mut object = Map::new();
    object.insert("severity".into(), json!("unserved"));
    object.insert("lint".into(), json!(false));
    object.insert("code".into(), json!("not-served-yet"));
    insert_location(&mut object, word.span, sources);
    object.insert("message".into(), json!(word.message()));
    object.insert("word".into(), json!(word.word));
    object.insert("area".into(), json!(word.feature));
    Value::Object(object)
}

fn insert_location(object: &mut Map<String, Value>, span: Option<Span>, sources: &SourceMap) {
    let Some(span) = span else {
        return;
    };
    let start = sources.locate(span);
    let end = sources.locate(Span::new(span.file, span.end, span.end));
    object.insert("file".into(), json!(start.file));
    object.insert("line".into(), json!(start.line));
    object.insert("column".into(), json!(start.column));
    object.insert(
        "end".into(),
        json!({"line": end.line, "column": end.column}),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::load_with_stand_ins;

    #[test]
    fn each_line_is_an_object() {
        let loaded = load_with_stand_ins("global\n maxcon 5\n lua-load /a.lua\n nopoll\n");
        let lines: Vec<Value> = json_lines(&loaded)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["severity"], "alert");
        assert_eq!(lines[0]["line"], 2);
        assert_eq!(lines[0]["column"], 2);
        assert_eq!(lines[0]["end"]["column"], 8);
        assert_eq!(lines[0]["replacement"]["text"], "maxconn");
        assert_eq!(lines[1]["lint"], true);
        assert_eq!(lines[2]["area"], "Lua");
    }
}
