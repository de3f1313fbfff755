//! SPNEGO tokens, RFC 4178 with the additions of [MS-SPNG] 2.2.1 (NegTokenInit2).

use krb5::der::{
    APPLICATION_0, DerError, ENUMERATED, GENERAL_STRING, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE,
    context, element,
};

/// 1.3.6.1.5.5.2, SPNEGO itself.
const SPNEGO: &[u8] = &[0x2b, 6, 1, 5, 5, 2];
/// 1.3.6.1.4.1.311.2.2.10, NTLMSSP.
pub const NTLMSSP: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
/// 1.2.840.113554.1.2.2, Kerberos 5.
pub const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
/// 1.2.840.48018.1.2.2, as Windows writes Kerberos. [MS-SPNG] 3.2.5.2, note: an old version of Windows took the OID
/// apart wrongly, and both are one mechanism.
pub const MS_KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 1, 2, 2];
/// The hintName of NegTokenInit2. [MS-SPNG] 3.2.5.2.
const HINT_NAME: &[u8] = b"not_defined_in_RFC4178@please_ignore";
/// The most mechanisms that an initiator may offer; actual clients offer up to five.
const MECH_TYPES_MAX: usize = 32;

/// The bytes are not a SPNEGO token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SPNEGO token")]
pub struct SpnegoError;

impl From<DerError> for SpnegoError {
    fn from(_: DerError) -> Self {
        Self
    }
}

/// The mechanisms that an initiator offers, in order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MechTypes {
    /// The content of each OBJECT IDENTIFIER.
    pub oids: Vec<Vec<u8>>,
    /// MechTypeList as it was sent: what mechListMIC covers.
    pub encoding: Vec<u8>,
}

impl MechTypes {
    /// A list of these mechanisms, in order of preference.
    pub fn new(oids: &[&[u8]]) -> Self {
        let list: Vec<u8> = oids.iter().flat_map(|oid| element(OBJECT_IDENTIFIER, oid)).collect();
        Self { oids: oids.iter().map(|oid| oid.to_vec()).collect(), encoding: element(SEQUENCE, &list) }
    }

    fn decode(content: &[u8]) -> Result<Self, SpnegoError> {
        let (list, encoding) = Reader::new(content).element_and_encoding(SEQUENCE)?;
        let mut oids = Vec::new();
        let mut reader = Reader::new(list);
        while !reader.is_empty() {
            if oids.len() == MECH_TYPES_MAX {
                return Err(SpnegoError);
            }
            oids.push(reader.element(OBJECT_IDENTIFIER)?.to_vec());
        }
        Ok(Self { oids, encoding: encoding.to_vec() })
    }

    /// Bytes of the list, in both forms.
    pub(crate) fn held_bytes(&self) -> usize {
        let of_oid = |oid: &Vec<u8>| oid.capacity().saturating_add(size_of::<Vec<u8>>());
        self.encoding.capacity().saturating_add(self.oids.iter().map(of_oid).sum())
    }

    /// Whether `oid` is the preferred mechanism.
    pub fn prefers(&self, oid: &[u8]) -> bool {
        self.oids.first().is_some_and(|first| first == oid)
    }

    /// Whether `oid` is offered at all.
    pub fn offers(&self, oid: &[u8]) -> bool {
        self.oids.iter().any(|offered| offered == oid)
    }
}

/// The first token of an initiator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegTokenInit<'a> {
    /// The mechanisms that the initiator offers.
    pub mech_types: MechTypes,
    /// An optimistic token for the preferred mechanism.
    pub mech_token: Option<&'a [u8]>,
    /// A MIC over `mech_types`.
    pub mech_list_mic: Option<&'a [u8]>,
}

/// The state of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegState {
    /// accept-completed
    AcceptCompleted,
    /// accept-incomplete
    AcceptIncomplete,
    /// reject
    Reject,
    /// request-mic
    RequestMic,
}

impl NegState {
    const ALL: [Self; 4] = [Self::AcceptCompleted, Self::AcceptIncomplete, Self::Reject, Self::RequestMic];

    fn value(self) -> u8 {
        match self {
            Self::AcceptCompleted => 0,
            Self::AcceptIncomplete => 1,
            Self::Reject => 2,
            Self::RequestMic => 3,
        }
    }
}

/// Every later token, of either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegTokenResp<'a> {
    /// The state of the negotiation.
    pub neg_state: Option<NegState>,
    /// The mechanism that the acceptor selected, in its first token.
    pub supported_mech: Option<&'a [u8]>,
    /// A token for the mechanism.
    pub response_token: Option<&'a [u8]>,
    /// A MIC over the initiator's MechTypeList.
    pub mech_list_mic: Option<&'a [u8]>,
}

/// A token as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// NegTokenInit or NegTokenInit2
    Init(NegTokenInit<'a>),
    /// NegTokenResp
    Resp(NegTokenResp<'a>),
}

impl<'a> Token<'a> {
    /// Decodes a token. A NegTokenInit may come with or without the GSS-API header (RFC 2743 3.1).
    ///
    /// # Errors
    /// [`SpnegoError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SpnegoError> {
        let mut reader = Reader::new(bytes);
        if let Some(content) = reader.optional(APPLICATION_0)? {
            reader = Reader::new(content);
            if reader.element(OBJECT_IDENTIFIER)? != SPNEGO {
                return Err(SpnegoError);
            }
        }
        if let Some(init) = reader.optional(context(0))? {
            return NegTokenInit::decode(init).map(Self::Init);
        }
        NegTokenResp::decode(reader.element(context(1))?).map(Self::Resp)
    }
}

impl<'a> NegTokenInit<'a> {
    fn decode(content: &'a [u8]) -> Result<Self, SpnegoError> {
        let mut fields = Reader::new(Reader::new(content).element(SEQUENCE)?);
        let mech_types = MechTypes::decode(fields.element(context(0))?)?;
        let _req_flags = fields.optional(context(1))?;
        let mech_token = octets(fields.optional(context(2))?)?;
        // [3] is mechListMIC in RFC 4178 and negHints, a SEQUENCE, in [MS-SPNG], which has mechListMIC at [4]
        let mut mech_list_mic = None;
        if let Some(third) = fields.optional(context(3))?
            && Reader::new(third).peek_tag() == Some(OCTET_STRING)
        {
            mech_list_mic = octets(Some(third))?;
        }
        if let Some(fourth) = fields.optional(context(4))? {
            mech_list_mic = octets(Some(fourth))?;
        }
        Ok(Self { mech_types, mech_token, mech_list_mic })
    }

    /// The token's bytes, including the GSS-API header.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = element(context(0), &self.mech_types.encoding);
        put_octets(&mut fields, 2, self.mech_token);
        put_octets(&mut fields, 3, self.mech_list_mic);
        initial_token(&fields)
    }
}

impl<'a> NegTokenResp<'a> {
    fn decode(content: &'a [u8]) -> Result<Self, SpnegoError> {
        let mut fields = Reader::new(Reader::new(content).element(SEQUENCE)?);
        let mut neg_state = None;
        if let Some(state) = fields.optional(context(0))? {
            let &[value] = Reader::new(state).element(ENUMERATED)? else { return Err(SpnegoError) };
            let known = NegState::ALL.into_iter().find(|state| state.value() == value);
            neg_state = Some(known.ok_or(SpnegoError)?);
        }
        let mut supported_mech = None;
        if let Some(mech) = fields.optional(context(1))? {
            supported_mech = Some(Reader::new(mech).element(OBJECT_IDENTIFIER)?);
        }
        let response_token = octets(fields.optional(context(2))?)?;
        let mech_list_mic = octets(fields.optional(context(3))?)?;
        Ok(Self { neg_state, supported_mech, response_token, mech_list_mic })
    }

    /// The token's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        if let Some(state) = self.neg_state {
            fields.extend(element(context(0), &element(ENUMERATED, &[state.value()])));
        }
        if let Some(mech) = self.supported_mech {
            fields.extend(element(context(1), &element(OBJECT_IDENTIFIER, mech)));
        }
        put_octets(&mut fields, 2, self.response_token);
        put_octets(&mut fields, 3, self.mech_list_mic);
        element(context(1), &element(SEQUENCE, &fields))
    }
}

/// The token that an acceptor sends unasked, for the security buffer of SMB's NEGOTIATE response: it offers these
/// mechanisms. [MS-SPNG] 2.2.1, 3.2.5.2.
pub fn neg_token_init2(mechanisms: &[&[u8]]) -> Vec<u8> {
    let mut fields = element(context(0), &MechTypes::new(mechanisms).encoding);
    let hint_name = element(context(0), &element(GENERAL_STRING, HINT_NAME));
    fields.extend(element(context(3), &element(SEQUENCE, &hint_name)));
    initial_token(&fields)
}

fn initial_token(fields: &[u8]) -> Vec<u8> {
    let mut content = element(OBJECT_IDENTIFIER, SPNEGO);
    content.extend(element(context(0), &element(SEQUENCE, fields)));
    element(APPLICATION_0, &content)
}

fn octets(field: Option<&[u8]>) -> Result<Option<&[u8]>, SpnegoError> {
    field.map(|content| Ok(Reader::new(content).element(OCTET_STRING)?)).transpose()
}

fn put_octets(fields: &mut Vec<u8>, number: u8, value: Option<&[u8]>) {
    if let Some(value) = value {
        fields.extend(element(context(number), &element(OCTET_STRING, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_encoding_and_decoding() {
        let init = NegTokenInit {
            mech_types: MechTypes::new(&[KERBEROS, NTLMSSP]),
            mech_token: Some(b"token"),
            mech_list_mic: Some(b"mic"),
        };
        assert_eq!(Token::decode(&init.encode()), Ok(Token::Init(init.clone())));
        for neg_state in NegState::ALL {
            let long = vec![7; 300];
            let resp = NegTokenResp {
                neg_state: Some(neg_state),
                supported_mech: Some(NTLMSSP),
                response_token: Some(&long),
                mech_list_mic: Some(&[1; 16]),
            };
            assert_eq!(Token::decode(&resp.encode()), Ok(Token::Resp(resp)));
        }
        let empty = NegTokenResp::default();
        assert_eq!(Token::decode(&empty.encode()), Ok(Token::Resp(empty)));
    }

    /// NegTokenInit2 puts negHints where RFC 4178 has mechListMIC.
    #[test]
    fn hints_are_no_mic() {
        let token = neg_token_init2(&[NTLMSSP]);
        let Ok(Token::Init(init)) = Token::decode(&token) else { panic!("a NegTokenInit2") };
        assert!(init.mech_types.prefers(NTLMSSP));
        assert_eq!((init.mech_token, init.mech_list_mic), (None, None));
    }

    #[test]
    fn broken_tokens_are_refused() {
        let resp = |state: u8| [0xa1, 7, 0x30, 5, 0xa0, 3, 0x0a, 1, state];
        assert!(Token::decode(&resp(3)).is_ok());
        assert_eq!(Token::decode(&resp(4)), Err(SpnegoError));
        let mut kerberos = NegTokenInit {
            mech_types: MechTypes::new(&[NTLMSSP; MECH_TYPES_MAX]),
            mech_token: None,
            mech_list_mic: None,
        };
        assert!(Token::decode(&kerberos.encode()).is_ok());
        kerberos.mech_types = MechTypes::new(&[NTLMSSP; MECH_TYPES_MAX + 1]);
        assert_eq!(Token::decode(&kerberos.encode()), Err(SpnegoError));
        let whole = neg_token_init2(&[NTLMSSP]);
        for length in 0..whole.len() {
            assert_eq!(Token::decode(&whole[..length]), Err(SpnegoError));
        }
        // another mechanism's initial token
        let other = element(APPLICATION_0, &element(OBJECT_IDENTIFIER, KERBEROS));
        assert_eq!(Token::decode(&other), Err(SpnegoError));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        bolero::check!().for_each(|bytes: &[u8]| {
            if let Ok(Token::Init(init)) = Token::decode(bytes) {
                assert!(Token::decode(&init.encode()).is_ok());
            }
        });
    }
}
