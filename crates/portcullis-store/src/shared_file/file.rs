//! The file itself: made, checked, locked, read and written at places.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::statfs::{NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, fstatfs, statfs};
use nix::unistd::{AccessFlags, access, geteuid};
use portcullis_engine::RecordId;
use sha2::{Digest as _, Sha256};

use super::bucket::{BUCKET_BYTES, HALF_BYTES};

/// Not `collections.*`, which another process may write to the same folder; and folders such as `/tmp` are
/// usual.
const NAME: &str = "portcullis.collections";
/// A file of that name that is not such a file.
const FOREIGN: &str = "portcullis.collections.damaged";
const MAGIC: &[u8; 40] = b"portcullis collections of processes, 1\r\n";
const SECRET_BYTES: usize = 16;
/// Magic, secret, checksum.
const HEAD_BYTES: usize = MAGIC.len() + SECRET_BYTES + 4;
/// Start of the buckets.
const BUCKETS_AT: u64 = 4096;
/// With [`BUCKET_BYTES`] the largest size of the file, 64 MiB.
const BUCKETS: u32 = 4096;
/// Another process may put a new file in place of a foreign one while we look at it.
const TRIES_MAX: usize = 4;
/// Between two tries of a lock, but for the first ones.
const LOCK_POLL: Duration = Duration::from_micros(50);
/// Tries before which others are only let go first.
const LOCK_YIELDS: u32 = 8;

pub(super) const DIGEST_BYTES: usize = 16;
/// Stands for a record's name and key. What clients send has any length; this has not.
pub(super) type Digest = [u8; DIGEST_BYTES];

/// The reason why the file cannot be used now.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another process holds the lock, and was waited for.
    Locked,
    /// The operating system says no.
    Io(&'static str, io::Error),
    /// The file or the folder is not what it has to be.
    Unfit(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Locked => f.write_str("another process keeps its lock"),
            Trouble::Io(what, error) => write!(f, "{what} {NAME}: {error}"),
            Trouble::Unfit(why) => f.write_str(why),
        }
    }
}

/// The file, opened by one process.
#[derive(Debug)]
pub(super) struct File {
    file: fs::File,
    identity: (u64, u64),
    secret: [u8; SECRET_BYTES],
}

impl File {
    /// Opens the file of `folder`, or makes it. The text is a remark for the operator: a file that is not
    /// such a one had the name, and has another now.
    pub(super) fn open(folder: &Path, wait_max: Duration) -> Result<(File, Option<String>), Trouble> {
        let path = folder.join(NAME);
        let mut remark = None;
        for _ in 0..TRIES_MAX {
            let mut options = OpenOptions::new();
            // Nobody else's business, and no link to somewhere else.
            options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            let file = options.open(&path).map_err(|error| Trouble::Io("cannot open", error))?;
            let found = own(&file, folder)?;
            let mut file = File { file, identity: (found.dev(), found.ino()), secret: [0; SECRET_BYTES] };
            let locked = file.lock_range(0, 1, wait_max)?;
            let mut head = [0; HEAD_BYTES];
            file.read_at(0, &mut head)?;
            let secret = match secret(&head) {
                Some(secret) => secret,
                None if head == [0; HEAD_BYTES] => {
                    let (head, secret) = new_head()?;
                    let written = file.file.write_all_at(&head, 0);
                    written.map_err(|error| Trouble::Io("cannot write", error))?;
                    secret
                }
                None => {
                    if file.is_at(folder) {
                        fs::rename(&path, folder.join(FOREIGN)).map_err(|error| {
                            Trouble::Io("cannot rename what is no file of collections,", error)
                        })?;
                        remark = Some(format!(
                            "{} was no file of collections: renamed to {FOREIGN}",
                            path.display()
                        ));
                    }
                    continue;
                }
            };
            drop(locked);
            file.secret = secret;
            return Ok((file, remark));
        }
        Err(Trouble::Unfit(format!("{NAME} is replaced again and again")))
    }

    /// True if the name still means this file.
    pub(super) fn is_at(&self, folder: &Path) -> bool {
        fs::symlink_metadata(folder.join(NAME)).is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    /// True if the name means this file and it is what it was: one that was emptied is another for those that
    /// open it now.
    pub(super) fn is_current(&self, folder: &Path) -> bool {
        let mut head = [0; HEAD_BYTES];
        self.is_at(folder)
            && self.read_at(0, &mut head).is_ok()
            && secret(&head).is_some_and(|secret| secret == self.secret)
    }

    /// With the secret of the file: a client that chooses its keys cannot choose whose records they push out.
    pub(super) fn digest(&self, id: RecordId<'_>) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(self.secret);
        hasher.update((id.name.len() as u64).to_le_bytes());
        hasher.update(id.name);
        hasher.update(id.key);
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&hasher.finalize()[..DIGEST_BYTES]);
        digest
    }

    /// The bucket of a record.
    pub(super) fn bucket(&self, digest: &Digest) -> u32 {
        let [.., a, b, c, d] = *digest;
        u32::from_le_bytes([a, b, c, d]) % BUCKETS
    }

    /// Locks a bucket for this process until the answer is dropped, or the process ends.
    pub(super) fn lock(&self, at: u32, wait_max: Duration) -> Result<Locked<'_>, Trouble> {
        self.lock_range(place(at, 0), BUCKET_BYTES as u64, wait_max)
    }

    fn lock_range(&self, from: u64, bytes: u64, wait_max: Duration) -> Result<Locked<'_>, Trouble> {
        let (mut begin, mut tries) = (None, 0);
        loop {
            match fcntl(&self.file, FcntlArg::F_OFD_SETLK(&range(libc::F_WRLCK, from, bytes))) {
                Ok(_) => return Ok(Locked { file: self, from, bytes }),
                Err(nix::Error::EAGAIN | nix::Error::EACCES) => {}
                Err(nix::Error::EINTR) => continue,
                Err(error) => return Err(Trouble::Io("cannot lock", error.into())),
            }
            if begin.get_or_insert_with(Instant::now).elapsed() >= wait_max {
                return Err(Trouble::Locked);
            }
            // Waiting for the lock itself has no deadline.
            tries += 1;
            match tries <= LOCK_YIELDS {
                true => std::thread::yield_now(),
                false => std::thread::sleep(LOCK_POLL),
            }
        }
    }

    /// Reads a bucket. What is behind the end of the file is zero.
    pub(super) fn read(&self, at: u32, into: &mut Vec<u8>) -> Result<(), Trouble> {
        into.resize(BUCKET_BYTES, 0);
        self.read_at(place(at, 0), into)
    }

    fn read_at(&self, from: u64, into: &mut [u8]) -> Result<(), Trouble> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], from + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Trouble::Io("cannot read", error)),
            }
        }
        into[done..].fill(0);
        Ok(())
    }

    /// Writes a half of a bucket.
    pub(super) fn write(&self, at: u32, half: usize, bytes: &[u8]) -> Result<(), Trouble> {
        let written = self.file.write_all_at(bytes, place(at, half));
        written.map_err(|error| Trouble::Io("cannot write", error))
    }
}

/// A range of the file that this process has locked.
pub(super) struct Locked<'f> {
    file: &'f File,
    from: u64,
    bytes: u64,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // It cannot fail for a lock that is held; if it did, the lock would go with the process.
        let _ = fcntl(&self.file.file, FcntlArg::F_OFD_SETLK(&range(libc::F_UNLCK, self.from, self.bytes)));
    }
}

fn range(kind: libc::c_int, from: u64, bytes: u64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: from as libc::off_t,
        l_len: bytes as libc::off_t,
        l_pid: 0,
    }
}

fn place(at: u32, half: usize) -> u64 {
    BUCKETS_AT + u64::from(at % BUCKETS) * BUCKET_BYTES as u64 + (half * HALF_BYTES) as u64
}

/// The state of the file, if it is one that only its owner, who is us, could have written.
fn own(file: &fs::File, folder: &Path) -> Result<fs::Metadata, Trouble> {
    let stated =
        |result: io::Result<fs::Metadata>| result.map_err(|error| Trouble::Io("cannot look at", error));
    let (found, folder) = (stated(file.metadata())?, stated(fs::metadata(folder))?);
    if !found.is_file() {
        return Err(Trouble::Unfit(format!("{NAME} is not a file")));
    }
    if found.nlink() > 1 {
        return Err(Trouble::Unfit(format!("{NAME} has another name, too: remove it")));
    }
    if fstatfs(file).is_ok_and(|found| is_network(found.filesystem_type())) {
        return Err(Trouble::Unfit("it is a network file system, whose locks take too long".to_owned()));
    }
    let user = geteuid().as_raw();
    if found.uid() == user {
        // A process of root makes the file for those that the folder is for.
        if user == 0 && folder.uid() != 0 && found.len() == 0 && folder.mode() & 0o022 == 0 {
            let given = fchown(file, Some(folder.uid()), Some(folder.gid()));
            given.map_err(|error| Trouble::Io("cannot hand over", error))?;
        }
        return Ok(found);
    }
    // Anybody can put a file into /tmp. A folder that is its owner's alone is trusted by root.
    if user == 0 && found.uid() == folder.uid() && folder.mode() & 0o022 == 0 {
        return Ok(found);
    }
    Err(Trouble::Unfit(format!(
        "{NAME} belongs to user {}, and this process is user {user}: let each server have a folder of its own, or \
         remove the file",
        found.uid()
    )))
}

fn is_network(kind: nix::sys::statfs::FsType) -> bool {
    // CIFS and SMB 2 have no names there.
    kind == NFS_SUPER_MAGIC || kind == SMB_SUPER_MAGIC || matches!(kind.0 as u32, 0xff53_4d42 | 0xfe53_4d42)
}

/// The secret of a file that begins with `head`.
fn secret(head: &[u8; HEAD_BYTES]) -> Option<[u8; SECRET_BYTES]> {
    let (checked, sum) = head.split_last_chunk::<4>()?;
    let is_good = checked.starts_with(MAGIC) && crc32fast::hash(checked).to_le_bytes() == *sum;
    checked.last_chunk().filter(|_| is_good).copied()
}

fn new_head() -> Result<([u8; HEAD_BYTES], [u8; SECRET_BYTES]), Trouble> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret)
        .map_err(|error| Trouble::Unfit(format!("there is no randomness: {error}")))?;
    let mut head = [0; HEAD_BYTES];
    head[..MAGIC.len()].copy_from_slice(MAGIC);
    head[MAGIC.len()..][..SECRET_BYTES].copy_from_slice(&secret);
    let sum = crc32fast::hash(&head[..HEAD_BYTES - 4]);
    head[HEAD_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    Ok((head, secret))
}

/// Checks that `folder` can have the file, as far as that is known before a server has changed its user: an
/// error with a fix, or a warning.
pub fn check_folder(folder: &Path) -> Result<Option<String>, (String, &'static str)> {
    const MAKE: &str = "make it, and let the user that requests are handled by write to it";
    let shown = folder.display();
    let found = match fs::metadata(folder) {
        Ok(found) if found.is_dir() => found,
        Ok(_) => return Err((format!("{shown} is not a folder"), MAKE)),
        Err(error) => return Err((format!("{shown}: {error}"), MAKE)),
    };
    if statfs(folder).is_ok_and(|found| is_network(found.filesystem_type())) {
        return Err((
            format!("{shown} is a network file system: collections are shared on one machine only"),
            "use a folder of a local disk, or of memory such as /run",
        ));
    }
    if !geteuid().is_root() {
        let may = access(folder, AccessFlags::W_OK | AccessFlags::X_OK);
        return may.map(|()| None).map_err(|error| (format!("{shown} cannot be written to: {error}"), MAKE));
    }
    let is_for_root_only = found.uid() == 0 && found.mode() & 0o022 == 0;
    Ok(is_for_root_only.then(|| {
        format!(
            "only root may write to {shown}: processes of another user will keep their collections in memory; give \
             the folder to the user that requests are handled by (chown)"
        )
    }))
}
