//! `balance first`: the lowest server id with a free slot.

/// The usable servers in order of their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstFree {
    /// Id and index.
    by_id: Vec<(u32, u32)>,
}

impl FirstFree {
    pub(crate) fn add(&mut self, id: u32, index: u32) {
        if let Err(position) = self.by_id.binary_search(&(id, index)) {
            self.by_id.insert(position, (id, index));
        }
    }

    pub(crate) fn remove(&mut self, id: u32, index: u32) {
        if let Ok(position) = self.by_id.binary_search(&(id, index)) {
            self.by_id.remove(position);
        }
    }

    /// The first server that is not full; only full ones are skipped. A server to avoid is taken
    /// when no other is free.
    pub(crate) fn pick(&self, avoid: &[u32], is_full: impl Fn(u32) -> bool) -> Option<u32> {
        let mut avoided = None;
        for &(_, index) in &self.by_id {
            if is_full(index) {
                continue;
            }
            if !avoid.contains(&index) {
                return Some(index);
            }
            avoided = Some(index);
        }
        avoided
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.by_id.is_sorted(), "servers stand in order of id");
    }
}
