//! Any possible NFSv4 operation, result and callback is the same after it is encoded and decoded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arguments;
mod results;
mod seed;

use std::collections::BTreeSet;

use anabranch_nfs_wire::v4::attr::{Attribute, Attributes, AttributesBuf};
use anabranch_nfs_wire::v4::callback;
use anabranch_nfs_wire::v4::compound::{self, ArgOp, ResOp};
use anabranch_nfs_wire::v4::open::{Claim, CreateHow, DelegationType, How};
use anabranch_nfs_wire::v4::status::Status;
use anabranch_nfs_wire::v4::types::Text;
use anabranch_nfs_wire::v4::{self};
use anabranch_nfs_wire::xdr::{Decode, Encode, Writer};
use proptest::prelude::*;

use crate::seed::seed;

/// Encodes operations as a COMPOUND and decodes them again.
fn through_a_compound(operations: &[ArgOp<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    compound::encode_args(&mut Writer::new(&mut bytes), "a tag", 2, operations);
    bytes
}

/// A COMPOUND's result with these results.
fn through_a_result(status: Result<(), Status>, results: &[ResOp<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let head = compound::ResultsHead::begin(&mut writer, Text(b"a tag"));
    results.iter().for_each(|result| result.encode(&mut writer));
    head.finish(&mut writer, status, u32::try_from(results.len()).unwrap());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn arguments(seed in seed()) {
        let operations = seed.arguments();
        let read = |bytes: &[u8]| {
            let args = compound::Args::from_bytes(bytes).unwrap();
            let mut operations = args.operations;
            let read: Vec<_> = operations.by_ref().map(|op| op.map_err(|bad| bad.status)).collect();
            assert!(operations.rest().is_empty());
            read.len()
        };
        let bytes = through_a_compound(&operations);
        let args = compound::Args::from_bytes(&bytes).unwrap();
        let decoded: Vec<_> = args.operations.map(Result::unwrap).collect();
        prop_assert_eq!(&decoded, &operations);
        prop_assert_eq!(read(&bytes), operations.len());
        for operation in &operations {
            let bytes = through_a_compound(std::slice::from_ref(operation));
            let head = through_a_compound(&[]).len();
            for cut in (head..bytes.len()).step_by((bytes.len() - head) / 16 + 1) {
                let mut cut_off = compound::Args::from_bytes(&bytes[..cut]).unwrap().operations;
                prop_assert!(cut_off.next().unwrap().is_err(), "{:?} cut at {}", operation, cut);
            }
        }
    }

    /// RFC 7531: NFSv4.0 has no EXCLUSIVE4_1, no claim without a name but CLAIM_PREVIOUS, and no OPEN_DELEGATE_NONE_EXT.
    #[test]
    fn minor_version_0_has_fewer_ways_to_open(seed in seed()) {
        use v4::open::Args;
        for open in seed.opens() {
            let mut bytes = Vec::new();
            compound::encode_args(&mut Writer::new(&mut bytes), "", 0, std::slice::from_ref(&open));
            let read = compound::Args::from_bytes(&bytes).unwrap().operations.next().unwrap();
            let ArgOp::Open(Args { how, claim, .. }) = &open else { continue };
            let since_1 = matches!(how, How::Create(CreateHow::ExclusiveWithAttributes(..)))
                || matches!(claim, Claim::Fh | Claim::DelegCurFh(_) | Claim::DelegPrevFh)
                || matches!(claim, Claim::Previous(DelegationType::NoneExt));
            prop_assert_eq!(read.ok(), (!since_1).then_some(open));
        }
    }

    #[test]
    fn results(seed in seed()) {
        let results = seed.results();
        let bytes = through_a_result(seed.outcome(), &results);
        let res = compound::Res::from_bytes(&bytes).unwrap();
        prop_assert_eq!(res.status, seed.outcome());
        let decoded: Vec<_> = res.results.map(Result::unwrap).collect();
        prop_assert_eq!(&decoded, &results);
        for result in &results {
            let bytes = result.encode_to_vec();
            for cut in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
                prop_assert!(ResOp::from_bytes(&bytes[..cut]).is_err(), "{:?} cut at {}", result, cut);
            }
        }
    }

    #[test]
    fn callbacks(seed in seed()) {
        let operations = seed.callbacks();
        let mut bytes = Vec::new();
        callback::encode_compound(&mut Writer::new(&mut bytes), 1, &operations);
        let args = callback::CompoundArgs::from_bytes(&bytes).unwrap();
        let decoded: Vec<_> = args.operations.map(Result::unwrap).collect();
        prop_assert_eq!(&decoded, &operations);

        let sequence = callback::SequenceResOk {
            session_id: seed.session_id(),
            sequence_id: seed.w[0],
            slot_id: seed.w[1],
            highest_slot_id: seed.w[2],
            target_highest_slot_id: seed.w[3],
        };
        let attributes = callback::GetAttrResOk { attributes: seed.attributes() };
        let res = callback::CompoundRes {
            status: seed.outcome(),
            tag: seed.text(),
            results: vec![
                callback::ResOp::Sequence(seed.result(sequence)),
                callback::ResOp::GetAttr(seed.result(attributes)),
                callback::ResOp::Other(callback::Operation::Recall, seed.outcome()),
            ],
        };
        let bytes = res.encode_to_vec();
        prop_assert_eq!(callback::CompoundRes::from_bytes(&bytes), Ok(res));
    }

    #[test]
    fn attribute_values(seed in seed()) {
        let values = seed.every_value();
        let buffer: AttributesBuf = values.iter().cloned().collect();
        let bytes = buffer.as_attributes().encode_to_vec();
        let attributes = Attributes::from_bytes(&bytes).unwrap();
        let decoded: Vec<_> = attributes.values().map(Result::unwrap).collect();
        prop_assert_eq!(decoded, values);
    }
}

/// The operations whose arguments are not decoded: pNFS, patterns, and those of NFSv4.0.
const NOT_SUPPORTED: [u32; 8] = [47, 48, 49, 50, 51, 64, 65, 70];

#[test]
fn these_are_all_operations_and_attributes() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let seed = seed().new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let missing = |covered: BTreeSet<u32>| {
        (3..=75).filter(|n| !covered.contains(n) && !NOT_SUPPORTED.contains(n)).collect::<Vec<_>>()
    };
    let arguments = seed.arguments().iter().map(|operation| operation.operation() as u32).collect();
    assert_eq!(missing(arguments), []);
    let results = seed.results().iter().map(|result| result.operation() as u32).collect();
    assert_eq!(missing(results), []);
    // fs_status, layout_hint, fs_locations_info, mdsthreshold, retention, sec_label
    let without_a_type = [61, 63, 67, 68, 69, 70, 71, 72, 80];
    let values: BTreeSet<_> = seed.every_value().iter().map(|value| value.attribute() as u32).collect();
    let missing: Vec<_> = (0..=82).filter(|n| !values.contains(n)).collect();
    assert_eq!(missing, without_a_type);
    assert!((0..=82).all(|number| Attribute::try_from(number).is_ok()));
}
