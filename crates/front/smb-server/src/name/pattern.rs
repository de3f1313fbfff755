//! Search patterns: `FsRtlIsNameInExpression` as [MS-FSA] 2.1.4.4 describes it.

use smb_wire::{NtStatus, Utf16};

use super::COMPONENT_UNITS_MAX;

/// DOS_STAR: any characters up to and including the last period.
const DOS_STAR: char = '<';
/// DOS_QM: one character that is not a period; nothing before a period and at the end.
const DOS_QM: char = '>';
/// DOS_DOT: a period, or nothing at the end.
const DOS_DOT: char = '"';

const WILDCARDS: [char; 5] = ['*', '?', DOS_STAR, DOS_QM, DOS_DOT];

/// The pattern of a QUERY_DIRECTORY. Case is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: String,
    folded: Vec<char>,
}

impl Pattern {
    /// Parses a search pattern; an empty one matches everything.
    ///
    /// # Errors
    /// STATUS_OBJECT_NAME_INVALID for a pattern with characters that no name contains, and for one that is longer than
    /// any name: a pattern is compared with every name of a directory, at a cost that grows with its length.
    pub(crate) fn parse(pattern: &Utf16<'_>) -> Result<Self, NtStatus> {
        if pattern.byte_len() / 2 > COMPONENT_UNITS_MAX {
            return Err(NtStatus::OBJECT_NAME_INVALID);
        }
        let text = pattern.decode().map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
        if text.contains(|c: char| c < ' ' || matches!(c, '\\' | '/' | ':' | '|')) {
            return Err(NtStatus::OBJECT_NAME_INVALID);
        }
        let text = if text.is_empty() { "*".to_owned() } else { text };
        let folded = text.chars().map(fold).collect();
        Ok(Self { text, folded })
    }

    /// The name itself, if the pattern has no wildcards, so that at most one entry can match.
    pub(crate) fn literal(&self) -> Option<&str> {
        (!self.text.contains(WILDCARDS)).then_some(self.text.as_str())
    }

    /// Whether a name, as clients see it, matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        if self.folded == ['*'] {
            return true;
        }
        let name: Vec<char> = name.chars().map(fold).collect();
        let last_period = name.iter().rposition(|c| *c == '.');
        // States of an automaton: `reached[p]` says that the first `p` characters of the pattern are used up.
        let mut reached = vec![false; self.folded.len().saturating_add(1)];
        reached[0] = true;
        self.skip_empty(&mut reached, name.first().copied());
        for (index, c) in name.iter().enumerate() {
            let is_last_period = Some(index) == last_period;
            let mut next = vec![false; reached.len()];
            for (p, want) in self.folded.iter().enumerate().filter(|(p, _)| reached[*p]) {
                let (stays, goes) = step(*want, *c, is_last_period);
                next[p] |= stays;
                next[p + 1] |= goes;
            }
            self.skip_empty(&mut next, name.get(index + 1).copied());
            reached = next;
        }
        reached.last() == Some(&true)
    }

    /// Skips parts of the pattern that may match nothing in front of `next` (None: the end of the name).
    fn skip_empty(&self, reached: &mut [bool], next: Option<char>) {
        for (p, want) in self.folded.iter().enumerate() {
            let skips = match *want {
                '*' | DOS_STAR => true,
                DOS_QM => matches!(next, None | Some('.')),
                DOS_DOT => next.is_none(),
                _ => false,
            };
            if skips && reached[p] {
                reached[p + 1] = true;
            }
        }
    }
}

/// The effect of the character `c` of the name on one state: whether the state lasts, and whether the next is reached.
fn step(want: char, c: char, is_last_period: bool) -> (bool, bool) {
    match want {
        '*' => (true, false),
        DOS_STAR => (!is_last_period, is_last_period),
        '?' => (false, true),
        DOS_QM => (false, c != '.'),
        DOS_DOT => (false, c == '.'),
        _ => (false, want == c),
    }
}

/// The simple upper case: one character for one.
fn fold(c: char) -> char {
    let mut full = c.to_uppercase();
    match (full.next(), full.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}
