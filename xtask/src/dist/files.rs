//! What a package installs, and where.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, notices, write};
use crate::command;
use crate::repository;

/// What an installed file is to its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// An administrator changes it: an upgrade keeps the changes.
    Configuration,
    /// An empty folder; it stays when the package goes while something is in it.
    Folder,
}

/// A file that is installed.
#[derive(Debug)]
pub(super) struct Installed {
    /// Where it is now.
    pub(super) from: PathBuf,
    /// Its place, without the slash in front.
    pub(super) to: String,
    pub(super) mode: u16,
    pub(super) kind: Kind,
}

const DOCUMENTS: &str = "usr/share/doc/anabranch";

/// All of them, in the order of their places.
pub(super) fn installed(release: &Release) -> Result<Vec<Installed>, String> {
    let packaging = repository::top().join("packaging");
    let plain =
        |from: PathBuf, to: &str| Installed { from, to: to.to_owned(), mode: 0o644, kind: Kind::Plain };
    let of = |from: &str, to: &str| plain(packaging.join(from), to);
    let mut files = vec![
        Installed { mode: 0o755, ..plain(release.program.clone(), "usr/bin/anabranch") },
        Installed {
            // Passwords may be in it.
            mode: 0o600,
            kind: Kind::Configuration,
            ..of("anabranch.toml", "etc/anabranch/anabranch.toml")
        },
        Installed {
            kind: Kind::Configuration,
            ..of("firewall/anabranch.ufw", "etc/ufw/applications.d/anabranch")
        },
        of("firewall/anabranch-portmap.xml", "usr/lib/firewalld/services/anabranch-portmap.xml"),
        of("firewall/anabranch.xml", "usr/lib/firewalld/services/anabranch.xml"),
        of("firewall/anabranch-discovery.xml", "usr/lib/firewalld/services/anabranch-discovery.xml"),
        of("systemd/anabranch.service", "usr/lib/systemd/system/anabranch.service"),
        of("systemd/anabranch@.service", "usr/lib/systemd/system/anabranch@.service"),
        Installed { mode: 0o700, kind: Kind::Folder, ..plain(PathBuf::new(), "var/lib/anabranch") },
    ];
    for (from, name) in below(&packaging.join("systemd/drop-ins"))? {
        files.push(plain(from, &format!("{DOCUMENTS}/examples/{name}")));
    }
    for name in ["grafana/anabranch.json", "prometheus/anabranch.rules.yml", "prometheus/prometheus.yml"] {
        files.push(of(name, &format!("{DOCUMENTS}/examples/{name}")));
    }
    files.extend(documents(release)?);
    files.extend(made_by_the_program(release)?);
    files.sort_by(|one, other| one.to.cmp(&other.to));
    Ok(files)
}

fn documents(release: &Release) -> Result<Vec<Installed>, String> {
    let top = repository::top();
    let plain = |from: PathBuf, to: String| Installed { from, to, mode: 0o644, kind: Kind::Plain };
    let mut files = Vec::new();
    for name in ["README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        files.push(plain(top.join(name), format!("{DOCUMENTS}/{name}")));
    }
    for (from, name) in below(&top.join("docs"))? {
        files.push(plain(from, format!("{DOCUMENTS}/docs/{name}")));
    }
    let copyright = release.work.path().join("copyright");
    let read = |name: &str| fs::read_to_string(top.join(name)).map_err(|e| format!("{name}: {e}"));
    let (mit, apache) = (read("LICENSE-MIT")?, read("LICENSE-APACHE")?);
    write(&copyright, format!("Anabranch is under MIT or Apache-2.0, as you like.\n\n{mit}\n\n{apache}"))?;
    files.push(plain(copyright, format!("{DOCUMENTS}/copyright")));
    let parts = release.work.path().join("notices");
    write(&parts, notices::text(release)?)?;
    files.push(plain(parts, format!("{DOCUMENTS}/THIRD-PARTY-NOTICES")));
    Ok(files)
}

/// Completions and manual pages: the program makes them from its command line.
fn made_by_the_program(release: &Release) -> Result<Vec<Installed>, String> {
    let plain = |from: PathBuf, to: String| Installed { from, to, mode: 0o644, kind: Kind::Plain };
    let pages = release.work.path().join("man");
    command::ran(Command::new(&release.program).arg("manual-pages").arg(&pages))?;
    let mut files = Vec::new();
    for (from, name) in below(&pages)? {
        command::ran(Command::new("gzip").arg("-9n").arg(&from))?;
        files.push(plain(pages.join(format!("{name}.gz")), format!("usr/share/man/man1/{name}.gz")));
    }
    let shells = [
        ("bash", "usr/share/bash-completion/completions/anabranch"),
        ("zsh", "usr/share/zsh/vendor-completions/_anabranch"),
        ("fish", "usr/share/fish/vendor_completions.d/anabranch.fish"),
    ];
    for (shell, to) in shells {
        let script = release.work.path().join(shell);
        write(&script, command::output(Command::new(&release.program).args(["completions", shell]))?)?;
        files.push(plain(script, to.to_owned()));
    }
    Ok(files)
}

/// The files in a folder and below, with their paths below it, in order.
fn below(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let failed = |e| format!("{}: {e}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(below(&path)?.into_iter().map(|(path, below)| (path, format!("{name}/{below}"))));
        } else {
            found.push((path, name));
        }
    }
    found.sort();
    Ok(found)
}

/// Copies the files to their places below a folder.
pub(super) fn copy(files: &[Installed], root: &Path) -> Result<(), String> {
    for file in files {
        let to = root.join(&file.to);
        let failed = |e| format!("{}: {e}", to.display());
        fs::create_dir_all(to.parent().unwrap_or(root)).map_err(failed)?;
        match file.kind {
            Kind::Folder => fs::create_dir_all(&to).map_err(failed)?,
            _ => _ = fs::copy(&file.from, &to).map_err(|e| format!("{}: {e}", file.from.display()))?,
        }
        fs::set_permissions(&to, Permissions::from_mode(file.mode.into())).map_err(failed)?;
    }
    Ok(())
}
