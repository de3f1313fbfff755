//! NEGOTIATE: choosing dialect, cipher, signing algorithm and capabilities. [MS-SMB2] 3.3.5.4.

use std::ops::RangeInclusive;

use smb_wire::negotiate::{Capabilities, Request, SecurityMode};
use smb_wire::negotiate_context::{HashAlgorithm, NegotiateContext, TransportFlags};
use smb_wire::{Guid, NtStatus};

use crate::dialect::{Cipher, Dialect, SigningAlgorithm};

/// What this server offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The dialects, oldest to newest.
    pub dialects: RangeInclusive<Dialect>,
    /// The ciphers in order of preference; none if encryption is switched off.
    pub ciphers: Vec<Cipher>,
    /// The signing algorithms of SMB 3.1.1 in order of preference.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether what carries the connection encrypts, and that is enough for the server: DisableEncryptionOverSecureTransport
    /// on a connection over QUIC.
    pub transport_security: bool,
    /// The server's capabilities. Those that the dialect or the client does not support are left out of the response.
    pub capabilities: Capabilities,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            dialects: Dialect::Smb202..=Dialect::Smb311,
            ciphers: Cipher::ALL.to_vec(),
            signing_algorithms: SigningAlgorithm::ALL.to_vec(),
            transport_security: false,
            capabilities: Capabilities::LARGE_MTU,
        }
    }
}

/// What a connection has negotiated, and what its client announced: Connection of [MS-SMB2] 3.3.1.7.
#[derive(Clone, Debug)]
pub struct Negotiated {
    /// Connection.Dialect
    pub dialect: Dialect,
    /// Connection.CipherId; `None` if nothing can be encrypted
    pub cipher: Option<Cipher>,
    /// Connection.SigningAlgorithmId, or the dialect's algorithm
    pub signing_algorithm: SigningAlgorithm,
    /// Connection.AcceptTransportSecurity: client and server rely on the encryption of what carries the connection, so
    /// messages need not be encrypted
    pub transport_security: bool,
    /// Connection.SupportsMultiCredit: a request may cost more than one credit
    pub supports_multi_credit: bool,
    /// Connection.ServerCapabilities: the Capabilities of the response
    pub server_capabilities: Capabilities,
    /// Connection.ClientCapabilities
    pub client_capabilities: Capabilities,
    /// Connection.ClientSecurityMode
    pub client_security_mode: SecurityMode,
    /// Connection.ClientGuid
    pub client_guid: Guid,
    /// Connection.ClientDialects, in the order received
    pub client_dialects: Vec<u16>,
    encryption_asked: bool,
    signing_asked: bool,
}

impl Negotiated {
    /// Connection.ShouldSign: the client requires signing.
    pub fn client_requires_signing(&self) -> bool {
        self.client_security_mode.contains(SecurityMode::SIGNING_REQUIRED)
    }

    /// The negotiate contexts of the response; none below SMB 3.1.1. `salt` is random.
    pub fn response_contexts<'a>(&self, salt: &'a [u8; 32]) -> Vec<NegotiateContext<'a>> {
        let mut contexts = Vec::new();
        if self.dialect < Dialect::Smb311 {
            return contexts;
        }
        contexts
            .push(NegotiateContext::PreauthIntegrity { hash_algorithms: vec![HashAlgorithm::Sha512], salt });
        if self.encryption_asked {
            // the identifier 0 says that there is no common cipher
            contexts.push(NegotiateContext::Encryption(vec![self.cipher.map_or(0, Cipher::id).into()]));
        }
        if self.signing_asked {
            contexts.push(NegotiateContext::Signing(vec![self.signing_algorithm.id().into()]));
        }
        if self.transport_security {
            contexts.push(NegotiateContext::Transport(TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY));
        }
        contexts
    }
}

/// Chooses among what the server offers and the client asks for.
///
/// # Errors
/// The status of the error response: STATUS_INVALID_PARAMETER for a request without dialects or with a malformed set of
/// negotiate contexts, STATUS_NOT_SUPPORTED without a common dialect, and STATUS_SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP
/// if the client and the server have no hash in common.
pub fn negotiate(offer: &Offer, request: &Request<'_>) -> Result<Negotiated, NtStatus> {
    let client_dialects: Vec<u16> = request.dialects.iter().map(|dialect| u16::from(*dialect)).collect();
    if client_dialects.is_empty() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let dialect = client_dialects
        .iter()
        .filter_map(|revision| Dialect::from_revision(*revision))
        .filter(|dialect| offer.dialects.contains(dialect))
        .max()
        .ok_or(NtStatus::NOT_SUPPORTED)?;

    let contexts = if dialect >= Dialect::Smb311 { Contexts::read(request)? } else { Contexts::default() };
    let cipher = choose_cipher(offer, dialect, request.capabilities, contexts.ciphers.as_deref());
    let agreed = contexts.signing.as_deref().and_then(|asked| {
        offer.signing_algorithms.iter().copied().find(|algorithm| asked.contains(&algorithm.id()))
    });
    // 3.3.5.4: "If SMB2_ACCEPT_TRANSPORT_LEVEL_SECURITY is set in the Flags field, the server MUST set
    // Connection.AcceptTransportSecurity to TRUE", on a connection over QUIC and with
    // DisableEncryptionOverSecureTransport.
    let accepted = contexts.transport.is_some_and(|flags| {
        offer.transport_security && flags.contains(TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY)
    });
    let supports_multi_credit =
        dialect >= Dialect::Smb210 && offer.capabilities.contains(Capabilities::LARGE_MTU);
    Ok(Negotiated {
        dialect,
        cipher,
        signing_algorithm: agreed.unwrap_or_else(|| SigningAlgorithm::default_of(dialect)),
        transport_security: accepted,
        supports_multi_credit,
        server_capabilities: answer_capabilities(offer, dialect, request.capabilities, cipher),
        client_capabilities: request.capabilities,
        client_security_mode: request.security_mode,
        client_guid: request.client_guid,
        client_dialects,
        encryption_asked: contexts.ciphers.is_some(),
        signing_asked: agreed.is_some(),
    })
}

/// The contexts of a request that this server acts on. Unknown ones are ignored, as [MS-SMB2] 3.3.5.4 demands.
#[derive(Default)]
struct Contexts {
    ciphers: Option<Vec<u16>>,
    signing: Option<Vec<u16>>,
    transport: Option<TransportFlags>,
}

impl Contexts {
    fn read(request: &Request<'_>) -> Result<Self, NtStatus> {
        let (mut preauth, mut transport) = (None, None);
        let (mut ciphers, mut signing, mut compression, mut rdma) = (None, None, None, None);
        for context in &request.contexts {
            match context {
                NegotiateContext::PreauthIntegrity { hash_algorithms, .. } => {
                    once(&mut preauth, some_ids(hash_algorithms)?)?;
                }
                NegotiateContext::Encryption(asked) => once(&mut ciphers, ids(asked))?,
                NegotiateContext::Signing(asked) => once(&mut signing, some_ids(asked)?)?,
                NegotiateContext::Compression { algorithms, .. } => {
                    once(&mut compression, some_ids(algorithms)?)?;
                }
                NegotiateContext::RdmaTransform(asked) => once(&mut rdma, some_ids(asked)?)?,
                NegotiateContext::Transport(flags) => once(&mut transport, *flags)?,
                NegotiateContext::Netname(_) | NegotiateContext::Other { .. } => {}
            }
        }
        let preauth = preauth.ok_or(NtStatus::INVALID_PARAMETER)?;
        if !preauth.contains(&u16::from(HashAlgorithm::Sha512)) {
            return Err(NtStatus::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP);
        }
        // 3.3.5.4: "If EncryptionContext.CipherCount is 0, the server MUST fail the request." Clients with encryption
        // switched off do send such a context, and Samba treats it as absent.
        let ciphers = ciphers.filter(|asked| !asked.is_empty());
        Ok(Self { ciphers, signing, transport })
    }
}

fn ids<T: Copy + Into<u16>>(values: &[T]) -> Vec<u16> {
    values.iter().map(|value| (*value).into()).collect()
}

/// The list of a context that must not be empty.
fn some_ids<T: Copy + Into<u16>>(values: &[T]) -> Result<Vec<u16>, NtStatus> {
    if values.is_empty() { Err(NtStatus::INVALID_PARAMETER) } else { Ok(ids(values)) }
}

/// Each kind of context may come once.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), NtStatus> {
    if slot.is_some() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    *slot = Some(value);
    Ok(())
}

fn choose_cipher(
    offer: &Offer,
    dialect: Dialect,
    client: Capabilities,
    asked: Option<&[u16]>,
) -> Option<Cipher> {
    match dialect {
        Dialect::Smb202 | Dialect::Smb210 => None,
        Dialect::Smb300 | Dialect::Smb302 => (client.contains(Capabilities::ENCRYPTION)
            && offer.ciphers.contains(&Cipher::Aes128Ccm))
        .then_some(Cipher::Aes128Ccm),
        Dialect::Smb311 => {
            let asked = asked?;
            offer.ciphers.iter().copied().find(|cipher| asked.contains(&cipher.id()))
        }
    }
}

/// The Capabilities of the response. SMB 3.x features are confirmed only to a client that announced them.
fn answer_capabilities(
    offer: &Offer,
    dialect: Dialect,
    client: Capabilities,
    cipher: Option<Cipher>,
) -> Capabilities {
    let mut known = Capabilities::DFS;
    if dialect >= Dialect::Smb210 {
        known |= Capabilities::LEASING | Capabilities::LARGE_MTU;
    }
    if dialect.is_smb3() {
        let mutual =
            Capabilities::MULTI_CHANNEL | Capabilities::PERSISTENT_HANDLES | Capabilities::DIRECTORY_LEASING;
        known |= mutual & client;
    }
    if dialect >= Dialect::Smb311 {
        known |= Capabilities::NOTIFICATIONS & client;
    }
    let mut capabilities = offer.capabilities & known;
    // in SMB 3.1.1 the negotiate context announces encryption
    capabilities.set(Capabilities::ENCRYPTION, cipher.is_some() && dialect < Dialect::Smb311);
    capabilities
}

#[cfg(test)]
mod tests;
