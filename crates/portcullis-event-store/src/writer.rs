//! The writer: events into blocks, blocks into segments, segments dropped when they are old or too many.
//!
//! Events that came since the last commit are written as a block of their own at each commit; when enough
//! have come, the small blocks since the last full one are replaced by one. So a commit costs what is new,
//! and a reader meets few blocks.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use portcullis_event::{Event, KeptRequest};

use crate::block::BlockBuilder;
use crate::codec::Packer;
use crate::folder::{Folder, SegmentFile};
use crate::recorded::encode;
use crate::rollup::{Archive, Keep, Tally};
use crate::segment::{Segment, SegmentError};
use crate::settings::StoreSettings;

/// Small blocks after which they become one.
const SMALL_MAX: usize = 32;
/// Commits between two looks at the size of the folder.
const LOOK_EVERY: u32 = 16;
/// Bytes of events after which it is looked at whatever the number of commits.
const LOOK_AFTER_BYTES: u64 = 4 << 20;
/// Bytes by which the folder may grow between two looks: two blocks and the log that SQLite keeps beside a
/// segment.
const HEADROOM: u64 = 16 << 20;
/// Roll-ups that wait in memory for a disk that takes nothing.
const ROLLUPS_MAX: usize = 1024;
/// Things to tell that wait for a commit that succeeds.
const NOTICES_MAX: usize = 16;
const DAY_MS: u64 = 86_400_000;

/// Messages for the operator about things other than writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A segment was set aside, under this name.
    Damaged(String),
    /// A segment could not be deleted.
    NotDeleted(String),
    /// The roll-ups of a segment that was dropped could not be kept.
    RollupsLost(String),
}

/// Result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Events that are on disk now.
    pub written: u64,
    /// Segments that were dropped, to keep to the settings.
    pub segments_dropped: u64,
    /// Size of the folder, where this commit has looked.
    pub bytes: Option<u64>,
    /// The message.
    pub notices: Vec<Notice>,
}

/// The writer of a store. It has no thread and no clock of its own.
pub struct Writer {
    settings: StoreSettings,
    folder: Folder,
    /// Held while this process writes; none for a process that takes over from another, until that ends, and
    /// while the folder cannot be written.
    lock: Option<File>,
    segment: Option<Open>,
    packer: Packer,
    /// A request as it is stored.
    request: Vec<u8>,
    /// Events since the last commit.
    fresh: BlockBuilder,
    /// Sums of requests that no commit has written.
    tally: Tally,
    commits: u32,
    bytes_since_look: u64,
    /// Messages of failed commits; the next one that succeeds sends them.
    untold: Committed,
}

/// The segment that is written to.
struct Open {
    segment: Segment,
    file: SegmentFile,
    /// Events since the last full block, which are on disk in small blocks.
    run: BlockBuilder,
    run_first: u64,
    small: usize,
}

/// Why a store cannot be written to.
#[derive(Debug)]
pub enum OpenError {
    /// The folder cannot be made or locked.
    Folder(std::io::Error),
    /// Another process writes there.
    InUse,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Folder(error) => error.fmt(f),
            OpenError::InUse => {
                f.write_str("another process writes events there; give each instance a folder of its own")
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl Writer {
    /// The writer of a folder. `takes_over`: another process may write there until it ends, in a segment of
    /// its own. A folder that cannot be written now is tried again at each commit, which says what is wrong.
    pub fn open(settings: StoreSettings, takes_over: bool) -> Result<Writer, OpenError> {
        let folder = Folder::new(&settings.folder);
        let lock = match folder.create().and_then(|()| folder.lock()) {
            Ok(None) if !takes_over => return Err(OpenError::InUse),
            Ok(lock) => lock,
            Err(error) if may_pass(&error) => None,
            Err(error) => return Err(OpenError::Folder(error)),
        };
        let (packer, fresh) = (Packer::new(), BlockBuilder::new());
        Ok(Writer {
            settings,
            folder,
            lock,
            segment: None,
            packer,
            request: Vec::new(),
            fresh,
            tally: Tally::default(),
            commits: 0,
            bytes_since_look: 0,
            untold: Committed::default(),
        })
    }

    /// Adds an event, with the request that is kept of it. True if a commit is due now, however short ago the
    /// last was.
    pub fn add(&mut self, event: &Event, request: Option<&KeptRequest>) -> bool {
        encode(request, &mut self.request);
        self.fresh.push(event, &self.request, &mut self.packer);
        self.fresh.is_full()
    }

    /// Adds what requests came to.
    pub fn count(&mut self, tally: Tally) {
        self.tally.merge(tally);
    }

    /// Requests that the events of the next commit stand for.
    pub fn pending(&self) -> u64 {
        self.fresh.requests()
    }

    /// Writes what was added. After an error the events are gone, and the caller counts them; roll-ups are
    /// written by the next commit.
    pub fn commit(&mut self, now: u64) -> Result<Committed, SegmentError> {
        let mut committed = std::mem::take(&mut self.untold);
        let result = self.lock().and_then(|()| self.write(now, &mut committed));
        self.fresh.clear();
        if let Err(error) = &result {
            self.give_up(error, &mut committed);
        }
        self.commits += 1;
        let is_due = self.commits % LOOK_EVERY == 1 || self.bytes_since_look >= LOOK_AFTER_BYTES;
        if is_due || matches!(result, Err(SegmentError::Full)) {
            self.bytes_since_look = 0;
            self.drop_old(now, &mut committed);
        }
        match result {
            Ok(written) => Ok(Committed { written, ..committed }),
            Err(error) => {
                self.bound_tally(&mut committed);
                self.untold = committed;
                Err(error)
            }
        }
    }

    /// Takes the lock, unless another process has it.
    fn lock(&mut self) -> Result<(), SegmentError> {
        if self.lock.is_some() || (self.fresh.is_empty() && self.tally.is_empty()) {
            return Ok(());
        }
        let lock = self.folder.create().and_then(|()| self.folder.lock());
        self.lock = lock.map_err(|error| SegmentError::of_file(self.folder.path(), &error))?;
        Ok(())
    }

    fn write(&mut self, now: u64, committed: &mut Committed) -> Result<u64, SegmentError> {
        if self.fresh.is_empty() && self.tally.is_empty() {
            return Ok(0);
        }
        if self.segment.as_ref().is_some_and(|open| self.is_over(open, now)) {
            self.close()?;
        }
        if self.segment.is_none() {
            self.segment = Some(self.next_segment(now, committed)?);
        }
        let Some(open) = &mut self.segment else { return Ok(0) };
        open.append(&mut self.fresh, &self.tally, &mut self.packer)?;
        self.tally = Tally::default();
        self.bytes_since_look += self.fresh.bytes() as u64;
        Ok(self.fresh.len() as u64)
    }

    /// A disk may be full for days: then what requests came to is lost, not memory.
    fn bound_tally(&mut self, committed: &mut Committed) {
        let count = self.tally.iter().count();
        if count > ROLLUPS_MAX {
            self.tally = Tally::default();
            let text = format!("{count} roll-ups by minute that could not be written");
            if committed.notices.len() < NOTICES_MAX {
                committed.notices.push(Notice::RollupsLost(text));
            }
        }
    }

    fn is_over(&self, open: &Open, now: u64) -> bool {
        let is_other_day = now / DAY_MS != open.file.number / DAY_MS;
        is_other_day || Folder::bytes(&open.file.path) >= self.settings.segment_bytes()
    }

    /// The newest segment, if it is of today, not full and ours to write; otherwise a new one.
    fn next_segment(&self, now: u64, committed: &mut Committed) -> Result<Open, SegmentError> {
        let newest = self.folder.segments().ok().and_then(|mut segments| segments.pop());
        if self.lock.is_some()
            && let Some(file) = newest
        {
            match Segment::create(&file.path).and_then(|segment| Open::at_end(segment, file.clone())) {
                Ok(open) if !self.is_over(&open, now) => return Ok(open),
                Ok(_) | Err(SegmentError::TooNew(_)) => {}
                Err(SegmentError::Damaged(what)) => set_aside(&file.path, &what, committed),
                Err(error) => return Err(error),
            }
        }
        let file = self.folder.name(now);
        Open::at_end(Segment::create(&file.path)?, file)
    }

    /// After an error nothing is taken for granted: the next commit opens the segment again, or another.
    fn give_up(&mut self, error: &SegmentError, committed: &mut Committed) {
        if let Some(open) = self.segment.take()
            && let SegmentError::Damaged(what) = error
        {
            drop(open.segment);
            set_aside(&open.file.path, what, committed);
        }
    }

    /// Ends the segment that is written to.
    fn close(&mut self) -> Result<(), SegmentError> {
        match self.segment.take() {
            Some(open) => open.segment.checkpoint(),
            None => Ok(()),
        }
    }

    /// Drops segments that are too old or too many, those that were set aside first. The one that is written
    /// to stays.
    fn drop_old(&self, now: u64, committed: &mut Committed) {
        // While a predecessor writes, it is the one that drops.
        if self.lock.is_none() {
            return;
        }
        let (Ok(mut segments), Ok(damaged)) = (self.folder.segments(), self.folder.damaged()) else { return };
        if let Some(open) = &self.segment {
            segments.retain(|segment| *segment != open.file);
        }
        let archive = Archive::new(self.folder.path());
        let sum = |files: &[SegmentFile]| files.iter().map(|file| Folder::bytes(&file.path)).sum::<u64>();
        let own = self.segment.as_ref().map_or(0, |open| Folder::bytes(&open.file.path));
        let mut bytes = own + sum(&segments) + sum(&damaged) + Folder::bytes(archive.path());
        let is_full = |bytes: u64| bytes + HEADROOM > self.settings.keep_bytes;
        for file in &damaged {
            if self.is_old(file, None, now) || is_full(bytes) {
                bytes = bytes.saturating_sub(Folder::bytes(&file.path));
                remove(file, committed);
            }
        }
        for (number, segment) in segments.iter().enumerate() {
            let next = segments.get(number + 1).or(self.segment.as_ref().map(|open| &open.file));
            if !self.is_old(segment, next, now) && !is_full(bytes) {
                break;
            }
            let before = Folder::bytes(&segment.path) + Folder::bytes(archive.path());
            if let Err(error) = archive.take_over(segment, self.keep_rollups(), now) {
                let text = format!("{}: {error}", segment.path.display());
                committed.notices.push(Notice::RollupsLost(text));
            }
            bytes = bytes.saturating_sub(before) + Folder::bytes(archive.path());
            if remove(segment, committed) {
                committed.segments_dropped += 1;
            }
        }
        committed.bytes = Some(bytes);
    }

    /// True if all events of a segment are too old. It ended where the next began, or with its day.
    fn is_old(&self, segment: &SegmentFile, next: Option<&SegmentFile>, now: u64) -> bool {
        let day_ended = (segment.number / DAY_MS + 1).saturating_mul(DAY_MS);
        let ended = next.map_or(now, |next| next.number).min(day_ended);
        let keep = u64::try_from(self.settings.keep.as_millis()).unwrap_or(u64::MAX);
        ended.saturating_add(keep) < now
    }

    fn keep_rollups(&self) -> Keep {
        let settings = &self.settings;
        Keep { minutes: settings.keep, hours: settings.keep_rollups, bytes: settings.archive_bytes() }
    }

    /// The time that an event may wait to be written.
    pub const COMMIT_AFTER: Duration = Duration::from_millis(500);
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Every commit is on disk already; this leaves one file in place of three.
        let _ = self.close();
    }
}

impl Open {
    fn at_end(segment: Segment, file: SegmentFile) -> Result<Open, SegmentError> {
        let run_first = segment.next_event()?;
        Ok(Open { segment, file, run: BlockBuilder::new(), run_first, small: 0 })
    }

    fn next(&self) -> u64 {
        self.run_first + self.run.len() as u64
    }

    /// Writes new events as a block, and makes one of the small blocks before it where it is time; roll-ups
    /// with them.
    fn append(
        &mut self,
        fresh: &mut BlockBuilder,
        tally: &Tally,
        packer: &mut Packer,
    ) -> Result<(), SegmentError> {
        let first = self.next();
        let mut replaced = None;
        let mut blocks = Vec::with_capacity(2);
        if fresh.is_empty() {
            // Roll-ups alone.
        } else if fresh.is_full() || !self.run.has_room_for(fresh) {
            if self.small > 1 {
                replaced = Some(self.run_first);
                blocks.push((self.run_first, self.run.encode(packer)));
            }
            blocks.push((first, fresh.encode(packer)));
            if fresh.is_full() {
                self.start_run(first + fresh.len() as u64);
            } else {
                self.start_run(first);
                self.run.absorb(fresh, packer)?;
                self.small = 1;
            }
        } else if self.small + 1 < SMALL_MAX {
            blocks.push((first, fresh.encode(packer)));
            self.run.absorb(fresh, packer)?;
            self.small += 1;
        } else {
            self.run.absorb(fresh, packer)?;
            replaced = Some(self.run_first);
            blocks.push((self.run_first, self.run.encode(packer)));
            self.small = 1;
        }
        self.segment.transact(|writing| {
            replaced.map_or(Ok(()), |from| writing.remove_from(from))?;
            for (first, block) in &blocks {
                writing.add(*first, block)?;
            }
            tally
                .iter()
                .try_for_each(|(minute, site, rollup)| writing.add_rollup(minute, site, rollup, packer))
        })
    }

    fn start_run(&mut self, first: u64) {
        self.run.clear();
        (self.run_first, self.small) = (first, 0);
    }
}

/// True for an error that others cause and may end: the settings are not wrong.
fn may_pass(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::*;
    matches!(error.kind(), ReadOnlyFilesystem | PermissionDenied | StorageFull | QuotaExceeded)
        || error.raw_os_error().is_some_and(|code| code == rustix::io::Errno::IO.raw_os_error())
}

/// Deletes a segment. False if that cannot be done.
fn remove(segment: &SegmentFile, committed: &mut Committed) -> bool {
    let removed = Folder::remove(&segment.path);
    if let Err(error) = &removed {
        committed.notices.push(Notice::NotDeleted(format!("{}: {error}", segment.path.display())));
    }
    removed.is_ok()
}

fn set_aside(path: &Path, what: &str, committed: &mut Committed) {
    let text = match Folder::set_aside(path) {
        Ok(aside) => format!("{}: {what}; renamed to {}", path.display(), aside.display()),
        Err(error) => format!("{}: {what}; it cannot be renamed: {error}", path.display()),
    };
    committed.notices.push(Notice::Damaged(text));
}
