//! `cargo xtask layout`: writes down which functions a start runs, for the linker to lay side by side.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::steps::{cargo, root};
use crate::tools::is_on_path;

/// How long a server may take until it answers, which is slow while it is watched.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it is left alone afterwards: controllers begin, and what is done by time is done for the first time.
const IDLE: Duration = Duration::from_secs(20);

pub fn run() -> Result<(), String> {
    for (program, package) in [("valgrind", "valgrind"), ("kubectl", "kubernetes-client")] {
        if !is_on_path(program) {
            return Err(format!("{program} is needed; on Debian, as root:\n  apt-get install {package}"));
        }
    }
    if !cargo(&["build", "--release", "--package", "orlop"], &[])? {
        return Err("the program cannot be built".to_owned());
    }
    let folder = Folder::new()?;
    let mut functions = BTreeSet::new();
    for start in ["fresh folder", "existing folder"] {
        println!("== start, {start}");
        functions.extend(watched_start(&folder.0)?);
    }
    let list = root().join("crates/orlop/layout.txt");
    let lines: String = functions.iter().map(|function| format!("{function}\n")).collect();
    fs::write(&list, lines).map_err(|error| format!("{} cannot be written: {error}", list.display()))?;
    println!("{} functions are in {}", functions.len(), list.display());
    Ok(())
}

/// A folder that ends with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = env::temp_dir().join(format!("orlop-layout-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The patterns of the functions that a server runs until it is idle.
fn watched_start(folder: &Path) -> Result<BTreeSet<String>, String> {
    let calls = folder.join("calls");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut server = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", calls.display()))
        .arg(target.join("release/orlop"))
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("valgrind cannot be run: {error}"))?;
    let answered = until_answered(&mut server, &folder.join("data/kubeconfig"));
    if answered.is_ok() {
        pause(IDLE);
    }
    // A signal that asks for an end; a kill would leave nothing written.
    let _ = Command::new("kill").arg(server.id().to_string()).status();
    server.wait().map_err(|error| format!("the server does not end: {error}"))?;
    answered?;
    let calls = fs::read_to_string(&calls).map_err(|error| format!("valgrind wrote nothing: {error}"))?;
    Ok(functions(&calls).into_iter().map(pattern).collect())
}

fn until_answered(server: &mut Child, kubeconfig: &Path) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Ok(Some(status)) = server.try_wait() {
            return Err(format!("the server ended: {status}"));
        }
        let answer = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["get", "--raw", "/api/v1/namespaces"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match answer {
            Ok(status) if status.success() => return Ok(()),
            _ => pause(Duration::from_millis(100)),
        }
    }
    Err(format!("the server does not answer within {PATIENCE:?}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server that is watched by another program says nothing of its state"
)]
fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// The program's own functions in callgrind's output. A line `ob=(3) path` says which file the lines after it are about, a line
/// `fn=(12) name` which function; `cob` and `cfn` are about what it calls. The second time, the number alone does.
fn functions(calls: &str) -> BTreeSet<&str> {
    let mut names = HashMap::new();
    let mut functions = BTreeSet::new();
    let mut is_ours = false;
    for line in calls.lines() {
        let Some((what, number)) = line.split_once('=') else { continue };
        let (number, name) = number.split_once(' ').unwrap_or((number, ""));
        let subject = what.strip_prefix('c').unwrap_or(what);
        if !name.is_empty() {
            names.insert((subject, number), name);
        }
        let name = names.get(&(subject, number)).copied().unwrap_or_default();
        match what {
            // Code outside of `.text` is in no file, for callgrind.
            "ob" => is_ours = !name.contains(".so"),
            "fn" if is_ours && is_symbol(name) => drop(functions.insert(name)),
            _ => {}
        }
    }
    functions
}

/// What has no symbol is an address, or described.
fn is_symbol(name: &str) -> bool {
    !name.starts_with("0x") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
}

/// A symbol without what changes with every build, version of a crate or of the compiler: the number that tells copies of one
/// function apart, the hashes of crates in names as they are today (`Cs1a2B3c_5model` becomes `Cs*_5model`), and the hash at the
/// end of those of the standard library.
fn pattern(symbol: &str) -> String {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let symbol = symbol.rsplit_once('.').filter(|(_, end)| is_number(end)).map_or(symbol, |(plain, _)| plain);
    if let Some(plain) = symbol.strip_suffix('E').filter(|_| symbol.starts_with("_ZN")) {
        let end = plain.rfind("17h").filter(|at| plain.len() == at + 19);
        return end.map_or_else(|| symbol.to_owned(), |at| format!("{}17h*E", &plain[..at]));
    }
    let mut pieces = symbol.split("Cs");
    let mut pattern = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        pattern.push_str("Cs");
        match piece.split_once('_').filter(|(hash, _)| hash.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        {
            Some((_, rest)) => pattern.extend(["*_", rest]),
            None => pattern.push_str(piece),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_numbers_are_no_part_of_a_pattern() {
        for (symbol, expected) in [
            ("_RNvNtCs1a2B3c_5model4kind5check", "_RNvNtCs*_5model4kind5check"),
            (
                "_RINvNtCsaB_4core3ptr4readNtCs9_5model4KindECs0_5orlop",
                "_RINvNtCs*_4core3ptr4readNtCs*_5model4KindECs*_5orlop",
            ),
            ("_ZN3std2io5stdio6_print17h0123456789abcdefE", "_ZN3std2io5stdio6_print17h*E"),
            ("_RNvCs1_4core5write.1234", "_RNvCs*_4core5write"),
            ("sqlite3_step", "sqlite3_step"),
        ] {
            assert_eq!(pattern(symbol), expected);
        }
    }

    #[test]
    fn only_functions_of_the_program_that_were_run_count() {
        let calls = "ob=(1) /lib/libc.so.6\nfn=(1) malloc\nob=(2) ???\nfn=(2) sqlite3_step\ncob=(1)\ncfn=(1)\n\
                     cfn=(6) main\nfn=(3) 0x41a20\nob=(1)\nfn=(4) free\nob=(2)\nfn=(2)\nfn=(5) (below main)\nfn=(6)\n";
        assert_eq!(Vec::from_iter(functions(calls)), ["main", "sqlite3_step"]);
    }
}
