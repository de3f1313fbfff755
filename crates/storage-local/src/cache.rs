//! The nodes at hand: one object has one node while anybody refers to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use storage::FileId;

use crate::node::LocalNode;

/// Shards, each with a lock of its own.
const SHARDS: usize = 16;

/// Nodes by number. A node that is cached pins its inode, so the number cannot come to mean another object.
#[derive(Debug)]
pub(crate) struct Cache {
    /// A shard's lock guards all of it; no node is dropped under it, since closing a file may take long.
    shards: [Mutex<Shard>; SHARDS],
    closed: AtomicBool,
    nodes_max: usize,
}

#[derive(Debug)]
struct Shard {
    nodes: HashMap<FileId, Slot>,
    /// Nodes whose name was removed, still referred to from outside.
    removed: HashMap<FileId, Weak<LocalNode>>,
    nodes_max: usize,
    /// When there are more nodes than this, those that nobody uses go.
    shrink_above: usize,
}

#[derive(Debug)]
struct Slot {
    node: Arc<LocalNode>,
    /// Asked for since the last sweep.
    used: bool,
}

impl Slot {
    fn is_referred_to(&self) -> bool {
        Arc::strong_count(&self.node) > 1
    }
}

impl Shard {
    fn get(&mut self, id: FileId) -> Option<Arc<LocalNode>> {
        if let Some(slot) = self.nodes.get_mut(&id) {
            slot.used = true;
            return Some(Arc::clone(&slot.node));
        }
        self.removed.get(&id)?.upgrade()
    }

    /// Takes out nodes that nobody refers to: those not used since the last time, then any until there are
    /// few enough.
    fn shrink(&mut self) -> Vec<Arc<LocalNode>> {
        let enough = self.nodes_max - self.nodes_max / 8;
        let mut out = self.take_unused(usize::MAX);
        if self.nodes.len() > enough {
            out.append(&mut self.take_unused(self.nodes.len() - enough));
        }
        // When all of them are referred to, looking again soon would be in vain.
        self.shrink_above = self.nodes_max.max(self.nodes.len() + self.nodes.len() / 8);
        out
    }

    /// Takes out up to `count` nodes that were not used since the last call.
    fn take_unused(&mut self, count: usize) -> Vec<Arc<LocalNode>> {
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

impl Cache {
    /// A cache of about `nodes_max` nodes; those that somebody refers to stay beyond that.
    pub(crate) fn new(nodes_max: usize) -> Self {
        let of_shard = (nodes_max / SHARDS).max(1);
        let shard = || Shard {
            nodes: HashMap::new(),
            removed: HashMap::new(),
            nodes_max: of_shard,
            shrink_above: of_shard,
        };
        let shards = std::array::from_fn(|_| Mutex::new(shard()));
        Self { shards, closed: AtomicBool::new(false), nodes_max }
    }

    /// How many nodes it keeps.
    pub(crate) fn nodes_max(&self) -> usize {
        self.nodes_max
    }

    fn shard(&self, id: FileId) -> &Mutex<Shard> {
        // Inode numbers of neighbours differ in the low bits; the remainder is below SHARDS.
        &self.shards[usize::try_from(id.0 % SHARDS as u64).unwrap_or(0)]
    }

    /// The node of that number, if it is at hand.
    pub(crate) fn get(&self, id: FileId) -> Option<Arc<LocalNode>> {
        self.shard(id).lock().get(id)
    }

    /// Enters a new node, unless its object has one already: gives the one that stays.
    pub(crate) fn enter(&self, node: LocalNode) -> Arc<LocalNode> {
        let id = node.id;
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

    /// A name of this object was removed: its space must be free when the last reference goes.
    pub(crate) fn release(&self, id: FileId) {
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

    /// This directory was removed: nobody finds it any more, whoever still holds it.
    pub(crate) fn forget(&self, id: FileId) {
        let forgotten = {
            let mut shard = self.shard(id).lock();
            shard.removed.remove(&id);
            shard.nodes.remove(&id)
        };
        drop(forgotten);
    }

    /// Lets go what nobody refers to and nobody has asked for since the last call.
    pub(crate) fn sweep(&self) {
        for shard in &self.shards {
            let dropped = shard.lock().take_unused(usize::MAX);
            drop(dropped);
        }
    }

    /// Lets go all that nobody refers to.
    pub(crate) fn drop_unreferred(&self) {
        self.sweep();
        self.sweep();
    }

    /// Whether the store is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Lets go everything, for good.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        for shard in &self.shards {
            let nodes = std::mem::take(&mut shard.lock().nodes);
            drop(nodes);
        }
    }
}
