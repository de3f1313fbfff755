//! Attributes that a client sets with SETATTR, CREATE and OPEN.

use nfs_wire::v4::acl::{Ace, Acl41};
use nfs_wire::v4::attr::{Attribute as A, AttributeSet, Attributes, ModeMasked, ModeUmask, Value};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{SetTime, Time};
use share::{File, SecurityChange};
use storage::{FileFlags, SetAttributes, Timestamp, Want};

use super::acl::{self, Subject};
use super::owner::{self, Names};
use crate::attributes::{FILE_BYTES_MAX, MODE_BITS, NANOSECONDS_PER_SECOND};
use crate::object::Object;
use crate::status;

/// Whether the object whose attributes are set exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// An existing object.
    Existing,
    /// An object that is to be created.
    New,
}

/// The attributes that a client wants to set, checked as far as possible without the object.
#[derive(Debug, Default)]
pub(super) struct AttributesToSet<'a> {
    /// All attributes to set.
    pub(super) attributes: AttributeSet,
    /// The attributes that the store sets directly.
    pub(super) set: SetAttributes,
    /// The mode, if only some of its bits are to be set.
    masked: Option<ModeMasked>,
    /// The permission bits that are removed from the mode of a new object where no list is inherited (RFC 8275).
    umask: Option<u32>,
    hidden: Option<bool>,
    system: Option<bool>,
    list: Option<List<'a>>,
    /// Who knows the names in them.
    names: Names<'a>,
}

/// An access control list, by the attribute that it came as.
#[derive(Debug, Clone)]
enum List<'a> {
    Acl(Vec<Ace<'a>>),
    Dacl(Acl41<'a>),
}

impl<'a> AttributesToSet<'a> {
    /// Decodes the attributes that a client wants to set.
    ///
    /// # Errors
    /// [`Status::AttrNotSupp`] for attributes that the object's file system does not support, and for two lists at once
    /// (RFC 8881 6.4.1); [`Status::Inval`] for attributes that cannot be set, or not together, and for invalid values;
    /// [`Status::BadOwner`], [`Status::FBig`], [`Status::BadXdr`].
    pub(super) fn decode(
        attributes: &Attributes<'a>,
        supported: AttributeSet,
        of: Of,
        names: Names<'a>,
    ) -> Result<Self, Status> {
        let set = attributes.set;
        if !set.difference(supported).is_empty() {
            return Err(Status::AttrNotSupp);
        }
        // RFC 8881 5.5: "If a client attempts to set a get-only attribute ... the server MUST return NFS4ERR_INVAL".
        // 6.2.5: mode_set_masked "is only valid in a SETATTR operation"; RFC 8275 5: mode_umask only in CREATE and OPEN.
        let misplaced = if of == Of::New { A::ModeSetMasked } else { A::ModeUmask };
        if !set.difference(AttributeSet::WRITABLE.without(misplaced)).is_empty() {
            return Err(Status::Inval);
        }
        let modes = AttributeSet::of(&[A::Mode, A::ModeSetMasked, A::ModeUmask]);
        if set.intersection(modes).iter().count() > 1 {
            return Err(Status::Inval);
        }
        if set.contains(A::Acl) && set.contains(A::Dacl) {
            return Err(Status::AttrNotSupp);
        }
        let mut wanted = Self { attributes: set, names, ..Self::default() };
        for value in attributes.values() {
            wanted.take(value?)?;
        }
        Ok(wanted)
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), Status> {
        match value {
            Value::Size(size) if size > FILE_BYTES_MAX => return Err(Status::FBig),
            Value::Size(size) => self.set.size = Some(size),
            Value::Mode(mode) => self.set.mode = Some(mode_bits(mode)?),
            Value::ModeSetMasked(ModeMasked { value, mask }) => {
                self.masked = Some(ModeMasked { value: mode_bits(value)?, mask: mode_bits(mask)? });
            }
            Value::ModeUmask(ModeUmask { mode, umask }) => {
                self.set.mode = Some(mode_bits(mode)?);
                self.umask = Some(mode_bits(umask)?);
            }
            Value::Owner(owner) => self.set.uid = Some(owner::given_user(owner, self.names)?),
            Value::OwnerGroup(group) => self.set.gid = Some(owner::given_group(group)?),
            Value::TimeAccessSet(time) => self.set.atime = Some(set_time(time)?),
            Value::TimeModifySet(time) => self.set.mtime = Some(set_time(time)?),
            Value::TimeCreate(time) => self.set.btime = Some(timestamp(time)?),
            Value::Hidden(hidden) => self.hidden = Some(hidden),
            Value::System(system) => self.system = Some(system),
            Value::Acl(aces) => self.list = Some(List::Acl(aces)),
            Value::Dacl(list) => self.list = Some(List::Dacl(list)),
            _ => return Err(Status::Inval),
        }
        Ok(())
    }

    /// The permission bits that are removed where no list is inherited.
    pub(super) fn umask(&self) -> u32 {
        self.umask.unwrap_or(0)
    }

    /// The flags that a new object has from the start, if its creator gives any.
    pub(super) fn flags_of_new(&self) -> Option<FileFlags> {
        if self.hidden.is_none() && self.system.is_none() {
            return None;
        }
        let mut flags = FileFlags::ARCHIVE;
        flags.set(FileFlags::HIDDEN, self.hidden.unwrap_or(false));
        flags.set(FileFlags::SYSTEM, self.system.unwrap_or(false));
        Some(flags)
    }

    /// Whether a list remains to be set after a new object is created.
    pub(super) fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// Sets all attributes, the list after the mode (RFC 8881 6.4.1.3). Returns what was set, even if the rest was
    /// refused.
    pub(super) async fn apply(&self, object: &Object, file: &File) -> (Result<(), Status>, AttributeSet) {
        let lists = AttributeSet::of(&[A::Acl, A::Dacl]);
        let others = self.attributes.difference(lists);
        if let Err(status) = self.apply_attributes(object, file).await {
            return (Err(status), AttributeSet::EMPTY);
        }
        match self.apply_list(object, file).await {
            Ok(()) => (Ok(()), self.attributes),
            Err(status) => (Err(status), others),
        }
    }

    async fn apply_attributes(&self, object: &Object, file: &File) -> Result<(), Status> {
        let masked = || self.masked.map(|ModeMasked { value, mask }| value & mask);
        let given = self.set.mode.or_else(masked);
        if !object.admits_mode(given) {
            return Err(Status::Perm); // as chmod(2)
        }
        let set = self.completed(object).await?;
        if set == SetAttributes::default() {
            return Ok(());
        }
        let changed = object.share.set_attributes(&object.call, file, &set, None).await;
        changed.map_err(|error| match status::v4(error) {
            // The size of an object that is not a regular file (RFC 8881 15.2 has no NFS4ERR_ISDIR for SETATTR, but
            // clients know it).
            Status::WrongType => Status::Inval,
            other => other,
        })?;
        Ok(())
    }

    /// Adds the values that depend on the present state of the object.
    async fn completed(&self, object: &Object) -> Result<SetAttributes, Status> {
        let mut set = self.set;
        let flagged = self.hidden.is_some() || self.system.is_some();
        if !flagged && self.masked.is_none() {
            return Ok(set);
        }
        let now =
            object.share.attributes(&object.call, &object.node, Want::FLAGS).await.map_err(status::v4)?;
        if let Some(ModeMasked { value, mask }) = self.masked {
            set.mode = Some((now.mode & MODE_BITS & !mask) | (value & mask));
        }
        if flagged {
            // A file without any flags counts as changed since the last backup.
            let mut flags = now.flags.unwrap_or(FileFlags::ARCHIVE);
            for (flag, wanted) in [(FileFlags::HIDDEN, self.hidden), (FileFlags::SYSTEM, self.system)] {
                flags.set(flag, wanted.unwrap_or_else(|| flags.contains(flag)));
            }
            set.flags = Some(flags);
        }
        Ok(set)
    }

    /// Sets the list.
    pub(super) async fn apply_list(&self, object: &Object, file: &File) -> Result<(), Status> {
        let Some(list) = &self.list else { return Ok(()) };
        let share = &object.share;
        let now = share.security(&object.call, &object.node).await.map_err(status::v4)?;
        let (Some(owner), Some(group)) = (now.owner, now.group) else { return Err(Status::ServerFault) };
        let is_dir = object.node.kind() == storage::FileKind::Directory;
        let subject = Subject { owner, group, is_dir, names: self.names };
        let (control, acl) = match list {
            List::Acl(aces) => acl::given_acl(aces, &subject)?,
            List::Dacl(list) => acl::given_dacl(list, &subject)?,
        };
        let change = SecurityChange { dacl: Some((control, Some(acl))), ..SecurityChange::default() };
        let set = share.set_security(&object.call, file, change).await;
        set.map_err(|error| match status::v4(error) {
            Status::XattrTooBig => Status::NoSpc,
            Status::NotSupp | Status::WrongType => Status::AttrNotSupp,
            other => other,
        })
    }
}

/// RFC 8881 6.2.4: "it MUST return NFS4ERR_INVAL if bits other than those defined above are set".
fn mode_bits(mode: u32) -> Result<u32, Status> {
    if mode & !MODE_BITS == 0 { Ok(mode) } else { Err(Status::Inval) }
}

fn timestamp(time: Time) -> Result<Timestamp, Status> {
    if time.nanoseconds >= NANOSECONDS_PER_SECOND {
        return Err(Status::Inval);
    }
    Ok(Timestamp { secs: time.seconds, nanos: time.nanoseconds })
}

fn set_time(time: SetTime) -> Result<storage::SetTime, Status> {
    Ok(match time {
        SetTime::ServerTime => storage::SetTime::Now,
        SetTime::ClientTime(time) => storage::SetTime::To(timestamp(time)?),
    })
}

#[cfg(test)]
mod tests {
    use nfs_wire::v4::attr::AttributesBuf;
    use nfs_wire::v4::types::Text;
    use storage::Capabilities;

    use super::super::attributes::supported;
    use super::*;

    fn decode(values: Vec<Value<'_>>, of: Of) -> Result<SetAttributes, Status> {
        let buffer: AttributesBuf = values.into_iter().collect();
        let supported = supported(2, Capabilities::all(), false);
        AttributesToSet::decode(&buffer.as_attributes(), supported, of, None).map(|wanted| wanted.set)
    }

    fn existing(value: Value<'_>) -> Result<SetAttributes, Status> {
        decode(vec![value], Of::Existing)
    }

    #[test]
    fn what_can_be_told_only_is_invalid_and_what_is_not_there_is_unsupported() {
        for value in
            [Value::Type(nfs_wire::v4::types::FileType::Regular), Value::Change(1), Value::NumLinks(1)]
        {
            assert_eq!(existing(value), Err(Status::Inval));
        }
        for value in [Value::Archive(true), Value::MimeType(Text(b"a/b")), Value::RetentionHold(1)] {
            assert_eq!(existing(value), Err(Status::AttrNotSupp));
        }
    }

    #[test]
    fn modes_are_given_in_one_way() {
        let (mode, masked) =
            (Value::Mode(0o644), Value::ModeSetMasked(ModeMasked { value: 0, mask: 0o7000 }));
        let umask = Value::ModeUmask(ModeUmask { mode: 0o666, umask: 0o022 });
        assert!(existing(mode.clone()).is_ok() && existing(masked.clone()).is_ok());
        assert_eq!(existing(umask.clone()), Err(Status::Inval));
        assert_eq!(decode(vec![masked.clone()], Of::New), Err(Status::Inval));
        assert_eq!(decode(vec![umask.clone()], Of::New).unwrap().mode, Some(0o666));
        assert_eq!(decode(vec![mode.clone(), masked], Of::Existing), Err(Status::Inval));
        assert_eq!(decode(vec![mode, umask], Of::New), Err(Status::Inval));
        assert_eq!(existing(Value::Mode(0o10000)), Err(Status::Inval));
        let undefined = ModeMasked { value: 0o10000, mask: 0 };
        assert_eq!(existing(Value::ModeSetMasked(undefined)), Err(Status::Inval));
    }

    #[test]
    fn one_list_at_a_time() {
        let (acl, dacl) = (
            Value::Acl(vec![]),
            Value::Dacl(Acl41 { flags: nfs_wire::v4::acl::AclFlags::empty(), aces: vec![] }),
        );
        assert_eq!(decode(vec![acl, dacl], Of::Existing), Err(Status::AttrNotSupp));
    }

    #[test]
    fn values_have_their_limits() {
        assert_eq!(existing(Value::Size(FILE_BYTES_MAX)).unwrap().size, Some(FILE_BYTES_MAX));
        assert_eq!(existing(Value::Size(FILE_BYTES_MAX + 1)), Err(Status::FBig));
        let time = |nanoseconds| Value::TimeCreate(Time { seconds: -5, nanoseconds });
        assert_eq!(
            existing(time(999_999_999)).unwrap().btime,
            Some(Timestamp { secs: -5, nanos: 999_999_999 })
        );
        assert_eq!(existing(time(1_000_000_000)), Err(Status::Inval));
        assert_eq!(existing(Value::Owner(Text(b"root@localdomain"))), Err(Status::BadOwner));
    }

    #[test]
    fn all_values_must_be_there() {
        let set = AttributeSet::of(&[A::Size, A::Mode]);
        let cut_off = Attributes { set, values: &[0; 8] };
        let decoded =
            AttributesToSet::decode(&cut_off, supported(1, Capabilities::all(), false), Of::Existing, None);
        assert_eq!(decoded.map(|wanted| wanted.set), Err(Status::BadXdr));
    }
}
