//! Clients that replace the contents of files as ransomware does.

use std::time::Instant;

use anabranch_share::{Client, Opener, RansomwareAlarm, RansomwareCount};

use super::*;

const FILES: usize = 3;

fn share(rule: &str) -> Arc<Share> {
    let ransomware = Some(format!("{rule} within=60m").parse().unwrap());
    let settings = Settings { ransomware, ..Settings::new("data") };
    Share::new(ShareId(1), settings, Arc::new(MemoryStore::new()))
}

/// A call of a client that is counted by its address.
fn client(number: u8) -> Call {
    let caller = Caller::new(Identity::unix(0, 0, vec![]), Proof::Password("zoe".into()));
    let machine = Client::Address([127, 0, 0, number].into());
    call(&SMB, caller.at(machine).counted_for(Opener::named(machine)))
}

/// Bytes that look random: of a xorshift generator.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed * 7919 + 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    std::iter::repeat_with(next).take(6000).collect()
}

fn text() -> Vec<u8> {
    b"what somebody has written\n".repeat(300)
}

async fn file(share: &Arc<Share>, who: &Call, name: &str, data: Vec<u8>) -> Found {
    let found = make(share, who, name, FileKind::Regular, 0o644).await;
    write(share, who, &File::Stateless(found.node), data).await;
    find(share, who, name).await.unwrap()
}

async fn write(share: &Arc<Share>, who: &Call, file: &File, data: Vec<u8>) {
    share.write(who, file, 0, data, Stability::Unstable).await.unwrap();
}

async fn remove(share: &Arc<Share>, who: &Call, name: &str) {
    let dir = find(share, who, "").await.unwrap().node;
    share.remove(who, &dir, name.as_bytes(), false).await.unwrap();
}

async fn rename(share: &Arc<Share>, who: &Call, from: &str, to: &str) {
    let dir = find(share, who, "").await.unwrap().node;
    let how = RenameHow { replace: Replace::Yes, ..MOVE };
    share.rename(who, at(&dir, from.as_bytes()), at(&dir, to.as_bytes()), how).await.unwrap();
}

/// Files of somebody else.
async fn files(share: &Arc<Share>) -> Vec<Found> {
    let mut files = Vec::new();
    for number in 0..FILES {
        files.push(file(share, &client(9), &format!("{number}"), text()).await);
    }
    files
}

fn only(share: &Arc<Share>) -> RansomwareAlarm {
    let mut alarms = share.ransomware_alarms();
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    alarms.remove(0)
}

fn count(share: &Arc<Share>) -> RansomwareCount {
    only(share).count
}

#[tokio::test]
async fn who_writes_over_files_is_told_once_with_the_name() {
    let share = share("on files=3 snapshot=7d");
    for (number, found) in files(&share).await.into_iter().enumerate() {
        assert_eq!(share.ransomware_alarms(), []);
        write(&share, &client(1), &File::Stateless(found.node), noise(number as u64)).await;
    }
    let alarm = only(&share);
    assert_eq!(alarm.count, RansomwareCount { overwritten: 3, ..RansomwareCount::default() });
    let suspect = alarm.suspect.unwrap();
    assert_eq!((suspect.user.as_deref(), suspect.machine.to_string().as_str()), (Some("zoe"), "127.0.0.1"));
    assert_eq!(alarm.snapshot_protected_for, Some(Duration::from_secs(7 * 24 * 3600)));
    assert_eq!((share.take_ransomware_alarms().len(), share.take_ransomware_alarms().len()), (1, 0));
    assert!(share.end_ransomware_alarm(alarm.number) && !share.end_ransomware_alarm(alarm.number));
    assert_eq!(share.ransomware_alarms(), []);
}

#[tokio::test]
async fn opens_and_files_that_were_emptied_count_too() {
    let share = share("on files=3");
    let found = files(&share).await;
    // Open, and written over.
    let opened = open(&share, &found[0], Access::WRITE_DATA, Sharing::all()).unwrap();
    write(&share, &client(1), &File::Open(Arc::clone(&opened)), noise(1)).await;
    write(&share, &client(1), &File::Open(Arc::clone(&opened)), noise(2)).await;
    share.close(&client(1), &opened).await.unwrap();
    // Emptied by a change of the size.
    let emptied = File::Stateless(found[1].node.clone());
    let set = SetAttributes { size: Some(0), ..SetAttributes::default() };
    share.set_attributes(&client(1), &emptied, &set, None).await.unwrap();
    write(&share, &client(1), &emptied, noise(3)).await;
    // Emptied by the open.
    let request = OpenRequest::new(Access::WRITE_DATA, Sharing::all());
    let overwriting = share.open_overwriting(&client(1), &found[2], &request, None).await.unwrap();
    let Admission::Done((opened, _)) = overwriting else { panic!("nobody has it open") };
    write(&share, &client(1), &File::Open(Arc::clone(&opened)), noise(4)).await;
    share.close(&client(1), &opened).await.unwrap();
    assert_eq!(count(&share), RansomwareCount { overwritten: 3, ..RansomwareCount::default() });
}

#[tokio::test]
async fn new_files_in_the_place_of_others_count() {
    let share = share("on files=3");
    let found = files(&share).await;
    for number in 0..FILES {
        file(&share, &client(1), &format!("{number}.locked"), noise(number as u64)).await;
    }
    // Removed, as NFS does it.
    remove(&share, &client(1), "0").await;
    // Deleted when it is closed, as SMB does it.
    let mut request = OpenRequest::new(Access::DELETE, Sharing::all());
    request.openers = client(1).caller.openers;
    let opened = share.open(&client(1), &found[1], &request).await.unwrap();
    share.set_delete_pending(&client(1), &opened, true).await.unwrap();
    share.close(&client(1), &opened).await.unwrap();
    // Replaced by a rename.
    rename(&share, &client(1), "2.locked", "2").await;
    assert_eq!(count(&share), RansomwareCount { replaced: 3, ..RansomwareCount::default() });
}

#[tokio::test]
async fn one_unusual_suffix_for_files_of_several_kinds_counts() {
    let share = share("on files=3");
    for name in ["a.txt", "b.doc", "c.jpg"] {
        file(&share, &client(9), name, text()).await;
        rename(&share, &client(1), name, &format!("{name}.crypted")).await;
    }
    let alarm = only(&share);
    assert_eq!(alarm.count, RansomwareCount { renamed: 3, ..RansomwareCount::default() });
    assert_eq!(alarm.suffix.as_deref(), Some("crypted"));
}

#[tokio::test]
async fn ordinary_work_raises_no_alarm() {
    let share = share("on files=2");
    let me = client(1);
    for number in 0..20 {
        let jpeg = || [b"\xff\xd8\xff", &noise(number)[..]].concat();
        // Pictures are imported and retouched, texts are saved by way of another file.
        let picture = file(&share, &me, &format!("{number}.jpg"), jpeg()).await;
        write(&share, &client(2), &File::Stateless(picture.node), jpeg()).await;
        file(&share, &me, &format!("{number}.txt"), text()).await;
        file(&share, &client(2), "saved", text()).await;
        rename(&share, &client(2), "saved", &format!("{number}.txt")).await;
        // A backup, encrypted by its program: it grows, and what is old goes.
        file(&share, &client(3), &format!("pack{number}"), noise(number)).await;
        if number % 2 == 1 {
            remove(&share, &client(3), &format!("pack{}", number - 1)).await;
        }
    }
    // Somebody else removes files meanwhile.
    for number in 0..20 {
        remove(&share, &client(4), &format!("{number}.txt")).await;
    }
    assert_eq!(share.ransomware_alarms(), []);
}

#[tokio::test]
async fn what_is_not_watched_raises_no_alarm() {
    let share = share("on files=2");
    share.set_ransomware_rule(None);
    for (number, found) in files(&share).await.into_iter().enumerate() {
        write(&share, &client(1), &File::Stateless(found.node), noise(number as u64)).await;
    }
    share.set_ransomware_rule(Some("on files=2".parse().unwrap()));
    assert_eq!(share.ransomware_alarms(), []);
    // The server itself.
    for (number, found) in files_of_server(&share).await.into_iter().enumerate() {
        write(&share, &root(), &File::Stateless(found.node), noise(number as u64)).await;
    }
    assert_eq!(share.ransomware_alarms(), []);
}

async fn files_of_server(share: &Arc<Share>) -> Vec<Found> {
    let mut files = Vec::new();
    for number in 0..FILES {
        files.push(file(share, &root(), &format!("s{number}"), text()).await);
    }
    files
}

/// Whether an operation of this client has its turn at once.
fn is_free(share: &Arc<Share>, who: &Call) -> bool {
    let turn = pin!(share.take_turn(who));
    turn.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn a_suspect_is_slowed_until_the_alarm_ends() {
    let share = share("on files=3 slow");
    for (number, found) in files(&share).await.into_iter().enumerate() {
        assert!(is_free(&share, &client(1)));
        write(&share, &client(1), &File::Stateless(found.node), noise(number as u64)).await;
    }
    assert!(only(&share).is_slowed);
    assert!(!is_free(&share, &client(1)) && is_free(&share, &client(2)));
    let begun = Instant::now();
    let me = client(1);
    tokio::join!(share.take_turn(&me), share.take_turn(&me));
    assert!(begun.elapsed() >= Duration::from_secs(2), "one after the other");
    assert!(me.waits().limit >= Duration::from_secs(3) && me.waits().throttled.is_none(), "{:?}", me.waits());
    share.set_ransomware_rule(Some("on files=3".parse().unwrap()));
    assert!(is_free(&share, &client(1)) && !share.asks_for_turns());
    share.set_ransomware_rule(Some("on files=3 slow".parse().unwrap()));
    assert!(!is_free(&share, &client(1)));
    assert!(share.end_ransomware_alarm(1));
    assert!(is_free(&share, &client(1)));
}
