//! The objects that the kernel knows, by the number of their inode: each with the handle by which it is found in the file system below.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use storage_local::kernel_handle::KernelHandle;

/// All objects that were ever looked up: somebody may have a handle of any of them. About 150 bytes for each.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Guards the objects, by number.
    known: Mutex<HashMap<u64, Node>>,
}

#[derive(Debug)]
struct Node {
    handle: KernelHandle,
    /// How many objects before it had the number.
    generation: u64,
    /// How often the kernel was told of it, and has not forgotten it.
    told: u64,
    /// Itself, once it has no name any more.
    kept: Option<Arc<OwnedFd>>,
}

/// How an object is found.
#[derive(Debug)]
pub(crate) enum Found {
    /// By its handle.
    Handle(KernelHandle),
    /// It is kept.
    Kept(Arc<OwnedFd>),
}

impl Nodes {
    /// Enters an object of which the kernel is told. Its generation: a number that is given again, after its object was removed, has another one.
    pub(crate) fn enter(&self, number: u64, handle: KernelHandle) -> u64 {
        let mut known = self.known.lock();
        let node = known.entry(number).or_insert_with(|| Node {
            handle: handle.clone(),
            generation: 0,
            told: 0,
            kept: None,
        });
        if node.handle != handle {
            *node = Node { handle, generation: node.generation + 1, told: 0, kept: None };
        }
        node.told += 1;
        node.generation
    }

    /// How an object is found.
    ///
    /// # Errors
    /// ESTALE: it was never looked up.
    pub(crate) fn find(&self, number: u64) -> io::Result<Found> {
        let known = self.known.lock();
        let node = known.get(&number).ok_or(Errno::STALE)?;
        Ok(match &node.kept {
            Some(kept) => Found::Kept(Arc::clone(kept)),
            None => Found::Handle(node.handle.clone()),
        })
    }

    /// Keeps an object that has no name any more. Who never looked it up does not have it open.
    pub(crate) fn keep(&self, number: u64, object: OwnedFd) {
        if let Some(node) = self.known.lock().get_mut(&number) {
            node.kept = Some(Arc::new(object));
        }
    }

    /// The kernel forgets that it was told of an object so often. Once it knows nothing of it, nobody has it open.
    pub(crate) fn forget(&self, number: u64, times: u64) {
        if let Some(node) = self.known.lock().get_mut(&number) {
            node.told = node.told.saturating_sub(times);
            if node.told == 0 {
                node.kept = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_given_again_is_of_another_generation() {
        let (nodes, handle) = (Nodes::default(), |byte| KernelHandle { kind: 1, bytes: vec![byte] });
        assert_eq!(nodes.enter(7, handle(1)), 0);
        assert_eq!(nodes.enter(7, handle(1)), 0);
        assert_eq!(nodes.enter(7, handle(2)), 1);
        assert!(matches!(nodes.find(7), Ok(Found::Handle(found)) if found == handle(2)));
        assert!(nodes.find(8).is_err());
    }
    #[test]
    fn what_has_no_name_is_kept_until_the_kernel_has_forgotten_it() {
        let (nodes, handle) = (Nodes::default(), KernelHandle { kind: 1, bytes: vec![1] });
        let file = || OwnedFd::from(tempfile::tempfile().unwrap());
        nodes.keep(7, file());
        assert!(nodes.find(7).is_err(), "the kernel was never told of it");
        nodes.enter(7, handle.clone());
        nodes.enter(7, handle);
        nodes.keep(7, file());
        nodes.forget(7, 1);
        assert!(matches!(nodes.find(7), Ok(Found::Kept(_))));
        nodes.forget(7, 1);
        assert!(matches!(nodes.find(7), Ok(Found::Handle(_))));
    }
}
