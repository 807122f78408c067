//! The folder with the sockets of running instances. Only the user that they run as may open them.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, geteuid, test_kill_process};

/// A socket is named by the id of its process.
const EXTENSION: &str = "sock";

/// `RUNTIME_DIRECTORY` of a service (systemd.exec(5)), the runtime folder of a user who is logged in, or one
/// of our own below the folder for temporary files.
pub fn default() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let service = named("RUNTIME_DIRECTORY").and_then(|list| {
        let first = list.to_str()?.split(':').next()?.to_owned();
        Some(PathBuf::from(first))
    });
    match service.or_else(|| named("XDG_RUNTIME_DIR")) {
        Some(folder) => folder.join("portcullis"),
        None => std::env::temp_dir().join(format!("portcullis-{}", geteuid().as_raw())),
    }
}

/// The folder of the sockets of the packages' service: `RuntimeDirectory=portcullis` of its unit.
const OF_SERVICE: &str = "/run/portcullis/portcullis";

/// Folders of instances that this user may ask: the default folder, and that of the service.
pub fn all() -> Vec<PathBuf> {
    let mut folders = vec![default()];
    let service = PathBuf::from(OF_SERVICE);
    if !folders.contains(&service) {
        folders.push(service);
    }
    folders
}

/// Makes the folder, if need be. It must be ours, and closed to other users.
pub fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check(folder)
}

/// Checks that the folder is one, is ours, and is closed to others. Links are refused: another user could
/// turn them elsewhere.
pub fn check(folder: &Path) -> io::Result<()> {
    check_as(folder, |owner| owner == geteuid().as_raw())
}

/// The same for one who only asks: root may ask instances of any user.
pub fn check_to_ask(folder: &Path) -> io::Result<()> {
    let own = geteuid();
    check_as(folder, |owner| own.is_root() || owner == own.as_raw())
}

fn check_as(folder: &Path, may_be_of: impl Fn(u32) -> bool) -> io::Result<()> {
    let found = std::fs::symlink_metadata(folder)?;
    let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    if !found.is_dir() {
        return wrong("it is not a folder");
    }
    if !may_be_of(found.uid()) {
        return wrong("it belongs to another user");
    }
    if found.mode() & 0o077 != 0 {
        return wrong("others may open it; its mode must be 0700");
    }
    Ok(())
}

/// The socket of a process.
pub fn socket(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("{process}.{EXTENSION}"))
}

/// The sockets of processes that run. Those that others left behind are removed.
pub fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_socket = path.extension().is_some_and(|extension| extension == EXTENSION);
        let process = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).and_then(Pid::from_raw);
        let Some(process) = process.filter(|_| is_socket) else { continue };
        match test_kill_process(process) {
            Err(rustix::io::Errno::SRCH) => drop(std::fs::remove_file(&path)),
            _ => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_can_touch_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("own");
        make(&folder).unwrap();
        make(&folder).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        for mode in [0o755, 0o701, 0o770] {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(make(&folder).is_err(), "{mode:o}");
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(check(&folder).is_ok() && check_to_ask(&folder).is_ok());
        assert!(check_as(&folder, |owner| owner != geteuid().as_raw()).is_err());
        let link = place.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(make(&link).is_err());
    }

    #[test]
    fn the_service_of_the_packages_is_looked_for_too() {
        let unit = include_str!("../../../packaging/systemd/portcullis.service");
        assert!(unit.contains("\nRuntimeDirectory=portcullis\n"));
        assert_eq!(all().last(), Some(&PathBuf::from("/run/portcullis/portcullis")));
    }

    #[test]
    fn sockets_of_the_dead_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let own = socket(place.path(), std::process::id());
        let names = [own.clone(), place.path().join("4194399.sock"), place.path().join("notes.txt")];
        for name in &names {
            std::fs::write(name, "").unwrap();
        }
        assert_eq!(sockets(place.path()).unwrap(), [own]);
        assert!(!names[1].exists() && names[2].exists());
    }
}
