//! `tune.h2.*`: what connections of HTTP/2 may do.
//!
//! Source: HAProxy configuration manual, section 3.2. As there, 0 for a window or for the streams of
//! one side leaves the default.

use ballast_model::{Global, H2LoggedErrors, H2Tuning};
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<Global>;

/// Rows of numbers: word, help, an example, the lowest and the highest number, where it goes.
macro_rules! numbers {
    ($($word:literal, $help:literal, $good:literal, ($min:literal .. $max:expr),
        $tuning:ident, $number:ident => $action:expr;)*) => {
        &[$(R::new($word, Sections::GLOBAL, "<number>", $help, |global, args, context| {
            let $number = number(args, context, $min, $max)?;
            let $tuning: &mut H2Tuning = &mut global.tune.h2;
            $action;
            Ok(())
        })
        .examples(concat!($word, " ", $good), concat!($word, " a b c"))),*]
    };
}

/// The largest number of those that HAProxy keeps in an `int`.
const INT_MAX: i64 = i32::MAX as i64;

/// A number alone on its line; negative ones, where they are allowed, count as 0.
fn number(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    min: i64,
    max: i64,
) -> Result<u32, Diagnostic> {
    let number = args.lenient_number("a numeric value", min..=max, context)?;
    args.end()?;
    Ok(u32::try_from(number).unwrap_or(0))
}

/// 0 is no setting.
fn unless_zero(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != 0)
}

/// The rows of numbers.
#[rustfmt::skip]
pub(super) const NUMBER_ROWS: &[R] = numbers! {
    "tune.h2.be.glitches-threshold", "odd frames of a server until its connection ends", "1000", (0 .. INT_MAX),
        h2, count => h2.back.glitch_count_max = count;
    "tune.h2.be.initial-window-size", "bytes a server may send on a stream at first", "65535", (0 .. INT_MAX),
        h2, bytes => h2.back.window_bytes = unless_zero(bytes);
    "tune.h2.be.max-concurrent-streams", "streams at once on a connection to a server", "100", (0 .. INT_MAX),
        h2, count => h2.back.stream_count_max = unless_zero(count);
    "tune.h2.be.max-frames-at-once", "frames of a server received in one turn", "100", (-2147483648 .. INT_MAX),
        h2, count => h2.back.frame_count_max = count;
    "tune.h2.fe.glitches-threshold", "odd frames of a client until its connection ends", "1000", (0 .. INT_MAX),
        h2, count => h2.front.glitch_count_max = count;
    "tune.h2.fe.initial-window-size", "bytes a client may send on a stream at first", "65535", (0 .. INT_MAX),
        h2, bytes => h2.front.window_bytes = unless_zero(bytes);
    "tune.h2.fe.max-concurrent-streams", "streams at once on a connection of a client", "100", (0 .. INT_MAX),
        h2, count => h2.front.stream_count_max = unless_zero(count);
    "tune.h2.fe.max-frames-at-once", "frames of a client received in one turn", "100", (-2147483648 .. INT_MAX),
        h2, count => h2.front.frame_count_max = count;
    "tune.h2.fe.max-rst-at-once", "stream resets of a client received in one turn", "10", (-2147483648 .. INT_MAX),
        h2, count => h2.reset_count_max = count;
    "tune.h2.fe.max-total-streams", "streams in the life of a client's connection", "1000", (0 .. INT_MAX),
        h2, count => h2.stream_total_max = count;
    "tune.h2.header-table-size", "bytes of the table of known fields", "4096", (4096 .. 65536),
        h2, bytes => h2.header_table_bytes = bytes;
    "tune.h2.initial-window-size", "bytes a peer may send on a stream at first", "65535", (0 .. INT_MAX),
        h2, bytes => h2.window_bytes = unless_zero(bytes);
    "tune.h2.max-concurrent-streams", "streams at once on a connection; 0 is no limit", "100", (0 .. INT_MAX),
        h2, count => h2.stream_count_max = count;
    "tune.h2.max-frame-size", "bytes of the largest frame, a buffer at most", "16384", (16384 .. 16777215),
        h2, bytes => h2.frame_bytes = Some(bytes);
};

/// The other rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "tune.h2.be.rxbuf",
        Sections::GLOBAL,
        "<size>",
        "bytes of servers that a connection may hold",
        |global, args, _| {
            global.tune.h2.back.receive_bytes = unless_zero(size(args)?);
            Ok(())
        },
    )
    .examples("tune.h2.be.rxbuf 64k", "tune.h2.be.rxbuf x"),
    R::new(
        "tune.h2.fe.rxbuf",
        Sections::GLOBAL,
        "<size>",
        "bytes of a client that a connection may hold",
        |global, args, _| {
            global.tune.h2.front.receive_bytes = unless_zero(size(args)?);
            Ok(())
        },
    )
    .examples("tune.h2.fe.rxbuf 64k", "tune.h2.fe.rxbuf x"),
    R::new(
        "tune.h2.log-errors",
        Sections::GLOBAL,
        "none | connection | stream",
        "errors of the protocol that are logged",
        |global, args, _| {
            global.tune.h2.logged_errors = args.choice(&[
                ("none", H2LoggedErrors::None),
                ("connection", H2LoggedErrors::Connection),
                ("stream", H2LoggedErrors::Stream),
            ])?;
            args.end()
        },
    )
    .examples("tune.h2.log-errors connection", "tune.h2.log-errors all"),
];

fn size(args: &mut Args<'_>) -> Result<u32, Diagnostic> {
    let size = args.size("a size", u64::from(u32::MAX))?;
    args.end()?;
    Ok(u32::try_from(size).expect("the bound fits 32 bits"))
}
