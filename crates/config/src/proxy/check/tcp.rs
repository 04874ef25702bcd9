//! `tcp-check` rules.

use ballast_expr::{Phase, Usage};
use ballast_model::{CheckPayload, CheckRule, CheckSend};
use ballast_syntax::Diagnostic;

use super::connect::{self, argument};
use super::http::may_connect;
use super::{expect, variable};
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};
use crate::proxy::expressions;

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "tcp-check connect",
        Sections::CHECKS,
        "[ default ] [ port <p> ] [ addr <a> ] [ send-proxy ] [ via-socks4 ] [ ssl ] \
         [ sni <s> ] [ alpn <a> ] [ linger ] [ proto <name> ] [ comment <text> ]",
        "a connection of a check",
        |draft, args, context| {
            let rule = connect::connect(draft, args, context)?;
            may_connect(&draft.section_state.check.tcp, args)?;
            push(draft, args, CheckRule::Connect(rule));
            Ok(())
        },
    )
    .examples("tcp-check connect port 6379", "tcp-check connect nosuch"),
    R::new(
        "tcp-check send",
        Sections::CHECKS,
        "<data> [ comment <text> ]",
        "bytes a check sends",
        |draft, args, context| send(draft, args, context, PayloadForm::Text),
    )
    .examples("tcp-check send PING\\r\\n", "tcp-check send"),
    R::new(
        "tcp-check send-lf",
        Sections::CHECKS,
        "<format> [ comment <text> ]",
        "bytes a check sends, from a log format",
        |draft, args, context| send(draft, args, context, PayloadForm::Format),
    )
    .examples("tcp-check send-lf %[date]", "tcp-check send-lf %[nosuch]"),
    R::new(
        "tcp-check send-binary",
        Sections::CHECKS,
        "<hexadecimal> [ comment <text> ]",
        "bytes a check sends, in hexadecimal",
        |draft, args, context| send(draft, args, context, PayloadForm::Binary),
    )
    .examples("tcp-check send-binary 0a0b", "tcp-check send-binary 0a0"),
    R::new(
        "tcp-check send-binary-lf",
        Sections::CHECKS,
        "<format> [ comment <text> ]",
        "bytes a check sends, from a log format that gives hexadecimal",
        |draft, args, context| send(draft, args, context, PayloadForm::BinaryFormat),
    )
    .examples(
        "tcp-check send-binary-lf %[date,hex]",
        "tcp-check send-binary-lf %[nosuch]",
    ),
    R::new(
        "tcp-check expect",
        Sections::CHECKS,
        "[ <options> ] [!] <match> <pattern>",
        "what the answer to a check must hold",
        |draft, args, context| {
            let rule = expect::expect(draft, args, context, false)?;
            push(draft, args, CheckRule::Expect(Box::new(rule)));
            Ok(())
        },
    )
    .examples(
        "tcp-check expect string +PONG",
        "tcp-check expect status 200",
    ),
    R::new(
        "tcp-check comment",
        Sections::CHECKS,
        "<text>",
        "what the next rule is reported as",
        |draft, args, _| {
            let text = args.text("a string")?.to_owned();
            // Without quotes the first word is the comment; HAProxy ignores the others.
            args.rest();
            push(draft, args, CheckRule::Comment(text));
            Ok(())
        },
    )
    .examples("tcp-check comment greeting", "tcp-check comment"),
    R::new(
        "tcp-check set-var",
        Sections::CHECKS,
        "(<var>) <expression>",
        "set a variable of the check",
        |draft, args, context| {
            let rule = variable::set_var(draft, args, context, false)?;
            push(draft, args, rule);
            Ok(())
        },
    )
    .examples(
        "tcp-check set-var(check.x) int(1)",
        "tcp-check set-var(x) int(1)",
    ),
    R::new(
        "tcp-check set-var-fmt",
        Sections::CHECKS,
        "(<var>) <format>",
        "set a variable of the check to a text",
        |draft, args, context| {
            let rule = variable::set_var(draft, args, context, true)?;
            push(draft, args, rule);
            Ok(())
        },
    )
    .examples(
        "tcp-check set-var-fmt(check.x) a",
        "tcp-check set-var-fmt(x) a",
    ),
    R::new(
        "tcp-check unset-var",
        Sections::CHECKS,
        "(<var>)",
        "forget a variable of the check",
        |draft, args, _| {
            let rule = variable::unset_var(args)?;
            push(draft, args, rule);
            Ok(())
        },
    )
    .examples("tcp-check unset-var(check.x)", "tcp-check unset-var(x)"),
];

fn push(draft: &mut ProxyDraft, args: &Args<'_>, rule: CheckRule) {
    let span = args.span();
    draft.section_state.check.tcp.push(rule, span);
}

/// The notations of bytes to send.
#[derive(Clone, Copy, Debug)]
enum PayloadForm {
    Text,
    Format,
    Binary,
    BinaryFormat,
}

fn send(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    form: PayloadForm,
) -> Result<(), Diagnostic> {
    let phases = [Phase::Check];
    let payload = match form {
        PayloadForm::Text => {
            CheckPayload::Bytes(args.word("a string as argument")?.bytes().to_vec())
        }
        PayloadForm::Binary => {
            let text = args.text("a hexadecimal string as argument")?;
            CheckPayload::Bytes(expect::binary(text, args)?)
        }
        PayloadForm::Format | PayloadForm::BinaryFormat => {
            let what = "a log-format string";
            let format = expressions::format(draft, args, context, what, Usage::Text, &phases)?;
            match form {
                PayloadForm::Format => CheckPayload::Format(format),
                _ => CheckPayload::HexFormat(format),
            }
        }
    };
    let mut comment = None;
    while let Some(word) = args.next() {
        if word != "comment" {
            let message = format!(
                "'{}' : expects 'comment' but got '{word}' as argument",
                args.keyword()
            );
            return Err(suggestion(args.wrong(message), word, ["comment"]));
        }
        comment = Some(argument(args, word, "a string")?.to_owned());
    }
    push(draft, args, CheckRule::Send(CheckSend { payload, comment }));
    Ok(())
}
