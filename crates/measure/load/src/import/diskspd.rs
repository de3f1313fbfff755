//! diskspd's command lines (<https://github.com/microsoft/diskspd/wiki/Command-line-and-parameters>).

use super::{Draft, Imported, Unreadable, block, imported, number, size};
use crate::plan::Extent;

/// Reads a command line, with or without the program's name.
///
/// # Errors
/// A value is not what its option wants, or there is no file.
pub fn read(line: &str, connections: u32, extent: Extent) -> Result<Imported, Unreadable> {
    let mut reader = Reader { threads_per_file: 1, ..Reader::default() };
    let mut draft = Draft::new("diskspd");
    // diskspd's own defaults: 64 KiB, ten seconds after five of warm-up, two operations a thread.
    (draft.block_bytes, draft.queue_depth) = (65536, 2);
    (draft.seconds, draft.ramp_seconds) = (Some(10.0), Some(5.0));
    let words = line.split_whitespace().skip_while(|word| word.to_ascii_lowercase().contains("diskspd"));
    for word in words {
        match word.strip_prefix('-').or_else(|| word.strip_prefix('/')) {
            Some(option) => reader.option(&mut draft, word, option)?,
            None => draft_file(&mut reader),
        }
    }
    if reader.files == 0 {
        return Err(Unreadable("it names no file".to_owned()));
    }
    draft.files = reader.files;
    match reader.threads {
        // -F: each thread works on all files.
        Some(threads) => {
            (draft.threads, draft.queue_depth) = (threads, draft.queue_depth.saturating_mul(reader.files))
        }
        None => draft.threads = reader.threads_per_file.saturating_mul(reader.files),
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let blocks = |bytes_per_ms: u64| {
        bytes_per_ms as f64 * 1000.0 / draft.block_bytes as f64 * f64::from(draft.threads)
    };
    draft.rate = reader.bytes_per_ms.map(blocks);
    reader.not_honoured.push("the files have other names: a run works in a folder of its own".to_owned());
    imported(&[draft], reader.not_honoured, connections, extent)
}

fn draft_file(reader: &mut Reader) {
    reader.files += 1;
}

#[derive(Default)]
struct Reader {
    files: u32,
    threads_per_file: u32,
    threads: Option<u32>,
    bytes_per_ms: Option<u64>,
    not_honoured: Vec<String>,
}

impl Reader {
    fn option(&mut self, draft: &mut Draft, word: &str, option: &str) -> Result<(), Unreadable> {
        let (name, value) =
            option.split_at_checked(1).ok_or_else(|| Unreadable(format!("{word} is not an option")))?;
        match name {
            "W" => draft.ramp_seconds = Some(number(word, value)?),
            "d" => draft.seconds = Some(number(word, value)?),
            "b" => draft.block_bytes = block(value)?,
            "t" => self.threads_per_file = number(word, value)?,
            "F" => self.threads = Some(number(word, value)?),
            "o" => draft.queue_depth = number(word, value)?,
            "w" if value.is_empty() => draft.reads = 100,
            "w" => draft.reads = 100 - number::<u8>(word, value)?.min(100),
            "c" => draft.file_bytes = Some(size(value)?),
            "g" if !value.ends_with('i') => self.bytes_per_ms = Some(number(word, value)?),
            "r" => {
                draft.random = true;
                if !value.is_empty() && block(value).ok() != Some(draft.block_bytes) {
                    self.not(word, "places are multiples of the block size");
                }
            }
            "L" => {}
            "s" => draft.random = false,
            "C" => self.not(word, "a measurement has no cool-down: it ends before the load does"),
            "S" => self
                .not(word, "a client in user space has no cache; a directory is read through the kernel's"),
            "Z" => self.not(word, "what is written is a pattern that is checked when it is read"),
            "D" | "R" | "v" => self.not(word, "the result has its own form (--out, --json)"),
            _ => self.not(word, "it is not known here"),
        }
        Ok(())
    }

    fn not(&mut self, word: &str, why: &str) {
        self.not_honoured.push(format!("{word}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Mix;

    /// Document 1, 1.27, with three of the ten files.
    const DOCUMENT: &str = r"diskspd.exe -W300 -C5 -r -w100 -b4k -t8 -o8 -Sh -d60 -L -c2G -Z1G z:\write0.dat z:\write1.dat z:\write2.dat";

    #[test]
    fn the_documents_line_is_taken() {
        let imported = read(DOCUMENT, 4, Extent::new(false)).unwrap();
        let key = &imported.plan.rows[0].key;
        assert_eq!(
            (key.block_bytes, key.queue_depth, key.threads, key.files, key.random),
            (4096, 8, 24, 3, true)
        );
        assert_eq!(key.mix, Mix::ReadPercent(0));
        assert_eq!((imported.extent.seconds, imported.extent.ramp_seconds), (60.0, 300.0));
        assert_eq!(imported.extent.file_bytes, 2 << 30);
        let said = imported.plan.not_honoured.join("\n");
        assert!(said.contains("-C5") && said.contains("-Sh") && said.contains("-Z1G"), "{said}");
    }

    #[test]
    fn a_rate_is_that_of_all_threads() {
        let imported = read("diskspd -b8K -t2 -F4 -o2 -g1024 -w30 a b", 1, Extent::new(false)).unwrap();
        let key = &imported.plan.rows[0].key;
        assert_eq!((key.threads, key.queue_depth, key.mix), (4, 4, Mix::ReadPercent(70)));
        assert_eq!(imported.rate, Some(1024.0 * 1000.0 / 8192.0 * 4.0));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["", "diskspd -b4k", "diskspd -b7 x", "diskspd -tmany x", "- x"] {
            assert!(read(line, 1, Extent::new(false)).is_err(), "{line}");
        }
    }
}
