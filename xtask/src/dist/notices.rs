//! The licences of the parts that the program is made of, as their authors wrote them down.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{Release, sbom};

/// How the names of files with licences begin.
const LICENCES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// The text of each licence once, after the names of the parts that it is for.
pub(super) fn text(release: &Release) -> Result<String, String> {
    let metadata = sbom::metadata(release)?;
    let parts = sbom::parts(&metadata).ok_or("cargo metadata: no package anabranch")?;
    let (mut parts_by_text, mut without) = (BTreeMap::<String, Vec<String>>::new(), String::new());
    for part in parts.into_iter().filter(|part| !part["source"].is_null()) {
        let text = |key: &str| part[key].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        let licences = licences(Path::new(text("manifest_path")))?;
        if licences.is_empty() {
            let _ = writeln!(without, "{name}: {}", part["license"].as_str().unwrap_or("unknown"));
        }
        for licence in licences {
            parts_by_text.entry(licence).or_default().push(name.clone());
        }
    }
    let mut notices =
        "Anabranch contains parts by others. Each list of parts is followed by their licence.\n".to_owned();
    for (text, parts) in parts_by_text {
        let _ = write!(notices, "\n{}\n{}\n\n{}\n", "-".repeat(72), parts.join(", "), text.trim_end());
    }
    let _ = write!(
        notices,
        "\n{}\nParts without a file for their licence, and its name:\n\n{without}",
        "-".repeat(72)
    );
    Ok(notices)
}

/// The texts of the licences beside a manifest.
fn licences(manifest: &Path) -> Result<Vec<String>, String> {
    let folder = manifest.parent().unwrap_or(manifest);
    let failed = |e| format!("{}: {e}", folder.display());
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && LICENCES.iter().any(|begin| name.starts_with(begin)) {
            let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
    }
    Ok(texts)
}
