//! Cached nodes: an object has one node while anybody refers to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::{Node, ObjectId, QuickMap};

/// The number of shards, each with a lock of its own.
const SHARDS: usize = 16;

/// Nodes by number. A cached node pins its inode, so its number cannot be reused for another object.
#[derive(Debug)]
pub struct NodeCache<N> {
    /// A shard's lock guards everything in it. No node is dropped while a lock is held, since closing a file may take
    /// long.
    shards: [Mutex<Shard<N>>; SHARDS],
    closed: AtomicBool,
    nodes_max: usize,
}

#[derive(Debug)]
struct Shard<N> {
    nodes: QuickMap<ObjectId, Slot<N>>,
    /// Nodes whose name was removed and that are still referred to from outside.
    removed: QuickMap<ObjectId, Weak<N>>,
    nodes_max: usize,
    /// When there are more nodes than this, unused ones are dropped.
    shrink_above: usize,
}

#[derive(Debug)]
struct Slot<N> {
    node: Arc<N>,
    /// Whether the node was asked for since the last sweep.
    used: bool,
}

impl<N> Slot<N> {
    fn is_referred_to(&self) -> bool {
        Arc::strong_count(&self.node) > 1
    }
}

impl<N> Shard<N> {
    fn get(&mut self, id: ObjectId) -> Option<Arc<N>> {
        if let Some(slot) = self.nodes.get_mut(&id) {
            slot.used = true;
            return Some(Arc::clone(&slot.node));
        }
        self.removed.get(&id)?.upgrade()
    }

    /// Takes out nodes that nobody refers to: first those that were not used since the last call, then any, until there
    /// are few enough.
    fn shrink(&mut self) -> Vec<Arc<N>> {
        let enough = self.nodes_max - self.nodes_max / 8;
        let mut out = self.take_unused(usize::MAX);
        if self.nodes.len() > enough {
            out.append(&mut self.take_unused(self.nodes.len() - enough));
        }
        // If all nodes are referred to, another attempt soon would be in vain.
        self.shrink_above = self.nodes_max.max(self.nodes.len() + self.nodes.len() / 8);
        out
    }

    /// Takes out up to `count` nodes that were not used since the last call.
    fn take_unused(&mut self, count: usize) -> Vec<Arc<N>> {
        self.removed.retain(|_, node| node.strong_count() > 0);
        let mut out = Vec::new();
        self.nodes.retain(|_, slot| {
            let goes = !slot.used && !slot.is_referred_to() && out.len() < count;
            slot.used = false;
            if goes {
                out.push(Arc::clone(&slot.node));
            }
            !goes
        });
        out
    }
}

impl<N: Node> NodeCache<N> {
    /// A cache of about `nodes_max` nodes. Nodes that somebody refers to are kept beyond that.
    #[must_use]
    pub fn new(nodes_max: usize) -> Self {
        let of_shard = (nodes_max / SHARDS).max(1);
        let shard = || Shard {
            nodes: QuickMap::default(),
            removed: QuickMap::default(),
            nodes_max: of_shard,
            shrink_above: of_shard,
        };
        let shards = std::array::from_fn(|_| Mutex::new(shard()));
        Self { shards, closed: AtomicBool::new(false), nodes_max }
    }

    /// How many nodes the cache keeps.
    #[must_use]
    pub fn nodes_max(&self) -> usize {
        self.nodes_max
    }

    fn shard(&self, id: ObjectId) -> &Mutex<Shard<N>> {
        // Inode numbers of neighbours differ in the low bits. The remainder is below SHARDS.
        &self.shards[usize::try_from(id.number % SHARDS as u64).unwrap_or(0)]
    }

    /// The node with that number, if it is cached.
    #[must_use]
    pub fn get(&self, id: ObjectId) -> Option<Arc<N>> {
        self.shard(id).lock().get(id)
    }

    /// Enters a new node, unless its object has one already. Returns the node that stays.
    pub fn enter(&self, node: N) -> Arc<N> {
        let id = node.id();
        let node = Arc::new(node);
        if self.closed.load(Ordering::Relaxed) {
            return node;
        }
        let dropped;
        {
            let mut shard = self.shard(id).lock();
            if let Some(present) = shard.get(id) {
                drop(shard);
                return present;
            }
            shard.removed.remove(&id);
            dropped = if shard.nodes.len() >= shard.shrink_above { shard.shrink() } else { Vec::new() };
            shard.nodes.insert(id, Slot { node: Arc::clone(&node), used: true });
        }
        drop(dropped);
        node
    }

    /// A name of this object was removed: its space must be freed when the last reference is dropped.
    pub fn release(&self, id: ObjectId) {
        let released;
        {
            let mut shard = self.shard(id).lock();
            released = shard.nodes.remove(&id);
            if let Some(slot) = released.as_ref().filter(|slot| slot.is_referred_to()) {
                shard.removed.insert(id, Arc::downgrade(&slot.node));
            }
        }
        drop(released);
    }

    /// This directory was removed: nobody can find it any more, even while somebody holds it.
    pub fn forget(&self, id: ObjectId) {
        let forgotten = {
            let mut shard = self.shard(id).lock();
            shard.removed.remove(&id);
            shard.nodes.remove(&id)
        };
        drop(forgotten);
    }

    /// Drops nodes that nobody refers to and that were not asked for since the last call.
    pub fn sweep(&self) {
        for shard in &self.shards {
            let dropped = shard.lock().take_unused(usize::MAX);
            drop(dropped);
        }
    }

    /// Drops all nodes that nobody refers to.
    pub fn drop_unreferred(&self) {
        self.sweep();
        self.sweep();
    }

    /// Whether the store is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Drops all nodes, for good.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        for shard in &self.shards {
            let nodes = std::mem::take(&mut shard.lock().nodes);
            drop(nodes);
        }
    }
}
