//! Clients that the tests run where they can be had: an old kubectl from Debian; what Go builds: a new one, Helm, programs with
//! informers and with a manager; the packages of Python and JavaScript that the sessions in `clients` need.
//! Without them the tests that are about them do nothing; so each is named here if it is missing.

use std::{fs, path::Path, process::Command};

use crate::{steps::root, tools::is_on_path};

/// Gets what is not there yet. Nothing here fails the run: what is missing is said.
pub fn prepare() {
    let folder = root().join("target/clients");
    if let Err(problem) = debian(&folder.join("debian")) {
        println!("== clients: no kubectl of Debian: {problem}");
    }
    if let Err(problem) = go(&folder.join("go")) {
        println!("== clients: no programs in Go: {problem}");
    }
    if let Err(problem) = python(&folder.join("python")) {
        println!("== clients: no client in Python: {problem}");
    }
    if let Err(problem) = javascript(&folder.join("javascript")) {
        println!("== clients: no client in JavaScript: {problem}");
    }
}

/// Unpacks Debian's package beside whatever kubectl is installed.
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

/// Go builds again only what has changed.
fn go(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let out = format!("{}/", folder.display());
    run(&root().join("clients/go"), "go", &["build", "-o", &out, "./..."])
}

/// An environment of its own; pip installs again only what has changed.
fn python(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    if !folder.join("bin/pip").is_file() {
        run(folder, "python3", &["-m", "venv", "."])?;
    }
    let requirements = root().join("clients/python/requirements.txt");
    let requirements = requirements.to_string_lossy();
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &requirements];
    run(folder, &folder.join("bin/python").to_string_lossy(), &pip)?;
    fs::write(folder.join("complete"), "").map_err(|error| error.to_string())
}

/// npm installs again only what has changed. Newer versions of the package need a newer Node than Debian has.
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
        Err(error) => Err(format!("{program} cannot be run: {error}")),
    }
}
