//! LOGOFF, [MS-SMB2] 2.2.7 and 2.2.8.

empty_body! {
    /// Ends a session.
    #[doc(alias = "SMB2_LOGOFF_REQUEST")]
    Request
}
empty_body! {
    /// The session has ended.
    #[doc(alias = "SMB2_LOGOFF_RESPONSE")]
    Response
}
