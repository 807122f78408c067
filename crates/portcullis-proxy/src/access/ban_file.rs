//! The file that bans outlive the process in: a JSON object in each line, written anew when bans have
//! changed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_access::Ban;
use portcullis_metrics::{Counter, Registry, catalogue};
use serde::{Deserialize, Serialize};

use super::ban::Jails;

/// A file that cannot be written is reported once in this time.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Of the time, writing takes a tenth at most.
const REST: u32 = 10;
/// The longest file that is read: 64 bytes for each ban of the largest tables, with room.
const BYTES_MAX: u64 = 1 << 30;

/// Reads the file once, and writes it from one thread; no request waits for it.
pub(crate) struct BanFile {
    path: PathBuf,
    errors: Counter,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The changes of the tables when it was written.
    written: Vec<u64>,
    /// Not before.
    next: Option<Instant>,
    told: Option<Instant>,
}

/// A line. Times are seconds since 1970.
#[derive(Serialize, Deserialize)]
struct Line {
    ban: String,
    client: IpAddr,
    until: u64,
    count: u32,
    remembered: u64,
}

impl BanFile {
    /// Takes over what the file has. Errors in it are reported, and never keep the proxy from serving.
    pub(crate) fn open(
        path: &Path,
        registry: &Registry,
        jails: &Jails,
        now: u64,
        say: &(dyn Fn(&str) + Send + Sync),
    ) -> BanFile {
        let errors = registry.counter(&catalogue::BAN_FILE_ERRORS, &[]);
        match read(path, jails, now) {
            Ok(0) => {}
            Ok(wrong) => {
                errors.inc();
                say(&format!("{}: skipped {wrong} lines that are not bans", path.display()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                errors.inc();
                say(&format!("{}: cannot restore saved bans: {error}", path.display()));
            }
        }
        let state = Mutex::new(State { written: changes(jails), ..State::default() });
        BanFile { path: path.to_path_buf(), errors, state }
    }

    /// Writes the file if bans have changed, and not too often.
    pub(crate) fn keep(&self, jails: &Jails, now: u64, say: &(dyn Fn(&str) + Send + Sync)) {
        let due = |state: &State| state.next.is_none_or(|next| Instant::now() >= next);
        self.write_if(jails, now, say, due);
    }

    /// Writes the file if bans have changed.
    pub(crate) fn close(&self, jails: &Jails, now: u64, say: &(dyn Fn(&str) + Send + Sync)) {
        self.write_if(jails, now, say, |_| true);
    }

    fn write_if(
        &self,
        jails: &Jails,
        now: u64,
        say: &(dyn Fn(&str) + Send + Sync),
        due: impl Fn(&State) -> bool,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes(jails);
        if changes == state.written || !due(&state) {
            return;
        }
        let began = Instant::now();
        let written = write(&self.path, jails, now);
        state.next = Some(Instant::now() + began.elapsed() * REST);
        match written {
            Ok(()) => *state = State { written: changes, told: None, next: state.next },
            Err(error) => {
                self.errors.inc();
                if state.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                    state.told = Some(Instant::now());
                    say(&format!("{}: cannot save bans: {error}", self.path.display()));
                }
            }
        }
    }
}

fn changes(jails: &Jails) -> Vec<u64> {
    jails.values().map(|table| table.bans.changes()).collect()
}

/// Takes over the bans that are not forgotten yet. How many lines are none.
fn read(path: &Path, jails: &Jails, now: u64) -> io::Result<usize> {
    let text = portcullis_files::read_text(path, BYTES_MAX).map_err(|error| {
        if let io::ErrorKind::FileTooLarge = error.kind() {
            io::Error::other("it is larger than such a file can be")
        } else {
            error
        }
    })?;
    let clock = seconds_since_1970();
    let mut wrong = 0;
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            wrong += 1;
            continue;
        };
        let Some(table) = jails.get(line.ban.as_str()) else { continue };
        let left = |until: u64| Duration::from_secs(until.saturating_sub(clock));
        let ban = Ban {
            client: line.client,
            left: left(line.until),
            count: line.count,
            remembered: left(line.remembered),
        };
        if !ban.remembered.is_zero() {
            table.restore(&ban, now);
        }
    }
    Ok(wrong)
}

/// Beside it first: a crash in between leaves the old one.
fn write(path: &Path, jails: &Jails, now: u64) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let mut out = io::BufWriter::new(file);
    let clock = seconds_since_1970();
    for (name, table) in jails {
        for ban in table.bans.list(now) {
            let at = |left: Duration| clock + left.as_secs() + u64::from(left.subsec_nanos() > 0);
            let line = Line {
                ban: name.to_string(),
                client: ban.client,
                until: if ban.left.is_zero() { clock } else { at(ban.left) },
                count: ban.count,
                remembered: at(ban.remembered),
            };
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
    }
    let file: File = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
