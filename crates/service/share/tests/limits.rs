//! Operations of several clients and both protocols against one budget.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anabranch_share::{
    Access, Call, Caller, Case, Client, Error, File, Identity, NewObject, OpenRequest, Operation, Proof,
    Settings, Share, ShareId, Sharing, Waits,
};
use storage::memory::MemoryStore;
use storage::{Device, FileKind, SetAttributes, Stability, Want};

#[expect(dead_code, reason = "what other tests use")]
mod fronts;

use fronts::{NFS3, SMB, call};

fn share(plan: &str) -> Arc<Share> {
    let mut settings = Settings::new("data");
    settings.provisioned.plan = plan.parse().unwrap();
    Share::new(ShareId(1), settings, Arc::new(MemoryStore::new()))
}

fn caller(operation: &'static Operation, number: u8) -> Call {
    let caller = Caller::new(Identity::unix(0, 0, vec![]), Proof::Stated);
    call(operation, caller.at(Client::Guid([number; 16])))
}

async fn file(share: &Arc<Share>, name: &str) -> File {
    let new = NewObject {
        kind: FileKind::Regular,
        target: Vec::new(),
        device: Device::default(),
        mode: 0o644,
        umask: 0,
        set: SetAttributes::default(),
        want: Want::empty(),
        security: None,
        mode_bounds: false,
    };
    let root = Arc::clone(share.root());
    let made = share.create(&caller(&SMB, 0), &root, name.as_bytes(), Case::Sensitive, new).await.unwrap();
    File::Stateless(made.found.node)
}

/// Reads 4 KiB again and again, so many at a time, until all together have done what was to be done; how often.
async fn read_until_done(
    share: &Arc<Share>,
    caller: &Rc<Call>,
    file: &File,
    depth: usize,
    to_do: &Rc<Cell<u64>>,
) -> u64 {
    let mut readers = tokio::task::JoinSet::new();
    let local = tokio::task::LocalSet::new();
    let mut total = 0;
    local
        .run_until(async {
            for _ in 0..depth {
                let (share, caller, file) = (Arc::clone(share), Rc::clone(caller), file.clone());
                let to_do = Rc::clone(to_do);
                readers.spawn_local(async move {
                    let mut count = 0_u64;
                    while to_do.get() > 0 {
                        share.read(&caller, &file, 0, vec![0; 4096]).await.unwrap();
                        count += to_do.get().min(1); // those who wait at the end are let through later
                        to_do.set(to_do.get().saturating_sub(1));
                        tokio::task::yield_now().await;
                    }
                    count
                });
            }
            while let Some(count) = readers.join_next().await {
                total += count.unwrap();
            }
        })
        .await;
    total
}

#[tokio::test]
async fn both_protocols_draw_on_one_budget_and_get_equal_parts() {
    const ALL: u64 = 1000;
    let share = share("custom iops=500");
    let file = file(&share, "f").await;
    share.write(&caller(&SMB, 1), &file, 0, vec![1; 4096], Stability::Unstable).await.unwrap();
    let (smb, nfs) = (Rc::new(caller(&SMB, 1)), Rc::new(caller(&NFS3, 2)));
    let (begun, to_do) = (Instant::now(), Rc::new(Cell::new(ALL)));
    let (smb, nfs) = tokio::join!(
        read_until_done(&share, &smb, &file, 96, &to_do),
        read_until_done(&share, &nfs, &file, 64, &to_do)
    );
    assert_eq!(smb + nfs, ALL);
    // What was saved for a quarter of a second comes on top. `cargo xtask bench limits` measures whether it is reached.
    assert!(begun.elapsed() > Duration::from_millis(1_700), "{:?}", begun.elapsed());
    assert!(smb.abs_diff(nfs) * 10 <= smb.max(nfs), "{smb} and {nfs}");
    let status = share.limits_status();
    assert_eq!((status.waiting, status.credits), (0, None));
    assert!(status.waits.iter().any(|(limit, waits)| limit.name() == "iops" && waits.operations > 500));
}

#[tokio::test]
async fn what_waits_is_told_with_its_reason_and_can_be_dropped() {
    let share = share("custom write=1KiB/s");
    let file = file(&share, "f").await;
    let smb = caller(&SMB, 1);
    let write = |bytes: usize| share.write(&smb, &file, 0, vec![1; bytes], Stability::Unstable);
    write(1000).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(50), write(10_000)).await;
    assert!(waits.is_err());
    assert_eq!(share.limits_status().waiting, 0, "it has freed its place");
    let before = smb.waits();
    write(1).await.unwrap();
    let spent = smb.waits();
    assert_eq!(before, Waits::default());
    assert_eq!(spent.throttled.map(|limit| limit.name()), Some("write"));
    assert!(spent.limit > Duration::from_millis(500), "{spent:?}");
    assert!(share.read(&smb, &file, 0, vec![0; 1000]).await.is_ok());
}

#[tokio::test]
async fn a_plan_changes_while_operations_wait() {
    let share = share("custom iops=1");
    let file = file(&share, "f").await;
    let smb = caller(&SMB, 1);
    share.take_turn(&smb).await;
    let begun = Instant::now();
    let change = async {
        while share.limits_status().throttled.len() != 1 {
            assert!(begun.elapsed() < PAID_TIME / 2, "nothing waits");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        share.set_plan("unlimited".parse().unwrap(), SystemTime::now()).unwrap();
    };
    let read = async {
        for _ in 0..PAID {
            share.read(&smb, &file, 0, vec![0; 10]).await.unwrap();
        }
    };
    tokio::join!(change, read);
    assert!(begun.elapsed() < PAID_TIME / 2, "{:?}", begun.elapsed());
    assert!(!share.asks_for_turns());
}

#[tokio::test]
async fn the_end_of_a_file_is_not_paid_for() {
    let share = share("custom read=1MiB/s");
    let file = file(&share, "f").await;
    let smb = caller(&SMB, 1);
    let begun = Instant::now();
    for _ in 0..PAID {
        let (_, count) = share.read(&smb, &file, 0, vec![0; 1 << 20]).await.unwrap();
        assert_eq!(count, 0);
    }
    assert!(begun.elapsed() < PAID_TIME / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn who_may_not_read_does_not_wait() {
    let share = share("custom iops=1");
    let file = file(&share, "f").await;
    let other = call(&NFS3, Caller::new(Identity::unix(9, 9, vec![]), Proof::Stated));
    let set = SetAttributes { mode: Some(0o600), ..SetAttributes::default() };
    share.set_attributes(&caller(&SMB, 1), &file, &set, None).await.unwrap();
    let begun = Instant::now();
    for _ in 0..PAID {
        assert!(share.read(&other, &file, 0, vec![0; 1]).await.is_err());
    }
    assert!(begun.elapsed() < PAID_TIME / 2, "{:?}", begun.elapsed());
}

const KIB: usize = 1024;

/// So many operations of a plan that lets one through each second take so long: what is not paid for is done long before.
const PAID: u32 = 60;
const PAID_TIME: Duration = Duration::from_secs(60);

/// Waits until what the share holds was counted.
async fn counted(share: &Arc<Share>) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        share.space(&caller(&SMB, 1), share.root()).await.unwrap();
        if let Some(used) = share.limits_status().used {
            return used;
        }
        assert!(Instant::now() < deadline, "it was not counted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_full_share_is_a_full_disk_and_nothing_is_half_written() {
    let share = share("custom capacity=64KiB");
    let smb = caller(&SMB, 1);
    let (one, two) = (file(&share, "one").await, file(&share, "two").await);
    let write = |file: &File, offset: usize, bytes: usize| {
        let (share, smb, file) = (Arc::clone(&share), &smb, file.clone());
        async move { share.write(smb, &file, offset as u64, vec![1; bytes], Stability::Unstable).await }
    };
    assert_eq!(counted(&share).await, 0);
    write(&one, 0, 40 * KIB).await.unwrap();
    let space = share.space(&smb, share.root()).await.unwrap();
    assert_eq!((space.total, space.free), (64 * KIB as u64, 24 * KIB as u64));
    let full = Err(Error::PlanFull);
    assert_eq!(write(&two, 0, 25 * KIB).await.map(|_| ()), full);
    assert_eq!(share.attributes(&smb, two.node(), Want::empty()).await.unwrap().size, 0);
    let grow = |size| SetAttributes { size: Some(size), ..SetAttributes::default() };
    let grown = share.set_attributes(&smb, &two, &grow(25 * KIB as u64), None).await;
    assert_eq!(grown.map(|_| ()), full);
    // To the last byte, over what is there already, and again when something was deleted or cut off.
    write(&two, 0, 24 * KIB).await.unwrap();
    write(&one, 0, 40 * KIB).await.unwrap();
    assert_eq!(write(&one, 40 * KIB, 1).await.map(|_| ()), full);
    share.set_attributes(&smb, &one, &grow(0), None).await.unwrap();
    write(&two, 24 * KIB, 40 * KIB).await.unwrap();
    share.remove(&smb, share.root(), b"two", false).await.unwrap();
    assert_eq!(share.limits_status().used, Some(0));
    write(&one, 0, 64 * KIB).await.unwrap();
}

#[tokio::test]
async fn a_size_below_what_is_used_loses_nothing() {
    let share = share("custom capacity=64KiB");
    let smb = caller(&SMB, 1);
    let one = file(&share, "one").await;
    assert_eq!(counted(&share).await, 0);
    share.write(&smb, &one, 0, vec![7; 32 * KIB], Stability::Unstable).await.unwrap();
    assert_eq!(counted(&share).await, 32 * KIB as u64);
    share.set_plan("custom capacity=16KiB".parse().unwrap(), SystemTime::now()).unwrap();
    let space = share.space(&smb, share.root()).await.unwrap();
    assert_eq!((space.total, space.free), (16 * KIB as u64, 0));
    let (data, count) = share.read(&smb, &one, 0, vec![0; 32 * KIB]).await.unwrap();
    assert!(count == 32 * KIB && data.iter().all(|byte| *byte == 7));
    let more = share.write(&smb, &one, 32 * KIB as u64, vec![7; 1], Stability::Unstable).await;
    assert_eq!(more.map(|_| ()), Err(Error::PlanFull));
}

#[tokio::test]
async fn writers_of_one_file_are_counted_once() {
    let share = share("custom capacity=64KiB");
    let smb = caller(&SMB, 1);
    let one = file(&share, "one").await;
    counted(&share).await;
    for _ in 0..20 {
        let local = tokio::task::LocalSet::new();
        let write_all = async {
            let mut writers = tokio::task::JoinSet::new();
            for block in (0..16).rev() {
                let (share, one) = (Arc::clone(&share), one.clone());
                writers.spawn_local(async move {
                    let smb = caller(&SMB, 1);
                    share.write(&smb, &one, block * 4096, vec![1; 4 * KIB], Stability::Data).await
                });
            }
            while let Some(written) = writers.join_next().await {
                written.unwrap().unwrap();
            }
        };
        local.run_until(write_all).await;
        assert_eq!(share.limits_status().used, Some(64 * KIB as u64));
        let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
        share.set_attributes(&smb, &one, &cut, None).await.unwrap();
        assert_eq!(share.limits_status().used, Some(0));
    }
}

#[tokio::test]
async fn copies_and_clones_count_as_read_and_as_written() {
    const BYTES: usize = 4 << 20;
    let share = share("unlimited");
    let (from, to) = (file(&share, "from").await, file(&share, "to").await);
    let smb = caller(&SMB, 1);
    share.write(&smb, &from, 0, vec![7; BYTES], Stability::Unstable).await.unwrap();
    let copied = async |plan: &str, clone: bool| {
        share.set_plan(plan.parse().unwrap(), SystemTime::now()).unwrap();
        let begun = Instant::now();
        if clone {
            let rule = anabranch_share::CloneRule::Grows;
            share.clone_range(&smb, (&from, 0), (&to, 0), BYTES as u64, rule).await.unwrap();
        } else {
            for at in (0..BYTES as u64).step_by(1 << 20) {
                share.copy_range(&smb, (&from, at), (&to, at), 1 << 20).await.unwrap();
            }
        }
        begun.elapsed()
    };
    // What goes through in a second. What was saved, and what is caught up on, are taken off: a quarter of a second's worth each.
    for plan in ["custom read=4MiB/s", "custom write=4MiB/s", "custom throughput=8MiB/s"] {
        for clone in [false, true] {
            let took = copied(plan, clone).await;
            assert!(took >= Duration::from_millis(450), "{plan}: {took:?}");
        }
    }
    // What fails is not paid for: the budget is as full as before.
    share.set_plan("custom write=1MiB/s".parse().unwrap(), SystemTime::now()).unwrap();
    let begun = Instant::now();
    for _ in 0..PAID {
        let behind = share.copy_range(&smb, (&from, BYTES as u64), (&to, 0), 1 << 20).await;
        assert_eq!(behind, Err(storage::Error::InvalidArgument.into()));
        let behind = (&from, BYTES as u64);
        let rule = anabranch_share::CloneRule::Grows;
        assert!(share.clone_range(&smb, behind, (&to, 0), 1 << 40, rule).await.is_err());
    }
    assert!(begun.elapsed() < PAID_TIME / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_write_of_nothing_counts_as_an_operation() {
    let share = share("custom iops=1");
    let File::Stateless(node) = file(&share, "f").await else { panic!("it is not open") };
    let smb = caller(&SMB, 1);
    let found = share.lookup(&smb, share.root(), b"f", Case::Sensitive, Want::empty()).await.unwrap();
    assert_eq!(found.node.id(), node.id());
    let request = OpenRequest::new(Access::WRITE_DATA, Sharing::all());
    let open = share.open(&smb, &found, &request).await.unwrap();
    let all = async {
        for _ in 0..PAID {
            share.write_nothing(&smb, &open).await.unwrap();
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(100), all).await.is_err(), "nothing waits");
    let readable = share.open(&smb, &found, &OpenRequest::new(Access::READ_DATA, Sharing::all())).await;
    let refused = share.write_nothing(&smb, &readable.unwrap()).await;
    assert_eq!(refused.unwrap_err(), Error::NotOpenedForThis);
}
