//! An operation as it is written down.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use accounting::Outcome;
use serde::Serialize;
use time::OffsetDateTime;

use crate::Kind;
use crate::escape::json;

/// An operation that has ended. What is not known, or does not concern it, is left out of its line.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The name of the operation in metrics: Azure's, where Azure Files has one.
    pub operation: &'a str,
    /// The protocol, as in metrics.
    pub protocol: &'a str,
    /// The name of the share.
    pub share: Option<&'a str>,
    /// The path of the object below the root of the share, without a slash in front; empty for the root.
    pub path: Option<&'a [u8]>,
    /// The new path: of a rename, or of a further name.
    pub new_path: Option<&'a [u8]>,
    /// Whose operation it was.
    pub who: Actor<'a>,
    /// The address from which the request came.
    pub from: Option<SocketAddr>,
    /// Its outcome.
    pub outcome: Outcome,
    /// The status of its reply, by the name that the protocol has for it.
    pub status: &'a str,
    /// When it began.
    pub begun: SystemTime,
    /// How long it took.
    pub took: Duration,
}

/// Whose operation it was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Actor<'a> {
    /// The name of the account, or of the token.
    pub user: Option<&'a str>,
    /// The uid by which permissions were checked.
    pub uid: Option<u32>,
    /// How the user was proved.
    pub authentication: Option<&'a str>,
}

/// A line. The names of the fields are stable; docs/access-log.md says what they mean.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    time: String,
    kind: &'a str,
    operation_name: &'a str,
    protocol: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller_ip_address: Option<String>,
    outcome: &'a str,
    status_text: &'a str,
    duration_ms: f64,
}

impl Event<'_> {
    /// The event as a JSON object in one line.
    pub(crate) fn line(&self) -> Vec<u8> {
        let took = u32::try_from(self.took.as_micros()).map_or_else(|_| f64::from(u32::MAX), f64::from);
        json(&Line {
            time: written(self.begun),
            kind: self.kind.name(),
            operation_name: self.operation,
            protocol: self.protocol,
            share: self.share,
            path: self.path.map(shown),
            path_bytes: self.path.and_then(exact),
            new_path: self.new_path.map(shown),
            new_path_bytes: self.new_path.and_then(exact),
            user: self.who.user,
            uid: self.who.uid,
            authentication_type: self.who.authentication,
            caller_ip_address: self.from.map(|from| canonical(from).to_string()),
            outcome: name(self.outcome),
            status_text: self.status,
            duration_ms: took / 1000.0,
        })
    }
}

/// The name of an outcome.
pub(crate) fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "success",
        Outcome::Refused => "refused",
        Outcome::Failed => "failed",
    }
}

/// A path as text, with a slash in front. What is not UTF-8 becomes U+FFFD.
pub(crate) fn shown(path: &[u8]) -> Cow<'_, str> {
    Cow::Owned(format!("/{}", String::from_utf8_lossy(path)))
}

/// The bytes of a path that is not UTF-8, in hexadecimal digits: the text does not tell two such paths apart.
fn exact(path: &[u8]) -> Option<String> {
    std::str::from_utf8(path).is_err().then(|| {
        path.iter().fold(String::with_capacity(2 * path.len()), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}"); // a String takes everything
            digits
        })
    })
}

/// An IPv4 address as such, even if its connection came to a socket for IPv6.
fn canonical(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), from.port())
}

/// RFC 3339, in UTC, with microseconds.
fn written(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    let ((year, month, day), (hour, minute, second, micro)) =
        ((at.year(), u8::from(at.month()), at.day()), at.to_hms_micro());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z")
}

#[cfg(test)]
pub(crate) mod of_tests {
    //! Events for the tests of other files.

    use super::*;

    /// A removal of this file.
    pub(crate) fn removal(path: &[u8]) -> Event<'_> {
        Event {
            kind: Kind::Delete,
            operation: "Remove",
            protocol: "nfs3",
            share: Some("data"),
            path: Some(path),
            new_path: None,
            who: Actor { user: None, uid: Some(1000), authentication: Some("Stated") },
            from: Some("[::ffff:10.0.0.7]:700".parse().unwrap()),
            outcome: Outcome::Refused,
            status: "NFS3ERR_ACCES",
            begun: SystemTime::UNIX_EPOCH + Duration::from_micros(951_827_696_789_012),
            took: Duration::from_nanos(1_234_567),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_tests::removal;

    #[test]
    fn a_line_has_what_is_known() {
        let expected = concat!(
            r#"{"time":"2000-02-29T12:34:56.789012Z","kind":"delete","operationName":"Remove","protocol":"nfs3","#,
            r#""share":"data","path":"/a/b","uid":1000,"authenticationType":"Stated","callerIpAddress":"10.0.0.7:700","#,
            r#""outcome":"refused","statusText":"NFS3ERR_ACCES","durationMs":1.234}"#
        );
        assert_eq!(String::from_utf8(removal(b"a/b").line()).unwrap(), expected);
    }

    #[test]
    fn no_name_of_a_file_makes_a_second_line_or_another_field() {
        let name = b"x\",\"user\":\"root\"}\n{\"kind\":\"logon\" \xff";
        let line = String::from_utf8(removal(name).line()).unwrap();
        assert!(!line.contains('\n'), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["path"], format!("/{}", String::from_utf8_lossy(name)));
        assert_eq!((read["kind"].as_str(), read.get("user")), (Some("delete"), None));
        let bytes: Vec<u8> = read["pathBytes"]
            .as_str()
            .unwrap()
            .as_bytes()
            .chunks(2)
            .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
            .collect();
        assert_eq!(bytes, name);
    }
}
