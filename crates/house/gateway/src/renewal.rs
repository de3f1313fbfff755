//! Certificates are read again when their files change.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use crate::control_tls::{self, CertificateFiles, Identity};
use crate::settings::Settings;
use crate::{control_access, nfs_tls};

/// Looks whether the files have changed. What cannot be used is logged, and the certificate of before stays.
#[derive(Debug)]
pub(crate) struct Renewal {
    settings: Settings,
    identity: Arc<Identity>,
    nfs: Option<Arc<nfs_server::Tls>>,
    /// When the files were last changed; None: that could not be told.
    seen: Vec<Option<SystemTime>>,
}

impl Renewal {
    /// Nothing has changed yet since these settings were used.
    pub(crate) fn new(
        settings: &Settings,
        identity: Arc<Identity>,
        nfs: Option<Arc<nfs_server::Tls>>,
    ) -> Self {
        let mut renewal = Self { settings: settings.clone(), identity, nfs, seen: Vec::new() };
        renewal.seen = renewal.changed_at();
        renewal
    }

    /// Uses what the files hold now, if they have changed.
    pub(crate) fn look(&mut self) {
        let now = self.changed_at();
        if now == self.seen {
            return;
        }
        self.seen = now;
        if let Err(problem) = self.renew() {
            tracing::error!("the certificate is not renewed: {} {}", problem.what, problem.advice);
        }
    }

    fn renew(&self) -> crate::Result<()> {
        if let Some(nfs) = &self.nfs {
            nfs.replace(nfs_tls::config(&self.settings, &self.identity)?);
        }
        let shown = control_tls::load(&self.identity.files())?;
        let pem = shown.pem.clone();
        if self.identity.show(shown) {
            control_access::publish_certificate(&self.settings.state, &pem)?;
        }
        Ok(())
    }

    fn changed_at(&self) -> Vec<Option<SystemTime>> {
        let CertificateFiles { certificate, key } = self.identity.files();
        let changed_at = |file: PathBuf| fs::metadata(file).and_then(|found| found.modified()).ok();
        [certificate, key].into_iter().chain(self.settings.nfs_client_ca.clone()).map(changed_at).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::control_access::write_private;

    /// Writes a file that was changed so many seconds from now.
    fn write(file: &Path, text: &str, seconds: u64) {
        write_private(file, text).unwrap();
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(seconds)).unwrap();
    }

    fn write_certificate(files: &CertificateFiles, seconds: u64) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        write(&files.key, &made.signing_key.serialize_pem(), seconds);
        write(&files.certificate, &made.cert.pem(), seconds);
    }

    #[test]
    fn a_certificate_is_shown_when_its_files_have_changed_and_can_be_used() {
        let here = tempfile::tempdir().unwrap();
        let files =
            CertificateFiles { certificate: here.path().join("c.pem"), key: here.path().join("k.pem") };
        write_certificate(&files, 0);
        let address = ([127, 0, 0, 1], 1).into();
        let identity = control_tls::identity(Some(&files), address, &[], here.path()).unwrap().unwrap();
        let settings = Settings::new(here.path().to_owned());
        let mut renewal = Renewal::new(&settings, Arc::clone(&identity), None);
        let first = identity.pem();
        renewal.look();
        assert_eq!(identity.pem(), first);
        write_certificate(&files, 10);
        renewal.look();
        let second = identity.pem();
        assert_ne!(second, first);
        write(&files.certificate, "no certificate", 20);
        renewal.look();
        assert_eq!(identity.pem(), second, "the one of before stays");
        write_certificate(&files, 30);
        renewal.look();
        assert_ne!(identity.pem(), second);
    }
}
