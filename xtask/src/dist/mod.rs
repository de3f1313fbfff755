//! Packs the program: packages, a tarball, an image for containers, the debug symbols apart, and checksums.
//!
//! Everything is made on this machine, for its architecture. The same files and the same commit make the same packages.

mod deb;
mod files;
mod notices;
mod oci;
mod rpm_package;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use tempfile::TempDir;

use crate::command::{self, Chore};
use crate::repository;
use files::Installed;

#[derive(Args)]
pub(crate) struct DistArguments {
    /// The folder for the files [default: dist in Cargo's target folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Packs this program instead of a release build, to test the packing
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What is packed, and where.
struct Release {
    /// Such as `0.2.0`.
    version: String,
    /// The architecture as Debian and OCI name it, and as RPM, the compiler and the kernel do.
    debian_arch: &'static str,
    machine: &'static str,
    /// The time of the commit, in seconds since 1970: the time of all files in packages.
    time: u32,
    /// The stripped program.
    program: PathBuf,
    out: PathBuf,
    /// For what is only made to be packed.
    work: TempDir,
}

pub(crate) fn run(given: &DistArguments) -> Chore {
    let built = match &given.program {
        Some(program) => absolute(program)?,
        None => build()?,
    };
    let release = Release::new(&built, given)?;
    let debug = debug_symbols(&release, &built)?;
    let files = files::installed(&release)?;
    let mut made = vec![
        tarball(&release, &files)?,
        deb::write(&release, &files)?,
        rpm_package::write(&release, &files)?,
        oci::write(&release)?,
        sbom::write(&release)?,
        debug,
    ];
    let sums = release.out.join("SHA256SUMS");
    let names = made.iter().map(|path| path.file_name().unwrap_or_default());
    let text = command::output(Command::new("sha256sum").args(names).current_dir(&release.out))?;
    write(&sums, text)?;
    println!("{:8.1} MB  the program, stripped", megabytes(&release.program)?);
    made.push(sums);
    for path in made {
        println!("{:8.1} MB  {}", megabytes(&path)?, path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn build() -> Result<PathBuf, String> {
    let build = ["build", "--release", "--locked", "--package", "anabranch"];
    command::ran(Command::new("cargo").args(build).current_dir(repository::top()))?;
    Ok(repository::target().join("release/anabranch"))
}

impl Release {
    fn new(built: &Path, given: &DistArguments) -> Result<Self, String> {
        let (debian_arch, machine) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", "x86_64"),
            "aarch64" => ("arm64", "aarch64"),
            other => return Err(format!("there are no packages for {other}")),
        };
        let version = command::said(Command::new(built).arg("--version"))?;
        let version = version.rsplit(' ').next().unwrap_or_default().to_owned();
        let mut commit = Command::new("git");
        let time = command::said(commit.args(["log", "-1", "--format=%ct"]).current_dir(repository::top()))?;
        let time = time.parse().map_err(|e| format!("git log: {time}: {e}"))?;
        let out = given.out.clone().unwrap_or_else(|| repository::target().join("dist"));
        let out = absolute(&out)?;
        fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
        let work = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
        let program = work.path().join("anabranch");
        Ok(Self { version, debian_arch, machine, time, program, out, work })
    }

    /// `anabranch-VERSION-MACHINE-linux`.
    fn name(&self) -> String {
        format!("anabranch-{}-{}-linux", self.version, self.machine)
    }
}

/// Splits what was built into the stripped program and its symbols, which a debugger finds by a link.
fn debug_symbols(release: &Release, built: &Path) -> Result<PathBuf, String> {
    let debug = release.out.join(format!("{}.debug", release.name()));
    command::ran(Command::new("objcopy").arg("--only-keep-debug").arg(built).arg(&debug))?;
    command::ran(Command::new("objcopy").arg("--strip-all").arg(built).arg(&release.program))?;
    command::ran(Command::new("objcopy").arg("--add-gnu-debuglink").arg(&debug).arg(&release.program))?;
    Ok(debug)
}

/// The files at their places in one folder: `tar -C / --strip-components 1` installs them.
fn tarball(release: &Release, files: &[Installed]) -> Result<PathBuf, String> {
    let parent = release.work.path().join("tarball");
    files::copy(files, &parent.join(release.name()))?;
    let tarball = release.out.join(format!("{}.tar.gz", release.name()));
    tar(release, &parent, &tarball)?;
    Ok(tarball)
}

/// Packs the contents of a folder, compressed. Without the times and the user of this machine, the same files make the
/// same archive.
fn tar(release: &Release, folder: &Path, archive: &Path) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
        .arg(format!("--mtime=@{}", release.time))
        .args(["--transform", "s,^\\./,,", "-C"])
        .arg(folder);
    match archive.extension().is_some_and(|extension| extension == "gz") {
        true => tar.args(["--use-compress-program", "gzip -9n"]),
        false => &mut tar,
    };
    command::ran(tar.arg("-cf").arg(archive).arg("."))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(path, contents).map_err(|e| format!("{}: {e}", path.display()))
}

/// The length of a file, in millions of bytes.
fn megabytes(path: &Path) -> Result<f64, String> {
    let length = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.len();
    #[expect(clippy::cast_precision_loss, reason = "to print a size")]
    Ok(length as f64 / 1e6)
}
