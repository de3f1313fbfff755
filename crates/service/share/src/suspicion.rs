//! Looks at what clients write, empty, remove and rename, for signs of ransomware ([`crate::vigilance`]).
//!
//! The server reads what a file held before only where something else is suspicious already, or where that is in memory: who
//! encrypts a file has just read it. All of this is done before the change, so that what was there can still be read.

use std::sync::Arc;

use ransomware::{Before, First, Look, SAMPLE_BYTES, look};
use storage::{Attributes, FileKind, MayWait, NodeRef, ObjectId, View, Wait};

use crate::agreement::Opener;
use crate::schedule::Work;
use crate::vigilance::RansomwareAlarm;
use crate::{Call, Caller, File, Location, Share};

/// A file that goes, what it holds, and the client that removes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Going {
    client: Opener,
    dir: ObjectId,
    held: Look,
}

impl Share {
    /// Looks at what is written to a file. None unless it looks random, and the client has not written to the file for a while.
    #[inline]
    pub(crate) fn notices_noise(
        &self,
        call: &Call,
        file: &File,
        offset: u64,
        data: &[u8],
    ) -> Option<(Opener, First)> {
        if !self.vigilance.is_on() {
            return None;
        }
        let client = client_of(&call.caller)?;
        let is_examined = match file {
            // What is in a named stream nobody misses.
            File::Open(open) => open.file().is_some() || !open.begins_to_be_examined(),
            File::Stateless(_) => false,
        };
        if is_examined {
            return None;
        }
        let first = self.vigilance.writes(client, file.node().id())?;
        (look(data, offset) == Look::Noise).then_some((client, first))
    }

    /// Counts a write of what looks random, by what it replaces.
    pub(crate) async fn suspects(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        offset: u64,
        (client, first): (Opener, First),
    ) {
        let before = match first.emptied {
            Some(held) => Ok(Before::Held(held)),
            None => {
                let node = Arc::clone(node);
                self.run(call, Work::Blocking, move |share, may| Ok(share.before(&node, offset, may)?)).await
            }
        };
        // A file that cannot be read, or has no name any more, is no sign.
        let before = before.unwrap_or(Before::Held(Look::Noise));
        self.tell_ransomware(self.vigilance.noise((client, &call.caller), node.id(), before));
    }

    fn before(&self, node: &NodeRef, offset: u64, may: MayWait<'_>) -> storage::Result<Before<ObjectId>> {
        if let Some(held) = held_at(node, offset, Wait::May(may))? {
            return Ok(Before::Held(held));
        }
        let location = self.agreement.location_of(node.id());
        let location = location.or_else(|| self.namespace.locate(node, may)).ok_or(storage::Error::Stale)?;
        Ok(Before::Nothing(location.parent.id()))
    }

    /// Notes what a file holds that is about to be emptied, if that is in memory.
    pub(crate) fn notes_emptying(&self, caller: &Caller, node: &NodeRef, before: &Attributes) {
        let is_file = before.kind == FileKind::Regular && before.size > 0;
        if !self.vigilance.is_on() || !is_file || !self.store.is_near() {
            return;
        }
        if let (Some(client), Ok(Some(held))) =
            (client_of(caller), held_at(node, 0, Wait::Never(View::FRESH)))
        {
            self.vigilance.empties(client, node.id(), held);
        }
    }

    /// Looks at a file that a client is about to remove from a directory. None unless it matters what it holds.
    pub(crate) fn looks_at_going(
        &self,
        client: Option<Opener>,
        dir: &NodeRef,
        (node, attributes): (&NodeRef, &Attributes),
        wait: Wait<'_>,
    ) -> Option<Going> {
        if !self.vigilance.is_on() || attributes.kind != FileKind::Regular || attributes.links > 1 {
            return None;
        }
        let dir = dir.id();
        let client = client.filter(|client| self.vigilance.heeds_removals(*client, dir))?;
        let held = held_at(node, 0, wait).ok()??;
        Some(Going { client, dir, held })
    }

    /// Counts a file that is gone.
    pub(crate) fn notes_gone(&self, going: Option<Going>) {
        if let Some(Going { client, dir, held }) = going {
            self.tell_ransomware(self.vigilance.removes(client, dir, held));
        }
    }

    /// Looks at a file that another is about to replace. None unless it matters what it holds.
    pub(crate) fn looks_at_replaced(
        &self,
        caller: &Caller,
        by: &NodeRef,
        replaced: Option<&(NodeRef, Attributes)>,
        wait: Wait<'_>,
    ) -> Option<Look> {
        let (replaced, attributes) = replaced?;
        if !self.vigilance.is_on() || attributes.kind != FileKind::Regular {
            return None;
        }
        client_of(caller).filter(|client| self.vigilance.has_made(*client, by.id()))?;
        held_at(replaced, 0, wait).ok()?
    }

    /// Counts a file that was renamed, perhaps in the place of another that held this.
    pub(crate) fn notes_renamed(
        &self,
        caller: &Caller,
        (node, kind): (&NodeRef, FileKind),
        (from, to): (&Location, &Location),
        replaced: Option<Look>,
    ) {
        if !self.vigilance.is_on() || kind != FileKind::Regular {
            return;
        }
        if let Some(client) = client_of(caller) {
            let names = (&from.name[..], &to.name[..]);
            let renamed = (node.id(), to.parent.id());
            self.tell_ransomware(self.vigilance.renames((client, caller), renamed, names, replaced));
        }
    }

    #[cold]
    fn tell_ransomware(&self, alarm: Option<RansomwareAlarm>) {
        let Some(RansomwareAlarm { suspect, count, suffix, is_slowed, .. }) = alarm else { return };
        self.slows_suspects();
        tracing::error!(
            share = self.name(),
            who = suspect.as_ref().map(tracing::field::display),
            overwritten = count.overwritten,
            replaced = count.replaced,
            renamed = count.renamed,
            suffix,
            slowed = is_slowed,
            "a client replaces the contents of files as ransomware does"
        );
    }

    /// Slows the clients about which there are alarms, and no others.
    pub(crate) fn slows_suspects(&self) {
        self.budget.slow(|| {
            let is_slowing = self.vigilance.rule().is_some_and(|rule| rule.slow);
            if is_slowing { self.vigilance.clients() } else { Vec::new() }
        });
    }
}

/// The client by which what a caller does is counted. None for the server itself.
fn client_of(caller: &Caller) -> Option<Opener> {
    let [client, _] = caller.openers;
    client
}

/// What a file holds at this offset. None: nothing, or zeros only.
fn held_at(node: &NodeRef, offset: u64, wait: Wait<'_>) -> storage::Result<Option<Look>> {
    let mut into = [0; SAMPLE_BYTES];
    let count = node.read(offset, &mut into, wait)?;
    let held = into.get(..count).unwrap_or_default();
    Ok(held.iter().any(|byte| *byte != 0).then(|| look(held, offset)))
}
