//! Which rows of a plan are measured.

use super::Plan;

/// Selects rows. An empty list selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Numbers of channels or connections.
    pub connections: Vec<u32>,
    /// Sizes of blocks in bytes.
    pub block_bytes: Vec<u64>,
}

impl Plan {
    /// Keeps only the selected rows and their comparisons. Returns false if no row is left.
    pub fn select(&mut self, wanted: &Selection) -> bool {
        let Selection { connections, block_bytes } = wanted;
        self.retain(|key| {
            (connections.is_empty() || connections.contains(&key.connections))
                && (block_bytes.is_empty() || block_bytes.contains(&key.block_bytes))
        });
        !self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Extent, family};
    use crate::result::Protocol;

    #[test]
    fn rows_are_left_that_are_in_both_lists() {
        let whole = family("smb-mc-multifile").unwrap().plan(Protocol::Smb, &Extent::new(false));
        let select = |connections: &[u32], block_bytes: &[u64]| {
            let mut plan = whole.clone();
            let wanted = Selection { connections: connections.to_vec(), block_bytes: block_bytes.to_vec() };
            let is_left = plan.select(&wanted);
            (is_left, plan.rows.len())
        };
        assert_eq!(select(&[], &[]), (true, whole.rows.len()));
        let first = &whole.rows[0].key;
        let (is_left, rows) = select(&[first.connections], &[first.block_bytes]);
        assert!(is_left && rows > 0 && rows < whole.rows.len());
        assert_eq!(select(&[first.connections], &[7]), (false, 0));
    }
}
