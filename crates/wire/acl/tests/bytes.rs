//! Any bytes are decoded or refused without a panic, and what was encoded decodes to the same value.

use std::hint::black_box;

use anabranch_acl::{
    AccessMask, Ace, AceBody, AceFlags, AceType, Acl, Control, Newborn, SecurityDescriptor, Sid, Token,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn any_bytes() {
    bolero::check!().for_each(|bytes: &[u8]| {
        black_box((Acl::decode(bytes).ok(), Sid::decode(bytes).ok()));
        let Ok(mut descriptor) = SecurityDescriptor::decode(bytes) else { return };
        // Whatever a client sends can be evaluated, inherited and encoded again.
        let token = Token { uid: 1, gid: 2, groups: &[3], sids: &[] };
        black_box(descriptor.maximal_access(&token));
        let newborn = Newborn { owner: Sid::of_user(1), group: Sid::of_group(2), is_dir: true };
        black_box((descriptor.inherited_by(&newborn), descriptor.given_to(&newborn)));
        descriptor.bound_by_mode(0o640);
        assert!(descriptor.permission_bits() <= 0o777);
        black_box(descriptor.encode_into(&mut Vec::new()).ok());
    });
}

fn sid() -> impl Strategy<Value = Sid> {
    (0..1_u64 << 48, vec(any::<u32>(), 0..=15))
        .prop_map(|(authority, sub)| Sid::new(authority, &sub).expect("a SID"))
}

fn acl() -> impl Strategy<Value = Acl> {
    let basic = (any::<(bool, u32)>(), sid()).prop_map(|((allow, mask), sid)| AceBody::Basic {
        ace_type: if allow { AceType::AccessAllowed } else { AceType::AccessDenied },
        mask: AccessMask::from_bits_retain(mask),
        sid,
    });
    let other = vec(any::<[u8; 4]>(), 0..8)
        .prop_map(|words| AceBody::Other { ace_type: 0x09, data: words.as_flattened().to_vec() });
    let ace = (any::<u8>(), prop_oneof![basic, other])
        .prop_map(|(flags, body)| Ace { flags: AceFlags::from_bits_retain(flags), body });
    (any::<u8>(), vec(ace, 0..5)).prop_map(|(revision, aces)| Acl { revision, aces })
}

proptest! {
    #[test]
    fn sids(sid in sid()) {
        let mut bytes = Vec::new();
        sid.encode_into(&mut bytes);
        prop_assert_eq!(bytes.len(), sid.byte_len());
        prop_assert_eq!(Sid::decode(&bytes), Ok(sid));
        prop_assert_eq!(sid.to_string().parse(), Ok(sid));
    }

    #[test]
    fn security_descriptors(
        control in any::<u16>(), owner in proptest::option::of(sid()), group in proptest::option::of(sid()),
        sacl in proptest::option::of(acl()), dacl in proptest::option::of(acl()),
    ) {
        let control = Control::from_bits_retain(control) | Control::SELF_RELATIVE;
        let descriptor = SecurityDescriptor {
            control, owner, group,
            sacl: sacl.filter(|_| control.contains(Control::SACL_PRESENT)),
            dacl: dacl.filter(|_| control.contains(Control::DACL_PRESENT)),
        };
        let mut bytes = vec![0xAA; 3];
        descriptor.encode_into(&mut bytes).expect("short");
        prop_assert_eq!(SecurityDescriptor::decode(&bytes[3..]), Ok(descriptor));
    }
}
