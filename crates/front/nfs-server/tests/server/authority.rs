//! Certificates for TLS, and those who issue them.

use std::sync::Arc;

use anabranch_nfs_server::APPLICATION_PROTOCOL;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A certificate authority.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Identity(CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// A certificate for this name that is valid until the beginning of the year.
    pub(crate) fn issue(&self, name: &str, until: i32) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        Identity(certificate, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        Arc::new(roots)
    }

    /// The configuration of a server with a certificate of this authority. It asks clients for theirs if it is given the
    /// authority that has issued them.
    pub(crate) fn server(&self, clients: Option<&Self>) -> Arc<ServerConfig> {
        self.config(clients.map(|clients| clients.verifier().build().unwrap()))
    }

    /// The same for a server that also serves clients without a certificate.
    pub(crate) fn server_that_asks(&self, clients: &Self) -> Arc<ServerConfig> {
        self.config(Some(clients.verifier().allow_unauthenticated().build().unwrap()))
    }

    fn verifier(&self) -> ClientCertVerifierBuilder {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        WebPkiClientVerifier::builder_with_provider(self.roots(), provider)
    }

    fn config(&self, clients: Option<Arc<dyn ClientCertVerifier>>) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(verifier),
        };
        let Identity(certificate, key) = self.issue("localhost", 2096);
        let mut config = builder.with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = vec![APPLICATION_PROTOCOL.to_vec()];
        Arc::new(config)
    }

    /// The configuration of a client that trusts this authority.
    pub(crate) fn client(&self, own: Option<Identity>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let builder = builder.with_root_certificates(self.roots());
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(Identity(certificate, key)) => {
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Arc::new(config)
    }
}
