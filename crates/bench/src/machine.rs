//! Process and machine statistics from the kernel.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The unit of processor times in /proc: USER_HZ.
const TICKS_PER_SECOND: f64 = 100.0;

/// Resident memory of a process in bytes.
pub fn resident(pid: u32) -> Result<f64> {
    status(pid, "VmRSS:")
}

/// Peak resident memory of a process since [`forget_peak`], in bytes.
pub fn peak(pid: u32) -> Result<f64> {
    status(pid, "VmHWM:")
}

/// Resets the peak to the present resident memory.
pub fn forget_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("cannot reset the peak memory of a process")
}

fn status(pid: u32, field: &str) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes =
        line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse::<f64>().ok());
    Ok(kilobytes.with_context(|| format!("the kernel gives no {field}"))? * 1024.0)
}

/// Processor time of a process so far, in seconds.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).context("the process is gone")?;
    // The process name may contain any character, so fields are counted after its closing parenthesis.
    let behind = text.rsplit_once(')').context("the kernel's line has no name")?.1;
    let ticks = behind.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS_PER_SECOND)
}

/// Total processor time of several processes.
pub fn cpu_seconds_of(pids: &[u32]) -> Result<f64> {
    pids.iter().map(|&pid| cpu_seconds(pid)).sum()
}

/// The load average of the last minute.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// The size of a file.
pub fn file_size(path: &Path) -> Result<f64> {
    Ok(fs::metadata(path).with_context(|| path.display().to_string())?.len() as f64)
}

/// The machine on which the figures were measured.
pub fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores ({model}), Linux {}, SQLite {}", kernel.trim(), rusqlite::version())
}
