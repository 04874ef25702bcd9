//! The response of `deny`, `return` and `tarpit`: its arguments and its composition.

use std::io::Write as _;
use std::sync::Arc;

use ballast_expr::{ExpressionError, Linker, LogFormat, Usage, bytes_of_text, text_of_bytes};
use ballast_message::{NoRoom, Version, is_field_name};

use super::header_value;
use crate::args::Args;
use crate::perform::Pages;
use crate::reference::RuleReference;
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::{LocalResponse, ResponseCause, ResponseContent, Verdict};

/// Statuses for which every proxy has an error page (manual, `errorfile`).
const PAGES: [u16; 21] = [
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502,
    503, 504,
];

/// Headers that a response always computes itself.
const OWN_HEADERS: [&str; 3] = ["content-length", "content-type", "transfer-encoding"];

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    status: u16,
    content_type: Option<String>,
    body: ReplyBody,
    /// Name in lower case, value.
    headers: Vec<(Vec<u8>, LogFormat)>,
}

/// The content of the response.
#[derive(Clone, Debug, PartialEq)]
enum ReplyBody {
    /// `errorfile`: a whole response.
    ErrorFile(Arc<[u8]>),
    /// `errorfiles`: the page of an `http-errors` section, once linked.
    ErrorFiles(String, Option<Arc<[u8]>>),
    /// `lf-string`, `lf-file`.
    Format(LogFormat),
    /// Nothing.
    Nothing,
    /// `default-errorfiles`: the proxy's page.
    Page,
    /// `string`, `file`.
    Text(Arc<[u8]>),
}

impl Reply {
    /// The proxy's page for this status.
    pub(super) fn page(status: u16) -> Reply {
        Reply {
            status,
            content_type: None,
            body: ReplyBody::Page,
            headers: Vec::new(),
        }
    }

    /// Parses the arguments up to the first word that is not one of them.
    pub(super) fn parse(
        args: &mut Args<'_, '_, '_>,
        status: u16,
    ) -> Result<Reply, ExpressionError> {
        let mut reply = Reply {
            body: ReplyBody::Nothing,
            ..Reply::page(status)
        };
        let first = args.at();
        let mut payload: Option<&str> = None;
        let mut old_form = false;
        while let Some(word) = args.peek() {
            let denies = args.head() != "return";
            match word {
                "status" => reply.parse_status(args)?,
                "deny_status" if denies && args.at() == first => {
                    reply.parse_status(args)?;
                    old_form = args.is_at_end();
                }
                "content-type" => {
                    args.take(word);
                    let kind = args.text("'content-type' expects <ctype> as argument")?;
                    reply.content_type = Some(kind.to_owned());
                }
                "hdr" => reply.parse_header(args)?,
                "default-errorfiles" | "errorfile" | "errorfiles" | "file" | "lf-file"
                | "lf-string" | "string" => {
                    if let Some(before) = payload.replace(word) {
                        let message =
                            format!("unexpected '{word}' argument, '{before}' already defined");
                        return Err(args.error(message));
                    }
                    args.take(word);
                    reply.body = ReplyBody::parse(word, args)?;
                }
                _ => break,
            }
        }
        if old_form {
            reply.body = ReplyBody::Page;
        }
        reply.check(args)?;
        for (_, format) in &reply.headers {
            args.record_format(format);
        }
        Ok(reply)
    }

    fn parse_status(&mut self, args: &mut Args<'_, '_, '_>) -> Result<(), ExpressionError> {
        args.next();
        let text = args.text("'status' expects <status_code> as argument")?;
        match text.parse::<u16>() {
            Ok(status @ 200..=599) => {
                self.status = status;
                Ok(())
            }
            _ => Err(args.error_before(format!(
                "Unexpected status code '{text}': it must be between 200 and 599"
            ))),
        }
    }

    fn parse_header(&mut self, args: &mut Args<'_, '_, '_>) -> Result<(), ExpressionError> {
        const MISSING: &str = "'hdr' expects <name> and <value> as arguments";
        args.take("hdr");
        let name = args.text(MISSING)?;
        if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            args.warn(format!("header '{name}' always ignored by the http reply"));
            let text = args.text(MISSING)?;
            args.parse_format(text, Usage::Http)?;
            return Ok(());
        }
        let known = is_field_name(name.as_bytes());
        if !known {
            args.warn(format!("'{name}' is not a header name: it is not sent"));
        }
        let text = args.text(MISSING)?;
        let value = args.parse_format(text, Usage::Http)?;
        if known {
            self.headers
                .push((name.to_ascii_lowercase().into_bytes(), value));
        }
        Ok(())
    }

    /// Checks that the arguments fit together.
    fn check(&mut self, args: &mut Args<'_, '_, '_>) -> Result<(), ExpressionError> {
        let is_page = matches!(
            self.body,
            ReplyBody::Page | ReplyBody::ErrorFile(_) | ReplyBody::ErrorFiles(..)
        );
        if matches!(self.body, ReplyBody::Page | ReplyBody::ErrorFiles(..))
            && !PAGES.contains(&self.status)
        {
            let word = if self.body == ReplyBody::Page {
                "default-errorfiles"
            } else {
                "errorfiles"
            };
            return Err(args.error_before(format!(
                "status code '{}' not handled by default with '{word}' argument",
                self.status
            )));
        }
        if is_page && !self.headers.is_empty() {
            args.warn("hdr parameters ignored by the http reply when used with an errorfile");
            self.headers.clear();
        }
        let has_payload = match &self.body {
            ReplyBody::Text(text) => !text.is_empty(),
            ReplyBody::Format(_) => true,
            _ => false,
        };
        if has_payload && matches!(self.status, 204 | 304) {
            let message = format!("No body expected for {} responses.", self.status);
            return Err(args.error_before(message));
        }
        let why = match &self.body {
            ReplyBody::Text(text) if !text.is_empty() && self.content_type.is_none() => {
                return Err(args.error_before(
                    "a content type must be defined when non-empty payload is configured",
                ));
            }
            ReplyBody::Format(_) if self.content_type.is_none() => {
                return Err(
                    args.error_before("a content type must be defined with a log-format payload")
                );
            }
            ReplyBody::Nothing => "because neither errorfile nor payload defined",
            ReplyBody::Text(text) if text.is_empty() => "when used with an empty payload",
            _ if is_page => "when used with an errorfile",
            _ => return Ok(()),
        };
        if let Some(kind) = self.content_type.take() {
            args.warn(format!(
                "content-type '{kind}' ignored by the http reply {why}"
            ));
        }
        Ok(())
    }

    /// Links its formats to the lists and maps they name.
    pub(super) fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        if let ReplyBody::Format(format) = &mut self.body {
            format.link(linker)?;
        }
        self.headers
            .iter_mut()
            .try_for_each(|(_, format)| format.link(linker))
    }

    pub(super) fn link_page(&mut self, page: &mut Pages<'_>) {
        if let ReplyBody::ErrorFiles(section, slot) = &mut self.body {
            *slot = page(section, self.status);
        }
    }

    /// Composes the response.
    pub(super) fn make(&self, run_state: &mut RunState<'_>, cause: ResponseCause) -> ActionOutcome {
        let page = match &self.body {
            ReplyBody::Page | ReplyBody::ErrorFiles(_, None) => ResponseContent::Proxy,
            ReplyBody::ErrorFile(bytes) | ReplyBody::ErrorFiles(_, Some(bytes)) => {
                ResponseContent::Raw(Arc::clone(bytes))
            }
            ReplyBody::Format(_) | ReplyBody::Nothing | ReplyBody::Text(_) => {
                match self.write(run_state) {
                    Ok(()) => ResponseContent::Made,
                    Err(NoRoom) => {
                        let cause = match cause {
                            ResponseCause::Return => ResponseCause::FailedReturn,
                            // What is refused stays so.
                            other => other,
                        };
                        let failure = LocalResponse::failure(cause);
                        return ActionOutcome::Stop(Verdict::Respond(failure));
                    }
                }
            }
        };
        ActionOutcome::Stop(Verdict::Respond(LocalResponse {
            cause,
            status: self.status,
            page,
        }))
    }

    fn write(&self, run_state: &mut RunState<'_>) -> Result<(), NoRoom> {
        if let ReplyBody::Format(format) = &self.body {
            run_state.render(format);
        }
        let (response, body) = run_state.transaction.answer_mut();
        begin(response, self.status)?;
        body.clear();
        match &self.body {
            ReplyBody::Format(_) => body.extend_from_slice(&run_state.workspace.text),
            ReplyBody::Text(text) => body.extend_from_slice(text),
            _ => {}
        }
        let length = body.len();
        for (name, format) in &self.headers {
            run_state.render(format);
            let value = header_value(&run_state.workspace.text).ok_or(NoRoom)?;
            if value.is_empty() {
                continue;
            }
            let (response, _) = run_state.transaction.answer_mut();
            response.fields_mut().add(name, value)?;
        }
        let (response, _) = run_state.transaction.answer_mut();
        // RFC 9110, section 8.6: a 204 has no length.
        if self.status != 204 {
            add_length(response, length, &mut run_state.workspace.text)?;
        }
        if let (Some(kind), true) = (&self.content_type, length > 0) {
            response
                .fields_mut()
                .add(b"content-type", &bytes_of_text(kind))?;
        }
        Ok(())
    }
}

/// An empty response of this status.
pub(super) fn begin(response: &mut ballast_message::Response, status: u16) -> Result<(), NoRoom> {
    response.clear();
    response.set_version(Version::Http11);
    response.set_status(status)
}

/// Adds `content-length`; `text` is overwritten.
pub(super) fn add_length(
    response: &mut ballast_message::Response,
    length: usize,
    text: &mut Vec<u8>,
) -> Result<(), NoRoom> {
    text.clear();
    // Writing to a Vec cannot fail.
    let _ = write!(text, "{length}");
    response.fields_mut().add(b"content-length", text)
}

impl ReplyBody {
    /// Parses the argument of the word.
    fn parse(word: &str, args: &mut Args<'_, '_, '_>) -> Result<ReplyBody, ExpressionError> {
        let expects = |what: &str| format!("'{word}' expects <{what}> as argument");
        Ok(match word {
            "default-errorfiles" => ReplyBody::Page,
            "errorfiles" => {
                let section = args.text(&expects("name"))?.to_owned();
                args.refer_to(RuleReference::ErrorFiles(section.clone()));
                ReplyBody::ErrorFiles(section, None)
            }
            "string" => ReplyBody::Text(bytes_of_text(args.text(&expects("str"))?).into()),
            "lf-string" => ReplyBody::Format(args.format(Usage::Text, &expects("fmt"))?),
            "errorfile" => {
                let path = args.text(&expects("file"))?;
                ReplyBody::ErrorFile(read(path, args)?.into())
            }
            "file" => {
                let path = args.text(&expects("file"))?;
                ReplyBody::Text(read(path, args)?.into())
            }
            _ => {
                let path = args.text(&expects("file"))?;
                let bytes = read(path, args)?;
                let text = text_of_bytes(&bytes);
                let format = args.format_of(&text, Usage::Text).map_err(|error| {
                    args.error_before(format!("in file '{path}': {}", error.message))
                })?;
                ReplyBody::Format(format)
            }
        })
    }
}

fn read(path: &str, args: &mut Args<'_, '_, '_>) -> Result<Vec<u8>, ExpressionError> {
    args.env
        .files
        .read(path)
        .map_err(|why| args.error_before(format!("error opening file '{path}': {why}")))
}
