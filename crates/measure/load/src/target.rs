//! What load is made on: `smb://user:password@host:port/share`, `smb://host/share?sec=krb5`, `nfs://host:port/path?vers=3|4.1&sec=krb5p`, `dir:/path`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::result::Protocol;

pub use client::{NfsSecurity, NfsTarget, NfsTls, SmbLogon, SmbTarget};

/// What load is made on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A share of an SMB server.
    Smb(SmbTarget),
    /// An export of an NFS server.
    Nfs(NfsTarget),
    /// A directory of this machine.
    Directory(PathBuf),
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoTarget(String);

const FORMS: &str = "give smb://USER[:PASSWORD]@HOST[:PORT]/SHARE, smb://HOST[:PORT]/SHARE?sec=krb5, nfs://HOST[:PORT]/PATH[?vers=3|4.1&uid=N&gid=N&mountport=N&sec=sys|krb5|krb5i|krb5p&xprtsec=none|tls&ca=/FILE] or dir:/PATH";

impl Target {
    /// The protocol that it speaks.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Smb(_) => Protocol::Smb,
            Self::Nfs(nfs) if nfs.v41 => Protocol::Nfs41,
            Self::Nfs(_) => Protocol::Nfs3,
            Self::Directory(_) => Protocol::Directory,
        }
    }

    /// The share that it names: for NFS, the first name of the path. A directory is no share.
    #[must_use]
    pub fn share(&self) -> Option<&str> {
        match self {
            Self::Smb(smb) => Some(&smb.share),
            Self::Nfs(nfs) => nfs.path.split('/').find(|name| !name.is_empty()),
            Self::Directory(_) => None,
        }
    }
}

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Self, NoTarget> {
        let no = |why: &str| NoTarget(format!("{why}: {FORMS}"));
        if let Some(path) = text.strip_prefix("dir:") {
            let path = PathBuf::from(path);
            return if path.is_absolute() {
                Ok(Self::Directory(path))
            } else {
                Err(no("the path must begin with /"))
            };
        }
        if let Some(rest) = text.strip_prefix("smb://") {
            return smb(rest).map(Self::Smb).map_err(|why| no(&why));
        }
        match text.strip_prefix("nfs://") {
            Some(rest) => nfs(rest).map(Self::Nfs).map_err(|why| no(&why)),
            None => Err(no("this is not a target")),
        }
    }
}

/// The variable of the environment with the password of a target without one.
const PASSWORD_VARIABLE: &str = "ANABRANCH_PASSWORD";

fn smb(rest: &str) -> Result<SmbTarget, String> {
    // A password may have a question mark; a share has none.
    let (who, place) = rest.rsplit_once('@').map_or((None, rest), |(who, place)| (Some(who), place));
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let logon = match (who, query) {
        (None, "sec=krb5") => SmbLogon::Ticket,
        (Some(_), "sec=krb5") => return Err("the ticket says who the user is".to_owned()),
        (Some(who), "" | "sec=ntlm") => {
            let (user, password) = credentials(who, std::env::var(PASSWORD_VARIABLE).ok())?;
            SmbLogon::Password { user, password }
        }
        (None, "" | "sec=ntlm") => return Err("there is no user".to_owned()),
        (_, other) => return Err(format!("{other} is not known")),
    };
    let (authority, share) = place.split_once('/').ok_or("there is no share")?;
    let share = share.trim_end_matches('/');
    if share.is_empty() || share.contains('/') {
        return Err("the share must be one name".to_owned());
    }
    let (host, port) = host_and_port(authority, 445)?;
    Ok(SmbTarget { logon, host, port, share: decoded(share)? })
}

/// User and password. One that is not written, where other users of the machine would see it, is that of the variable.
fn credentials(who: &str, variable: Option<String>) -> Result<(String, String), String> {
    match (who.split_once(':'), variable) {
        (Some((user, password)), _) => Ok((decoded(user)?, decoded(password)?)),
        (None, Some(password)) => Ok((decoded(who)?, password)),
        (None, None) => Err(format!("there is no password: the variable {PASSWORD_VARIABLE} may have it")),
    }
}

fn nfs(rest: &str) -> Result<NfsTarget, String> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').ok_or("there is no path")?;
    let (host, port) = host_and_port(authority, 2049)?;
    let path = format!("/{}", decoded(path)?);
    let security = NfsSecurity::default();
    let mut target =
        NfsTarget { host, port, mount_port: None, path, v41: true, uid: 0, gid: 0, security, tls: None };
    let mut authority = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let number = || value.parse().map_err(|_| format!("{name}={value} is not a number"));
        match (name, value) {
            ("vers", "3") => target.v41 = false,
            ("vers", "4.1" | "4") => target.v41 = true,
            ("uid", _) => target.uid = number()?,
            ("gid", _) => target.gid = number()?,
            ("mountport", _) => {
                target.mount_port = Some(value.parse().map_err(|_| format!("{name}={value} is not a port"))?)
            }
            ("sec", _) => {
                let named = NfsSecurity::ALL.into_iter().find(|security| security.name() == value);
                target.security =
                    named.ok_or_else(|| format!("sec={value} is not sys, krb5, krb5i or krb5p"))?;
            }
            ("xprtsec", "none") => target.tls = None,
            ("xprtsec", "tls") => _ = target.tls.get_or_insert_default(),
            ("ca", _) => authority = Some(PathBuf::from(decoded(value)?)),
            _ => return Err(format!("{pair} is not known")),
        }
    }
    match (&mut target.tls, authority) {
        (_, None) => {}
        (Some(tls), authority) => tls.authority = authority,
        (None, Some(_)) => return Err("ca= is for xprtsec=tls".to_owned()),
    }
    Ok(target)
}

/// `host`, `host:port` or `[v6]:port`.
fn host_and_port(authority: &str, port: u16) -> Result<(String, u16), String> {
    let number = |text: &str| text.parse().map_err(|_| format!("{text} is not a port"));
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, port),
        Some((host, after)) => (host, number(after.trim_start_matches(':'))?),
        None => match authority.rsplit_once(':') {
            Some((host, text)) => (host, number(text)?),
            None => (authority, port),
        },
    };
    if host.is_empty() { Err("there is no host".to_owned()) } else { Ok((host.to_owned(), port)) }
}

/// Undoes percent-encoding, which a password with `@` or `/` needs.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|d| char::from(d).to_digit(16));
        let (high, low) = (digit(), digit());
        let value = high.zip(low).map(|(high, low)| high * 16 + low).and_then(|v| u8::try_from(v).ok());
        bytes.push(value.ok_or("after % two hexadecimal digits must follow")?);
    }
    String::from_utf8(bytes).map_err(|_| "what % stands for is no UTF-8".to_owned())
}

/// Without the password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smb(SmbTarget { logon, host, port, share }) => match logon {
                SmbLogon::Password { user, .. } => write!(f, "smb://{user}@{host}:{port}/{share}"),
                SmbLogon::Ticket => write!(f, "smb://{host}:{port}/{share}?sec=krb5"),
            },
            Self::Nfs(t) => {
                write!(f, "nfs://{}:{}{}?vers={}", t.host, t.port, t.path, if t.v41 { "4.1" } else { "3" })?;
                if t.security != NfsSecurity::Sys {
                    write!(f, "&sec={}", t.security.name())?;
                }
                if t.tls.is_some() { f.write_str("&xprtsec=tls") } else { Ok(()) }
            }
            Self::Directory(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn targets_are_read() {
        let Ok(Target::Smb(smb)) = "smb://ann:p%40ss:w@server:1445/Data".parse() else {
            panic!("no SMB target")
        };
        let logon = SmbLogon::Password { user: "ann".to_owned(), password: "p@ss:w".to_owned() };
        assert_eq!(smb.logon, logon);
        assert_eq!((smb.host.as_str(), smb.port, smb.share.as_str()), ("server", 1445, "Data"));
        let target: Target = "smb://files.lab.test/Data?sec=krb5".parse().unwrap();
        assert!(matches!(&target, Target::Smb(SmbTarget { logon: SmbLogon::Ticket, .. })));
        assert_eq!(target.to_string(), "smb://files.lab.test:445/Data?sec=krb5");
        let Ok(Target::Nfs(nfs)) = "nfs://[::1]:2050/a/b?vers=3&uid=7".parse() else {
            panic!("no NFS target")
        };
        assert_eq!(
            (nfs.host.as_str(), nfs.port, nfs.path.as_str(), nfs.v41, nfs.uid),
            ("::1", 2050, "/a/b", false, 7)
        );
        let Ok(target @ Target::Nfs(nfs)) =
            &"nfs://files/a?sec=krb5p&xprtsec=tls&ca=/etc/lab%20ca.pem".parse::<Target>()
        else {
            panic!("no NFS target")
        };
        let authority = nfs.tls.as_ref().and_then(|tls| tls.authority.as_deref());
        assert_eq!((nfs.security, authority), (NfsSecurity::Krb5p, Some(Path::new("/etc/lab ca.pem"))));
        assert_eq!(target.to_string(), "nfs://files:2049/a?vers=4.1&sec=krb5p&xprtsec=tls");
        assert_eq!("dir:/tmp".parse(), Ok(Target::Directory("/tmp".into())));
    }

    #[test]
    fn a_password_may_be_in_a_variable() {
        let of = |user: &str, password: &str| Ok((user.to_owned(), password.to_owned()));
        let variable = || Some("p%40:w".to_owned());
        assert_eq!(credentials("ann:a%3Ab", variable()), of("ann", "a:b"));
        assert_eq!(credentials("d%3Bann", variable()), of("d;ann", "p%40:w"));
        assert!(credentials("ann", None).unwrap_err().contains("ANABRANCH_PASSWORD"));
    }

    #[test]
    fn a_target_never_shows_its_password() {
        let target: Target = "smb://ann:secret@server/Data".parse().unwrap();
        assert_eq!(target.to_string(), "smb://ann@server:445/Data");
        assert!(!format!("{target:?}").contains("secret"));
    }

    #[test]
    fn what_is_no_target_is_refused_with_the_forms() {
        for text in [
            "",
            "smb://server/x",
            "smb://a:b@server",
            "smb://a:b@server/x/y",
            "smb://a:b@server/x?sec=krb5",
            "smb://a:b@server/x?sec=krb5i",
            "smb://server/x?sec=ntlm",
            "smb://a:b@:1/x",
            "nfs://server",
            "nfs://server:x/a",
            "nfs://server/a?vers=2",
            "nfs://server/a?sec=krb6",
            "nfs://server/a?xprtsec=mtls",
            "nfs://server/a?ca=/etc/ca.pem",
            "dir:relative",
            "ftp://x",
            "smb://a:%zz@server/x",
        ] {
            let refused = text.parse::<Target>().unwrap_err().to_string();
            assert!(refused.contains("give smb://"), "{text}: {refused}");
        }
    }
}
