//! The package of Fedora, openSUSE and their relatives.

use std::path::PathBuf;

use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};

use super::Release;
use super::deb::glibc;
use super::files::{Installed, Kind};
use crate::repository;

const RELEASE: &str = "1";

pub(super) fn write(release: &Release, installed: &[Installed]) -> Result<PathBuf, String> {
    let name = format!("anabranch-{}-{RELEASE}.{}.rpm", release.version, release.machine);
    let path = release.out.join(name);
    build(release, installed, &path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn build(
    release: &Release,
    installed: &[Installed],
    path: &std::path::Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let script = |name: &str| {
        let path = repository::top().join("packaging/rpm").join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let config = BuildConfig::v4().compression(CompressionWithLevel::Gzip(9)).source_date(release.time);
    let summary = "File server for SMB and NFS with provisioned performance";
    let mut builder =
        PackageBuilder::new("anabranch", &release.version, "MIT OR Apache-2.0", release.machine, summary);
    builder
        .using_config(config)
        .release(RELEASE)
        .description(
            "One program serves the same directory over SMB 3.1.1, NFSv3 and NFSv4 at the same time, with consistent \
             locks, access control lists and caching grants. Measuring this and any other server is built in.",
        )
        .requires(Dependency::any(format!("libc.so.6(GLIBC_{})(64bit)", glibc(&release.program)?)))
        .requires(Dependency::any("libgcc_s.so.1()(64bit)"))
        .requires(Dependency::script_post("/usr/sbin/useradd"))
        .post_install_script(script("post")?)
        .pre_uninstall_script(script("preun")?)
        .post_uninstall_script(script("postun")?);
    for file in installed {
        let place = format!("/{}", rpm_place(&file.to));
        match file.kind {
            Kind::Folder => {
                builder.with_dir_entry(FileOptions::dir(place).permissions(file.mode))?;
            }
            Kind::Configuration => {
                let options = FileOptions::new(place).permissions(file.mode).config().noreplace();
                builder.with_file(&file.from, options)?;
            }
            Kind::Plain => {
                builder.with_file(&file.from, FileOptions::new(place).permissions(file.mode))?;
            }
        }
    }
    builder.build()?.write_file(path)?;
    Ok(())
}

/// Where these systems look for a file: for the completions of zsh in another folder than Debian.
fn rpm_place(place: &str) -> String {
    place.replace("usr/share/zsh/vendor-completions", "usr/share/zsh/site-functions")
}
