//! Reads results of measurements: files, and directories of them.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{fs, io};

use load::result::ResultFile;

use crate::problem::{Cause, Problem, Result};

/// The results of files and of the files in directories, by the names of their files.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<(String, ResultFile)>> {
    let mut results = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in files(path)? {
                results.push(read(&file)?);
            }
        } else {
            results.push(read(path)?);
        }
    }
    Ok(results)
}

/// The files of a directory that should be results, by name.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut files: Vec<PathBuf> =
        entries.map_err(|e| not_a_result(directory, &e))?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json") && path.is_file());
    files.sort();
    if files.is_empty() {
        return Err(not_a_result(directory, &"no file in it ends in .json"));
    }
    Ok(files)
}

fn read(path: &Path) -> Result<(String, ResultFile)> {
    if fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
        return Err(not_a_result(path, &"the file is empty"));
    }
    let result = ResultFile::load(path).map_err(|e| not_a_result(path, &e))?;
    let name = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok((name, result))
}

fn not_a_result(path: &Path, why: &dyn Display) -> Problem {
    let advice = "Create results with `anabranch bench run FAMILY --target ... --out FILE`.";
    Problem::new(Cause::Settings, format!("{}: {why}", path.display()), advice)
}
