//! A machine that is the same everywhere.

use std::fs;
use std::path::Path;

use anabranch_import::{Machine, Reader};

/// Files beside the samples.
pub(crate) struct Here;

impl Reader for Here {
    fn read(&self, path: &str) -> Result<Option<String>, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samba");
        Ok(fs::read_to_string(folder.join(path)).ok())
    }
}

/// anna (1000), otto (2001) and toor (0) are users of the machine.
pub(crate) struct TestMachine;

impl Machine for TestMachine {
    fn user(&self, name: &str) -> Option<(u32, String)> {
        match name {
            "anna" => Some((1000, "/home/anna".to_owned())),
            "otto" => Some((2001, "/home/otto".to_owned())),
            "toor" => Some((0, "/".to_owned())),
            _ => None,
        }
    }

    fn host_name(&self) -> Option<String> {
        Some("files".to_owned())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}
