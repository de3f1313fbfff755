//! The package of Debian and Ubuntu, built by dpkg-deb.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use super::files::{self, Installed, Kind};
use crate::command;
use crate::repository;

/// The scripts that dpkg runs, in `packaging/deb`.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

const MAINTAINER: &str = "Anabranch <anabranch@example.org>";
const CHANGELOG: &str = "usr/share/doc/anabranch/changelog.gz";

pub(super) fn write(release: &Release, installed: &[Installed]) -> Result<PathBuf, String> {
    let root = release.work.path().join("deb");
    files::copy(installed, &root)?;
    write_policy_documents(release, &root)?;
    let control = root.join("DEBIAN");
    fs::create_dir(&control).map_err(|e| format!("{}: {e}", control.display()))?;
    for script in SCRIPTS {
        let (from, to) = (repository::top().join("packaging/deb").join(script), control.join(script));
        fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
        let executable = fs::set_permissions(&to, Permissions::from_mode(0o755));
        executable.map_err(|e| format!("{}: {e}", to.display()))?;
    }
    let is_configuration = |file: &&Installed| file.kind == Kind::Configuration;
    let conffiles = installed.iter().filter(is_configuration).map(|file| format!("/{}\n", file.to));
    super::write(&control.join("conffiles"), conffiles.collect::<String>())?;
    let is_file = |file: &&Installed| file.kind == Kind::Plain;
    let names = installed.iter().filter(is_file).map(|file| file.to.as_str()).chain([CHANGELOG]);
    let sums = command::output(Command::new("md5sum").args(names).current_dir(&root))?;
    super::write(&control.join("md5sums"), sums)?;
    super::write(&control.join("control"), described(release, &root)?)?;
    let package = release.out.join(format!("anabranch_{}_{}.deb", release.version, release.debian_arch));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", release.time.to_string());
    command::said(build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package))?;
    Ok(package)
}

/// What Debian's policy wants to be said in its own way: the licences, with a reference for those that each Debian has, and
/// a changelog.
fn write_policy_documents(release: &Release, root: &Path) -> Result<(), String> {
    let mit = repository::top().join("LICENSE-MIT");
    let mit = fs::read_to_string(&mit).map_err(|e| format!("{}: {e}", mit.display()))?;
    let copyright = format!(
        "Anabranch is under MIT or Apache-2.0, as you like. The Apache License 2.0 is in\n\
         /usr/share/common-licenses/Apache-2.0.\n\n{mit}"
    );
    super::write(&root.join("usr/share/doc/anabranch/copyright"), copyright)?;
    let date = command::said(Command::new("date").args(["-uR", "-d", &format!("@{}", release.time)]))?;
    let changes = format!(
        "anabranch ({}) unstable; urgency=medium\n\n  * CHANGELOG.md has the changes.\n\n -- {MAINTAINER}  {date}\n",
        release.version
    );
    let changelog = root.join(CHANGELOG.trim_end_matches(".gz"));
    super::write(&changelog, changes)?;
    command::ran(Command::new("gzip").arg("-9n").arg(&changelog))
}

fn described(release: &Release, root: &Path) -> Result<String, String> {
    let size =
        command::said(Command::new("du").args(["-sk", "--apparent-size", "--exclude=DEBIAN"]).arg(root))?;
    let size = size.split_whitespace().next().unwrap_or_default();
    let (version, arch) = (&release.version, release.debian_arch);
    let glibc = glibc(&release.program)?;
    Ok(format!(
        "Package: anabranch
Version: {version}
Architecture: {arch}
Maintainer: {MAINTAINER}
Installed-Size: {size}
Depends: libc6 (>= {glibc}), libgcc-s1 (>= 4.2), passwd
Suggests: systemd, ufw | firewalld
Section: net
Priority: optional
Description: file server for SMB and NFS with provisioned performance
 One program serves the same directory over SMB 3.1.1, NFSv3 and NFSv4 at the
 same time, with consistent locks, access control lists and caching grants.
 Shares can have plans (IOPS, throughput, burst credits, size). Measuring this
 and any other server is built in.
"
    ))
}

/// The oldest glibc that has all that a program needs of it.
pub(super) fn glibc(program: &Path) -> Result<String, String> {
    let symbols = command::output(Command::new("objdump").arg("-T").arg(program))?;
    let version = |word: &str| {
        let version = word.trim_matches(['(', ')']).strip_prefix("GLIBC_")?;
        let numbers: Option<Vec<u32>> = version.split('.').map(|number| number.parse().ok()).collect();
        Some((numbers?, version.to_owned()))
    };
    let versions: BTreeSet<_> = symbols.split_whitespace().filter_map(version).collect();
    versions
        .into_iter()
        .next_back()
        .map(|(_, version)| version)
        .ok_or_else(|| "no version of glibc".to_owned())
}
