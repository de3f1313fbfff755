//! Owners and groups as NFSv4 names them. These are the decimal numbers that RFC 8881 5.9 allows, and that the Linux client sends with
//! AUTH_SYS; or names of users with a domain, which it sends and expects with Kerberos. Groups have numbers only.

use std::fmt;
use std::sync::Arc;

use acl::Sid;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;

/// Knows users by name: `alice@EXAMPLE.ORG`. It is asked for each object of a listing, on the thread of the connection, so it must not wait.
pub trait OwnerNames: fmt::Debug + Send + Sync {
    /// The name of the user with this uid, if the user has one with a domain.
    fn of_uid(&self, uid: u32) -> Option<Arc<str>>;
    /// The name of the user with this SID.
    fn of_sid(&self, sid: &Sid) -> Option<Arc<str>>;
    /// The uid of the user with this name.
    fn uid_of(&self, name: &str) -> Option<u32>;
    /// The SID of the user with this name; that of the uid, if the user has no other.
    fn sid_of(&self, name: &str) -> Option<Sid>;
}

/// Who knows names, if anybody does.
pub(super) type Names<'n> = Option<&'n dyn OwnerNames>;

/// The name of a user or group that has no name (RFC 8881 5.9).
const NOBODY_NAME: &str = "nobody";
const NOBODY: u32 = 65_534;

/// The user or group with this number: "decimal numeric values with no leading zeros".
pub(super) fn id(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = text.len() > 1 && text.starts_with('0');
    if is_number && !has_leading_zero { text.parse().ok() } else { None }
}

/// The user that a client names as the owner. RFC 8881 5.9: "If the server does not have a translation for the user or group, it may
/// return NFS4ERR_BADOWNER".
///
/// # Errors
/// [`Status::Inval`] for a text that is empty or not UTF-8; [`Status::BadOwner`] for a text that names no user.
pub(super) fn given_user(text: Text<'_>, names: Names<'_>) -> Result<u32, Status> {
    let named = || names?.uid_of(text.as_str().ok()?);
    given_group(text)
        .or_else(|status| if status == Status::BadOwner { named().ok_or(status) } else { Err(status) })
}

/// The group that a client names.
///
/// # Errors
/// Those of [`given_user`].
pub(super) fn given_group(text: Text<'_>) -> Result<u32, Status> {
    match text.as_str()? {
        "" => Err(Status::Inval),
        NOBODY_NAME => Ok(NOBODY),
        text => id(text).ok_or(Status::BadOwner),
    }
}

/// A user as a client is told of it.
#[derive(Debug, Clone)]
pub(super) enum Owner {
    /// By number.
    Number(Digits),
    /// By name, with a domain.
    Name(Arc<str>),
}

impl Owner {
    /// The user with this number, by name if one is known.
    pub(super) fn of(uid: u32, names: Names<'_>) -> Self {
        let name = names.and_then(|names| names.of_uid(uid));
        name.map_or_else(|| Self::Number(Digits::of(uid)), Self::Name)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Number(digits) => digits.as_bytes(),
            Self::Name(name) => name.as_bytes(),
        }
    }
}

/// A user's or group's number as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digits {
    digits: [u8; 10],
    from: usize,
}

impl Digits {
    pub(super) fn of(mut id: u32) -> Self {
        let mut digits = [b'0'; 10];
        let mut from = digits.len();
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            *digit = u8::try_from(id % 10).map_or(b'0', |value| b'0' + value);
            from = at;
            id /= 10;
            if id == 0 {
                break;
            }
        }
        Self { digits, from }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.from..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_leading_zeros() {
        for id in [0, 7, 10, 1000, 65_534, u32::MAX] {
            assert_eq!(Digits::of(id).as_bytes(), id.to_string().as_bytes());
        }
    }

    #[test]
    fn owners_are_numbers() {
        let given = |text: &str| given_group(Text(text.as_bytes()));
        assert_eq!(given("0"), Ok(0));
        assert_eq!(given("1000"), Ok(1000));
        assert_eq!(given("4294967295"), Ok(u32::MAX));
        assert_eq!(given("nobody"), Ok(65_534));
        for nobody in
            ["4294967296", "00", "01", "+1", "-1", " 1", "root", "root@example.org", "1@example.org"]
        {
            assert_eq!(given(nobody), Err(Status::BadOwner), "{nobody}");
        }
        assert_eq!(given(""), Err(Status::Inval));
        assert_eq!(given_group(Text(b"\xff")), Err(Status::Inval));
    }
}
