//! Nonsense behind a good filehandle: every call is answered, and the server and its other clients go on.

use nfs_wire::rpc::{AcceptStatus, ReplyBody};
use nfs_wire::v3;
use nfs_wire::xdr::Encode;

use crate::client::{Raw, TestServer};

/// Numbers that look random and are the same in every run (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// A word as protocols have them: small, large, or anything.
    fn word(&mut self) -> u32 {
        match self.next() % 4 {
            0 => self.next() % 4,
            1 => self.next() % 300,
            2 => u32::MAX - self.next() % 4,
            _ => self.next(),
        }
    }
}

#[test]
fn nonsense_is_answered() {
    let server = TestServer::start();
    let (mut neighbour, root) = server.mounted();
    let mut client = server.client();
    let file = neighbour.make_file(root, "file", 0o644, b"kept");
    let mut numbers = Numbers(2026);
    let mut ran = 0;
    for round in 0..4000 {
        let mut args = if round % 2 == 0 { root } else { file }.encode_to_vec();
        for _ in 0..numbers.next() % 12 {
            args.extend(numbers.word().to_be_bytes());
        }
        // Not SETATTR of a size that would fill the memory of this test, and nothing that removes the file.
        let procedure =
            [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21][numbers.next() as usize % 16];
        let (body, _) = client.exchange((v3::PROGRAM, v3::VERSION, procedure), &Raw(&args));
        match body {
            ReplyBody::Accepted { status: AcceptStatus::Success, .. } => ran += 1,
            other => assert_eq!(other, ReplyBody::accepted(AcceptStatus::GarbageArgs)),
        }
    }
    assert!(ran > 100, "{ran} calls had arguments that decode");
    assert_eq!(neighbour.lookup(root, "file").unwrap().object, file);
}
