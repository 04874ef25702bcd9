//! The syntax tree of a whole configuration.

use crate::{
    Diagnostic, Env, FileId, Section, SectionKind, SectionPlace, Severity, SourceLine, SourceMap,
};

/// One or several files, read in sequence.
#[derive(Clone, Debug)]
pub struct Document {
    /// The files, unchanged.
    pub sources: SourceMap,
    /// The sections in order. Each file starts with a [`crate::SectionKind::Preamble`], which holds
    /// the lines before its first section and may be empty.
    pub sections: Vec<Section>,
    /// The errors in the text, in order of files and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// The environment after the last line.
    pub env: Env,
}

impl Document {
    /// All lines of all files in order.
    pub fn lines(&self) -> impl Iterator<Item = &SourceLine> {
        self.sections.iter().flat_map(Section::all_lines)
    }

    /// The places of proxy sections, in order.
    #[must_use]
    pub fn sections_of_proxies(&self) -> Vec<SectionPlace> {
        let proxies = [
            SectionKind::Backend,
            SectionKind::Frontend,
            SectionKind::Listen,
        ];
        let sections = self.sections.iter();
        let proxies = sections.filter(|section| proxies.contains(&section.kind));
        let sections_of_proxies = proxies.filter_map(|section| {
            Some(SectionPlace {
                title: section.title()?,
                file: section.file.index(),
                bytes: section.extent()?,
                mark: section.mark(&self.sources),
            })
        });
        sections_of_proxies.collect()
    }

    /// Whether there was an alert: the configuration must be refused.
    #[must_use]
    pub fn has_alerts(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Alert)
    }

    /// A file, put together again from the parts of its lines: always the bytes that were parsed.
    #[must_use]
    pub fn reassemble(&self, file: FileId) -> Vec<u8> {
        let lines = self.lines().filter(|line| line.span.file == file);
        let mut bytes = Vec::new();
        for piece in lines.flat_map(SourceLine::pieces) {
            bytes.extend_from_slice(self.sources.slice(piece.span));
        }
        bytes
    }
}
