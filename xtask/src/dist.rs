//! `cargo xtask dist`: builds the binary to publish, records which functions its start runs, and links it again with these side by
//! side.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::steps::{cargo, root};
use crate::tools::is_on_path;

/// The time limit for the first answer of a server under callgrind, which is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time to observe an idle server: controllers start, and periodic tasks run for the first time.
const IDLE: Duration = Duration::from_secs(20);

pub fn run() -> Result<(), String> {
    for (program, package) in [("valgrind", "valgrind"), ("kubectl", "kubernetes-client")] {
        if !is_on_path(program) {
            return Err(format!("{program} is needed; on Debian, as root:\n  apt-get install {package}"));
        }
    }
    build(&[])?;
    let folder = Folder::new()?;
    let mut functions = BTreeSet::new();
    for start in ["fresh folder", "existing folder"] {
        println!("== start, {start}");
        functions.extend(watched_start(&folder.0)?);
    }
    let list = target().join("layout.txt");
    let lines: String = functions.iter().map(|function| format!("{function}\n")).collect();
    fs::write(&list, lines).map_err(|error| format!("{} cannot be written: {error}", list.display()))?;
    println!("== link again, with {} functions of the start side by side", functions.len());
    build(&[("ORLOP_LAYOUT", &list.to_string_lossy())])?;
    println!("{}", binary().display());
    Ok(())
}

fn build(environment: &[(&str, &str)]) -> Result<(), String> {
    match cargo(&["build", "--profile", "dist", "--package", "orlop"], environment)? {
        true => Ok(()),
        false => Err("cannot build orlop".to_owned()),
    }
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn binary() -> PathBuf {
    target().join("dist/orlop")
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = env::temp_dir().join(format!("orlop-dist-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The symbol patterns of the functions that a server runs until it is idle.
fn watched_start(folder: &Path) -> Result<BTreeSet<String>, String> {
    let calls = folder.join("calls");
    let mut server = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", calls.display()))
        .arg(binary())
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
    // SIGTERM: callgrind writes its output only on a regular exit.
    let _ = Command::new("kill").arg(server.id().to_string()).status();
    server.wait().map_err(|error| format!("cannot wait for the server: {error}"))?;
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
    Err(format!("the server did not answer within {PATIENCE:?}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server that is watched by another program says nothing of its state"
)]
fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// The program's own functions in callgrind's output. A line `ob=(3) path` selects the object file and
/// `fn=(12) name` the function of the lines after it; `cob` and `cfn` are about callees. A name is given
/// once; later lines have the number alone.
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
            // Callgrind assigns no object file to code outside `.text`.
            "ob" => is_ours = !name.contains(".so"),
            "fn" if is_ours && is_symbol(name) => drop(functions.insert(name)),
            _ => {}
        }
    }
    functions
}

/// Functions without a symbol are shown as an address or a description.
fn is_symbol(name: &str) -> bool {
    !name.starts_with("0x") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
}

/// A symbol without the parts that differ between builds, crate versions and compiler versions: the number
/// that distinguishes copies of a function, crate hashes in v0 names (`Cs1a2B3c_5model` becomes
/// `Cs*_5model`), and the hash suffix of legacy names.
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
