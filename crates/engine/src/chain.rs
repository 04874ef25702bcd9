//! A list that grows while others read it.

use std::cell::OnceCell;

/// Elements in the order they came. What was given of them stays where it is.
#[derive(Debug)]
pub struct Chain<T> {
    first: OnceCell<Box<ChainLink<T>>>,
}

#[derive(Debug)]
struct ChainLink<T> {
    element: T,
    next: OnceCell<Box<ChainLink<T>>>,
}

/// Elements that a chain may have: what evaluates rules once adds a few.
const ELEMENTS_MAX: usize = 1024;

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self {
            first: OnceCell::new(),
        }
    }
}

impl<T> Chain<T> {
    /// The elements, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let first = self.first.get();
        std::iter::successors(first, |link| link.next.get()).map(|link| &link.element)
    }

    /// Adds an element at the end; gives whether there is room.
    pub fn push(&self, element: T) -> bool {
        let mut end = &self.first;
        let mut elements = 0;
        while let Some(link) = end.get() {
            end = &link.next;
            elements += 1;
        }
        let next = OnceCell::new();
        elements < ELEMENTS_MAX && end.set(Box::new(ChainLink { element, next })).is_ok()
    }

    /// Takes the first element away.
    pub fn pop_first(&mut self) -> Option<T> {
        let link = self.first.take()?;
        let ChainLink { element, next } = *link;
        self.first = next;
        Some(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_while_others_come() {
        let mut chain = Chain::default();
        assert!(chain.push("a".to_owned()));
        let first = chain.iter().next().unwrap();
        assert!(chain.push("b".to_owned()));
        assert_eq!((first.as_str(), chain.iter().count()), ("a", 2));
        assert_eq!(chain.pop_first().as_deref(), Some("a"));
        assert_eq!(chain.pop_first().as_deref(), Some("b"));
        assert_eq!(chain.iter().count(), 0);
    }

    #[test]
    fn a_chain_is_bounded() {
        let chain = Chain::default();
        let room = (0..2 * ELEMENTS_MAX).filter(|number| chain.push(*number));
        assert_eq!(room.count(), ELEMENTS_MAX);
    }
}
