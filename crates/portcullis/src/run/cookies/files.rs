//! The folder `issued-cookies` of the data folder: `key`, and a file for each site.
//!
//! During an upgrade two processes have it. Who writes takes over first what the other one has written.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_inspect::{IssuedCookies, IssuedKey};

use super::now;
use crate::{data_folder, learned_files, new_file};

/// Between two times that the cookies of a site are written.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Between two reports of the same trouble.
const TELL_EVERY: Duration = Duration::from_secs(3_600);
/// A larger file is not ours: nothing is in it that is not in memory, and that has a limit.
const BYTES_MAX: u64 = 1 << 30;

/// The files, and what was written to them.
pub(super) struct Files {
    /// None: nothing is kept.
    folder: Option<PathBuf>,
    sites: BTreeMap<String, Kept>,
    told: Option<Instant>,
}

struct Kept {
    cookies: Arc<IssuedCookies>,
    path: PathBuf,
    /// The version that was written.
    version: u64,
    /// The file as it was read or written last.
    seen: Option<Identity>,
    /// False: the file cannot be read, and stays as it is.
    is_ours: bool,
    written: Instant,
}

/// What tells one state of a file from another: it is never changed in place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    node: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
        let file = fs::metadata(path).ok()?;
        Some(Identity { node: file.ino(), bytes: file.len(), changed: (file.mtime(), file.mtime_nsec()) })
    }
}

impl Files {
    /// The files of a data folder, and the key there. Where it cannot be kept, nothing is.
    pub(super) fn open(data: Option<PathBuf>) -> io::Result<(Files, IssuedKey)> {
        let mut folder = data.map(|data| data.join("issued-cookies"));
        let known = folder.as_deref().map(key);
        let key = match known {
            Some(Ok(key)) => key,
            Some(Err(error)) => {
                let folder = folder.take().unwrap_or_default();
                eprintln!(
                    "portcullis: {}: {error}; cookies that upstreams set are known until this process ends",
                    folder.display()
                );
                new_key()?
            }
            None => new_key()?,
        };
        Ok((Files { folder, sites: BTreeMap::new(), told: None }, key))
    }

    pub(super) fn are_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// Reads what was known of a site, and keeps it from now on.
    pub(super) fn add(&mut self, cookies: &Arc<IssuedCookies>) {
        let Some(folder) = &self.folder else { return };
        let name = cookies.site();
        if self.sites.contains_key(name) {
            return;
        }
        let mut kept = Kept {
            cookies: Arc::clone(cookies),
            path: folder.join(format!("{}.hashes", learned_files::file_name(name))),
            version: 0,
            seen: None,
            is_ours: true,
            written: Instant::now(),
        };
        kept.take_over();
        kept.version = cookies.version();
        self.sites.insert(name.to_owned(), kept);
    }

    /// Takes another key, of which other nodes have told.
    pub(super) fn set_key(&mut self, key: IssuedKey) {
        let Some(folder) = &self.folder else { return };
        if let Err(error) = new_file::put(&folder.join("key"), hex(key).as_bytes(), true) {
            let folder = folder.display().to_string();
            self.report(&format!("the key of issued cookies cannot be written to {folder}: {error}"));
        }
    }

    /// Takes over what another process has written; writes what is new, if it is time or to be `now`.
    pub(super) fn turn(&mut self, is_now: bool) {
        let Some(folder) = self.folder.clone() else { return };
        let mut trouble = None;
        self.sites.retain(|_, kept| {
            kept.take_over();
            // Nobody else has a site that is not served any more.
            let is_last = Arc::strong_count(&kept.cookies) == 1;
            let is_time = is_now || is_last || kept.written.elapsed() >= WRITE_EVERY;
            if is_time && let Err(error) = kept.write(&folder) {
                trouble = Some(error);
            }
            !is_last
        });
        if let Some(error) = trouble {
            let folder = folder.display();
            self.report(&format!("issued cookies cannot be written to {folder}: {error}"));
        }
    }

    /// Reports trouble, not more often than [`TELL_EVERY`].
    fn report(&mut self, trouble: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            eprintln!("portcullis: {trouble}");
        }
    }
}

impl Kept {
    /// Reads the file, if it is another one than before.
    fn take_over(&mut self) {
        let found = Identity::of(&self.path);
        if found.is_none() || found == self.seen || !self.is_ours {
            return;
        }
        self.seen = found;
        let (name, path) = (self.cookies.site(), self.path.display());
        let state = match learned_files::read_to(&self.path, BYTES_MAX) {
            Ok(Some(state)) => state,
            Ok(None) => return,
            Err(error) => {
                self.is_ours = false;
                return eprintln!(
                    "portcullis: site {name}: {path}: {error}; its cookies are unknown, and nothing is written \
                     until the next start, so that the file stays as it is"
                );
            }
        };
        if let Err(error) = self.cookies.take_over(&state, now()) {
            match learned_files::set_aside(&self.path) {
                Ok(aside) => eprintln!(
                    "portcullis: site {name}: {path}: {error}; its cookies are unknown until they are set again, \
                     the file is {} now",
                    aside.display()
                ),
                Err(moving) => {
                    eprintln!("portcullis: site {name}: {path}: {error}; it cannot be set aside: {moving}")
                }
            }
        }
    }

    fn write(&mut self, folder: &Path) -> io::Result<()> {
        let version = self.cookies.version();
        if version == self.version || !self.is_ours {
            return Ok(());
        }
        self.written = Instant::now();
        data_folder::create(folder)?;
        // Another process that writes now has it for a moment.
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join("lock"))?;
        lock.lock()?;
        self.take_over();
        let version = self.cookies.version();
        new_file::put(&self.path, &self.cookies.state(), true)?;
        (self.version, self.seen) = (version, Identity::of(&self.path));
        Ok(())
    }
}

/// The key in a folder; a new one if there is none.
fn key(folder: &Path) -> io::Result<IssuedKey> {
    data_folder::create(folder)?;
    let path = folder.join("key");
    for _ in 0..2 {
        let text = match learned_files::read_to(&path, 4096)? {
            Some(text) => text,
            None => {
                let key = new_key()?;
                match new_file::put(&path, hex(key).as_bytes(), false) {
                    Ok(()) => return Ok(key),
                    // Another process was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(error),
                }
            }
        };
        if let Some(key) = parse(&text) {
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            return Ok(key);
        }
        let aside = learned_files::set_aside(&path)?;
        eprintln!(
            "portcullis: {}: it is no key; a new one is made, and previous cookies are unknown; the file is \
             {} now",
            path.display(),
            aside.display()
        );
    }
    Err(io::Error::other("the key cannot be read"))
}

fn new_key() -> io::Result<IssuedKey> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(IssuedKey(key))
}

/// A key as text.
pub(super) fn hex(key: IssuedKey) -> String {
    data_encoding::HEXLOWER.encode(&key.0)
}

/// The key of a text.
pub(super) fn parse(text: &[u8]) -> Option<IssuedKey> {
    let bytes = data_encoding::HEXLOWER.decode(text.trim_ascii()).ok()?;
    bytes.try_into().ok().map(IssuedKey)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use portcullis_inspect::IssuedSites;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// A process with one site.
    struct Process {
        files: Files,
        site: Arc<IssuedCookies>,
    }

    impl Process {
        fn start(data: &Path) -> Process {
            let (mut files, key) = Files::open(Some(data.to_owned())).expect("a key");
            let site = IssuedSites::new(key, 1 << 20).site("a/b");
            files.add(&site);
            Process { files, site }
        }

        fn note(&self, value: &str) {
            self.site.note(b"id", value.as_bytes(), CLIENT, now());
        }

        fn has(&self, value: &str) -> bool {
            self.site.has(b"id", value.as_bytes(), CLIENT, now())
        }
    }

    #[test]
    fn cookies_outlive_the_process() {
        let data = tempfile::tempdir().expect("a folder");
        let mut first = Process::start(data.path());
        first.note("one");
        first.files.turn(false);
        assert!(!first.files.sites["a/b"].path.exists(), "it is not time yet");
        first.files.turn(true);
        for name in ["key", "a%2fb.hashes"] {
            let file = data.path().join("issued-cookies").join(name);
            assert_eq!(fs::metadata(file).expect("a file").mode() & 0o777, 0o600, "{name}");
        }
        assert!(Process::start(data.path()).has("one"));
    }

    /// An upgrade: both serve for a while, and write.
    #[test]
    fn processes_take_over_what_the_other_one_has_written() {
        let data = tempfile::tempdir().expect("a folder");
        let mut old = Process::start(data.path());
        old.note("before");
        old.files.turn(true);
        let mut new = Process::start(data.path());
        old.note("old");
        new.note("new");
        new.files.turn(true);
        old.files.turn(true);
        new.files.turn(false);
        for process in [&new, &old, &Process::start(data.path())] {
            assert!(process.has("before") && process.has("old") && process.has("new"));
        }
        // Neither writes again what it has from the other one, for ever.
        let versions = |old: &Process, new: &Process| (old.site.version(), new.site.version());
        let before = versions(&old, &new);
        for _ in 0..3 {
            old.files.turn(true);
            new.files.turn(true);
        }
        assert_eq!(versions(&old, &new), before);
    }

    #[test]
    fn damaged_files_are_set_aside() {
        let data = tempfile::tempdir().expect("a folder");
        let mut first = Process::start(data.path());
        first.note("one");
        first.files.turn(true);
        let path = first.files.sites["a/b"].path.clone();
        let whole = fs::read(&path).expect("a file");
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).expect("a file");
            let mut again = Process::start(data.path());
            assert!(!again.has("one") && !path.exists(), "{end}");
            again.note("two");
            again.files.turn(true);
            assert!(Process::start(data.path()).has("two"), "{end}");
        }
        let aside = path.with_extension("hashes.damaged");
        assert_eq!(fs::read(&aside).expect("a file"), whole[..whole.len() - 1]);
        // Without its key it is of no use; a key that is none is set aside, too.
        let key = path.with_file_name("key");
        for text in ["", "x", "00", &"g".repeat(64)] {
            fs::write(&path, &whole).expect("a file");
            fs::write(&key, text).expect("a key");
            assert!(!Process::start(data.path()).has("one"));
            assert!(parse(&fs::read(&key).expect("a key")).is_some() && !path.exists());
        }
    }

    /// What cannot be read stays as it is.
    #[test]
    fn a_file_that_cannot_be_read_is_not_written_over() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = data.path().join("issued-cookies");
        fs::create_dir_all(folder.join("a%2fb.hashes")).expect("a folder in place of the file");
        let mut process = Process::start(data.path());
        process.note("one");
        process.files.turn(true);
        assert!(process.has("one") && folder.join("a%2fb.hashes").is_dir());
        let other = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(other.path().join("issued-cookies/key")).expect("a folder in place of the key");
        assert!(!Process::start(other.path()).files.are_kept());
    }
}
