//! The certificate of the control address: configured, or made by the server itself if others can reach the address. A
//! configured certificate is replaced when the configuration is read again.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::RwLock;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};

use crate::control_access::write_private;
use crate::problem::{Cause, Problem, Result};

/// The certificate that the server made for itself, in its state directory.
const OWN_CERTIFICATE: &str = "control-own-certificate.pem";
/// The key of that certificate.
const OWN_KEY: &str = "control-own-key.pem";

/// The files of a certificate and its key, PEM each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those that lead to its issuer.
    pub certificate: PathBuf,
    /// The key of the certificate, which other users must not be able to read.
    pub key: PathBuf,
}

/// A certificate with its key.
#[derive(Debug)]
pub(crate) struct Shown {
    key: Arc<CertifiedKey>,
    /// The certificate and those that lead to its issuer, in PEM. Commands on this machine trust the first.
    pub(crate) pem: String,
    expires: Option<SystemTime>,
    /// The files that hold it.
    files: CertificateFiles,
    /// The SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` writes it.
    fingerprint: String,
}

/// The TLS identity of the control address: the certificate that it shows now. New connections get the new one.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Guards the present certificate, which is replaced as a whole.
    shown: RwLock<Shown>,
}

impl Identity {
    fn new(shown: Shown) -> Arc<Self> {
        log_fingerprint(&shown);
        Arc::new(Self { shown: RwLock::new(shown) })
    }

    /// The configuration of TLS 1.3 that shows the present certificate.
    ///
    /// # Errors
    /// The cryptography provider has no TLS 1.3.
    pub(crate) fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>> {
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
        let builder =
            builder.map_err(|e| Problem::new(Cause::Serving, format!("cannot use TLS 1.3: {e}"), ""))?;
        Ok(Arc::new(builder.with_no_client_auth().with_cert_resolver(Arc::clone(self) as _)))
    }

    /// When the present certificate expires; None: that cannot be told.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        self.shown.read().expires
    }

    /// The present certificate and those that lead to its issuer, in PEM.
    pub(crate) fn pem(&self) -> String {
        self.shown.read().pem.clone()
    }

    /// The files that hold the present certificate.
    pub(crate) fn files(&self) -> CertificateFiles {
        self.shown.read().files.clone()
    }

    /// Shows another certificate from now on. Returns whether it differs from the present one.
    pub(crate) fn show(&self, shown: Shown) -> bool {
        let differs = self.shown.read().fingerprint != shown.fingerprint;
        if differs {
            log_fingerprint(&shown);
        }
        *self.shown.write() = shown;
        differs
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.shown.read().key))
    }
}

fn log_fingerprint(shown: &Shown) {
    tracing::info!("the control address speaks HTTPS, with the certificate SHA-256 {}", shown.fingerprint);
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, certificate).as_ref() {
        let colon = if text.is_empty() { "" } else { ":" };
        let _ = write!(text, "{colon}{byte:02X}");
    }
    text
}

/// When a certificate expires; None: that cannot be told.
fn expires(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    /// After the last moment that a certificate can name, the end of the year 9999 (RFC 5280 4.1.2.5).
    const AFTER_ALL: Duration = Duration::from_secs(1 << 38);
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned()).ok()?;
    let at = UnixTime::since_unix_epoch(AFTER_ALL);
    let algorithms = provider().signature_verification_algorithms;
    match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], at, algorithms.all) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(UNIX_EPOCH + Duration::from_secs(not_after.as_secs()))
        }
        Ok(()) | Err(_) => None,
    }
}

/// The TLS identity of the control address. Without a configured certificate, an address on loopback, where nobody can
/// listen in, has none. Any other address gets a certificate that the server makes at its first start and keeps.
///
/// # Errors
/// The files cannot be used.
pub(crate) fn identity(
    given: Option<&CertificateFiles>,
    address: SocketAddr,
    names: &[String],
    state: &Path,
) -> Result<Option<Arc<Identity>>> {
    shown(given, address, names, state).map(|shown| shown.map(Identity::new))
}

fn shown(
    given: Option<&CertificateFiles>,
    address: SocketAddr,
    names: &[String],
    state: &Path,
) -> Result<Option<Shown>> {
    match given {
        Some(files) => load(files).map(Some),
        None if address.ip().to_canonical().is_loopback() => Ok(None),
        None => {
            let own = CertificateFiles { certificate: state.join(OWN_CERTIFICATE), key: state.join(OWN_KEY) };
            if !own.certificate.exists() || !own.key.exists() {
                make(&own, address.ip(), names)?;
            }
            load(&own).map(Some)
        }
    }
}

/// Checks the files of a certificate. Returns when it expires.
///
/// # Errors
/// They cannot be used.
pub(crate) fn check(files: &CertificateFiles) -> Result<Option<SystemTime>> {
    load(files).map(|shown| shown.expires)
}

/// The cryptography provider of all TLS here.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Makes a certificate for this machine's names. It is trusted by its fingerprint, and does not expire.
fn make(files: &CertificateFiles, address: IpAddr, names: &[String]) -> Result<()> {
    let failed = |e: rcgen::Error| {
        Problem::new(
            Cause::State,
            format!("cannot make a certificate for the control address: {e}"),
            "Configure one: --control-certificate FILE --control-key FILE",
        )
    };
    let mut subjects: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    subjects.extend(names.iter().cloned());
    subjects.extend(rustix::system::uname().nodename().to_str().map(str::to_owned).ok());
    if !address.is_unspecified() {
        subjects.push(address.to_string());
    }
    subjects.sort();
    subjects.dedup();
    let made = rcgen::generate_simple_self_signed(subjects).map_err(failed)?;
    write_private(&files.key, &made.signing_key.serialize_pem())?;
    write_private(&files.certificate, &made.cert.pem())
}

/// Reads the files of a certificate.
///
/// # Errors
/// They cannot be used.
pub(crate) fn load(files: &CertificateFiles) -> Result<Shown> {
    let (certificate_file, key_file) = (&files.certificate, &files.key);
    let no_certificate = |e: pem::Error| unusable("certificate", certificate_file, &e);
    let text = fs::read_to_string(certificate_file).map_err(|e| no_certificate(pem::Error::Io(e)))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<std::result::Result<_, _>>()
        .map_err(no_certificate)?;
    let first = chain.first().ok_or_else(|| no_certificate(pem::Error::NoItemsFound))?;
    let (fingerprint, expires) = (fingerprint(first), expires(first));
    check_private(key_file)?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|e| unusable("key", key_file, &e))?;
    let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|e| {
        let (one, other) = (certificate_file.display(), key_file.display());
        let what = format!("the certificate {one} and the key {other} cannot be used: {e}");
        Problem::new(
            Cause::Settings,
            what,
            "Pass a certificate, with those that lead to its issuer, and its key.",
        )
    })?;
    Ok(Shown { key: Arc::new(key), pem: text, expires, files: files.clone(), fingerprint })
}

fn unusable(what: &str, file: &Path, error: &pem::Error) -> Problem {
    let what = format!("cannot read the {what} of the control address from {}: {error}", file.display());
    Problem::new(Cause::Settings, what, "It must be a PEM file that this user may read.")
}

/// Refuses a key that every user of this machine can read.
fn check_private(file: &Path) -> Result<()> {
    let trouble = |e: io::Error| unusable("key", file, &pem::Error::Io(e));
    let mode = fs::metadata(file).map_err(trouble)?.permissions().mode();
    if mode & 0o007 == 0 {
        return Ok(());
    }
    Err(Problem::new(
        Cause::Settings,
        format!("others may read the key {} (mode {:o})", file.display(), mode & 0o777),
        format!("Restrict it to the server's user: chmod 600 {}", file.display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    #[test]
    fn loopback_speaks_plainly_and_every_other_address_has_a_certificate_that_stays() {
        let state = tempfile::tempdir().unwrap();
        for address in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(shown(None, at(address), &[], state.path()).unwrap().is_none(), "{address}");
        }
        assert!(!state.path().join(OWN_KEY).exists());
        let fingerprints: Vec<String> = ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"]
            .map(|address| shown(None, at(address), &[], state.path()).unwrap().unwrap().fingerprint)
            .to_vec();
        assert!(
            fingerprints.iter().all(|one| one == &fingerprints[0] && one.len() == 32 * 3 - 1),
            "{fingerprints:?}"
        );
        for file in [OWN_CERTIFICATE, OWN_KEY] {
            let mode = fs::metadata(state.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_refused_by_name() {
        let here = tempfile::tempdir().unwrap();
        let own = here.path();
        shown(None, at("192.0.2.1:1"), &[], own).unwrap();
        let given = |certificate: &str, key: &str| {
            let files = CertificateFiles { certificate: own.join(certificate), key: own.join(key) };
            shown(Some(&files), at("127.0.0.1:1"), &[], own)
        };
        assert!(
            given(OWN_CERTIFICATE, OWN_KEY).unwrap().is_some(),
            "on loopback, too, where it is configured"
        );
        fs::write(own.join("empty"), "").unwrap();
        fs::set_permissions(own.join("empty"), fs::Permissions::from_mode(0o600)).unwrap();
        for (certificate, key, word) in [
            ("none", OWN_KEY, "none"),
            ("empty", OWN_KEY, "empty"),
            (OWN_CERTIFICATE, "none", "none"),
            (OWN_CERTIFICATE, "empty", "empty"),
        ] {
            let problem = given(certificate, key).unwrap_err();
            assert!(problem.cause == Cause::Settings && problem.what.contains(word), "{problem}");
        }
        fs::set_permissions(own.join(OWN_KEY), fs::Permissions::from_mode(0o644)).unwrap();
        let problem = given(OWN_CERTIFICATE, OWN_KEY).unwrap_err();
        assert!(
            problem.what.contains("others may read") && problem.advice.contains("chmod 600"),
            "{problem}"
        );
    }

    #[test]
    fn the_end_of_a_certificate_is_known() {
        let mut certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        certificate.not_after = rcgen::date_time_ymd(2030, 1, 2);
        let certificate = certificate.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let expected = UNIX_EPOCH + Duration::from_secs(1_893_542_400);
        assert_eq!(expires(certificate.der()), Some(expected));
        assert_eq!(expires(&CertificateDer::from(vec![0x30, 0])), None);
    }
}
