//! IOCTL, [MS-SMB2] 2.2.31 and 2.2.32. The structures inside its buffers are in [`crate::fscc::fsctl`].

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, aligned, len_u32, put_zeros, variable};
use crate::dtyp::FileId;
use crate::fscc::fsctl::Fsctl;

bitflags! {
    /// `Flags` of the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct IoctlFlags: u32 {
        /// SMB2_0_IOCTL_IS_FSCTL: the only kind that a server accepts.
        const IS_FSCTL = 0x0000_0001;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 56;

/// An IOCTL request.
#[doc(alias = "SMB2_IOCTL_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The operation.
    pub ctl_code: Fsctl,
    /// The open, or [`FileId::ANY`] where there is none.
    pub file_id: FileId,
    /// The input.
    pub input: &'a [u8],
    /// The most bytes of input that the response may contain.
    pub max_input_response: u32,
    /// `OutputCount`: clients send 0; it is part of the credit charge ([MS-SMB2] 3.3.5.15).
    pub output_count: u32,
    /// The most bytes of output.
    pub max_output_response: u32,
    /// Whether this is an FSCTL.
    pub flags: IoctlFlags,
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`. The place of an output buffer in the request is ignored ([MS-SMB2] 3.3.5.15).
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`], [`WireError::OutOfBounds`];
    /// [`WireError::Misaligned`] when the input does not start at a multiple of 8 bytes.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<56>(message, 57)?;
        r.skip(2)?;
        let ctl_code = Fsctl::from(r.u32()?);
        let file_id = FileId::read(&mut r)?;
        let (input_offset, input_count) = (r.len32()?, r.len32()?);
        let max_input_response = r.u32()?;
        let (_output_offset, output_count) = (r.u32()?, r.u32()?);
        let max_output_response = r.u32()?;
        let flags = IoctlFlags::from_bits_retain(r.u32()?);
        let input = variable(message, REQUEST_FIXED_END, input_offset, input_count, "Input")?;
        if input_count != 0 && !input_offset.is_multiple_of(8) {
            return Err(WireError::Misaligned("InputOffset"));
        }
        Ok(Self { ctl_code, file_id, input, max_input_response, output_count, max_output_response, flags })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let input_offset = if self.input.is_empty() { 0 } else { REQUEST_FIXED_END };
        out.put_u16(57);
        out.put_u16(0);
        out.put_u32(self.ctl_code.into());
        self.file_id.put(out);
        out.put_u32(len_u32(input_offset, "InputOffset")?);
        out.put_u32(len_u32(self.input.len(), "Input")?);
        out.put_u32(self.max_input_response);
        out.put_u32(0);
        out.put_u32(self.output_count);
        out.put_u32(self.max_output_response);
        out.put_u32(self.flags.bits());
        out.put_u32(0);
        out.put(if self.input.is_empty() { &[0] } else { self.input });
        Ok(())
    }
}

const RESPONSE_FIXED_END: usize = 64 + 48;

/// An IOCTL response.
#[doc(alias = "SMB2_IOCTL_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// The operation that was performed.
    pub ctl_code: Fsctl,
    /// The open of the request.
    pub file_id: FileId,
    /// Input that is returned; usually empty.
    pub input: &'a [u8],
    /// The output.
    pub output: &'a [u8],
}

impl<'a> Response<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<48>(message, 49)?;
        r.skip(2)?;
        let ctl_code = Fsctl::from(r.u32()?);
        let file_id = FileId::read(&mut r)?;
        let (input_offset, input_count) = (r.len32()?, r.len32()?);
        let (output_offset, output_count) = (r.len32()?, r.len32()?);
        let input = variable(message, RESPONSE_FIXED_END, input_offset, input_count, "Input")?;
        let output = variable(message, RESPONSE_FIXED_END, output_offset, output_count, "Output")?;
        Ok(Self { ctl_code, file_id, input, output })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let input_end = RESPONSE_FIXED_END.saturating_add(self.input.len());
        let output_offset = if self.output.is_empty() { RESPONSE_FIXED_END } else { aligned(input_end, 8) };
        out.put_u16(49);
        out.put_u16(0);
        out.put_u32(self.ctl_code.into());
        self.file_id.put(out);
        out.put_u32(len_u32(RESPONSE_FIXED_END, "InputOffset")?);
        out.put_u32(len_u32(self.input.len(), "Input")?);
        out.put_u32(len_u32(output_offset, "OutputOffset")?);
        out.put_u32(len_u32(self.output.len(), "Output")?);
        put_zeros(out, 8);
        out.put(self.input);
        if !self.output.is_empty() {
            put_zeros(out, output_offset.saturating_sub(input_end));
            out.put(self.output);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_aligned_and_inside_and_output_is_not_looked_at() {
        let request = Request {
            ctl_code: Fsctl::SetSparse,
            file_id: FileId::ANY,
            input: &[1; 16],
            max_input_response: 0,
            output_count: 77,
            max_output_response: 0,
            flags: IoctlFlags::IS_FSCTL,
        };
        let mut message = vec![0; 64];
        request.encode(&mut message).unwrap();
        assert_eq!(Request::decode(&message), Ok(request));
        let input = |offset: u8, count: u8| {
            let mut message = message.clone();
            (message[88], message[92]) = (offset, count);
            Request::decode(&message).map(|request| request.input.len())
        };
        assert_eq!(input(120, 16), Ok(16));
        assert_eq!(input(128, 8), Ok(8));
        assert_eq!(input(124, 8), Err(WireError::Misaligned("InputOffset")));
        assert_eq!(input(112, 8), Err(WireError::OutOfBounds("Input")));
        assert_eq!(input(120, 17), Err(WireError::OutOfBounds("Input")));
        assert_eq!(input(3, 0), Ok(0));
    }
}
