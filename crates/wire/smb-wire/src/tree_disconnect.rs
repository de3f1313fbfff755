//! TREE_DISCONNECT, [MS-SMB2] 2.2.11 and 2.2.12.

empty_body! {
    /// Ends a tree connect.
    #[doc(alias = "SMB2_TREE_DISCONNECT_REQUEST")]
    Request
}
empty_body! {
    /// The tree connect has ended.
    #[doc(alias = "SMB2_TREE_DISCONNECT_RESPONSE")]
    Response
}
