//! Builds a security descriptor, writes it, reads it again, and asks who may do what.
//!
//!     cargo run --example who_may

use anabranch_acl::{AccessMask, Ace, AceFlags, Acl, Control, Malformed, SecurityDescriptor, Sid, Token};

fn main() -> Result<(), Malformed> {
    let read = AccessMask::READ_DATA | AccessMask::READ_ATTRIBUTES;
    let aces = vec![
        Ace::deny(Sid::of_user(1001), AccessMask::WRITE_DATA, AceFlags::empty()),
        Ace::allow(Sid::of_group(100), read | AccessMask::WRITE_DATA, AceFlags::empty()),
        Ace::allow(Sid::EVERYONE, read, AceFlags::empty()),
    ];
    let descriptor = SecurityDescriptor {
        control: Control::DACL_PRESENT,
        owner: Some(Sid::of_user(1000)),
        group: Some(Sid::of_group(100)),
        dacl: Some(Acl { revision: 2, aces }),
        ..SecurityDescriptor::default()
    };

    let mut bytes = Vec::new();
    descriptor.encode_into(&mut bytes)?;
    println!("{} bytes", bytes.len());

    let descriptor = SecurityDescriptor::decode(&bytes)?;
    for (uid, gid) in [(1000, 100), (1001, 100), (1002, 100), (1003, 200)] {
        let token = Token { uid, gid, groups: &[], sids: &[] };
        println!("user {uid} of group {gid}: {:?}", descriptor.maximal_access(&token));
    }
    Ok(())
}
