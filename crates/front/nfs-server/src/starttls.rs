//! The probe with which a client asks for TLS, RFC 9289 4.1.

use std::sync::Arc;

use net::{Answer, Secured};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use rustls::ServerConfig;

use crate::call::CallError;
use crate::connection::Connection;
use crate::gss::security::Channel;
use crate::{reply, run};

/// RFC 9289 4.1: "The bytes of the verifier's string encode the fixed ASCII characters 'STARTTLS'."
const STARTTLS: OpaqueAuth<'static> = OpaqueAuth { flavor: flavor::AUTH_NONE, body: b"STARTTLS" };

impl Connection {
    /// Notes that the connection is encrypted. RFC 9289 7.1: "implementations are REQUIRED to provide an audit log of
    /// RPC-with-TLS security mode selection". Anybody may begin TLS without a certificate: such connections are counted.
    pub(crate) fn encrypted(&self, with: Secured) {
        const KIND: &str = "NFS over TLS";
        let (address, Secured { cipher, certificate }) = (self.peer(), &with);
        if let Some(certificate) = certificate {
            let (names, fingerprint) = (certificate.names.join(" "), &certificate.fingerprint);
            tracing::info!(%address, cipher, certificate = names, fingerprint, "{KIND}");
        } else if let Some(left_out) = self.server.encrypted.admit_from(address, KIND) {
            tracing::info!(%address, cipher, left_out, "{KIND}");
        }
        self.callers.shown(certificate.as_ref().map_or(&[], |certificate| &certificate.names));
        self.traffic.encrypted(with.clone());
        let _ = self.secured.set(with);
    }

    /// Answers a call with the flavor AUTH_TLS.
    pub(crate) fn probed(&self, call: &Call<'_>) -> Answer {
        match self.probe(call) {
            Ok(None) => Answer::Now(reply::success(call.xid, &())),
            Ok(Some(config)) => {
                let body = ReplyBody::Accepted { verifier: STARTTLS, status: AcceptStatus::Success };
                Answer::StartTls(reply::reply(&Reply { xid: call.xid, body }, &()), config)
            }
            Err(refused) => Answer::Now(run::not_run(call.xid, refused)),
        }
    }

    /// The configuration with which TLS begins; None: this server has no TLS, which the client sees by the verifier.
    ///
    /// # Errors
    /// RFC 9289 4.1: a probe for another procedure than NULL, or within TLS, is answered with AUTH_ERROR. So is one with
    /// something in its credential, whose length "MUST be zero".
    fn probe(&self, call: &Call<'_>) -> Result<Option<Arc<ServerConfig>>, CallError> {
        run::check_program(self, call.program, call.version)?;
        if call.procedure != 0 || !call.credential.body.is_empty() || self.channel() == Channel::Encrypted {
            return Err(AuthStatus::BadCredential.into());
        }
        Ok(self.server.tls.as_ref().map(|tls| tls.present()))
    }
}
