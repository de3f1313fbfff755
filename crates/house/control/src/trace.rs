//! Recorded operations, in the form of the API and of files: one per line, seven fields separated by tabs.
//! docs/plans.md describes the format.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use share::{Operation, Traced, TracedData};

/// The first line of a file.
pub const HEAD: &str = "# anabranch trace 1";

/// A recording to be started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTrace {
    /// The length of the recording in seconds.
    pub seconds: u64,
}

/// A part of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePart {
    /// The lines of the operations that have ended since the last call.
    pub lines: String,
    /// The number of these operations.
    pub operations: u64,
    /// Operations lost since the recording began, because nobody asked in time.
    pub lost: u64,
    /// Whether the recording is over.
    pub over: bool,
}

/// An operation of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When the operation arrived, since the recording began.
    pub at: Duration,
    /// The operation.
    pub operation: &'static Operation,
    /// The client, named as in the metrics.
    pub client: String,
    /// The data that was moved; none for names and attributes.
    pub data: Option<TracedData>,
}

/// The lines of these operations.
pub(crate) fn write(operations: &[Traced]) -> String {
    let mut text = String::with_capacity(operations.len().saturating_mul(64));
    for Traced { at, api, client, data } in operations {
        let (at, api, protocol) = (at.as_micros(), api.name, api.protocol);
        let _ = write!(text, "{at}\t{api}\t{protocol}\t{client}\t");
        let _ = match data {
            Some(TracedData { file, offset, bytes }) => writeln!(text, "{file}\t{offset}\t{bytes}"),
            None => writeln!(text, "-\t-\t-"),
        };
    }
    text
}

/// Parses a line.
///
/// # Errors
/// A description of what is wrong with the line.
pub fn parse(line: &str) -> Result<Line, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [at, api, protocol, client, file, offset, bytes] = fields[..] else {
        return Err(format!("it has {} fields with tabs between them and not 7", fields.len()));
    };
    let number = |what: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("{what} is {text:?} and not a whole number"))
    };
    let operation = operation(protocol, api)?;
    if client.is_empty() {
        return Err("the client is missing".to_owned());
    }
    let data = match (file, offset, bytes) {
        ("-", "-", "-") if operation.api.moves_data() => {
            return Err(format!("{} has no file, offset and bytes", operation.api.name));
        }
        ("-", "-", "-") => None,
        _ if !operation.api.moves_data() => {
            return Err(format!("{} moves no data, but has a file", operation.api.name));
        }
        (file, offset, bytes) => Some(TracedData {
            file: number("the file", file)?,
            offset: number("the offset", offset)?,
            bytes: number("the number of bytes", bytes)?,
        }),
    };
    let at = Duration::from_micros(number("the time", at)?);
    Ok(Line { at, operation, client: client.to_owned(), data })
}

/// The operations of all protocols that concern shares.
fn operations() -> impl Iterator<Item = &'static Operation> {
    smb_server::operations().chain(nfs_server::operations())
}

/// The operation of this protocol and name.
///
/// # Errors
/// A description of what does not exist.
pub fn operation(protocol: &str, api: &str) -> Result<&'static Operation, String> {
    let fronts = [&smb_server::FRONT, &nfs_server::NFS3, &nfs_server::NFS4].map(|front| front.name);
    if !fronts.contains(&protocol) {
        return Err(format!("the protocol is {protocol:?} and not one of {}", fronts.join(", ")));
    }
    let mut of_protocol = operations().filter(|known| known.front.name == protocol);
    let known = of_protocol.find(|known| known.api.name == api);
    known.ok_or_else(|| format!("there is no API name {api:?} in {protocol}"))
}

#[cfg(test)]
mod tests {
    use share::Client;

    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let client = Client::Address([192, 0, 2, 1].into());
        let data = Some(TracedData { file: 7, offset: 1 << 40, bytes: 4096 });
        for operation in operations() {
            let data = data.filter(|_| operation.api.moves_data());
            let traced = Traced { at: Duration::from_micros(1_500_000), api: &operation.api, client, data };
            let line = write(&[traced]);
            let parsed = parse(line.strip_suffix('\n').unwrap()).unwrap();
            let client = "192.0.2.1".to_owned();
            assert_eq!(parsed, Line { at: traced.at, operation, client, data }, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (line, words) in [
            ("", "1 fields"),
            ("1\tRead\tsmb\tc\t1\t2", "6 fields"),
            ("1\tRead\tsmb\tc\t1\t2\t3\t4", "8 fields"),
            ("x\tRead\tsmb\tc\t1\t2\t3", "the time is \"x\" and not a whole number"),
            ("-1\tRead\tsmb\tc\t1\t2\t3", "the time is \"-1\""),
            ("1\tReed\tsmb\tc\t1\t2\t3", "no API name \"Reed\" in smb"),
            ("1\tRead\tftp\tc\t1\t2\t3", "not one of smb, nfs3, nfs4"),
            ("1\tRead\tsmb\t\t1\t2\t3", "the client is missing"),
            ("1\tRead\tsmb\tc\t-\t-\t-", "Read has no file"),
            ("1\tRead\tsmb\tc\t-\t2\t3", "the file is \"-\""),
            ("1\tClose\tsmb\tc\t1\t2\t3", "Close moves no data"),
            ("1\tWrite\tsmb\tc\t1\t2\t1e9", "the number of bytes is \"1e9\""),
        ] {
            let said = parse(line).unwrap_err();
            assert!(said.contains(words), "{line:?}: {said}");
        }
    }
}
