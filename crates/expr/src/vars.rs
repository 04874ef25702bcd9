//! Variable names, manual 2.8 of 3.x ("Variables").

use std::fmt;
use std::sync::Arc;

use crate::error::{ExpressionError, nearest};

/// How long a variable lives.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum VarScope {
    /// `check.`: one health check.
    Check,
    /// `preq.`: as `req.`, of the stream that an exchange works for.
    ParentReq,
    /// `pres.`: as `res.`, of that stream.
    ParentRes,
    /// `psess.`: as `sess.`, of that stream.
    ParentSess,
    /// `ptxn.`: as `txn.`, of that stream.
    ParentTxn,
    /// `proc.`: the process.
    Proc,
    /// `req.`: request processing.
    Req,
    /// `res.`: response processing.
    Res,
    /// `sess.`: the client's session.
    Sess,
    /// `txn.`: one request and its response.
    Txn,
}

impl VarScope {
    const ALL: [VarScope; 10] = [
        VarScope::Check,
        VarScope::ParentReq,
        VarScope::ParentRes,
        VarScope::ParentSess,
        VarScope::ParentTxn,
        VarScope::Proc,
        VarScope::Req,
        VarScope::Res,
        VarScope::Sess,
        VarScope::Txn,
    ];

    /// The prefix without its dot.
    pub const fn text(self) -> &'static str {
        match self {
            VarScope::Check => "check",
            VarScope::ParentReq => "preq",
            VarScope::ParentRes => "pres",
            VarScope::ParentSess => "psess",
            VarScope::ParentTxn => "ptxn",
            VarScope::Proc => "proc",
            VarScope::Req => "req",
            VarScope::Res => "res",
            VarScope::Sess => "sess",
            VarScope::Txn => "txn",
        }
    }
}

/// The name of a variable: its scope and what follows the dot.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct VarName {
    /// How long it lives.
    pub scope: VarScope,
    /// The name after the dot.
    pub name: Arc<str>,
}

impl VarName {
    /// Parses `scope.name`.
    ///
    /// # Errors
    /// When the scope is unknown or the name holds other bytes than letters, digits, `.` and `_`.
    pub fn parse(text: &str) -> Result<VarName, ExpressionError> {
        let whole = 0..text.len();
        if text.is_empty() {
            return Err(ExpressionError::new(
                "cannot parse empty variable name",
                whole,
            ));
        }
        let (prefix, name) = text.split_once('.').unwrap_or((text, ""));
        let Some(scope) = VarScope::ALL
            .into_iter()
            .find(|scope| scope.text() == prefix)
        else {
            let hint = nearest(prefix, VarScope::ALL.iter().map(|scope| scope.text()))
                .map(|scope| format!("{scope}.{name}"));
            return Err(ExpressionError::new(
                format!(
                    "invalid variable name '{text}': a scope among 'proc', '(p)sess', \
                     '(p)txn', '(p)req', '(p)res' and 'check' must come first, then a dot"
                ),
                whole,
            )
            .with_hint(hint));
        };
        if name.is_empty() || !text.contains('.') {
            return Err(ExpressionError::new(
                format!("invalid variable name '{text}': nothing after the scope"),
                whole,
            ));
        }
        let bad = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
        if let Some(bad) = bad {
            let at = prefix.len() + 1 + bad;
            let wide = name[bad..].chars().next().map_or(1, char::len_utf8);
            return Err(ExpressionError::new(
                format!("invalid character in variable name '{text}'"),
                at..at + wide,
            ));
        }
        Ok(VarName {
            scope,
            name: name.into(),
        })
    }
}

impl fmt::Display for VarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.scope.text(), self.name)
    }
}
