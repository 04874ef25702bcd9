//! Lines of a crt-list: `<certificate> [<options>] <filters>`, and `ssl-f-use` lines.
//!
//! Source: HAProxy configuration manual, section 5.1, "crt-list"; how odd lines are read was
//! observed on HAProxy 3.2, and the wording is HAProxy's.

use ballast_model::{
    CertificateListLine, CertificatePartFiles, FileBases, NameFilter, Origin, TlsFile,
};

use super::options::{Options, PLAIN, VALUED};
use super::versions::Fault;

/// Words of `load` lines that lines of a crt-list can hold too.
pub(crate) const PARTS: &[&str] = &[
    "alias",
    "crt",
    "domains",
    "issuer",
    "key",
    "ocsp",
    "ocsp-update",
    "sctl",
];

/// A crt-list that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrtListText {
    /// Its lines.
    pub lines: Vec<CertificateListLine>,
    /// What is odd in it.
    pub warnings: Vec<String>,
}

/// Reads the text of a crt-list. `path` is its name in origins and messages, `bases` are the
/// directories that the names of files start from.
///
/// # Errors
/// With HAProxy's words, about the first line that is wrong.
pub fn read(path: &str, text: &str, bases: &FileBases) -> Result<CrtListText, String> {
    let mut list = CrtListText::default();
    let last = text.lines().count();
    let is_cut = !text.ends_with('\n');
    for (number, text) in (1..).zip(text.lines()) {
        let is_comment = text.starts_with('#');
        if is_cut && number as usize == last && !is_comment {
            let position = text.len() + 1;
            return Err(format!(
                "parsing [{path}:{number}]: Missing LF on last line, file might have been \
                 truncated at position {position}."
            ));
        }
        if is_comment || text.trim().is_empty() {
            continue;
        }
        let origin = Origin {
            file: path.into(),
            line: number,
        };
        let line = line(text, bases, &origin, &mut list.warnings)?;
        list.lines.push(line);
    }
    Ok(list)
}

/// Reads one line.
fn line(
    text: &str,
    bases: &FileBases,
    origin: &Origin,
    warnings: &mut Vec<String>,
) -> Result<CertificateListLine, String> {
    let location = format!("parsing [{}:{}]", origin.file, origin.line);
    let (before, options, after) = split(text, &location)?;
    let mut names = before.split_whitespace();
    let name = names
        .next()
        .ok_or_else(|| format!("{location}: file must start with a cert"))?;
    let mut line = CertificateListLine {
        certificate: file(bases.certificate(name), origin),
        ..CertificateListLine::default()
    };
    let mut filters: Vec<&str> = names.collect();
    if !options.is_empty() && !filters.is_empty() {
        warnings.push(format!(
            "{location}: malformated line, filters can't be between filename and options!"
        ));
        // HAProxy goes on without them.
        filters.clear();
    }
    filters.extend(after.split_whitespace());
    let mut own = Options::default();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let value = if PLAIN.contains(&word) {
            None
        } else if VALUED.contains(&word) || PARTS.contains(&word) {
            let value = words.next();
            Some(value.ok_or_else(|| format!("{location}: ssl args out of '[]' for {word}"))?)
        } else {
            return Err(format!("{location}: unknown ssl keyword {word}"));
        };
        match value {
            Some(value) if PARTS.contains(&word) => {
                part(&mut line, word, value, bases, origin)
                    .map_err(|message| format!("{location} : {message}"))?;
            }
            _ => own.set(word, value, bases, origin)?,
        }
    }
    line.options = complete(own, origin)?;
    line.filters = name_filters(&filters, &line.certificate.path, warnings);
    Ok(line)
}

/// What stands before, between and after the brackets. Without a closing bracket there are none:
/// an opening one only separates words, as in HAProxy.
fn split<'t>(text: &'t str, location: &str) -> Result<(&'t str, &'t str, &'t str), String> {
    let Some((head, rest)) = text.split_once('[') else {
        return match text.contains(']') {
            true => Err(format!("{location}: missing '['")),
            false => Ok((text, "", "")),
        };
    };
    if rest.contains('[') {
        return Err(format!("{location}: too many '['"));
    }
    if head.contains(']') {
        return Err(format!("{location}: missing '['"));
    }
    match rest.split_once(']') {
        Some((_, after)) if after.contains(']') => Err(format!("{location}: too many ']'")),
        Some((options, after)) => Ok((head, options, after)),
        None => Ok((head, "", rest)),
    }
}

/// A word of the certificate's parts.
///
/// # Errors
/// When `ocsp-update` is neither `on` nor `off`.
pub(crate) fn part(
    line: &mut CertificateListLine,
    word: &str,
    value: &str,
    bases: &FileBases,
    origin: &Origin,
) -> Result<(), String> {
    if word == "crt" {
        line.certificate = file(bases.certificate(value), origin);
        return Ok(());
    }
    // `key-base` is for `load` lines only.
    let found = file(value.to_owned(), origin);
    set_part(&mut line.parts, word, value, found)
}

/// The same for a `load` line, where the path is known.
///
/// # Errors
/// When `ocsp-update` is neither `on` nor `off`.
pub(crate) fn set_part(
    parts: &mut CertificatePartFiles,
    word: &str,
    value: &str,
    found: TlsFile,
) -> Result<(), String> {
    match word {
        "key" => parts.key = Some(found),
        "ocsp" => parts.ocsp = Some(found),
        "issuer" => parts.issuer = Some(found),
        "sctl" => parts.sctl = Some(found),
        "ocsp-update" => {
            parts.ocsp_update = Some(match value {
                "on" => true,
                "off" => false,
                _ => {
                    return Err(format!(
                        "cannot parse 'ocsp-update' value '{value}', 'on' or 'off' is expected."
                    ));
                }
            });
        }
        // Another name has no use here, and certificates are not generated.
        _ => {}
    }
    Ok(())
}

/// The options of a line, versions included.
///
/// # Errors
/// When no version is left.
pub(crate) fn complete(own: Options, origin: &Origin) -> Result<ballast_model::TlsOptions, String> {
    let mut options = own.given;
    let range = own.versions.range(true);
    let ((min, max), _) = range.map_err(|fault| {
        let location = format!("at [{}:{}]", origin.file, origin.line);
        match fault {
            Fault::AllDisabled => format!("all SSL/TLS versions are disabled {location}."),
            Fault::TooOld(version) => format!(
                "'ssl-max-ver {}' {location}: TLSv1.2 is the oldest version that is built in.",
                version.word()
            ),
        }
    })?;
    options.version_min = min;
    options.version_max = max;
    if own.npn && options.alpn.is_none() {
        options.alpn = Some(Vec::new());
    }
    Ok(options)
}

fn name_filters(words: &[&str], certificate: &str, warnings: &mut Vec<String>) -> Vec<NameFilter> {
    let mut filters = Vec::new();
    for word in words {
        let (negated, name) = match word.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, *word),
        };
        if negated && name == "*" {
            continue;
        }
        if negated && name.starts_with('*') {
            warnings.push(format!(
                "crt-list: Unsupported exclusion (!) on a wildcard filter \"{word}\""
            ));
            continue;
        }
        filters.push(NameFilter {
            negated,
            name: name.to_ascii_lowercase(),
        });
    }
    let is_wildcard = |one: &NameFilter| !one.negated && one.name.starts_with("*.");
    if filters.iter().any(|one| one.negated) && !filters.iter().any(is_wildcard) {
        warnings.push(format!(
            "crt-list: negative filters on crt-list line \"{certificate}\" without a positive \
             wildcard filter won't do anything!"
        ));
    }
    filters
}

fn file(path: String, origin: &Origin) -> TlsFile {
    TlsFile {
        path,
        origin: origin.clone(),
    }
}
