//! How the gateway asks other servers: with the client of the control address.

use control_client::Error;
use gateway::control_access::Access;
use gateway::replication::{Answer, NO_SOURCE, Patience, Remote, Unanswered, WRONG_TOKEN};

/// Asks other servers.
#[derive(Debug)]
pub(crate) struct OverControl;

impl Remote for OverControl {
    fn call(
        &self,
        access: &Access,
        of: (&str, &str),
        body: &[u8],
        patience: &Patience,
    ) -> Result<Answer, Unanswered> {
        control_client::stream(access, of, body, patience).map_err(told)
    }
}

fn told(error: Error) -> Unanswered {
    const CERTIFICATE: &str = "Give the server's certificate, the file control-certificate.pem of its state directory: --certificate-file FILE";
    const TOKEN: &str = "Make a token on that server: anabranch token create NAME --scope replicate";
    const ADDRESS: &str = "The control address of that server is meant; if it has TLS, write https://.";
    let (code, advice) = match &error {
        Error::Unreachable { error, .. } if error.kind() == std::io::ErrorKind::InvalidData => {
            (NO_SOURCE, CERTIFICATE)
        }
        Error::WrongToken { .. } => (WRONG_TOKEN, TOKEN),
        Error::NotHttp { .. } => (NO_SOURCE, ADDRESS),
        _ => ("", ""),
    };
    let what = match &error {
        Error::Unreachable { address, error } if error.kind() == std::io::ErrorKind::InvalidData => {
            format!("the certificate of {address} is not the one that is trusted: {error}")
        }
        error => error.to_string(),
    };
    match error {
        Error::Refused(why) => Unanswered { what, advice: why.advice, code: why.error },
        _ => Unanswered { what, advice: advice.to_owned(), code: code.to_owned() },
    }
}
