//! Names of clients and services. RFC 4120 5.2.2, 6.2.

use std::fmt;

use crate::der::{Builder, DerError, GENERAL_STRING, Reader, SEQUENCE, context};
use crate::fields::Fields;

/// The most components of a name. RFC 4120 has names of one to three; services of Windows have up to three.
pub(crate) const COMPONENTS_MAX: usize = 8;
/// The most bytes of a name with its realm.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No component, or an empty one
    #[error("a name or a part of it is empty")]
    Empty,
    /// More than 8 components
    #[error("a name has more than 8 components")]
    TooManyComponents,
    /// Name and realm have more than 1,024 bytes
    #[error("a name has more than 1024 bytes")]
    TooLong,
    /// `/`, `@` or NUL inside a component or the realm, or bytes that are not UTF-8
    #[error("a part of a name contains a character that separates parts")]
    Character,
    /// Not the DER of a PrincipalName
    #[error("a name is malformed")]
    Malformed,
}

/// What a name is for: a hint, and no part of the name. RFC 4120 6.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameType {
    /// NT-PRINCIPAL: a user
    Principal,
    /// NT-SRV-INST: a service, of which there may be several
    Service,
}

impl NameType {
    fn number(self) -> i64 {
        match self {
            Self::Principal => 1,
            Self::Service => 2,
        }
    }
}

/// A client or service, with its realm: `alice@EXAMPLE.ORG`, `cifs/files.example.org@EXAMPLE.ORG`.
///
/// No component contains `/`, `@` or NUL, so the text stands for one name only. It is the client's or the KDC's choice;
/// logs must escape it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    text: String,
    /// Where `@` is in `text`
    at: usize,
}

impl Principal {
    /// A name from its components and realm.
    ///
    /// # Errors
    /// [`NameError`], except [`NameError::Malformed`].
    pub fn new(components: &[&str], realm: &str) -> Result<Self, NameError> {
        Self::collect(components.iter().map(|part| Ok(part.as_bytes())), realm.as_bytes())
    }

    /// A name from the bytes of its components and realm.
    pub(crate) fn collect<'a>(
        components: impl Iterator<Item = Result<&'a [u8], NameError>>,
        realm: &[u8],
    ) -> Result<Self, NameError> {
        let mut text = String::with_capacity(64);
        for (number, part) in components.enumerate() {
            if number == COMPONENTS_MAX {
                return Err(NameError::TooManyComponents);
            }
            if number > 0 {
                text.push('/');
            }
            push(&mut text, part?)?;
        }
        let at = text.len();
        if at == 0 {
            return Err(NameError::Empty);
        }
        text.push('@');
        push(&mut text, realm)?;
        Ok(Self { text, at })
    }

    /// Decodes a PrincipalName: `SEQUENCE { name-type [0] Int32, name-string [1] SEQUENCE OF KerberosString }`. The
    /// type is a hint and no part of a name (RFC 4120 6.2).
    ///
    /// # Errors
    /// [`NameError`].
    pub fn decode(name: &[u8], realm: &[u8]) -> Result<Self, NameError> {
        let mut strings = Reader::new(name_string(name).map_err(|DerError| NameError::Malformed)?);
        let components = std::iter::from_fn(|| {
            if strings.is_empty() {
                return None;
            }
            Some(strings.element(GENERAL_STRING).map_err(|DerError| NameError::Malformed))
        });
        Self::collect(components, realm)
    }

    /// Puts the PrincipalName, without the realm, in front.
    pub fn put(&self, builder: &mut Builder, kind: NameType) {
        builder.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| {
                field.element(SEQUENCE, |strings| {
                    // the builder writes from the end
                    for part in self.name().rsplit('/') {
                        strings.primitive(GENERAL_STRING, part.as_bytes());
                    }
                });
            });
            fields.element(context(0), |field| field.integer(kind.number()));
        });
    }

    /// The components, separated by `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    /// The realm.
    #[must_use]
    pub fn realm(&self) -> &str {
        self.text.get(self.at.saturating_add(1)..).unwrap_or_default()
    }

    /// The components; at least one.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.name().split('/')
    }

    /// Name and realm as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether both are the same without regard to the case of ASCII letters, as domain controllers compare.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.text.eq_ignore_ascii_case(&other.text)
    }
}

/// The content of name-string.
fn name_string(name: &[u8]) -> Result<&[u8], DerError> {
    let mut fields = Fields::of_sequence(name)?;
    let _name_type = fields.integer(0)?;
    Reader::new(fields.raw(1)?).element(SEQUENCE)
}

fn push(text: &mut String, part: &[u8]) -> Result<(), NameError> {
    let part = std::str::from_utf8(part).map_err(|_| NameError::Character)?;
    if part.is_empty() {
        return Err(NameError::Empty);
    }
    if part.contains(['/', '@', '\0']) {
        return Err(NameError::Character);
    }
    if text.len().saturating_add(part.len()) > NAME_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    text.push_str(part);
    Ok(())
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_parts() {
        let name = Principal::new(&["cifs", "files.lab.test"], "LAB.TEST").unwrap();
        assert_eq!((name.name(), name.realm()), ("cifs/files.lab.test", "LAB.TEST"));
        assert_eq!(name.components().collect::<Vec<_>>(), ["cifs", "files.lab.test"]);
        assert_eq!(name.to_string(), "cifs/files.lab.test@LAB.TEST");
        assert!(name.is_same(&Principal::new(&["CIFS", "Files.lab.test"], "lab.test").unwrap()));
        assert!(!name.is_same(&Principal::new(&["cifs", "files.lab.tes"], "LAB.TEST").unwrap()));
    }

    #[test]
    fn separators_inside_parts_are_refused() {
        for part in ["a/b", "a@b", "a\0", "/", "@"] {
            assert_eq!(Principal::new(&[part], "R"), Err(NameError::Character), "{part:?}");
            assert_eq!(Principal::new(&["a"], part), Err(NameError::Character), "{part:?}");
        }
        assert_eq!(Principal::collect([Ok(&b"\xff"[..])].into_iter(), b"R"), Err(NameError::Character));
        for (parts, realm) in [(&[][..], "R"), (&[""], "R"), (&["a", ""], "R"), (&["a"], "")] {
            assert_eq!(Principal::new(parts, realm), Err(NameError::Empty), "{parts:?}");
        }
    }

    #[test]
    fn names_are_limited() {
        assert!(Principal::new(&["a"; COMPONENTS_MAX], "R").is_ok());
        assert_eq!(Principal::new(&["a"; COMPONENTS_MAX + 1], "R"), Err(NameError::TooManyComponents));
        let long = "a".repeat(NAME_BYTES_MAX - 2);
        assert!(Principal::new(&[&long], "R").is_ok());
        assert_eq!(Principal::new(&[&long], "RR"), Err(NameError::TooLong));
    }
}
