//! Calls of clients as the transactions that Azure Files bills in its pay-as-you-go model.

use control::activity::ApiActivity;
use serde::Serialize;

/// How many calls there were in each category of "Understanding Azure Files billing" (Microsoft), since the server started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Transactions {
    pub(super) write: u64,
    /// Those of Azure's own API.
    pub(super) list: u64,
    pub(super) read: u64,
    pub(super) other: u64,
    /// Those of Azure's own API.
    pub(super) delete: u64,
    /// Calls over NFS, which the pay-as-you-go model does not have.
    pub(super) nfs: u64,
}

/// Counts calls by category.
pub(super) fn count(apis: &[ApiActivity]) -> Transactions {
    let mut counted = Transactions::default();
    for api in apis {
        let category = match (api.protocol.as_str(), api.api.as_str()) {
            ("smb", "Create" | "SetInfo" | "Write") => &mut counted.write,
            ("smb", "QueryDirectory" | "QueryInfo" | "Read") => &mut counted.read,
            ("smb", _) => &mut counted.other,
            _ => &mut counted.nfs,
        };
        *category = category.saturating_add(api.calls);
    }
    counted
}

/// For people.
pub(super) fn render(counted: &Transactions) -> String {
    let Transactions { write, list, read, other, delete, nfs } = counted;
    let nfs = if *nfs == 0 { String::new() } else { format!("; {nfs} over NFS are in no category") };
    format!(
        "billed     transactions: {write} write, {list} list, {read} read, {other} other, {delete} delete{nfs}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_category() {
        let api = |protocol: &str, api: &str, calls| ApiActivity {
            protocol: protocol.to_owned(),
            api: api.to_owned(),
            calls,
            errors: 0,
            bytes: 0,
            small: 0,
            throttled: 0,
            seconds: 0.0,
            limit_seconds: 0.0,
            queue_seconds: 0.0,
            storage_seconds: 0.0,
            network_seconds: 0.0,
        };
        let apis = [
            api("smb", "Create", 1),
            api("smb", "Write", 2),
            api("smb", "QueryDirectory", 4),
            api("smb", "Close", 8),
            api("smb", "Lock", u64::MAX),
        ];
        let counted = count(&apis);
        assert_eq!((counted.write, counted.read, counted.other, counted.nfs), (3, 4, u64::MAX, 0));
        let both = count(&[api("smb", "Read", 5), api("nfs4", "Read", 6)]);
        let expected = "billed     transactions: 0 write, 0 list, 5 read, 0 other, 0 delete; 6 over NFS are in no category\n";
        assert_eq!(render(&both), expected);
        assert_eq!(
            render(&count(&[])),
            "billed     transactions: 0 write, 0 list, 0 read, 0 other, 0 delete\n"
        );
    }
}
