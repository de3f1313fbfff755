//! Records that arrive from another server.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use replica::{Failure, Records, Result};
use replica_wire::Record;

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;
/// The longest pause between two pieces, so that it can stop soon.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The records in what is read.
pub(crate) struct Received<R> {
    from: R,
    bytes: Vec<u8>,
    /// Where the next record begins.
    at: usize,
}

impl<R: Read> Received<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, bytes: Vec::new(), at: 0 }
    }

    fn fill(&mut self) -> Result<()> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let known = self.bytes.len();
        self.bytes.resize(known + PIECE, 0);
        let count = loop {
            match self.from.read(self.bytes.get_mut(known..).unwrap_or_default()) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Failure::Source(format!("the answer of the source: {e}"))),
                Ok(0) => return Err(Failure::Source("the answer of the source was cut off".to_owned())),
                Ok(count) => break count,
            }
        };
        self.bytes.truncate(known + count);
        Ok(())
    }
}

impl<R: Read> Records for Received<R> {
    fn next(&mut self) -> Result<Record> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            match Record::decode(rest).map_err(|e| Failure::Nonsense(e.to_string()))? {
                Some((record, length)) => {
                    self.at += length;
                    if record != Record::Alive {
                        return Ok(record);
                    }
                }
                None => self.fill()?,
            }
        }
    }
}

/// What is read so that no more than so many bytes come in a second.
pub(crate) struct Slowed<R> {
    from: R,
    bandwidth: Option<u64>,
    begun: Instant,
    bytes: u64,
}

impl<R> Slowed<R> {
    pub(crate) fn new(from: R, bandwidth: Option<u64>) -> Self {
        Self { from, bandwidth, begun: Instant::now(), bytes: 0 }
    }
}

impl<R: Read> Read for Slowed<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        // No more than what a second may have, because a pause is no longer.
        let most =
            self.bandwidth.map_or(into.len(), |most| usize::try_from(most).unwrap_or(usize::MAX).max(1));
        let most = most.min(into.len());
        let count = self.from.read(into.get_mut(..most).unwrap_or_default())?;
        if let Some(bandwidth) = self.bandwidth {
            self.bytes += count as u64;
            let due = Duration::from_millis(self.bytes.saturating_mul(1000) / bandwidth.max(1));
            std::thread::sleep(due.saturating_sub(self.begun.elapsed()).min(PAUSE_MAX));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_put_together_and_an_end_in_between_is_told() {
        let mut bytes = Vec::new();
        let data = Record::Data { offset: 3, bytes: vec![7; 200_000] };
        for _ in 0..3 {
            data.encode_into(&mut bytes);
        }
        Record::Alive.encode_into(&mut bytes);
        Record::End.encode_into(&mut bytes);
        let mut received = Received::new(&bytes[..]);
        let all: Vec<_> = (0..4).map(|_| received.next().unwrap()).collect();
        assert_eq!(all, [data.clone(), data.clone(), data.clone(), Record::End]);
        let mut cut_off = Received::new(&bytes[..bytes.len() - 11]);
        assert!((0..2).all(|_| cut_off.next().is_ok()));
        assert_eq!(cut_off.next(), Err(Failure::Source("the answer of the source was cut off".to_owned())));
        let mut nonsense = Received::new(&b"HTTP/1.1 200 OK\r\n"[..]);
        assert!(matches!(nonsense.next(), Err(Failure::Nonsense(_))));
    }
}
