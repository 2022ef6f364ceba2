//! Locates and parses the source text of the dependencies.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The source folders of the two crates.
pub struct Sources {
    pub k8s_openapi: PathBuf,
    pub k8s_pb: PathBuf,
}

/// Runs `cargo metadata`, which downloads missing packages.
pub fn find() -> Result<Sources, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--features=sources", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .args(["--filter-platform", &host()?])
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let folder = |name: &str| {
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let manifest =
            packages.filter(|package| package["name"] == name).find_map(|p| p["manifest_path"].as_str());
        let folder =
            manifest.and_then(|manifest| Path::new(manifest).parent()).map(|folder| folder.join("src"));
        folder.ok_or_else(|| format!("cargo knows no package {name}"))
    };
    Ok(Sources { k8s_openapi: folder("k8s-openapi")?, k8s_pb: folder("k8s-pb")? })
}

/// The host triple, so that packages for other platforms are not downloaded.
fn host() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).arg("-vV").output().map_err(|error| format!("rustc cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say its host".to_owned())
}

/// A parsed file and its folder relative to the search root, such as `api/core/v1`.
pub struct File {
    pub folder: String,
    pub syntax: syn::File,
}

/// Parses every file below a folder, sorted by path.
pub fn parse_all(root: &Path) -> Result<Vec<File>, String> {
    let mut paths = Vec::new();
    collect(root, &mut paths).map_err(|error| format!("{}: {error}", root.display()))?;
    paths.sort();
    paths
        .iter()
        .map(|path| parse(root, path).map_err(|problem| format!("{}: {problem}", path.display())))
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn parse(root: &Path, path: &Path) -> Result<File, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let syntax = syn::parse_file(&text).map_err(|error| error.to_string())?;
    let folder = path.parent().and_then(|folder| folder.strip_prefix(root).ok()).unwrap_or(Path::new(""));
    let parts: Vec<_> = folder.iter().map(|part| part.to_string_lossy()).collect();
    Ok(File { folder: parts.join("/"), syntax })
}
