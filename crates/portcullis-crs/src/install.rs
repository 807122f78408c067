//! The folder that releases are installed in: `DIR/VERSION` for each, and `DIR/current`, a link to one.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use portcullis_config::{Mode, Policy};
use portcullis_load::load;

use crate::archive::Files;
use crate::release::digest;
use crate::{Error, Release, Version};

/// The name of the link to the release in use.
pub const CURRENT: &str = "current";

/// What came of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The folder of the release.
    pub folder: PathBuf,
    /// The link that now leads to it.
    pub current: PathBuf,
    /// Whether the same rules were there already.
    pub was_there: bool,
    /// Number of rule files.
    pub rule_files: usize,
}

/// A release on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its version.
    pub version: Version,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether `current` leads to it.
    pub is_current: bool,
}

/// Puts `release` in place below `dir`, which is made if needed: written aside, compiled by the loader that
/// serves requests, then renamed. The same release once more changes nothing but `current`; a folder of that
/// version with other rules is left alone.
pub fn stage(release: &Release, dir: &Path) -> Result<Outcome, Error> {
    fs::create_dir_all(dir).map_err(|why| Error::write(dir, why))?;
    // Rules may name files beside them: the plan has to hold the path that stays.
    let dir = dir.canonicalize().map_err(|why| Error::write(dir, why))?;
    let folder = dir.join(release.version.to_string());
    let was_there = match fs::symlink_metadata(&folder) {
        Ok(_) if holds(&folder, release) => true,
        Ok(_) => return Err(Error::Other { folder }),
        Err(_) => {
            put(release, &dir, &folder)?;
            false
        }
    };
    let current = point(&dir, release.version)?;
    let is_rules = |place: &&String| place.starts_with("rules/") && place.ends_with(".conf");
    let rule_files = release.files.keys().filter(is_rules).count();
    Ok(Outcome { folder, current, was_there, rule_files })
}

/// The releases below `dir`, oldest first.
pub fn installed(dir: &Path) -> std::io::Result<Vec<Installed>> {
    let target = fs::read_link(dir.join(CURRENT)).ok();
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(version) = name.to_str().and_then(|name| name.parse::<Version>().ok()) else { continue };
        let is_current = target.as_deref() == Some(Path::new(&name));
        found.push(Installed { version, folder: entry.path(), is_current });
    }
    found.sort_by_key(|one| one.version);
    Ok(found)
}

fn put(release: &Release, dir: &Path, folder: &Path) -> Result<(), Error> {
    let staged =
        tempfile::Builder::new().prefix(".staged-").tempdir_in(dir).map_err(|why| Error::write(dir, why))?;
    write(&release.files, staged.path())?;
    let policy = Policy { mode: Mode::Crs, crs: Some(staged.path().to_owned()), ..Policy::default() };
    load(&policy).map_err(|why| Error::Rules(why.to_string()))?;
    match fs::rename(staged.path(), folder) {
        Ok(()) => {
            // Nothing is there any more for it to remove.
            let _ = staged.keep();
            Ok(())
        }
        // Another process was faster.
        Err(_) if holds(folder, release) => Ok(()),
        Err(why) => Err(Error::write(folder, why)),
    }
}

fn write(files: &Files, staged: &Path) -> Result<(), Error> {
    let rules = staged.join("rules");
    fs::create_dir(&rules).map_err(|why| Error::write(&rules, why))?;
    for (place, bytes) in files {
        let path = staged.join(place);
        let written = fs::write(&path, bytes).and_then(|()| {
            fs::set_permissions(&path, Permissions::from_mode(0o644))?;
            fs::File::open(&path)?.sync_all()
        });
        written.map_err(|why| Error::write(&path, why))?;
    }
    // The proxy reads them as another user than the one who installs, whatever the umask of that one is.
    for folder in [&rules, staged] {
        let readable = Permissions::from_mode(0o755);
        fs::set_permissions(folder, readable).map_err(|why| Error::write(folder, why))?;
    }
    Ok(())
}

/// Whether the rules of `folder` are those of `release`. What an operator put beside them does not count, but
/// one file of rules more does.
fn holds(folder: &Path, release: &Release) -> bool {
    let of_release = |file: &std::ffi::OsStr| {
        file.to_str().is_some_and(|name| release.files.contains_key(&format!("rules/{name}")))
    };
    let foreign = fs::read_dir(folder.join("rules")).map(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            Path::new(&name).extension().is_some_and(|end| end == "conf") && !of_release(&name)
        })
    });
    let on_disk = release.files.keys().map(|place| Ok((place.clone(), fs::read(folder.join(place))?)));
    let on_disk: std::io::Result<Files> = on_disk.collect();
    foreign.is_ok_and(|foreign| !foreign) && on_disk.is_ok_and(|files| digest(&files) == release.digest)
}

/// Lets `current` lead to `version`, in one step.
fn point(dir: &Path, version: Version) -> Result<PathBuf, Error> {
    let current = dir.join(CURRENT);
    if fs::symlink_metadata(&current).is_ok_and(|found| !found.is_symlink()) {
        return Err(Error::write(&current, "it is there and not a link"));
    }
    let aside = dir.join(format!(".{CURRENT}-{}", std::process::id()));
    match fs::remove_file(&aside) {
        Err(why) if why.kind() != ErrorKind::NotFound => return Err(Error::write(aside, why)),
        _ => {}
    }
    symlink(version.to_string(), &aside).map_err(|why| Error::write(&aside, why))?;
    fs::rename(&aside, &current).map_err(|why| {
        // The link aside leads to a folder that is there; a failure to remove it is no second mistake.
        let _ = fs::remove_file(&aside);
        Error::write(&current, why)
    })?;
    Ok(current)
}
