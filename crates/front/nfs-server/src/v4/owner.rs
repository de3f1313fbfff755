//! Owners and groups as NFSv4 names them. These are the decimal numbers that RFC 8881 5.9 allows, and that the Linux
//! client sends with AUTH_SYS. Names with a domain match no user here.

use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;

/// The name of a user or group that has no name (RFC 8881 5.9).
const NOBODY_NAME: &str = "nobody";
const NOBODY: u32 = 65_534;

/// The user or group with this number: "decimal numeric values with no leading zeros".
pub(super) fn id(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = text.len() > 1 && text.starts_with('0');
    if is_number && !has_leading_zero { text.parse().ok() } else { None }
}

/// The user or group that a client names as the owner or the group.
///
/// # Errors
/// [`Status::Inval`] for a text that is empty or not UTF-8; [`Status::BadOwner`] for a text that names no user or
/// group.
pub(super) fn given(text: Text<'_>) -> Result<u32, Status> {
    match text.as_str()? {
        "" => Err(Status::Inval),
        NOBODY_NAME => Ok(NOBODY),
        text => id(text).ok_or(Status::BadOwner),
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
        let given = |text: &str| given(Text(text.as_bytes()));
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
        assert_eq!(super::given(Text(b"\xff")), Err(Status::Inval));
    }
}
