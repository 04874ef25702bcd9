//! What expressions are joined to: an ACL is made of expressions, and an expression may name ACLs, so
//! that neither can know the other's type.

use std::sync::Arc;

use crate::condition_result::ConditionResult;
use crate::effects::SideEffects;
use crate::facts::Facts;
use crate::files::PatternFileReader;
use crate::needs::Needs;
use crate::pattern::Store;
use crate::scratch::Scratch;

/// An ACL that an expression names (`acl()`).
pub trait LinkedAcl: Send + Sync {
    /// Whether it holds, while some of `may_still_arrive` may come.
    fn test(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        may_still_arrive: Needs,
    ) -> ConditionResult;

    /// What its criteria need.
    fn needs(&self) -> Needs;

    /// What evaluating its criteria does.
    fn effects(&self) -> SideEffects;

    /// Words in it that are parsed and not evaluated yet.
    fn unimplemented(&self) -> Vec<&'static str>;
}

/// What linking an expression asks for.
pub trait Links {
    /// The ACL of that name, where the expression stands.
    fn acl(&self, name: &str) -> Option<Arc<dyn LinkedAcl>>;

    /// Lists and maps, and where files that are not among them are read.
    fn lists(&mut self) -> (&Store, &mut dyn PatternFileReader);
}
