//! What the words of the catalogues do.

use crate::args::Arg;
use crate::eval::Cx;
use crate::value::Sample;

/// Gives the sample of a fetch.
pub(crate) type FetchDeed = for<'f> fn(&mut Cx<'f, '_>, &'f [Arg]) -> Option<Sample<'f>>;

/// Applies a converter to a sample already cast to what it takes.
pub(crate) type ConvDeed = for<'f> fn(&mut Cx<'f, '_>, &'f [Arg], Sample<'f>) -> Option<Sample<'f>>;
