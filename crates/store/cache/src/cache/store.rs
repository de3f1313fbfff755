//! A store that answers from the cache.

use std::sync::Arc;

use storage::{
    Capabilities, Error, Feed, FileKind, Handle, MayWait, NoSnapshots, Node, NodeRef, Observed, ObservedId,
    Observer, Result, Snapshots, Space, Storage, Wait,
};

use super::Cache;
use super::node::{CachedNode, inner};
use super::now_and_then::NowAndThen;

/// A store behind a cache.
pub(crate) struct CachedStore {
    cache: Arc<Cache>,
    /// Decides when to ask whether a directory found by its handle was moved.
    moved_is_asked: NowAndThen,
}

impl CachedStore {
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        Self { cache, moved_is_asked: NowAndThen::default() }
    }
}

impl Storage for CachedStore {
    fn capabilities(&self) -> Capabilities {
        self.cache.store.capabilities()
    }

    fn root(&self) -> NodeRef {
        CachedNode::wrap(&self.cache, self.cache.store.root())
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        let at_hand = self.cache.by_handle(handle, wait.view());
        // The store has checked the place of what it has found.
        let is_checked = at_hand.is_none();
        let node = match at_hand {
            Some(node) => node,
            None => self.cache.store.by_handle(handle, wait)?,
        };
        if node.kind() == FileKind::Directory {
            let is_asked = self.moved_is_asked.is_due();
            if is_asked {
                self.cache.settle(wait.view());
            }
            if is_asked || !is_checked {
                node.check_place()?;
            }
        }
        Ok(CachedNode::wrap(&self.cache, node))
    }

    fn observer(&self) -> Result<Arc<dyn Observer>> {
        Ok(Arc::new(CachedObserver(self.cache.store.observer()?)))
    }

    fn feed(&self) -> Result<Arc<dyn Feed>> {
        Err(Error::NotSupported)
    }

    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        self.cache.store.snapshots()
    }

    fn space(&self, may: MayWait<'_>) -> Result<Space> {
        self.cache.store.space(may)
    }

    fn is_read_only(&self, may: MayWait<'_>) -> Result<bool> {
        self.cache.store.is_read_only(may)
    }

    fn is_in_place(&self, may: MayWait<'_>) -> Result<bool> {
        self.cache.store.is_in_place(may)
    }

    fn sync(&self, may: MayWait<'_>) -> Result<()> {
        self.cache.store.sync(may)
    }
}

/// The store's observer, unwrapping nodes of the cache.
#[derive(Debug)]
struct CachedObserver(Arc<dyn Observer>);

impl Observer for CachedObserver {
    fn observe(&self, dir: &dyn Node) -> Result<ObservedId> {
        self.0.observe(&**inner(dir)?)
    }

    fn ignore(&self, dir: ObservedId) {
        self.0.ignore(dir);
    }

    fn wait(&self, each: &mut dyn FnMut(Observed<'_>)) -> Result<bool> {
        self.0.wait(each)
    }

    fn wake(&self) {
        self.0.wake();
    }
}
