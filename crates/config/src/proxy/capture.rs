//! Captures of requests and responses for logs and rules.
//!
//! Source: HAProxy configuration manual, section 4.2, "capture cookie", "capture request header",
//! "capture response header", "declare capture".

use ballast_model::{CaptureSlot, CookieCapture};
use ballast_syntax::Diagnostic;

use super::expressions;
use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "capture cookie",
        Sections::FRONT_ONLY,
        "<name> len <length>",
        "keep a cookie of requests and responses for the log",
        |draft, args, context| {
            let (name, value_bytes_max) = named_length(args, context)?;
            let (name, prefix) = match name.strip_suffix('*') {
                Some(beginning) => (beginning, true),
                None => (name, false),
            };
            draft.front.cookie_capture = Some(CookieCapture {
                name: name.to_owned(),
                prefix,
                value_bytes_max,
            });
            Ok(())
        },
    )
    .examples("capture cookie SID= len 32", "capture cookie SID")
    .http(),
    R::new(
        "capture request header",
        Sections::FRONT_ONLY,
        "<name> len <length>",
        "keep a header of requests for the log",
        |draft, args, context| {
            let capture = header(args, context)?;
            draft.front.request_captures.push(capture);
            Ok(())
        },
    )
    .examples(
        "capture request header Host len 32",
        "capture request header Host",
    ),
    R::new(
        "capture response header",
        Sections::FRONT_ONLY,
        "<name> len <length>",
        "keep a header of responses for the log",
        |draft, args, context| {
            let capture = header(args, context)?;
            draft.front.response_captures.push(capture);
            Ok(())
        },
    )
    .examples(
        "capture response header Server len 32",
        "capture response header Server len",
    ),
    R::new(
        "declare capture",
        Sections::FRONT_ONLY,
        "{ request | response } len <length>",
        "a place that rules can capture into",
        |draft, args, _| {
            let is_request = match args.next() {
                Some("request") => true,
                Some("response") => false,
                _ => {
                    let message =
                        "'declare capture' requires a direction ('request' or 'response')";
                    return Err(args.wrong(message));
                }
            };
            if !args.take("len") {
                return Err(args.wrong("'declare capture' requires a capture length ('len')"));
            }
            let what = "a numeric value that represents the capture length after 'len'";
            let length = args.number(what, 1..=i64::from(u32::MAX))?;
            args.end()?;
            let slots = if is_request {
                &mut draft.front.request_captures
            } else {
                &mut draft.front.response_captures
            };
            slots.push(CaptureSlot {
                header: None,
                value_bytes_max: u32::try_from(length).expect("the range was checked"),
            });
            Ok(())
        },
    )
    .examples(
        "declare capture request len 40",
        "declare capture request len 0",
    ),
];

/// Captured cookies are cut to `tune.http.cookielen`, wherever that is set.
pub(crate) fn bound(draft: &mut ProxyDraft, bytes_max: u32, context: &mut Context<'_>) {
    let title = draft.title();
    let Some(capture) = &mut draft.front.cookie_capture else {
        return;
    };
    if capture.value_bytes_max > bytes_max {
        capture.value_bytes_max = bytes_max;
        let message = format!("truncating capture length to {bytes_max} bytes for {title}.");
        let mut warning = Diagnostic::warning("capture-too-long", message)
            .help("raise 'tune.http.cookielen' in the global section");
        warning.span = draft.span;
        context.report(warning);
    }
}

fn header(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<CaptureSlot, Diagnostic> {
    let (name, value_bytes_max) = named_length(args, context)?;
    Ok(CaptureSlot {
        header: Some(name.to_owned()),
        value_bytes_max,
    })
}

/// `<name> len <length>`.
fn named_length<'a>(
    args: &mut Args<'a>,
    context: &mut Context<'_>,
) -> Result<(&'a str, u32), Diagnostic> {
    let expects = "<name> 'len' <len>";
    let name = args.text(expects)?;
    if !args.take("len") {
        return Err(args.missing_argument(expects));
    }
    let length = expressions::lenient_count(args, context, expects)?;
    if length > CAPTURE_BYTES_MAX {
        return Err(args.wrong(format!(
            "'{}' : a capture holds at most {CAPTURE_BYTES_MAX} bytes",
            args.keyword()
        )));
    }
    args.end()?;
    Ok((name, length))
}

/// A capture is part of one log line, so it is limited to this length.
const CAPTURE_BYTES_MAX: u32 = 65_535;
