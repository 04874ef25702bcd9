//! Texts without which an expression matches nothing.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Bytes of one text that are put together, at most.
const TEXT_BYTES_MAX: usize = 64;
/// Texts of one choice, at most.
const CHOICE_TEXTS_MAX: usize = 32;

/// Texts in lower case of which at least one is in whatever an expression matches, whatever its case.
pub(crate) type TextChoice = Vec<Box<[u8]>>;

/// The expression as its linear engine reads it: bytes, not characters. `None` for one that needs
/// another engine, or is none.
pub(crate) fn parse(source: &str, fold: bool) -> Option<Hir> {
    let mut parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(fold)
        .build();
    parser.parse(source).ok()
}

/// Each choice of texts that an expression gives; none if it may match without any text.
pub(crate) fn choices(hir: &Hir) -> Vec<TextChoice> {
    let mut found = Texts::of(hir);
    found.keep_exact();
    found.choices
}

/// What is known of a part of an expression.
#[derive(Default)]
struct Texts {
    /// The part matches this text only, in any case.
    exact: Option<Vec<u8>>,
    choices: Vec<TextChoice>,
}

impl Texts {
    fn exactly(text: Vec<u8>) -> Texts {
        Texts {
            exact: Some(text),
            choices: Vec::new(),
        }
    }

    fn of(hir: &Hir) -> Texts {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Texts::exactly(Vec::new()),
            HirKind::Literal(literal) => Texts::exactly(literal.0.to_ascii_lowercase()),
            HirKind::Class(class) => match one_letter(class) {
                Some(letter) => Texts::exactly(vec![letter]),
                None => Texts::default(),
            },
            HirKind::Repetition(repetition) if repetition.min == 0 => Texts::default(),
            HirKind::Repetition(repetition) => {
                let mut inner = Texts::of(&repetition.sub);
                inner.keep_exact();
                inner.exact = None;
                inner
            }
            HirKind::Capture(capture) => Texts::of(&capture.sub),
            HirKind::Concat(parts) => Texts::of_sequence(parts),
            HirKind::Alternation(parts) => Texts::of_alternatives(parts),
        }
    }

    fn of_sequence(parts: &[Hir]) -> Texts {
        let mut whole = Texts::exactly(Vec::new());
        let mut is_exact = true;
        for part in parts {
            let Texts { exact, choices } = Texts::of(part);
            whole.choices.extend(choices);
            match (&mut whole.exact, exact) {
                (Some(text), Some(more)) if text.len() + more.len() <= TEXT_BYTES_MAX => {
                    text.extend(more);
                }
                (_, Some(more)) => {
                    is_exact = false;
                    whole.keep_exact();
                    whole.exact = Some(more);
                }
                (_, None) => {
                    is_exact = false;
                    whole.keep_exact();
                    whole.exact = Some(Vec::new());
                }
            }
        }
        if !is_exact {
            whole.keep_exact();
            whole.exact = None;
        }
        whole
    }

    fn of_alternatives(parts: &[Hir]) -> Texts {
        let mut texts: TextChoice = Vec::new();
        for part in parts {
            let mut one = Texts::of(part);
            one.keep_exact();
            // The choice with the longest texts says most.
            let best = one
                .choices
                .into_iter()
                .max_by_key(|choice| choice.iter().map(|text| text.len()).min());
            match best {
                Some(best) if texts.len() + best.len() <= CHOICE_TEXTS_MAX => texts.extend(best),
                _ => return Texts::default(),
            }
        }
        Texts {
            exact: None,
            choices: vec![texts],
        }
    }

    /// The exact text is a choice, if there is something in it.
    fn keep_exact(&mut self) {
        if let Some(mut text) = self.exact.take()
            && !text.is_empty()
        {
            text.truncate(TEXT_BYTES_MAX);
            self.choices.push(vec![text.into()]);
        }
    }
}

/// The letter that a class stands for, whatever its case.
fn one_letter(class: &Class) -> Option<u8> {
    let Class::Bytes(class) = class else {
        return None;
    };
    let mut letter = None;
    for range in class.ranges() {
        if range.len() > 2 {
            return None;
        }
        for byte in range.start()..=range.end() {
            let byte = byte.to_ascii_lowercase();
            if *letter.get_or_insert(byte) != byte {
                return None;
            }
        }
    }
    letter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, fold: bool) -> Vec<Vec<String>> {
        let found = choices(&parse(source, fold).unwrap());
        let text = |text: Box<[u8]>| String::from_utf8(text.into()).unwrap();
        found
            .into_iter()
            .map(|choice| choice.into_iter().map(text).collect())
            .collect()
    }

    #[test]
    fn what_must_be_there_is_found() {
        assert_eq!(texts("^/Api/v1$", false), [["/api/v1"]]);
        assert_eq!(
            texts("^/api/[0-9]+/item12$", false),
            [["/api/"], ["/item12"]]
        );
        assert_eq!(texts("(?i)shop", false), [["shop"]]);
        assert_eq!(texts("shop", true), [["shop"]]);
        assert_eq!(texts("a(b|c)d", false), [["a"], ["d"]]);
        let image: &[&[&str]] = &[&["png", "jp"], &["."]];
        assert_eq!(texts("\\.(png|jpe?g)$", false), image);
        assert_eq!(texts("x(abc)+y?", false), [["abc"], ["x"]]);
        assert_eq!(texts("a*b?", false), Vec::<Vec<String>>::new());
        assert_eq!(texts("(foo|)bar", false), [["bar"]]);
        assert_eq!(texts("[0-9]+", false), Vec::<Vec<String>>::new());
    }
}
