//! The session: how it is made, how requests use its slots, and what is reclaimed after a restart.

use nfs_wire::v4::bind_conn_to_session::{self, ClientDirection};
use nfs_wire::v4::compound::{ArgOp, ResOp, encode_args};
use nfs_wire::v4::create_session::{self, ChannelAttributes, Flags};
use nfs_wire::v4::exchange_id::{self, ClientOwner, StateProtectArgs};
use nfs_wire::v4::open::{Claim, DelegationType, How, Want};
use nfs_wire::v4::reclaim_complete;
use nfs_wire::v4::sequence::{self, StatusFlags};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{OwnerId, SecurityParameters, Verifier};

use super::answer::{called, found, is_under_way, locked, opened, results};
use super::{COMPOUND, Client, HIGHEST_SLOT, IN_TIME, LEASE, Lost, Open, SLOTS, Session, look, put};
use crate::machine;
use crate::rpc::Asked;
use crate::servers::SHARE;
use crate::world::{FILES, file_name};

/// The flags with which the server reports revoked state (RFC 8881 18.46.3).
const REVOKED: StatusFlags = StatusFlags::EXPIRED_ALL_STATE_REVOKED
    .union(StatusFlags::EXPIRED_SOME_STATE_REVOKED)
    .union(StatusFlags::ADMIN_STATE_REVOKED)
    .union(StatusFlags::RECALLABLE_STATE_REVOKED);

impl Client {
    /// Makes calls that need no session, or that contain a SEQUENCE already.
    pub(super) async fn ask(&mut self, calls: &[Asked]) -> Result<Vec<Vec<u8>>, Lost> {
        self.asked = machine::elapsed();
        let recalled = &mut self.recalled;
        let mut answers = self.rpc.ask(calls, &mut |call| called(call, recalled)).await;
        while let Some(answers) = &mut answers {
            let (which, again): (Vec<_>, Vec<_>) = (0..)
                .zip(calls)
                .filter(|(at, _)| is_under_way(&answers[*at]))
                .map(|(at, call)| (at, call.clone()))
                .unzip();
            if again.is_empty() {
                break;
            }
            self.rpc.idle(1000, &mut |call| called(call, recalled)).await;
            let later = self.rpc.ask(&again, &mut |call| called(call, recalled)).await.ok_or(Lost::Over)?;
            which.into_iter().zip(later).for_each(|(at, answer): (usize, _)| answers[at] = answer);
        }
        for stateid in &self.recalled {
            for open in self.opens.iter_mut().flatten() {
                if open.delegation.is_some_and(|delegation| delegation.other == stateid.other) {
                    open.cached.clear();
                }
            }
        }
        answers.ok_or(Lost::Over)
    }

    /// Makes a call without SEQUENCE.
    pub(super) async fn alone(&mut self, operation: ArgOp<'_>) -> Result<Vec<u8>, Lost> {
        let call = self.rpc.call(COMPOUND, |w| encode_args(w, "", 1, &[operation]));
        self.ask(&[call]).await?.pop().ok_or(Lost::Over)
    }

    /// Builds a COMPOUND for a slot, and counts the request.
    pub(super) fn on_slot(&mut self, slot: usize, operations: &[ArgOp<'_>]) -> Option<Asked> {
        let session = self.session.as_mut()?;
        let sequence = sequence::Args {
            session_id: session.id,
            sequence_id: session.slots[slot],
            slot_id: u32::try_from(slot).unwrap_or(0),
            highest_slot_id: HIGHEST_SLOT,
            cache_this: true,
        };
        session.slots[slot] = session.slots[slot].wrapping_add(1);
        let all = [&[ArgOp::Sequence(sequence)], operations].concat();
        Some(self.rpc.call(COMPOUND, |w| encode_args(w, "", 1, &all)))
    }

    /// Sends one COMPOUND on the first slot.
    pub(super) async fn compound(&mut self, operations: &[ArgOp<'_>]) -> Result<Vec<u8>, Lost> {
        let call = self.on_slot(0, operations).ok_or(Lost::Session)?;
        let answer = self.ask(&[call]).await?.pop().ok_or(Lost::Over)?;
        self.has_session(&answer)?;
        Ok(answer)
    }

    /// Whether this reply shows that the server knows the session and that the client has its lease.
    pub(super) fn has_session(&mut self, answer: &[u8]) -> Result<(), Lost> {
        match results(answer) {
            Some((_, all)) => match all.first() {
                Some(ResOp::Sequence(Ok(sequence))) => {
                    let is_late = self.asked.saturating_sub(self.renewed) > LEASE;
                    if is_late || sequence.status_flags.intersects(REVOKED) {
                        return Err(Lost::Lease);
                    }
                    self.renewed = self.asked;
                    self.world.locks.borrow_mut().renewed(self.number, self.renewed + LEASE);
                    Ok(())
                }
                Some(ResOp::Sequence(Err(
                    Status::BadSession | Status::DeadSession | Status::StaleClientId | Status::Expired,
                ))) => Err(Lost::Session),
                other => {
                    self.world.fail(self.number, format!("SEQUENCE: {other:?}"));
                    Err(Lost::Over)
                }
            },
            None => {
                self.world.fail(self.number, "an answer that cannot be decoded".to_owned());
                Err(Lost::Over)
            }
        }
    }

    /// Begins a new life after the client has lost its lease and everything that it held.
    pub(super) fn begin_anew(&mut self) {
        for file in 0..FILES {
            self.opens[file] = None;
            self.world.locks.borrow_mut().closed(self.owner(file));
        }
        self.life = self.life.wrapping_add(1);
        self.lose_session();
    }

    pub(super) fn lose_session(&mut self) {
        self.world.note(self.number, "nfs4 session lost", &[]);
        self.world.locks.borrow_mut().uncertain(self.number);
        self.session = None;
        self.rpc.greeting = None;
        self.recalled.clear();
    }

    /// Makes a session: EXCHANGE_ID, CREATE_SESSION, reclaims of the earlier state, RECLAIM_COMPLETE.
    pub(super) async fn establish(&mut self) -> Result<(), Lost> {
        let run = self.world.servers.borrow().runs();
        let owner = format!("simulated {}", self.number);
        let arguments = exchange_id::Args {
            client_owner: ClientOwner {
                verifier: Verifier([self.life; 8]),
                owner_id: OwnerId(owner.as_bytes()),
            },
            flags: exchange_id::Flags::USE_NON_PNFS,
            state_protect: StateProtectArgs::None,
            implementation: None,
        };
        let answer = self.alone(ArgOp::ExchangeId(arguments)).await?;
        let Some((client_id, sequence_id)) = results(&answer).and_then(|(_, all)| match all.first() {
            Some(ResOp::ExchangeId(Ok(made))) => Some((made.client_id, made.sequence_id)),
            _ => None,
        }) else {
            self.rpc.idle(500, &mut |_| None).await;
            return Ok(());
        };
        let channel = ChannelAttributes {
            header_pad_bytes: 0,
            request_bytes_max: 65536,
            response_bytes_max: 65536,
            response_cached_bytes_max: 8192,
            operations_max: 16,
            requests_max: HIGHEST_SLOT + 1,
            rdma_ird: None,
        };
        let arguments = create_session::Args {
            client_id,
            sequence_id,
            flags: Flags::CONN_BACK_CHAN,
            fore_channel: channel,
            back_channel: ChannelAttributes { requests_max: 1, ..channel },
            callback_program: 0x4000_0000,
            callback_security: vec![SecurityParameters::None],
        };
        let answer = self.alone(ArgOp::CreateSession(arguments)).await?;
        let Some(id) = results(&answer).and_then(|(_, all)| match all.first() {
            Some(ResOp::CreateSession(Ok(made))) => Some(made.session_id),
            _ => None,
        }) else {
            self.rpc.idle(500, &mut |_| None).await;
            return Ok(());
        };
        let bind = bind_conn_to_session::Args {
            session_id: id,
            direction: ClientDirection::ForeOrBoth,
            use_rdma: false,
        };
        self.rpc.greeting =
            Some(self.rpc.call(COMPOUND, |w| encode_args(w, "", 1, &[ArgOp::BindConnToSession(bind)])));
        let was_away = self.session.is_none();
        // A client that was silent for longer than its lease before the restart may have lost its state to others.
        let had_lease = self.world.servers.borrow().started().saturating_sub(self.renewed) < LEASE;
        self.renewed = self.asked;
        self.session = Some(Session { client_id, id, slots: [1; SLOTS], run });
        self.world.note(self.number, "nfs4 session", &[client_id.0, was_away.into()]);
        self.reclaim(had_lease).await?;
        let done = [ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })];
        let answer = self.compound(&done).await?;
        let _ = self.outcome("nfs4 reclaim complete", &answer, &[Status::CompleteAlready, Status::Delay]);
        self.held_in = run;
        if self.files.is_empty() { self.find_files().await } else { Ok(()) }
    }

    /// Reclaims what the client held (RFC 8881 8.4.2.1). Refused state and delegations are gone.
    pub(super) async fn reclaim(&mut self, had_lease: bool) -> Result<(), Lost> {
        for file in 0..FILES {
            let Some(before) = self.opens[file].take() else { continue };
            let got = self.reclaim_open(file, &before).await;
            let owner = self.owner(file);
            match got {
                Ok(Some(open)) => {
                    let again = self.world.locks.borrow_mut().certain_again(owner);
                    self.world.check(self.number, again);
                    self.opens[file] = Some(open);
                }
                Ok(None) => {
                    let (run, started) = {
                        let servers = self.world.servers.borrow();
                        (servers.runs(), servers.started())
                    };
                    let is_in_time = machine::elapsed().saturating_sub(started) < IN_TIME;
                    if had_lease && self.held_in.wrapping_add(1) == run && is_in_time {
                        self.world.fail(self.number, format!("file {file} cannot be reclaimed"));
                    }
                    self.world.locks.borrow_mut().closed(owner);
                }
                Err(lost) => {
                    self.opens[file] = Some(before);
                    return Err(lost);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn reclaim_open(&mut self, file: usize, before: &Open) -> Result<Option<Open>, Lost> {
        const GONE: &[Status] =
            &[Status::NoGrace, Status::ReclaimBad, Status::ReclaimConflict, Status::Delay, Status::Io];
        let object = self.files[file].clone();
        let claim = Claim::Previous(DelegationType::None);
        let answer = self.open_as(&object, claim, How::NoCreate, Want::None).await?;
        if self.outcome("nfs4 reclaim open", &answer, GONE).is_err() {
            return Ok(None);
        }
        let Some(mut open) = opened(&answer) else { return Ok(None) };
        for range in &before.locked {
            let answer = self.lock_as(file, &open, range, true).await?;
            if self.outcome("nfs4 reclaim lock", &answer, GONE).is_err() {
                return Ok(None);
            }
            open.locks = locked(&answer);
            open.locked.push(range.clone());
        }
        Ok(Some(open))
    }

    pub(super) async fn find_files(&mut self) -> Result<(), Lost> {
        let answer = self.compound(&[ArgOp::PutRootFh, look(SHARE.as_bytes()), ArgOp::GetFh]).await?;
        self.root = found(&answer).unwrap_or_default();
        let mut files = Vec::new();
        for file in 0..FILES {
            let (root, name) = (self.root.clone(), file_name(file));
            let answer = self.compound(&[put(&root), look(name.as_bytes()), ArgOp::GetFh]).await?;
            let Some(object) = found(&answer) else {
                self.world.fail(self.number, format!("{name} is not found"));
                return Err(Lost::Over);
            };
            files.push(object);
        }
        self.files = files;
        Ok(())
    }
}
