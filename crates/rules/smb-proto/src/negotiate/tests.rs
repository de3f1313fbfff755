use smb_wire::negotiate_context::{CompressionAlgorithm, CompressionFlags};

use super::*;

fn request(dialects: &[u16], contexts: Vec<NegotiateContext<'static>>) -> Request<'static> {
    Request {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::all(),
        client_guid: Guid::default(),
        dialects: dialects.iter().map(|dialect| (*dialect).into()).collect(),
        contexts,
    }
}

fn preauth(ids: &[u16]) -> NegotiateContext<'static> {
    NegotiateContext::PreauthIntegrity {
        hash_algorithms: ids.iter().map(|id| (*id).into()).collect(),
        salt: b"salt",
    }
}

fn ciphers(ids: &[u16]) -> NegotiateContext<'static> {
    NegotiateContext::Encryption(ids.iter().map(|id| (*id).into()).collect())
}

fn signing(ids: &[u16]) -> NegotiateContext<'static> {
    NegotiateContext::Signing(ids.iter().map(|id| (*id).into()).collect())
}

fn everything() -> Offer {
    Offer { capabilities: Capabilities::all(), ..Offer::default() }
}

#[test]
fn the_greatest_common_dialect_is_taken() {
    let offer = Offer { dialects: Dialect::Smb210..=Dialect::Smb302, ..everything() };
    let cases: [(&[u16], Result<Dialect, NtStatus>); 6] = [
        (&[0x0202, 0x0210], Ok(Dialect::Smb210)),
        (&[0x0311, 0x0300, 0x0210], Ok(Dialect::Smb300)),
        (&[0x0302, 0x9999], Ok(Dialect::Smb302)),
        (&[0x0202, 0x0311, 0x02ff], Err(NtStatus::NOT_SUPPORTED)),
        (&[0x9999], Err(NtStatus::NOT_SUPPORTED)),
        (&[], Err(NtStatus::INVALID_PARAMETER)),
    ];
    for (dialects, expected) in cases {
        let answer = negotiate(&offer, &request(dialects, vec![])).map(|agreed| agreed.dialect);
        assert_eq!(answer, expected, "{dialects:x?}");
    }
}

#[test]
fn smb311_needs_exactly_one_known_hash() {
    let status = |contexts| negotiate(&everything(), &request(&[0x0311], contexts)).err();
    assert_eq!(status(vec![preauth(&[1])]), None);
    assert_eq!(status(vec![preauth(&[7, 1])]), None);
    assert_eq!(status(vec![]), Some(NtStatus::INVALID_PARAMETER));
    assert_eq!(status(vec![preauth(&[1]), preauth(&[1])]), Some(NtStatus::INVALID_PARAMETER));
    assert_eq!(status(vec![preauth(&[])]), Some(NtStatus::INVALID_PARAMETER));
    assert_eq!(status(vec![preauth(&[2])]), Some(NtStatus::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP));
}

#[test]
fn no_context_may_come_twice_or_empty() {
    let compression = || NegotiateContext::Compression {
        flags: CompressionFlags::empty(),
        algorithms: vec![CompressionAlgorithm::Lz77],
    };
    let wrong = [
        vec![preauth(&[1]), ciphers(&[1]), ciphers(&[2])],
        vec![preauth(&[1]), signing(&[1]), signing(&[1])],
        vec![preauth(&[1]), compression(), compression()],
        vec![preauth(&[1]), ciphers(&[]), ciphers(&[])],
        vec![preauth(&[1]), signing(&[])],
        vec![preauth(&[1]), transport(TransportFlags::empty()), transport(TransportFlags::empty())],
    ];
    for contexts in wrong {
        let answer = negotiate(&everything(), &request(&[0x0311], contexts));
        assert_eq!(answer.err(), Some(NtStatus::INVALID_PARAMETER));
    }
    // an unknown context is ignored, and the contexts of older dialects are not looked at
    let unknown = NegotiateContext::Other { context_type: 0x0100, data: b"x" };
    assert!(negotiate(&everything(), &request(&[0x0311], vec![preauth(&[1]), unknown])).is_ok());
    assert!(negotiate(&everything(), &request(&[0x0302], vec![])).is_ok());
}

#[test]
fn the_server_prefers_gcm_and_gmac() {
    let agree = |offer: &Offer, contexts| negotiate(offer, &request(&[0x0311], contexts)).unwrap();
    let agreed = agree(&everything(), vec![preauth(&[1]), ciphers(&[3, 1, 4, 2]), signing(&[0, 1, 2])]);
    assert_eq!(agreed.cipher, Some(Cipher::Aes128Gcm));
    assert_eq!(agreed.signing_algorithm, SigningAlgorithm::AesGmac);
    assert_eq!(agreed.response_contexts(&[7; 32]), [preauth_answer(), ciphers(&[2]), signing(&[2])]);

    let strong = Offer { ciphers: vec![Cipher::Aes256Gcm, Cipher::Aes128Gcm], ..everything() };
    let agreed = agree(&strong, vec![preauth(&[1]), ciphers(&[2, 4]), signing(&[0])]);
    assert_eq!(agreed.cipher, Some(Cipher::Aes256Gcm));
    assert_eq!(agreed.signing_algorithm, SigningAlgorithm::HmacSha256);
}

#[test]
fn without_a_common_cipher_the_answer_is_zero_and_signing_falls_back_to_cmac() {
    let offer = Offer { ciphers: vec![], ..everything() };
    let contexts = vec![preauth(&[1]), ciphers(&[1, 2]), signing(&[9])];
    let agreed = negotiate(&offer, &request(&[0x0311], contexts)).unwrap();
    assert_eq!((agreed.cipher, agreed.signing_algorithm), (None, SigningAlgorithm::AesCmac));
    assert_eq!(agreed.response_contexts(&[7; 32]), [preauth_answer(), ciphers(&[0])]);

    // An empty list of ciphers means no encryption, like a missing context.
    for contexts in [vec![preauth(&[1])], vec![preauth(&[1]), ciphers(&[])]] {
        let agreed = negotiate(&everything(), &request(&[0x0311], contexts)).unwrap();
        assert_eq!((agreed.cipher, agreed.signing_algorithm), (None, SigningAlgorithm::AesCmac));
        assert_eq!(agreed.response_contexts(&[7; 32]), [preauth_answer()]);
    }
}

fn transport(flags: TransportFlags) -> NegotiateContext<'static> {
    NegotiateContext::Transport(flags)
}

#[test]
fn transport_security_needs_client_and_server() {
    let accept = TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY;
    let agree = |offered, dialect, contexts| {
        let offer = Offer { transport_security: offered, ..everything() };
        let agreed = negotiate(&offer, &request(&[dialect], contexts)).unwrap();
        let told = agreed.response_contexts(&[7; 32]).contains(&transport(accept));
        assert_eq!(told, agreed.transport_security, "the client learns it");
        told
    };
    assert!(agree(true, 0x0311, vec![preauth(&[1]), transport(accept)]));
    assert!(!agree(false, 0x0311, vec![preauth(&[1]), transport(accept)]));
    assert!(!agree(true, 0x0311, vec![preauth(&[1])]));
    assert!(!agree(true, 0x0311, vec![preauth(&[1]), transport(TransportFlags::empty())]));
    assert!(!agree(true, 0x0302, vec![transport(accept)]), "only SMB 3.1.1 has contexts");
}

fn preauth_answer() -> NegotiateContext<'static> {
    NegotiateContext::PreauthIntegrity { hash_algorithms: vec![HashAlgorithm::Sha512], salt: &[7; 32] }
}

#[test]
fn older_dialects_encrypt_with_ccm_or_not_at_all() {
    let agree = |dialect, capabilities| {
        let request = Request { capabilities, ..request(&[dialect], vec![]) };
        let agreed = negotiate(&everything(), &request).unwrap();
        assert!(agreed.response_contexts(&[0; 32]).is_empty());
        let announced = agreed.server_capabilities.contains(Capabilities::ENCRYPTION);
        (agreed.cipher, announced, agreed.signing_algorithm)
    };
    let ccm = Some(Cipher::Aes128Ccm);
    assert_eq!(agree(0x0302, Capabilities::ENCRYPTION), (ccm, true, SigningAlgorithm::AesCmac));
    assert_eq!(agree(0x0300, Capabilities::empty()), (None, false, SigningAlgorithm::AesCmac));
    assert_eq!(agree(0x0210, Capabilities::ENCRYPTION), (None, false, SigningAlgorithm::HmacSha256));
}

#[test]
fn capabilities_follow_dialect_and_client() {
    let agree = |dialect, capabilities| {
        let request = Request { capabilities, ..request(&[dialect], vec![preauth(&[1])]) };
        let agreed = negotiate(&everything(), &request).unwrap();
        (agreed.server_capabilities, agreed.supports_multi_credit)
    };
    let (all, none) = (Capabilities::all(), Capabilities::empty());
    let base = Capabilities::DFS | Capabilities::LEASING | Capabilities::LARGE_MTU;
    assert_eq!(agree(0x0202, all), (Capabilities::DFS, false));
    assert_eq!(agree(0x0210, all), (base, true));
    assert_eq!(agree(0x0311, none), (base, true));
    let (answered, _) = agree(0x0311, all);
    assert!(answered.contains(Capabilities::MULTI_CHANNEL | Capabilities::DIRECTORY_LEASING));
    assert!(!answered.contains(Capabilities::ENCRYPTION));
}

#[test]
fn no_request_makes_the_negotiation_panic() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut message = vec![0; 64];
        message.extend_from_slice(&[36, 0]);
        message.extend_from_slice(bytes);
        if let Ok(request) = Request::decode(&message)
            && let Ok(agreed) = negotiate(&everything(), &request)
        {
            assert!(agreed.client_dialects.contains(&agreed.dialect.revision()));
            let _ = agreed.response_contexts(&[0; 32]);
        }
    });
}
