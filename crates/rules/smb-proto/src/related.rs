//! Related compounds: what an element inherits from the one before it. [MS-SMB2] 3.3.5.2.7, 3.3.5.2.7.2.

use smb_wire::{FileId, NtStatus};

/// A chain of requests as far as it has been processed.
///
/// For each element in turn: [`Chain::enter`], then [`Chain::session_id`], [`Chain::tree_id`] and [`Chain::file_id`]
/// for what its command needs, then [`Chain::leave`].
#[derive(Debug, Default)]
pub struct Chain {
    /// Elements begun so far.
    elements: usize,
    session_id: Option<u64>,
    tree_id: Option<u32>,
    file_id: Option<FileId>,
    file_error: Option<NtStatus>,
    broken: Option<NtStatus>,
}

impl Chain {
    /// A chain of which no element has been processed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an element. `related` is its SMB2_FLAGS_RELATED_OPERATIONS. An unrelated element starts afresh, even in
    /// the middle of a chain: clients send that, and actual servers accept it.
    ///
    /// # Errors
    /// The status with which the element fails: STATUS_INVALID_PARAMETER for related elements at the beginning of a
    /// chain, up to the first unrelated one, and for those that follow an element without a session or tree connect.
    pub fn enter(&mut self, related: bool) -> Result<(), NtStatus> {
        let first = self.elements == 0;
        self.elements += 1;
        if !related {
            *self = Self { elements: self.elements, ..Self::default() };
        } else if first {
            self.broken = Some(NtStatus::INVALID_PARAMETER);
        }
        self.broken.map_or(Ok(()), Err)
    }

    /// The session of the current element: that of the previous element if the current one is related, otherwise `own`.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER, for this and every later element, if the previous element had none.
    pub fn session_id(&mut self, related: bool, own: u64) -> Result<u64, NtStatus> {
        self.inherit(related, own, |chain| &mut chain.session_id)
    }

    /// The tree connect of the current element, likewise.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER, for this and every later element, if the previous element had none.
    pub fn tree_id(&mut self, related: bool, own: u32) -> Result<u32, NtStatus> {
        self.inherit(related, own, |chain| &mut chain.tree_id)
    }

    fn inherit<T: Copy>(
        &mut self,
        related: bool,
        own: T,
        slot: fn(&mut Self) -> &mut Option<T>,
    ) -> Result<T, NtStatus> {
        if !related {
            *slot(self) = Some(own);
            return Ok(own);
        }
        let inherited = *slot(self);
        inherited.ok_or_else(|| *self.broken.insert(NtStatus::INVALID_PARAMETER))
    }

    /// The session that the current element names does not exist: related elements after it have none.
    pub fn session_not_found(&mut self) {
        self.session_id = None;
    }

    /// The tree connect that the current element names does not exist: related elements after it have none.
    pub fn tree_not_found(&mut self) {
        self.tree_id = None;
    }

    /// The file of the current element: that of the previous element if the current one is related, whatever it names
    /// itself (clients send [`FileId::ANY`], all ones); otherwise `own`.
    ///
    /// # Errors
    /// The status of the previous element if that failed to open or use its file; STATUS_INVALID_HANDLE if it had none.
    pub fn file_id(&mut self, related: bool, own: FileId) -> Result<FileId, NtStatus> {
        match (related, self.file_error, self.file_id) {
            (true, Some(status), _) => Err(status),
            (true, None, Some(inherited)) => Ok(inherited),
            (true, None, None) if own == FileId::ANY => Err(NtStatus::INVALID_HANDLE),
            (true, None, None) | (false, ..) => {
                self.file_id = Some(own);
                Ok(own)
            }
        }
    }

    /// Ends an element that generates a session (SESSION_SETUP).
    pub fn generated_session(&mut self, session_id: u64) {
        self.session_id = Some(session_id);
    }

    /// Ends an element that generates a tree connect (TREE_CONNECT).
    pub fn generated_tree(&mut self, tree_id: u32) {
        self.tree_id = Some(tree_id);
    }

    /// Ends an element that generates a file (CREATE).
    pub fn generated_file(&mut self, file_id: FileId) {
        self.file_id = Some(file_id);
        self.file_error = None;
    }

    /// Ends an element with its status. `about_file` says whether its command contains or generates a FileId; if so, an
    /// error also applies to the related elements after it. Warnings such as STATUS_BUFFER_OVERFLOW are not errors, except
    /// for the one that says that a CREATE has opened nothing, because of a symbolic link.
    pub fn leave(&mut self, about_file: bool, status: NtStatus) {
        if about_file {
            let failed = status.is_error() || status == NtStatus::STOPPED_ON_SYMLINK;
            self.file_error = failed.then_some(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId { persistent: 3, volatile: 4 };

    #[test]
    fn a_related_element_takes_over_session_tree_and_file() {
        let mut chain = Chain::new();
        chain.enter(false).unwrap();
        assert_eq!(chain.session_id(false, 5), Ok(5));
        assert_eq!(chain.tree_id(false, 6), Ok(6));
        chain.generated_file(FILE);
        chain.leave(true, NtStatus::SUCCESS);
        for _ in 0..2 {
            chain.enter(true).unwrap();
            assert_eq!(chain.session_id(true, u64::MAX), Ok(5));
            assert_eq!(chain.tree_id(true, u32::MAX), Ok(6));
            assert_eq!(chain.file_id(true, FileId::ANY), Ok(FILE));
            chain.leave(true, NtStatus::BUFFER_OVERFLOW);
        }
        // the identifiers in a related element itself are ignored
        chain.enter(true).unwrap();
        assert_eq!(chain.file_id(true, FileId { persistent: 8, volatile: 9 }), Ok(FILE));
    }

    #[test]
    fn a_failed_create_fails_what_builds_on_it_with_its_status() {
        // The second one is a warning by its number.
        for status in [NtStatus::OBJECT_NAME_NOT_FOUND, NtStatus::STOPPED_ON_SYMLINK] {
            let mut chain = Chain::new();
            chain.enter(false).unwrap();
            chain.session_id(false, 5).unwrap();
            chain.leave(true, status);
            for _ in 0..2 {
                chain.enter(true).unwrap();
                assert_eq!(chain.file_id(true, FileId::ANY), Err(status));
                chain.leave(true, status);
            }
        }
    }

    #[test]
    fn without_a_file_before_it_an_element_fails_with_invalid_handle() {
        let mut chain = Chain::new();
        chain.enter(false).unwrap();
        chain.session_id(false, 5).unwrap();
        chain.leave(false, NtStatus::SUCCESS);
        for _ in 0..2 {
            chain.enter(true).unwrap();
            assert_eq!(chain.file_id(true, FileId::ANY), Err(NtStatus::INVALID_HANDLE));
            chain.leave(true, NtStatus::INVALID_HANDLE);
        }
    }

    #[test]
    fn without_a_session_before_it_all_later_elements_fail() {
        let mut chain = Chain::new();
        chain.enter(false).unwrap();
        chain.leave(false, NtStatus::LOGON_FAILURE);
        chain.enter(true).unwrap();
        assert_eq!(chain.session_id(true, u64::MAX), Err(NtStatus::INVALID_PARAMETER));
        assert_eq!(chain.enter(true), Err(NtStatus::INVALID_PARAMETER));
    }

    #[test]
    fn unrelated_elements_share_nothing() {
        let mut chain = Chain::new();
        chain.enter(false).unwrap();
        chain.leave(true, NtStatus::OBJECT_NAME_NOT_FOUND);
        chain.enter(false).unwrap();
        assert_eq!(chain.session_id(false, 7), Ok(7));
        assert_eq!(chain.file_id(false, FILE), Ok(FILE));
    }

    /// The chains of smbtorture's compound.invalid2 and compound.invalid3.
    #[test]
    fn a_chain_does_not_begin_related_and_an_unrelated_element_starts_afresh() {
        let mut chain = Chain::new();
        assert_eq!(chain.enter(true), Err(NtStatus::INVALID_PARAMETER));
        assert_eq!(chain.enter(true), Err(NtStatus::INVALID_PARAMETER));
        assert_eq!(chain.enter(false), Ok(()));
        assert_eq!(chain.file_id(false, FileId::ANY), Ok(FileId::ANY));
        chain.leave(true, NtStatus::FILE_CLOSED);
        assert_eq!(chain.enter(true), Ok(()));
        assert_eq!(chain.file_id(true, FileId::ANY), Err(NtStatus::FILE_CLOSED));
    }
}
