//! ECHO, [MS-SMB2] 2.2.28 and 2.2.29.

empty_body! {
    /// Asks whether the server is alive.
    #[doc(alias = "SMB2_ECHO_REQUEST")]
    Request
}
empty_body! {
    /// The server is alive.
    #[doc(alias = "SMB2_ECHO_RESPONSE")]
    Response
}
