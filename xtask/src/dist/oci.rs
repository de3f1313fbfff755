//! An image for containers, as the OCI image layout in one archive, made without a daemon.
//!
//! It holds the program, the libraries that the program is linked with (those of glibc, its loader, GCC's libgcc_s) and the
//! CA certificates of this machine, and nothing else: no shell, no users, no configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Release, tar};
use crate::command;

const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

pub(super) fn write(release: &Release) -> Result<PathBuf, String> {
    let layout = release.work.path().join("oci");
    make_folder(&layout.join("blobs/sha256"))?;
    let base = layer(release, &layout, &base_files(&release.program)?, "base")?;
    let program = [(release.program.clone(), "/usr/bin/anabranch".to_owned())];
    let program = layer(release, &layout, &program, "program")?;
    let config =
        json_blob(&layout, "application/vnd.oci.image.config.v1+json", &config(release, &[&base, &program]))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [base.descriptor, program.descriptor],
    });
    let mut manifest = json_blob(&layout, "application/vnd.oci.image.manifest.v1+json", &manifest)?;
    manifest["platform"] = json!({"os": "linux", "architecture": release.debian_arch});
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    super::write(&layout.join("index.json"), index.to_string())?;
    super::write(&layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    let image = release.out.join(format!("anabranch-{}-{}.oci.tar", release.version, release.debian_arch));
    tar(release, &layout, &image)?;
    Ok(image)
}

struct Layer {
    descriptor: Value,
    /// The digest of the archive before compression.
    diff_id: String,
}

fn config(release: &Release, layers: &[&Layer]) -> Value {
    json!({
        "architecture": release.debian_arch,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/anabranch"],
            "Cmd": ["serve", "--config", "/etc/anabranch/anabranch.toml"],
            "Env": ["PATH=/usr/bin", "ANABRANCH_STATE=/var/lib/anabranch"],
            "ExposedPorts": {"445/tcp": {}, "2049/tcp": {}},
            "Volumes": {"/var/lib/anabranch": {}},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "Anabranch",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| &layer.diff_id).collect::<Vec<_>>()},
    })
}

/// The libraries of a program, its loader, and the CA certificates: where they are, and where they go.
fn base_files(program: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let libraries = command::output(Command::new("ldd").arg(program))?;
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    let mut files: Vec<String> = libraries.lines().filter_map(path).collect();
    if files.len() < 2 {
        return Err(format!("ldd: no libraries in {libraries}"));
    }
    files.push(CERTIFICATES.to_owned());
    Ok(files.into_iter().map(|path| (PathBuf::from(&path), path)).collect())
}

fn layer(release: &Release, layout: &Path, files: &[(PathBuf, String)], name: &str) -> Result<Layer, String> {
    let root = release.work.path().join(format!("layer-{name}"));
    for (from, to) in files {
        let to = root.join(to.trim_start_matches('/'));
        make_folder(to.parent().unwrap_or(&root))?;
        // The file, not the link to it.
        fs::copy(from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
    }
    for folder in ["etc/anabranch", "srv", "var/lib"] {
        make_folder(&root.join(folder))?;
    }
    let state = root.join("var/lib/anabranch");
    command::ran(Command::new("install").args(["-d", "-m", "700"]).arg(&state))?;
    let archive = release.work.path().join(format!("{name}.tar"));
    tar(release, &root, &archive)?;
    let diff_id = format!("sha256:{}", digest(&archive)?);
    command::ran(Command::new("gzip").arg("-9n").arg(&archive))?;
    let compressed = archive.with_extension("tar.gz");
    let descriptor = blob(layout, "application/vnd.oci.image.layer.v1.tar+gzip", &compressed)?;
    Ok(Layer { descriptor, diff_id })
}

fn json_blob(layout: &Path, media_type: &str, value: &Value) -> Result<Value, String> {
    let file = layout.join("blob");
    super::write(&file, value.to_string())?;
    blob(layout, media_type, &file)
}

/// Moves a file to its place among the blobs; its descriptor.
fn blob(layout: &Path, media_type: &str, file: &Path) -> Result<Value, String> {
    let failed = |e| format!("{}: {e}", file.display());
    let (digest, size) = (digest(file)?, fs::metadata(file).map_err(failed)?.len());
    fs::rename(file, layout.join("blobs/sha256").join(&digest)).map_err(failed)?;
    Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size}))
}

fn digest(file: &Path) -> Result<String, String> {
    let sum = command::said(Command::new("sha256sum").arg(file))?;
    Ok(sum.split_whitespace().next().unwrap_or_default().to_owned())
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}
