//! A value that copies of an object share until one of them changes it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that is shared by its clones. It is read as the value itself. To write it, even to borrow
/// it for writing, first makes a copy where others have it too.
#[derive(Clone, Default)]
pub struct CopyOnWrite<T>(Arc<T>);

impl<T> CopyOnWrite<T> {
    /// Whether both are one value, not only equal.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for CopyOnWrite<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared_with(other) || *self.0 == *other.0
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for CopyOnWrite<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_by_the_first_write_and_by_no_read() {
        let one = CopyOnWrite::<Vec<u8>>::default();
        let mut other = one.clone();
        assert!(other.is_empty() && other.is_shared_with(&one));
        other.push(1);
        assert!(!other.is_shared_with(&one));
        assert_eq!((one.len(), other.len()), (0, 1));
        let (mut third, address) = (one.clone(), other.as_ptr());
        other.push(2);
        assert_eq!(other.as_ptr(), address);
        third.extend([1, 2]);
        assert_eq!(third, other);
        assert!(!third.is_shared_with(&other));
    }
}
