//! Why a connection ended.

use std::io;

use rustls::CertificateError;

use crate::tls::TlsError;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("the peer closed it")]
    ByPeer,
    #[error("this side closed it")]
    ByUs,
    #[error("the server stops")]
    Shutdown,
    #[error("the client did not say who it is")]
    Nobody,
    #[error("the client was silent")]
    Silent,
    #[error("it gave way to others")]
    GaveWay,
    #[error("it held too much of what strangers may hold")]
    Greedy,
    #[error("the peer does not acknowledge what is sent")]
    Unacknowledged,
    #[error("it broke the protocol: {0}")]
    Protocol(String),
    #[error("TLS: {}", of_tls(.0))]
    Tls(rustls::Error),
    #[error("TLS: the handshake took too long")]
    Handshake,
    #[cfg(feature = "quic")]
    #[error("QUIC: {0}")]
    Quic(quinn::ConnectionError),
    #[error("a fault of this program (see the panic message)")]
    Panic,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Why TLS cannot go on. A certificate that has expired is the mistake of an administrator, who reads this.
fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => format!("the client's certificate has expired ({error})"),
        other => other.to_string(),
    }
}

impl From<TlsError> for Ended {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Io(e) => Self::Io(e),
            TlsError::Protocol(e) => Self::Tls(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_certificate_is_called_so() {
        let invalid = |why| Ended::Tls(rustls::Error::InvalidCertificate(why)).to_string();
        assert!(invalid(CertificateError::Expired).starts_with("TLS: the client's certificate has expired"));
        assert!(!invalid(CertificateError::UnknownIssuer).contains("has expired"));
    }
}
