//! Whether the manifest of a library says that it has no examples. Without `doctest = false`, `cargo test` runs rustdoc on a library to
//! find none; with it, an example would not be run.

use super::Texts;

/// The faults of a manifest: an example that is not run, or a library without one on which rustdoc is run.
pub(super) fn faults(path: &str, text: &str, texts: &Texts<'_>) -> Option<String> {
    let sources = format!("{}src/", path.strip_suffix("Cargo.toml")?);
    if !texts.paths.contains(&format!("{sources}lib.rs")) {
        return None;
    }
    let mut sources = texts.paths.iter().filter(|path| path.starts_with(&sources) && path.ends_with(".rs"));
    let with_example =
        sources.find(|path| texts.read(path).is_ok_and(|raw| has_example(&String::from_utf8_lossy(&raw))));
    match (with_example, text.lines().any(|line| line == "doctest = false")) {
        (Some(with_example), true) => Some(format!("doctest = false, and {with_example} has an example")),
        (None, false) => Some("no example, and no doctest = false".to_owned()),
        _ => None,
    }
}

/// Whether rustdoc runs something of a source: code in its comments, unless it says which other language it is, or that of a README.
fn has_example(source: &str) -> bool {
    let fences = source.lines().filter_map(|line| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        comment.trim_start().strip_prefix("```")
    });
    // Every second fence ends a block.
    let mut begins = fences.step_by(2);
    begins.any(|language| !["text", "toml"].contains(&language)) || source.contains("#[doc = include_str!")
}
