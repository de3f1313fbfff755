//! The interface of a share: identity, permission, file state, storage, accounting.
//!
//! All fronts use it, and nothing in it names a protocol. What clients of all fronts must agree on (who has a file open and how, who has
//! locked which bytes, what changed in a directory) is kept per share, and every call is counted. Calls are async, but
//! complete at once unless they have to wait for the device, for a lock or for another client: a server first polls them
//! inline (`schedule`).

mod agreement;
mod attempt;
mod attributes;
mod budget;
mod call;
mod caller;
mod charges;
mod data;
mod deed;
mod descriptors;
mod directory;
mod door;
mod empty_bin;
mod entries;
mod error;
mod found;
mod gone;
mod growth;
mod io;
mod logged;
mod long_call;
mod namespace;
mod new_object;
mod open;
mod operation;
mod overwrite;
mod quotas;
mod ranges;
mod read;
mod recycle;
mod recycling;
mod restoration;
mod restore;
mod schedule;
mod security;
mod settings;
mod share;
mod snapshots;
mod store;
mod streams;
mod suspicion;
mod table;
mod unwritten;
mod versions;
mod vigilance;
mod watch;
mod xattrs;

pub use access::{
    CLIENT_RULES_MAX, ClientRule, DomainName, Entrance, Group, InDomain, Names, NamesNobody, Network,
    NotANetwork, Peer, Protocols, RIGHTS_MAX, Right, Role, Rules, Squash, Who, folded_name,
};
pub use access_log::{AccessLog, Actor, Event, Kind};
pub use accounting::{
    Account, Accounting, Accounts, AlreadyRecording, Api, Client, Counts, Direction, Ending,
    HISTOGRAM_BUCKETS, InUse, Outcome, Record, Recorded, SIZE_BUCKETS, Traced, TracedData, Used, Waited,
    Waits, bucket_limit, bucket_of, response_type, size_limit,
};
pub use agreement::{
    Admission, Answering, Asked, ClientLock, Courtesy, File, GrantCounts, GrantHolder, GrantKey,
    GrantRequest, Granted, Holding, LockWait, Open, OpenRequest, Opener, Openers, Unwritten,
};
pub use attributes::{Changed, Guard};
pub use budget::LimitsStatus;
pub use cache::{CacheCount, CacheCounts, is_short_name, short_name};
pub use call::{Call, as_of_one_moment};
pub use caller::Caller;
pub use directory::{Listing, ListingEntry, Pick};
pub use entries::{Created, LINK_TARGET_BYTES_MAX, RenameHow};
pub use error::{Error, Result};
pub use file_state::{
    Access, AcknowledgeError, Break, ByteRange, ByteRangeLock, Caching, FileLimits, Holder, LockKind,
    LockOwner, OpenKey, Sharing,
};
pub use found::{Found, Location, Stream};
pub use gone::{Gone, NFS_PORT};
pub use identity::{
    AUTORID_LEN, DomainIds, Domains, Formula, Identity, People, Proof, SeenIds, Slice, may_be_given,
};
pub use io::Written;
pub use logged::{Replied, actor};
pub use namespace::{Case, DirChange, Reached, Walk};
pub use new_object::NewObject;
pub use operation::{DirectoryReport, Front, Operation, Patience, Turn};
pub use quota::{
    Account as QuotaAccount, GRACE, Limits as QuotaLimits, LimitsError as QuotaLimitsError, Standing,
};
pub use quotas::{
    NewLimits, QUOTAS_MAX, QuotaAuthority, QuotaChange, QuotaChangeError, QuotaChanging, QuotaFor, QuotaRoom,
    QuotaRule, QuotaRuleError, QuotaStatus, QuotaSubject, UserQuota,
};
pub use ranges::CloneRule;
pub use ransomware::{Count as RansomwareCount, Rule as RansomwareRule, RuleError as RansomwareRuleError};
pub use read::{Read, ReadWithAttributes};
pub use recycling::{RECYCLE_FOLDER, RecycleBin, RecycleBinError};
pub use restoration::{
    CannotRestore, LEFT_NAMED_MAX, LeftAlone, Restoration, RestoreFailure, RestoreFigures, RestoreProgress,
    Restored,
};
pub use security::{Object, ReadOnly, SecurityChange, Terms, may_delete, permitted, served_by};
pub use settings::{Settings, ShareId};
pub use share::Share;
pub use store::{Alarm, Job, STORE_THREADS_MAX, STORE_WAITING_MAX, StoreHealth, StoreWatch, Workers};
pub use table::{NotEntered, SHARES_MAX, ShareTable, ShareView, Shares};
pub use versions::{IDLE_VIEWS_MAX, VERSIONS_MAX, VIEWS_MAX};
pub use vigilance::{RansomwareAlarm, Suspect};
pub use watch::{CHANGES_BYTES_MAX, CHANGES_MAX, Change, ChangeAction, ChangeKinds, Changes, Seen, Watch};
pub use xattrs::ExtendedAttribute;
