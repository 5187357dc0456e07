//! Owns processes: how they are built, pinned and started, and what they used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

use crate::Failed;

/// The core of the server.
pub const SERVER: u32 = 0;
/// The core of the client.
pub const CLIENT: u32 = 1;

/// What a command used, with all that it started and waited for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Used {
    /// From its start to its end.
    pub wall_ns: u64,
    /// When it had ended, by the machine's monotonic clock.
    pub end_ns: u64,
    /// Processor time.
    pub cpu_ns: u64,
    /// Memory of its largest process at its largest, in KiB.
    pub peak_kib: u64,
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
}

/// Builds the program where this was started by cargo; else it must stand beside this one.
pub fn build() -> Result<(), Failed> {
    let Some(cargo) = std::env::var_os("CARGO") else {
        return binary().map(|_| ());
    };
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--bin", "denom"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    match command.status()?.success() {
        true => binary().map(|_| ()),
        false => Err("denom does not build".into()),
    }
}

/// The program denom.
pub fn binary() -> Result<PathBuf, Failed> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent);
    let denom = folder.ok_or("no target folder")?.join("denom");
    denom
        .exists()
        .then_some(denom)
        .ok_or("build denom first: cargo build --release".into())
}

/// Whether processes can have a core each.
fn pins() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores >= 2 && Command::new("taskset").arg("--version").output().is_ok()
}

/// What the numbers depend on, in a sentence.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("not known");
    let pinned = match pins() {
        true => "server and client on a core each",
        false => "server and client NOT pinned: two cores and taskset are needed",
    };
    let built = match cfg!(debug_assertions) {
        true => "; a DEBUG build: its times say nothing",
        false => "",
    };
    format!("{cores} cores, load {load} at the start, {pinned}{built}")
}

/// Whether commands are to have the real-time class.
static REAL_TIME: OnceLock<bool> = OnceLock::new();

/// Says, once, whether commands are to have the real-time class; it takes `chrt` and the right to.
pub fn real_time(wanted: bool) {
    REAL_TIME.get_or_init(|| wanted);
}

/// A command on one core, where there is a choice.
pub fn pinned(core: u32, program: &Path) -> Command {
    let mut words: Vec<OsString> = Vec::new();
    if REAL_TIME.get().is_some_and(|wanted| *wanted) {
        words.extend(["chrt", "--rr", "1"].map(OsString::from));
    }
    if pins() {
        words.extend(["taskset", "-c", &core.to_string()].map(OsString::from));
    }
    words.push(program.into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// A folder that goes with what is in it.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A new one.
    pub fn new() -> Result<Self, Failed> {
        let name = format!(
            "denom-bench-{}-{:x}",
            std::process::id(),
            Instant::now().elapsed().as_nanos()
        );
        for number in 0..1_000 {
            let folder = std::env::temp_dir().join(format!("{name}-{number}"));
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Folder(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err("no folder for the files of a run".into())
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is in the system's folder for such files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A simulated server with a ledger.
pub struct Server {
    child: Child,
    /// Its address, with the API's path in front.
    pub url: String,
}

impl Server {
    /// Starts one on the server's core.
    pub fn start(ledger: &Path) -> Result<Self, Failed> {
        use std::io::{BufRead, BufReader};
        let mut child = pinned(SERVER, &binary()?)
            .args(["serve", "--port", "0", "--ledger"])
            .arg(ledger)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let url = line
            .split_whitespace()
            .next()
            .ok_or("the server says no URL")?
            .to_owned();
        Ok(Server { child, url })
    }

    /// Ends it, with its ledger whole.
    pub fn stop(mut self) -> Result<(), Failed> {
        signal(&self.child, nix::sys::signal::Signal::SIGTERM)?;
        self.child.wait()?;
        Ok(())
    }
}

/// Sends a signal to a process that this one started.
pub fn signal(child: &Child, signal: nix::sys::signal::Signal) -> Result<(), Failed> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id())?);
    Ok(nix::sys::signal::kill(pid, signal)?)
}

/// Runs a command on the client's core, silent but for its errors, and says what it used.
pub fn client(folder: &Folder, command: &[String]) -> Result<Used, Failed> {
    let file = folder.file("used.json");
    let status = pinned(CLIENT, &std::env::current_exe()?)
        .arg("used")
        .arg(&file)
        .args(command)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("{} did not start", command.join(" ")).into());
    }
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

/// The part `used`: a process of its own, so that what is counted is the command's alone.
pub fn used(file: &Path, command: &[String]) -> Result<(), Failed> {
    let (program, rest) = command.split_first().ok_or("no command")?;
    let began = Instant::now();
    let status = Command::new(program).args(rest).status()?;
    let wall = began.elapsed();
    let end_ns = denom::sim::clock::monotonic_nanos();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let used = Used {
        wall_ns: u64::try_from(wall.as_nanos())?,
        end_ns,
        cpu_ns: nanos(usage.user_time()) + nanos(usage.system_time()),
        peak_kib: u64::try_from(usage.max_rss())?
            / if cfg!(target_os = "macos") { 1_024 } else { 1 },
        code: status.code(),
    };
    Ok(std::fs::write(file, serde_json::to_vec(&used)?)?)
}

fn nanos(time: TimeVal) -> u64 {
    use nix::sys::time::TimeValLike;
    u64::try_from(time.num_microseconds()).unwrap_or(0) * 1_000
}

/// The part `hog`: it takes what it can get of its core.
pub fn hog(seconds: u64) -> Result<(), Failed> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        std::hint::spin_loop();
    }
    Ok(())
}
