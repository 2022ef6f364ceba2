//! External programs that the tests run: finds them, installs them on Debian, or prints the command that
//! installs them.

use std::{
    fs,
    process::{Command, Stdio},
};

/// The action for a missing program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Install,
    Say,
}

/// A tool of the tests and its Debian package.
struct Tool {
    name: &'static str,
    package: &'static str,
    is_there: fn() -> bool,
    /// Whether most tests need it; without an optional tool, a few tests are listed as not run.
    is_required: bool,
}

const TOOLS: [Tool; 6] = [
    Tool {
        name: "PostgreSQL's server programs",
        package: "postgresql",
        is_there: has_postgres,
        is_required: true,
    },
    Tool {
        name: "kubectl",
        package: "kubernetes-client",
        is_there: || is_on_path("kubectl"),
        is_required: true,
    },
    Tool { name: "timeout", package: "coreutils", is_there: || is_on_path("timeout"), is_required: true },
    Tool { name: "Python with venv", package: "python3-venv", is_there: has_venv, is_required: false },
    Tool { name: "Node", package: "nodejs", is_there: || is_on_path("node"), is_required: false },
    Tool { name: "npm", package: "npm", is_there: || is_on_path("npm"), is_required: false },
];

/// Debian's folder for PostgreSQL's programs, which are not on PATH.
const POSTGRES_FOLDER: &str = "/usr/lib/postgresql";

/// Installs missing tools. Fails with installation instructions if a required tool is still missing.
pub fn ensure(missing: Missing) -> Result<(), String> {
    let absent = absent();
    if absent.is_empty() {
        return Ok(());
    }
    let is_required = absent.iter().any(|tool| tool.is_required);
    let needs = absent.iter().map(|tool| tool.name).collect::<Vec<_>>().join(" and ");
    let install: Vec<_> = ["apt-get", "install", "--yes", "--no-install-recommends"]
        .into_iter()
        .chain(absent.iter().map(|tool| tool.package))
        .collect();
    let advice = format!("the tests need {needs}; on Debian, as root:\n  {}", install.join(" "));
    let prefix = match (missing, administrator()) {
        (Missing::Install, Some(prefix)) => prefix,
        _ if is_required => return Err(advice),
        _ => {
            println!("== install: {advice}");
            return Ok(());
        }
    };
    println!("== install: the tests need {needs}");
    // Outdated package lists are the usual cause of a failed installation; the installation may succeed even
    // if the update fails.
    run(prefix, &["apt-get", "update", "--quiet"]);
    run(prefix, &install);
    match self::absent()[..] {
        [] => Ok(()),
        ref absent if absent.iter().any(|tool| tool.is_required) => {
            Err(format!("the installation failed; {advice}"))
        }
        _ => {
            println!("== install: the installation failed; {advice}");
            Ok(())
        }
    }
}

fn absent() -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !(tool.is_there)()).collect()
}

fn has_postgres() -> bool {
    let versions = fs::read_dir(POSTGRES_FOLDER).into_iter().flatten().flatten();
    is_on_path("initdb")
        || versions.map(|version| version.path()).any(|path| path.join("bin/initdb").is_file())
}

fn has_venv() -> bool {
    let mut check = Command::new("python3");
    succeeds(check.args(["-c", "import ensurepip, venv"]).stdout(Stdio::null()).stderr(Stdio::null()))
}

pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Keeps packages from asking questions. It is part of the command line because sudo drops the environment.
const QUIET: &str = "DEBIAN_FRONTEND=noninteractive";

/// The prefix that runs a command as root without a password prompt, if there is one.
fn administrator() -> Option<&'static [&'static str]> {
    if !is_on_path("apt-get") {
        return None;
    }
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(&["env", QUIET]);
    }
    let sudo: &[_] = &["sudo", "--non-interactive", "env", QUIET];
    succeeds(command(sudo, &["true"]).stdout(Stdio::null()).stderr(Stdio::null())).then_some(sudo)
}

fn run(prefix: &[&str], line: &[&str]) -> bool {
    succeeds(&mut command(prefix, line))
}

fn command(prefix: &[&str], line: &[&str]) -> Command {
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).args(line).stdin(Stdio::null());
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
