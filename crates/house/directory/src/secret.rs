//! The files that the settings name.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use zeroize::Zeroizing;

use crate::Error;

/// The permission bits with which other users could read or change a file.
const OF_OTHERS: u32 = 0o066;
/// The most bytes of a password.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// The password in a file: its first line. The file is read for each connection, so a password that was changed counts from then on.
pub(crate) fn password(file: &Path) -> Result<Zeroizing<String>, Error> {
    let failed = |why: &str| Error {
        what: format!("cannot use the password of the directory in {}: {why}", file.display()),
        advice: "it must be a file with the password in its first line, which the server may read, and nobody else (chmod 600)",
        is_answer: false,
    };
    let opened = File::open(file).map_err(|e| failed(&e.to_string()))?;
    let mode = opened.metadata().map_err(|e| failed(&e.to_string()))?.mode();
    if mode & OF_OTHERS != 0 {
        return Err(failed(&format!("others may read or change it (mode {:o})", mode & 0o777)));
    }
    let mut text = Zeroizing::new(String::new());
    opened.take(PASSWORD_BYTES_MAX).read_to_string(&mut text).map_err(|e| failed(&e.to_string()))?;
    let line = text.lines().next().unwrap_or_default();
    // RFC 4513 5.1.2: a bind with a name and without a password is an unauthenticated one, and succeeds.
    if line.is_empty() { Err(failed("it is empty")) } else { Ok(Zeroizing::new(line.to_owned())) }
}

/// The authorities in a file.
pub(crate) fn authorities(file: &Path) -> Result<RootCertStore, Error> {
    let failed = |why: &str| Error {
        what: format!("cannot use the authorities of the directory in {}: {why}", file.display()),
        advice: "it must be a PEM file with the certificates of those who vouch for the directory's, which the server may read",
        is_answer: false,
    };
    let of_pem = |e: pem::Error| failed(&e.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(of_pem)? {
        roots.add(certificate.map_err(of_pem)?).map_err(|e| failed(&e.to_string()))?;
    }
    if roots.is_empty() { Err(of_pem(pem::Error::NoItemsFound)) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_password_is_the_first_line_of_a_file_of_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let with = |text: &str, mode| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            password(&file).map(|password| password.to_string())
        };
        assert_eq!(with("hush hush\nmore\n", 0o600).as_deref(), Ok("hush hush"));
        for (text, mode, why) in
            [("hush", 0o640, "mode 640"), ("hush", 0o602, "mode 602"), ("\nhush", 0o600, "is empty")]
        {
            let error = with(text, mode).unwrap_err();
            assert!(error.what.contains(why) && !error.what.contains("hush"), "{error}");
        }
        assert!(password(&directory.path().join("none")).is_err());
        assert!(authorities(&file).unwrap_err().what.contains("authorities"));
    }
}
