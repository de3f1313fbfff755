//! The tables on the disk, by their names and types: those of every database that is in use. A change of one makes a server forget.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use anabranch_state::{
    AbandonedDirectory, DestinationsRecord, DoneRecord, LockHostTable, NfsClientTable, PasswordKeys,
    PersistentOpenTable, PolicyRecord, PoolDirectory, ProtectedSnapshot, ReplicationRecord, RestoreRecord,
    Secrets, ShareRecord, State, TokenRecord, UserRecord,
};
use control::Token;
use control::shares::Rules;
use control::tokens::Scope;
use nfs_server::{ClientRecord, ClientRecords, HostRecord, HostRecords};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use share::Terms;
use smb_server::{Change, PersistentOpen, PersistentOpens};

const ABOUT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("about");
const SHARES: TableDefinition<'_, &str, u32> = TableDefinition::new("shares");
const ACCOUNTS: TableDefinition<'_, &str, [u8; 16]> = TableDefinition::new("accounts");
const CREDITS: TableDefinition<'_, &str, u64> = TableDefinition::new("burst-credits");
const ACCOUNT_KEYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("account-keys");
const MADE_SHARES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("made-shares");
const ADDED_USERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("added-users");
const TOKENS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tokens");
const PROTECTED: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("protected-snapshots");
const POLICIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("snapshot-policies");
const RESTORES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("restores");
const REPLICATIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("replications");
const DESTINATIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("replication-destinations");
const GRACES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("quota-graces");
const DONE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("snapshots-done");
const DELETED: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("deleted-shares");
const ABANDONED: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("abandoned-directories");
const OPENS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("persistent-opens");
const CLIENTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("nfs-clients");
const LOCK_HOSTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("nfs-lock-hosts");
const HANDLES: TableDefinition<'_, u64, (u64, u64, u64, &[u8])> =
    TableDefinition::new("storage-local.data.names");

const USER: &str = r#"{"name":"Anna","nt_hash":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7],"uid":1000,"gid":null,"groups":null,"disabled":false}"#;
const SHARE: &str = r#"{"name":"Data","directory":"/srv","terms":1,"plan":"","increased":null,"uncached":false,"rules":{"clients":["10.0.0.0/8"]},"comment":"files"}"#;

/// The beginning of the keys in a record; the bytes of the keys follow.
const KEYS: &str = r#"{"realm":"FILES","salt":"FILESAnna","aes256_sha384":[1,1,"#;

/// What a program kept that made no keys.
fn hash(byte: u8) -> Secrets {
    Secrets { nt_hash: Some([byte; 16]), keys: None }
}

fn keys() -> PasswordKeys {
    PasswordKeys {
        realm: "FILES".to_owned(),
        salt: "FILESAnna".to_owned(),
        aes256_sha384: [1; 32].into(),
        aes256_sha1: [2; 32].into(),
    }
}

/// The host "a" at 10.0.0.7, which knows the server as 10.0.0.1.
const LOCK_HOST: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x07\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01a";

fn lock_host() -> HostRecord {
    HostRecord { name: b"a".to_vec(), address: [10, 0, 0, 7].into(), server: [10, 0, 0, 1].into() }
}

fn protected_snapshot() -> ProtectedSnapshot {
    let identity = Some("number:7".to_owned());
    ProtectedSnapshot { directory: "/srv".into(), name: "a".to_owned(), until: 5, identity }
}

fn open(directory: &Path) -> Database {
    Database::open(anabranch_state::file(directory)).unwrap()
}

/// Makes a database such as servers have, with the types that are on the disk.
fn written_by_hand(directory: &Path) {
    drop(State::open(directory).unwrap());
    let database = open(directory);
    let transaction = database.begin_write().unwrap();
    transaction.open_table(ABOUT).unwrap().insert("server-guid", [3; 16].as_slice()).unwrap();
    transaction.open_table(ABOUT).unwrap().insert("last-share", 9_u32.to_le_bytes().as_slice()).unwrap();
    transaction.open_table(SHARES).unwrap().insert("data", 2).unwrap();
    transaction.open_table(ACCOUNTS).unwrap().insert("anna", [7; 16]).unwrap();
    transaction.open_table(CREDITS).unwrap().insert("data", 77).unwrap();
    transaction.open_table(MADE_SHARES).unwrap().insert("data", SHARE.as_bytes()).unwrap();
    transaction.open_table(ADDED_USERS).unwrap().insert("ANNA", USER.as_bytes()).unwrap();
    let open = serde_json::to_vec(&PersistentOpen { id: 300, ..PersistentOpen::default() }).unwrap();
    transaction.open_table(OPENS).unwrap().insert(300, open.as_slice()).unwrap();
    let policy = r#"{"name":"Office","rules":{"daily":"01:10/14"}}"#;
    transaction.open_table(POLICIES).unwrap().insert("office", policy.as_bytes()).unwrap();
    let done = r#"{"policy":"Office","done":{"daily":5}}"#;
    transaction.open_table(DONE).unwrap().insert("data", done.as_bytes()).unwrap();
    let graces = r#"{"1000":7,"/a":9}"#;
    transaction.open_table(GRACES).unwrap().insert("data", graces.as_bytes()).unwrap();
    let protected = r#"{"directory":"/srv","name":"a","until":5}"#;
    transaction.open_table(PROTECTED).unwrap().insert("/srv\0a", protected.as_bytes()).unwrap();
    let restore = r#"{"share":"Data","snapshot":"a","ended":{"left":3}}"#;
    transaction.open_table(RESTORES).unwrap().insert("data", restore.as_bytes()).unwrap();
    let replication = r#"{"share":"Data","from":"https://a:1/b","broken":true}"#;
    transaction.open_table(REPLICATIONS).unwrap().insert("data", replication.as_bytes()).unwrap();
    let destinations = r#"{"share":"Data","directory":"/srv","destinations":[{"id":7,"completed":"a"}]}"#;
    transaction.open_table(DESTINATIONS).unwrap().insert("data", destinations.as_bytes()).unwrap();
    let deleted = r#"{"number":8,"deleted":5,"until":9,"share":{"name":"Old","directory":"/srv/pool/Old","pool":{"pool":"fast","pool_mark":"1","mark":"2"}}}"#;
    transaction.open_table(DELETED).unwrap().insert("8", deleted.as_bytes()).unwrap();
    let abandoned = r#"{"share":"Older","directory":"/srv/pool/Older","made":{"pool":"fast","pool_mark":"1","mark":"3"}}"#;
    transaction.open_table(ABANDONED).unwrap().insert("3", abandoned.as_bytes()).unwrap();
    transaction.open_table(CLIENTS).unwrap().insert(b"client".as_slice(), ()).unwrap();
    transaction.open_table(LOCK_HOSTS).unwrap().insert(LOCK_HOST, ()).unwrap();
    transaction.open_table(HANDLES).unwrap().insert(5, (1, 2, 3, b"name".as_slice())).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn what_is_on_the_disk_is_read() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("state");
    written_by_hand(&directory);
    let state = State::open(&directory).unwrap();
    assert_eq!(state.server().server_guid().unwrap(), [3; 16]);
    assert_eq!((state.server().share_id("DATA").unwrap(), state.server().share_id("new").unwrap()), (2, 10));
    assert_eq!(state.account("Anna").unwrap(), Some(hash(7)));
    assert_eq!(state.server().credits("Data").unwrap(), Some(77));
    let share = &state.made_shares().unwrap()[0];
    assert_eq!((&*share.name, share.terms, &*share.comment), ("Data", 1, "files"));
    assert_eq!(share.rules.clients, ["10.0.0.0/8"]);
    let user = &state.added_users().unwrap()[0];
    assert_eq!((&*user.name, user.uid, user.nt_hash), ("Anna", Some(1000), Some([7; 16])));
    assert_eq!(user.keys, None, "a record of a program that made no keys");
    assert_eq!(state.made_policies().unwrap()[0].policy().unwrap().name(), "Office");
    assert_eq!(state.snapshots_done("DATA").unwrap().unwrap().done["daily"], 5);
    let graces = state.quota_graces("DATA").unwrap();
    assert_eq!(graces.len(), 2);
    let since = |secs| std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(secs);
    assert_eq!(graces[&share::QuotaSubject::User(1000)], since(7));
    let protected = state.protected_snapshots(Path::new("/srv")).unwrap();
    assert_eq!((&*protected[0].name, protected[0].until), ("a", 5));
    assert_eq!(state.restore_of("DATA").unwrap().unwrap().ended.unwrap().left, 3);
    let replication = state.replication_of("DATA").unwrap().unwrap();
    assert_eq!((&*replication.from, replication.broken), ("https://a:1/b", true));
    assert_eq!(state.destinations_of("DATA").unwrap().unwrap().destinations[0].id, 7);
    let deleted = &state.deleted_shares().unwrap()[0];
    let made = deleted.share.pool.as_ref().unwrap();
    assert_eq!((deleted.number, &*made.pool, &*made.pool_mark, &*made.mark), (8, "fast", "1", "2"));
    let abandoned = &state.abandoned_directories().unwrap()[0];
    assert_eq!((&*abandoned.share, &*abandoned.made.mark), ("Older", "3"));
    assert_eq!(abandoned.directory, Path::new("/srv/pool/Older"));
    assert_eq!(PersistentOpenTable(state.store()).all().unwrap()[0].id, 300);
    assert_eq!(NfsClientTable(state.store()).all().unwrap(), [ClientRecord { owner: b"client".to_vec() }]);
    assert_eq!(LockHostTable(state.store()).all().unwrap(), [lock_host()]);
    state.forget_share("data").unwrap();
    drop(state);
    let database = open(&directory);
    let transaction = database.begin_read().unwrap();
    assert!(transaction.open_table(HANDLES).is_err(), "the handles of a share go with it");
    assert!(transaction.open_table(CREDITS).unwrap().get("data").unwrap().is_none());
}

#[test]
fn what_is_written_has_the_types_that_are_on_the_disk() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("state");
    let state = State::open(&directory).unwrap();
    let (guid, id) = (state.server().server_guid().unwrap(), state.server().share_id("Data").unwrap());
    state.set_account("Anna", &Secrets { keys: Some(keys()), ..hash(8) }).unwrap();
    state.server().keep_credits(&[("Data".to_owned(), Some(66))]).unwrap();
    state.keep_share(&ShareRecord { name: "Data".to_owned(), ..ShareRecord::default() }).unwrap();
    state
        .keep_user(&UserRecord { name: "Anna".to_owned(), keys: Some(keys()), ..UserRecord::default() })
        .unwrap();
    let digest = Token::new([0; 32]).digest();
    let token = TokenRecord { name: "CI".to_owned(), scope: Scope::Read, digest, made: 5 };
    state.keep_token(&token).unwrap();
    state.protect_snapshot(&protected_snapshot()).unwrap();
    state.keep_policy(&PolicyRecord { name: "Office".to_owned(), ..PolicyRecord::default() }).unwrap();
    state.keep_snapshots_done("Data", &DoneRecord::default()).unwrap();
    state.keep_restore(&RestoreRecord { share: "Data".to_owned(), ..RestoreRecord::default() }).unwrap();
    state.keep_quota_graces("Data", &std::collections::HashMap::new()).unwrap();
    let share = || "Data".to_owned();
    state.keep_replication(&ReplicationRecord { share: share(), ..ReplicationRecord::default() }).unwrap();
    state.keep_destinations(&DestinationsRecord { share: share(), ..DestinationsRecord::default() }).unwrap();
    let old = ShareRecord { name: "Old".to_owned(), ..ShareRecord::default() };
    let last = state.delete_share(&old, 5, 9).unwrap().number;
    let old = last.to_string();
    let made = PoolDirectory { mark: "3".to_owned(), ..PoolDirectory::default() };
    state.abandon_directory(&AbandonedDirectory { made, ..AbandonedDirectory::default() }).unwrap();
    let open_file = PersistentOpen { id: u64::MAX - 1, ..PersistentOpen::default() };
    PersistentOpenTable(state.store()).write(&[Change::Keep(Box::new(open_file))]).unwrap();
    NfsClientTable(state.store()).keep(&ClientRecord { owner: b"client".to_vec() }).unwrap();
    LockHostTable(state.store()).keep(&lock_host()).unwrap();
    drop(state);
    let database = open(&directory);
    let transaction = database.begin_read().unwrap();
    let about = transaction.open_table(ABOUT).unwrap();
    let of = |name: &str| about.get(name).unwrap().unwrap().value().to_vec();
    assert_eq!((of("server-guid"), of("format")), (guid.to_vec(), 1_u32.to_le_bytes().to_vec()));
    assert_eq!(of("last-share"), last.to_le_bytes());
    assert_eq!(transaction.open_table(SHARES).unwrap().get("data").unwrap().unwrap().value(), id);
    assert_eq!(transaction.open_table(ACCOUNTS).unwrap().get("anna").unwrap().unwrap().value(), [8; 16]);
    assert_eq!(transaction.open_table(CREDITS).unwrap().get("data").unwrap().unwrap().value(), 66);
    let tables = [
        (MADE_SHARES, "data"),
        (TOKENS, "ci"),
        (POLICIES, "office"),
        (DONE, "data"),
        (RESTORES, "data"),
        (GRACES, "data"),
        (REPLICATIONS, "data"),
        (DESTINATIONS, "data"),
        (DELETED, &*old),
        (ABANDONED, "3"),
    ];
    for (table, key) in tables {
        let table = transaction.open_table(table).unwrap();
        assert_eq!(table.first().unwrap().unwrap().0.value(), key);
    }
    let protected =
        transaction.open_table(PROTECTED).unwrap().get("/srv\0number:7").unwrap().unwrap().value().to_vec();
    assert_eq!(protected, br#"{"directory":"/srv","name":"a","until":5,"identity":"number:7"}"#);
    let users = transaction.open_table(ADDED_USERS).unwrap();
    let account_keys = transaction.open_table(ACCOUNT_KEYS).unwrap();
    for record in [users.get("ANNA").unwrap(), account_keys.get("anna").unwrap()] {
        let record = String::from_utf8(record.unwrap().value().to_vec()).unwrap();
        assert!(record.contains(KEYS) && record.contains(r#""aes256_sha1":[2,2,"#), "{record}");
    }
    let opens = transaction.open_table(OPENS).unwrap();
    assert_eq!(opens.first().unwrap().unwrap().0.value(), u64::MAX - 1);
    assert_eq!(transaction.open_table(CLIENTS).unwrap().first().unwrap().unwrap().0.value(), b"client");
    assert_eq!(transaction.open_table(LOCK_HOSTS).unwrap().first().unwrap().unwrap().0.value(), LOCK_HOST);
}

/// What an older program finds: a protocol that it does not know, so that it does not serve the share.
#[test]
fn a_share_that_an_older_program_would_open_is_written_so_that_it_does_not() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("state");
    let state = State::open(&directory).unwrap();
    let of = |name: &str, terms: Terms, rules: Rules| ShareRecord {
        name: name.to_owned(),
        rules,
        ..ShareRecord::default().on(terms)
    };
    let anna = || vec!["anna".to_owned()];
    let nfs = Rules { protocols: vec!["nfs".to_owned()], ..Rules::default() };
    let kept = [
        (of("a", Terms::RPC_KRB5P, Rules::default()), r#""protocols":["needs nfs-security"]"#),
        (of("b", Terms::RPC_KRB5I | Terms::TLS, nfs.clone()), r#""protocols":["nfs","needs nfs-security"]"#),
        (of("c", Terms::RPC_KRB5 | Terms::RPC_SYS, nfs), r#""protocols":["nfs"]"#),
        (of("d", Terms::empty(), Rules { admin: anna(), ..Rules::default() }), r#"["needs roles"]"#),
        (of("e", Terms::empty(), Rules { admin: anna(), read: anna(), ..Rules::default() }), r#"["anna"]"#),
        (of("f", Terms::GROUPS_OF_SERVER, Rules::default()), r#"["needs nfs-groups"]"#),
        (of("g", Terms::GROUPS_OF_CLIENT | Terms::TLS, Rules::default()), r#""nfs_groups":"client""#),
        (of("h", Terms::SNAPSHOT_FOLDER | Terms::TLS, Rules::default()), r#""nfs_snapshots":"hidden""#),
        (of("i", Terms::SNAPSHOT_FOLDERS, Rules::default()), r#""nfs_snapshots":"shown""#),
    ];
    for (record, _) in &kept {
        state.keep_share(record).unwrap();
    }
    assert_eq!(state.made_shares().unwrap(), kept.each_ref().map(|(record, _)| record.clone()));
    drop(state);
    let database = open(&directory);
    let transaction = database.begin_read().unwrap();
    let table = transaction.open_table(MADE_SHARES).unwrap();
    for (record, written) in &kept {
        let json = String::from_utf8(table.get(&*record.name).unwrap().unwrap().value().to_vec()).unwrap();
        let (needs, must) = (json.contains("needs "), written.contains("needs "));
        assert!(json.contains(written) && needs == must, "{json}");
        let as_kept: ShareRecord = serde_json::from_str(&json).unwrap();
        assert_eq!(as_kept.rules().is_err(), needs, "{json}");
    }
}
