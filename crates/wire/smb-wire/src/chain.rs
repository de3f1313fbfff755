//! Compounded messages: walking and building the `NextCommand` chain, [MS-SMB2] 2.2.1 and 3.3.5.2.7.

use std::iter::FusedIterator;
use std::ops::Range;

use crate::codec::{Reader, WireError, aligned, len_u32, pad_from};
use crate::header;

/// The messages of a frame, as ranges. Each is at least as long as a header. All but the last extend to the start of
/// the next message, so they include their padding (which their signatures cover). Ends after the first error.
#[derive(Debug, Clone)]
pub struct Chain<'a> {
    frame: &'a [u8],
    next: Option<usize>,
}

impl<'a> Chain<'a> {
    /// Walks the messages of `frame`, which starts with an SMB2 header.
    #[must_use]
    pub const fn new(frame: &'a [u8]) -> Self {
        Self { frame, next: Some(0) }
    }

    fn message(&self, start: usize) -> Result<Range<usize>, WireError> {
        let message = self.frame.get(start..).ok_or(WireError::Truncated)?;
        let head: &[u8; header::LEN] = message.first_chunk().ok_or(WireError::Truncated)?;
        let mut r = Reader::new(head);
        if r.array()? != header::PROTOCOL_ID {
            return Err(WireError::ProtocolId);
        }
        r.skip(16)?;
        let next_command = r.len32()?;
        if next_command == 0 {
            return Ok(start..self.frame.len());
        }
        if !next_command.is_multiple_of(8) {
            return Err(WireError::Misaligned("NextCommand"));
        }
        let end = start.checked_add(next_command).ok_or(WireError::OutOfBounds("NextCommand"))?;
        if next_command < header::LEN || end >= self.frame.len() {
            return Err(WireError::OutOfBounds("NextCommand"));
        }
        Ok(start..end)
    }
}

impl Iterator for Chain<'_> {
    type Item = Result<Range<usize>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next.take()?;
        let message = self.message(start);
        // Each step advances by at least a header, so the walk ends.
        self.next = message.as_ref().ok().map(|range| range.end).filter(|end| *end < self.frame.len());
        Some(message)
    }
}

impl FusedIterator for Chain<'_> {}

/// Continues a compound: pads the message that starts at `previous` to 8 bytes, sets its `NextCommand` and
/// returns where the next message starts (the new end of `out`). Sign the previous message after this.
///
/// # Errors
/// [`WireError::TooLong`] when the message has more than `u32::MAX` bytes.
pub fn link(out: &mut Vec<u8>, previous: usize) -> Result<usize, WireError> {
    let length = aligned(out.len().saturating_sub(previous), 8);
    pad_from(out, previous, 8);
    let next_command = len_u32(length, "NextCommand")?;
    header::set_next_command(out.get_mut(previous..).ok_or(WireError::Truncated)?, next_command);
    Ok(out.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(next_command: u32, length: usize) -> Vec<u8> {
        let mut message = vec![0; length];
        message[..4].copy_from_slice(&header::PROTOCOL_ID);
        header::set_next_command(&mut message, next_command);
        message
    }

    fn ranges(frame: &[u8]) -> Vec<Result<Range<usize>, WireError>> {
        Chain::new(frame).collect()
    }

    #[test]
    fn a_single_message_is_the_whole_frame() {
        assert_eq!(ranges(&message(0, 70)), [Ok(0..70)]);
    }

    #[test]
    fn messages_follow_each_other() {
        let mut frame = message(72, 72);
        frame.extend(message(0, 64));
        assert_eq!(ranges(&frame), [Ok(0..72), Ok(72..136)]);
    }

    #[test]
    fn next_command_must_be_aligned_behind_the_header_and_inside() {
        let frame = |next| [message(next, 72), message(0, 64)].concat();
        assert_eq!(ranges(&frame(68)), [Err(WireError::Misaligned("NextCommand"))]);
        assert_eq!(ranges(&frame(8)), [Err(WireError::OutOfBounds("NextCommand"))]);
        assert_eq!(ranges(&frame(136)), [Err(WireError::OutOfBounds("NextCommand"))]);
        assert_eq!(ranges(&frame(0xFFFF_FFF8)), [Err(WireError::OutOfBounds("NextCommand"))]);
    }

    #[test]
    fn what_follows_must_be_a_message() {
        let mut frame = message(72, 72);
        frame.extend([0; 63]);
        assert_eq!(ranges(&frame), [Ok(0..72), Err(WireError::Truncated)]);
        frame.push(0);
        assert_eq!(ranges(&frame), [Ok(0..72), Err(WireError::ProtocolId)]);
        assert_eq!(ranges(&[]), [Err(WireError::Truncated)]);
    }

    #[test]
    fn linking_pads_and_sets_next_command() {
        let mut frame = vec![0xEE; 4];
        frame.extend(message(0, 66));
        assert_eq!(link(&mut frame, 4), Ok(4 + 72));
        assert_eq!(frame[4 + 20..4 + 24], [72, 0, 0, 0]);
        assert_eq!(frame[4 + 66..], [0; 6]);
        assert_eq!(link(&mut Vec::new(), 1), Err(WireError::Truncated));
    }
}
