//! A queue that seldom holds more than one item, and allocates only then.

use std::collections::VecDeque;

/// First in, first out. The first item is in the queue itself.
#[derive(Debug)]
pub(super) struct ShortQueue<T> {
    first: Option<T>,
    /// Empty while there is no first.
    others: VecDeque<T>,
}

impl<T> Default for ShortQueue<T> {
    fn default() -> Self {
        Self {
            first: None,
            others: VecDeque::new(),
        }
    }
}

impl<T> ShortQueue<T> {
    /// Removes everything and frees the memory.
    pub(super) fn clear(&mut self) {
        self.first = None;
        if self.others.capacity() > 0 {
            self.others = VecDeque::new();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        self.others.back_mut().or(self.first.as_mut())
    }

    pub(super) fn push_back(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.others.push_back(item),
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        std::mem::replace(&mut self.first, self.others.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_queue() {
        // Every sequence of ten steps.
        for steps in 0_u32..1 << 10 {
            let (mut queue, mut model) = (ShortQueue::default(), VecDeque::new());
            for number in 0..10 {
                if steps & (1 << number) == 0 {
                    assert_eq!(queue.pop_front(), model.pop_front());
                } else {
                    queue.push_back(number);
                    model.push_back(number);
                }
                assert_eq!(queue.len(), model.len());
                assert_eq!(queue.is_empty(), model.is_empty());
                assert_eq!(queue.front_mut(), model.front_mut());
                assert_eq!(queue.back_mut(), model.back_mut());
            }
        }
    }
}
