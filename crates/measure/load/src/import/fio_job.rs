//! fio's job files (fio(1), "JOB FILE FORMAT"): sections of `name=value`, `[global]` for all that follow.

use std::time::Duration;

use super::{Draft, Imported, Unreadable, block, imported, number, size};
use crate::plan::Extent;

/// Reads a job file. Each job becomes a row, measured over so many connections.
///
/// # Errors
/// A line is none, or a value is not what its name wants.
pub fn read(text: &str, connections: u32, extent: Extent) -> Result<Imported, Unreadable> {
    let mut reader =
        Reader { global: Job::new("global"), jobs: Vec::new(), in_global: true, not_honoured: Vec::new() };
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            continue;
        }
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(section) => reader.section(section),
            None => reader.line(line)?,
        }
    }
    let drafts: Vec<Draft> = reader.jobs.iter().map(Job::draft).collect();
    imported(&drafts, reader.not_honoured, connections, extent)
}

/// Reads the options of fio's command line, `--name=value` each: those of one job.
///
/// # Errors
/// As [`read`].
pub fn read_command_line(text: &str, connections: u32, extent: Extent) -> Result<Imported, Unreadable> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    let lines: Vec<&str> = words.collect();
    read(&format!("[job]\n{}", lines.join("\n")), connections, extent)
}

/// A job, with what fio divides only when all is known.
#[derive(Debug, Clone)]
struct Job {
    draft: Draft,
    /// Bytes of all files of a job together.
    size: Option<u64>,
}

impl Job {
    fn new(name: &str) -> Self {
        Self { draft: Draft::new(name), size: None }
    }

    fn draft(&self) -> Draft {
        let mut draft = self.draft.clone();
        let files = u64::from(draft.files.max(1));
        draft.file_bytes =
            draft.file_bytes.or_else(|| self.size.map(|size| (size / files).max(draft.block_bytes)));
        draft
    }
}

struct Reader {
    global: Job,
    jobs: Vec<Job>,
    in_global: bool,
    not_honoured: Vec<String>,
}

impl Reader {
    fn section(&mut self, name: &str) {
        self.in_global = name == "global";
        if !self.in_global {
            let mut job = self.global.clone();
            name.clone_into(&mut job.draft.name);
            self.jobs.push(job);
        }
    }

    fn line(&mut self, line: &str) -> Result<(), Unreadable> {
        let (name, value) = line.split_once('=').unwrap_or((line, "1"));
        let (name, value) = (name.trim(), value.trim());
        let job = if self.in_global { Some(&mut self.global) } else { self.jobs.last_mut() };
        let job = job.ok_or_else(|| Unreadable(format!("{line}: it stands in no section")))?;
        match set(job, name, value)? {
            Honoured::Yes => {}
            Honoured::No(why) => {
                let text = format!("{name}={value}: {why}");
                if !self.not_honoured.contains(&text) {
                    self.not_honoured.push(text);
                }
            }
        }
        Ok(())
    }
}

enum Honoured {
    Yes,
    No(&'static str),
}

fn set(job: &mut Job, name: &str, value: &str) -> Result<Honoured, Unreadable> {
    let draft = &mut job.draft;
    match name {
        "rw" | "readwrite" => (draft.reads, draft.random) = direction(value)?,
        "bs" | "blocksize" => draft.block_bytes = block(value)?,
        "iodepth" => draft.queue_depth = number(name, value)?,
        "numjobs" => draft.threads = number(name, value)?,
        "nrfiles" => draft.files = number(name, value)?,
        "size" => job.size = Some(size(value)?),
        "filesize" => draft.file_bytes = Some(size(value)?),
        "runtime" => draft.seconds = Some(seconds(value)?),
        "ramp_time" => draft.ramp_seconds = Some(seconds(value)?),
        "rwmixread" => draft.reads = number::<u8>(name, value)?.min(100),
        "rwmixwrite" => draft.reads = 100 - number::<u8>(name, value)?.min(100),
        "rate_iops" => draft.rate = Some(number(name, value)?),
        "thinktime" => draft.think = Duration::from_secs_f64(time(value, 1e-6)?),
        "name" => value.clone_into(&mut draft.name),
        "time_based" | "group_reporting" | "stonewall" | "thread" | "norandommap" | "output-format" => {}
        "direct" if value == "1" => {
            return Ok(Honoured::No(
                "a client in user space has no cache; a directory is read through the kernel's",
            ));
        }
        "direct" | "invalidate" => {}
        "ioengine" => return Ok(Honoured::No("this program's own clients generate the load")),
        "filename" | "directory" | "filename_format" => {
            return Ok(Honoured::No("a run works in a folder of its own"));
        }
        "randrepeat" => return Ok(Honoured::No("places are drawn anew in each run")),
        _ => return Ok(Honoured::No("it is not known here")),
    }
    Ok(Honoured::Yes)
}

fn direction(value: &str) -> Result<(u8, bool), Unreadable> {
    Ok(match value {
        "read" => (100, false),
        "write" => (0, false),
        "randread" => (100, true),
        "randwrite" => (0, true),
        "rw" | "readwrite" => (50, false),
        "randrw" => (50, true),
        _ => return Err(Unreadable(format!("rw={value} cannot be done"))),
    })
}

/// fio's times: seconds unless a unit says otherwise.
fn seconds(text: &str) -> Result<f64, Unreadable> {
    time(text, 1.0)
}

fn time(text: &str, unit: f64) -> Result<f64, Unreadable> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit = match suffix {
        "" => unit,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(Unreadable(format!("{text} is not a time"))),
    };
    let number: f64 = number.parse().map_err(|_| Unreadable(format!("{text} is not a time")))?;
    Ok(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Mix;

    /// Document 3, one of the eight lines of 3.16.
    const DOCUMENT: &str = "fio --ioengine=libaio --direct=1 --nrfiles=4 --numjobs=1 --runtime=1800 --time_based --bs=4k \
                            --iodepth=64 --filesize=4G --rw=randread --group_reporting --ramp_time=300";

    #[test]
    fn the_documents_line_is_taken() {
        let imported = read_command_line(DOCUMENT, 4, Extent::new(false)).unwrap();
        let key = &imported.plan.rows[0].key;
        assert_eq!(
            (key.block_bytes, key.queue_depth, key.threads, key.files, key.random),
            (4096, 64, 1, 4, true)
        );
        assert_eq!((key.mix, key.connections), (Mix::ReadPercent(100), 4));
        assert_eq!((imported.extent.seconds, imported.extent.ramp_seconds), (1800.0, 300.0));
        assert_eq!(imported.extent.file_bytes, 4 << 30);
        assert_eq!(imported.plan.not_honoured.len(), 2, "{:?}", imported.plan.not_honoured);
    }

    #[test]
    fn sections_take_what_is_global() {
        let text = "; a comment\n[global]\nbs=64k\nsize=1g\nnrfiles=4\nverify=crc32c\n\n[one]\nrw=randrw\nrwmixread=70\n\
                    rate_iops=1000\n[two]\nrw=write\nbs=1M\nthinktime=500\n";
        let imported = read(text, 1, Extent::new(false)).unwrap();
        let keys: Vec<_> =
            imported.plan.rows.iter().map(|row| (row.key.block_bytes, row.key.mix, row.key.random)).collect();
        assert_eq!(keys, [(65536, Mix::ReadPercent(70), true), (1 << 20, Mix::ReadPercent(0), false)]);
        assert_eq!((imported.rate, imported.extent.file_bytes), (Some(1000.0), 256 << 20));
        let said = imported.plan.not_honoured.join("\n");
        assert!(
            said.contains("verify=crc32c") && said.contains("two: ") && said.contains("one after the other"),
            "{said}"
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "[a]\nbs=5x", "[a]\nrw=trim", "[a]\nbs=100", "[a]\niodepth=many", "[a]\nruntime=5y"]
        {
            assert!(read(text, 1, Extent::new(false)).is_err(), "{text}");
        }
    }
}
