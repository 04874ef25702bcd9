//! Deeds that only check the form of a line: for rows that are noted or served later.

use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;

macro_rules! checks {
    ($($(#[$doc:meta])* $name:ident($args:ident) $body:block)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        /// When the words have another form.
        pub(crate) fn $name<C>(
            _: &mut C,
            $args: &mut Args<'_>,
            _: &mut Context<'_>,
        ) -> Result<(), Diagnostic> $body)*
    };
}

checks! {
    /// No argument.
    none(args) { args.end() }
    /// Whatever follows.
    any(args) { args.rest(); Ok(()) }
    /// At least one word.
    some(args) { args.text("at least one argument")?; args.rest(); Ok(()) }
    /// One word.
    one(args) { args.text("an argument")?; args.end() }
    /// One word or none.
    maybe_one(args) { args.next(); args.end() }
    /// One word among others on the line.
    word(args) { args.text("an argument").map(|_| ()) }
    /// Nothing of its own.
    nothing(_args) { Ok(()) }
    /// A number among others on the line.
    count(args) { args.count("a number").map(|_| ()) }
    /// A time among others on the line.
    delay(args) { args.time("a time").map(|_| ()) }
    /// A size among others on the line.
    bytes(args) { args.size("a size", u64::from(u32::MAX)).map(|_| ()) }
    /// A number, negative ones and sizes too.
    amount(args) {
        let text = args.text("a number")?;
        let digits = text.strip_prefix('-').unwrap_or(text);
        if ballast_syntax::parse_size(digits, u64::MAX).is_err() {
            return Err(args.wrong(format!("'{}' expects a number (got '{text}')", args.keyword())));
        }
        args.end()
    }
    /// Two words.
    two(args) { args.text("two arguments")?; args.text("two arguments")?; args.end() }
    /// A number that is not negative.
    number(args) { args.count("a number")?; args.end() }
    /// A time.
    time(args) { args.time("a time")?; args.end() }
    /// A size.
    size(args) { args.size("a size", u64::from(u32::MAX))?; args.end() }
    /// `on` or `off`.
    on_off(args) { args.choice(&[("on", ()), ("off", ())])?; args.end() }
}

/// A list of cipher suites, alone on its line.
///
/// # Errors
/// When it is missing, or more follows.
pub(crate) fn ciphers<C>(
    target: &mut C,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    crate::tls_words::ciphers(target, args, context)?;
    args.end()
}
