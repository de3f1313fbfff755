//! The packages of a workspace, and the content of a build of each, according to Cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::output;

/// A member of the workspace. Names of members are without the prefix `anabranch-`.
pub(super) struct Package {
    id: String,
    /// The folder, relative to the top.
    pub(super) place: String,
    /// The workspace's packages that the member uses.
    pub(super) uses: Vec<String>,
    /// The workspace's packages that only its tests use.
    pub(super) tests: Vec<String>,
}

pub(super) struct Packages {
    pub(super) members: BTreeMap<String, Package>,
    /// The name of each package in its manifest.
    names: BTreeMap<String, String>,
    /// The dependencies of each package in a build, without those of tests.
    needs: BTreeMap<String, Vec<String>>,
}

impl Packages {
    /// Reads the packages of the workspace at `top`.
    pub(super) fn read(top: &Path) -> Result<Self, String> {
        let metadata = output(
            Command::new("cargo")
                .args(["metadata", "--format-version", "1", "--all-features", "--filter-platform", &host()?])
                .current_dir(top),
        )?;
        let metadata: Value = serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
        let of_workspace: BTreeSet<_> = list(&metadata["workspace_members"]).iter().map(text).collect();
        let mut read = Self { members: BTreeMap::new(), names: BTreeMap::new(), needs: BTreeMap::new() };
        for package in list(&metadata["packages"]) {
            let id = text(&package["id"]);
            if of_workspace.contains(id) {
                read.members.insert(short(text(&package["name"])).to_owned(), member(package, top));
            }
            read.names.insert(id.to_owned(), text(&package["name"]).to_owned());
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let built = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|of| of["kind"].is_null());
            let needs = list(&node["deps"]).iter().filter(built).map(|dep| text(&dep["pkg"]).to_owned());
            read.needs.insert(text(&node["id"]).to_owned(), needs.collect());
        }
        Ok(read)
    }

    /// The names of all packages in a build of a member, without those that only tests use.
    pub(super) fn reached(&self, member: &Package) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![&member.id];
        while let Some(id) = todo.pop() {
            todo.extend(self.needs.get(id).into_iter().flatten().filter(|need| seen.insert(*need)));
        }
        seen.into_iter().filter_map(|id| self.names.get(id)).map(String::as_str).collect()
    }
}

/// The name of a crate in the table.
pub(super) fn short(name: &str) -> &str {
    name.strip_prefix("anabranch-").unwrap_or(name)
}

fn member(package: &Value, top: &Path) -> Package {
    let manifest = Path::new(text(&package["manifest_path"]));
    let folder = manifest.parent().unwrap_or(manifest);
    let uses = |tests: bool| {
        let with_path = list(&package["dependencies"]).iter().filter(|d| !text(&d["path"]).is_empty());
        let wanted = with_path.filter(|d| (d["kind"] == "dev") == tests);
        let names: BTreeSet<_> = wanted.map(|d| short(text(&d["name"])).to_owned()).collect();
        names.into_iter().collect()
    };
    Package {
        id: text(&package["id"]).to_owned(),
        place: folder.strip_prefix(top).unwrap_or(folder).display().to_string(),
        uses: uses(false),
        tests: uses(true),
    }
}

fn host() -> Result<String, String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
