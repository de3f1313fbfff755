//! TLS of the NFS listeners, with the certificate that the control address shows.

use std::path::Path;
use std::sync::Arc;

use nfs_server::{APPLICATION_PROTOCOL, Demand, Tls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig};

use crate::control_tls::{Identity, provider};
use crate::problem::{Cause, Problem, Result};
use crate::settings::{NfsTls, Settings};

/// TLS of the NFS listeners; None: it is off.
///
/// # Errors
/// There is no certificate, or the file of the authorities cannot be used.
pub(crate) fn of_listeners(
    settings: &Settings,
    identity: Option<&Arc<Identity>>,
) -> Result<Option<Arc<Tls>>> {
    let demand = match settings.nfs_tls {
        NfsTls::Off => return Ok(None),
        NfsTls::Offered => Demand::Offered,
        NfsTls::Required | NfsTls::Mutual => Demand::Required,
    };
    let identity = identity.ok_or_else(|| {
        let what = "NFS over TLS has no certificate".to_owned();
        Problem::new(Cause::Settings, what, "Give one: control-certificate and control-key")
    })?;
    Ok(Some(Tls::new(demand, config(settings, identity)?)))
}

/// The configuration of TLS for NFS. RFC 9289 5: "Implementations MUST NOT negotiate TLS versions prior to v1.3".
///
/// # Errors
/// The file of the authorities cannot be used.
pub(crate) fn config(settings: &Settings, identity: &Arc<Identity>) -> Result<Arc<ServerConfig>> {
    let verifier = client_verifier(settings)?;
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
    let builder =
        builder.map_err(|e| Problem::new(Cause::Serving, format!("cannot use TLS 1.3: {e}"), ""))?;
    let builder = match verifier {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config = builder.with_cert_resolver(Arc::clone(identity) as _);
    config.alpn_protocols = vec![APPLICATION_PROTOCOL.to_vec()];
    // Connections of NFS last, and kernels want no messages of the handshake after it.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// What verifies the certificates of clients; None: they are not asked for any.
///
/// # Errors
/// The file of the authorities cannot be used.
pub(crate) fn client_verifier(settings: &Settings) -> Result<Option<Arc<dyn ClientCertVerifier>>> {
    let Some(file) = &settings.nfs_client_ca else { return Ok(None) };
    let roots = authorities(file)?;
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let builder = match settings.nfs_tls {
        NfsTls::Mutual => builder,
        NfsTls::Off | NfsTls::Offered | NfsTls::Required => builder.allow_unauthenticated(),
    };
    builder.build().map(Some).map_err(|e| unusable(file, &e.to_string()))
}

fn authorities(file: &Path) -> Result<RootCertStore> {
    let failed = |e: pem::Error| unusable(file, &e.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(failed)? {
        roots.add(certificate.map_err(failed)?).map_err(|e| unusable(file, &e.to_string()))?;
    }
    if roots.is_empty() { Err(failed(pem::Error::NoItemsFound)) } else { Ok(roots) }
}

fn unusable(file: &Path, why: &str) -> Problem {
    let what = format!("cannot use the authorities of NFS clients in {}: {why}", file.display());
    let advice = "It must be a PEM file with their certificates, which this user may read.";
    Problem::new(Cause::Settings, what, advice)
}
