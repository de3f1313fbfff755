//! Packs the program: a stripped binary with its documents in a tarball, the debug symbols apart, and checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::command::{self, Chore};
use crate::repository;

/// What goes into the tarball beside the program.
const DOCUMENTS: [&str; 7] =
    ["README.md", "SECURITY.md", "CHANGELOG.md", "ARCHITECTURE.md", "LICENSE-APACHE", "LICENSE-MIT", "docs"];

#[derive(Args)]
pub(crate) struct DistArguments {
    /// The folder for the files [default: dist in Cargo's target folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn run(given: &DistArguments) -> Chore {
    let build = ["build", "--release", "--locked", "--package", "anabranch"];
    command::ran(Command::new("cargo").args(build).current_dir(repository::top()))?;
    let version = command::said(Command::new(program()).arg("--version"))?;
    let version = version.rsplit(' ').next().unwrap_or_default();
    let name = format!("anabranch-{version}-{}-linux", std::env::consts::ARCH);
    let out = given.out.clone().unwrap_or_else(|| repository::target().join("dist"));
    let out = std::path::absolute(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let folder = out.join(&name);
    create(&folder)?;

    let debug = out.join(format!("{name}.debug"));
    let stripped = folder.join("anabranch");
    command::ran(Command::new("objcopy").arg("--only-keep-debug").arg(program()).arg(&debug))?;
    command::ran(Command::new("objcopy").arg("--strip-all").arg(program()).arg(&stripped))?;
    // A debugger finds the symbols by this link.
    command::ran(Command::new("objcopy").arg("--add-gnu-debuglink").arg(&debug).arg(&stripped))?;
    command::ran(
        Command::new("cp").arg("--recursive").args(DOCUMENTS).arg(&folder).current_dir(repository::top()),
    )?;
    let tarball = out.join(format!("{name}.tar.gz"));
    // Without the times and the user of this machine, the same files make the same tarball.
    let same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    let mut tar = Command::new("tar");
    tar.args(same)
        .arg("-C")
        .arg(&out)
        .args(["--use-compress-program", "gzip -9n", "-cf"])
        .arg(&tarball)
        .arg(&name);
    command::ran(&mut tar)?;
    let files = [&tarball, &debug].map(|path| path.file_name().unwrap_or_default().to_owned());
    let sums = command::output(Command::new("sha256sum").args(files).current_dir(&out))?;
    fs::write(out.join("SHA256SUMS"), sums).map_err(|e| format!("{}: {e}", out.display()))?;
    for path in [&stripped, &tarball, &debug] {
        println!("{:8.1} MB  {}", megabytes(path)?, path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The program as it was built, with its symbols.
fn program() -> PathBuf {
    repository::target().join("release/anabranch")
}

/// Creates an empty folder. What was there before goes.
fn create(folder: &Path) -> Result<(), String> {
    let failed = |e| format!("{}: {e}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}

/// The length of a file, in millions of bytes.
fn megabytes(path: &Path) -> Result<f64, String> {
    let length = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.len();
    #[expect(clippy::cast_precision_loss, reason = "to print a size")]
    Ok(length as f64 / 1e6)
}
