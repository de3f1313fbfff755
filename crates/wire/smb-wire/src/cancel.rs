//! CANCEL, [MS-SMB2] 2.2.30. It has no response; the cancelled request is answered instead.

empty_body! {
    /// Cancels the request that the header names.
    #[doc(alias = "SMB2_CANCEL_REQUEST")]
    Request
}
