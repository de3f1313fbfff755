//! The parts that the program is made of, as CycloneDX JSON: what Cargo has locked, without what only builds or tests need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::Release;
use crate::command;
use crate::repository;

pub(super) fn write(release: &Release) -> Result<PathBuf, String> {
    let bill = bill(&metadata(release)?).ok_or("cargo metadata: no package anabranch")?;
    let path = release.out.join(format!("anabranch-{}.cdx.json", release.version));
    let text = serde_json::to_string_pretty(&bill).map_err(|e| e.to_string())?;
    super::write(&path, text + "\n")?;
    Ok(path)
}

/// What Cargo says of all packages that it has locked for this machine.
pub(super) fn metadata(release: &Release) -> Result<Value, String> {
    let triple = format!("{}-unknown-linux-gnu", release.machine);
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &triple]);
    let metadata = command::output(cargo.current_dir(repository::top()))?;
    serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))
}

/// The packages that the program is made of, with itself.
pub(super) fn parts(metadata: &Value) -> Option<Vec<&Value>> {
    let Graph { packages, found, .. } = Graph::of(metadata)?;
    Some(found.iter().filter_map(|id| packages.get(id).copied()).collect())
}

/// What needs what.
struct Graph<'a> {
    packages: BTreeMap<&'a str, &'a Value>,
    needs: BTreeMap<&'a str, Vec<&'a str>>,
    program: &'a str,
    /// The ids of what the program needs, with its own.
    found: BTreeSet<&'a str>,
}

impl<'a> Graph<'a> {
    fn of(metadata: &'a Value) -> Option<Self> {
        let packages: BTreeMap<&str, &Value> =
            metadata["packages"].as_array()?.iter().map(|package| (text(package, "id"), package)).collect();
        let nodes = metadata["resolve"]["nodes"].as_array()?;
        let needs: BTreeMap<&str, Vec<&str>> =
            nodes.iter().map(|node| (text(node, "id"), needed(node))).collect();
        let (program, _) = packages.iter().find(|(_, package)| text(package, "name") == "anabranch")?;
        let program = *program;
        let (mut found, mut next) = (BTreeSet::new(), vec![program]);
        while let Some(id) = next.pop() {
            if found.insert(id) {
                next.extend(needs.get(id)?);
            }
        }
        Some(Self { packages, needs, program, found })
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The bill of what the package `anabranch` needs at run time.
fn bill(metadata: &Value) -> Option<Value> {
    let Graph { packages, needs, program, found } = Graph::of(metadata)?;
    let reference = |id: &&str| packages.get(id).map(|package| purl(package));
    let dependencies = found.iter().map(|id| {
        let on: Vec<String> = needs[id].iter().filter_map(reference).collect();
        json!({"ref": reference(id), "dependsOn": on})
    });
    let others = found.iter().filter(|id| **id != program);
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(packages[program], "application")},
        "components": others.map(|id| component(packages[id], "library")).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    }))
}

/// The packages that a package needs when it runs.
fn needed(node: &Value) -> Vec<&str> {
    let of_all = node["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_normal = |dependency: &&Value| {
        dependency["dep_kinds"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    of_all.iter().filter(is_normal).map(|dependency| text(dependency, "pkg")).collect()
}

fn component(package: &Value, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    });
    // Older packages write MIT/Apache-2.0.
    let license = text(package, "license").replace('/', " OR ");
    if !license.is_empty() {
        component["licenses"] = json!([{"expression": license}]);
    }
    component
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_builds_or_tests_need_is_left_out() {
        let package =
            |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("anabranch"), package("used"), package("deep"), package("dev"), package("build")],
            "resolve": {"nodes": [
                {"id": "anabranch", "deps": [
                    needs("used", Value::Null), needs("dev", json!("dev")), needs("build", json!("build")),
                ]},
                {"id": "used", "deps": [needs("deep", Value::Null)]},
                {"id": "deep", "deps": []},
                {"id": "dev", "deps": []},
                {"id": "build", "deps": []},
            ]},
        });
        let bill = bill(&metadata).unwrap();
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().map(|part| text(part, "name")).collect();
        assert_eq!(names, ["deep", "used"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            bill["dependencies"][0],
            json!({"ref": "pkg:cargo/anabranch@1.0.0", "dependsOn": ["pkg:cargo/used@1.0.0"]})
        );
    }
}
