//! The files of what sites have learned, in the data folder: `learned/SITE.json` and, of what other nodes
//! have told, `learned/SITE.NODE.peer`, which a running instance writes, and `learned/SITE.*.import` and
//! `.decision`, which it takes over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_learn::OpeningState;
use serde_json::{Value, json};

use crate::{data_folder, new_file};

/// A larger file is not ours.
const BYTES_MAX: u64 = 512 << 20;
const IMPORT: &str = ".import";
const DECISION: &str = ".decision";
const PEER: &str = ".peer";

/// The folder.
pub fn folder(data: &Path) -> PathBuf {
    data.join("learned")
}

/// The file of a site.
pub fn file(data: &Path, site: &str) -> PathBuf {
    folder(data).join(format!("{}.json", file_name(site)))
}

/// The name of this node among those that share what they learn: 16 hexadecimal digits, the same after each
/// start where there is a data folder.
pub fn node(data: Option<&Path>) -> io::Result<String> {
    let new = || {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok::<_, io::Error>(data_encoding::HEXLOWER.encode(&bytes))
    };
    let Some(data) = data else { return new() };
    let path = folder(data).join("node");
    if let Some(name) = read_to(&path, 64)?
        && let Ok(name) = String::from_utf8(name)
        && name.len() == 16
        && name.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Ok(name);
    }
    let name = new()?;
    write(&path, &name)?;
    Ok(name)
}

/// A site's name as that of a file.
pub fn file_name(site: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    site.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02x}") }).collect()
}

/// The names of the sites that have learned something.
pub fn sites(data: &Path) -> io::Result<Vec<String>> {
    sites_in(&folder(data))
}

/// The names of the sites that have a file in a folder.
pub fn sites_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut sites = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(site) = name.to_str().and_then(|name| name.strip_suffix(".json")) {
            let site = portcullis_types::percent_decode(site.as_bytes(), false);
            sites.push(String::from_utf8_lossy(&site).into_owned());
        }
    }
    sites.sort();
    Ok(sites)
}

/// What is in a file; nothing if there is none.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_to(path, BYTES_MAX)
}

/// What is in a file of at most so many bytes; nothing if there is none.
pub fn read_to(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    match portcullis_files::read(path, bytes_max) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Writes a file in one step.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    data_folder::create(new_file::parent(path))?;
    new_file::put(path, text.as_bytes(), true)
}

/// Puts a text where the instance that serves the site takes it over, now or at its next start.
pub fn offer(data: &Path, site: &str, text: &str) -> io::Result<()> {
    let name = format!("{}.{}-{}{IMPORT}", file_name(site), std::process::id(), text.len());
    write(&folder(data).join(name), text)
}

/// Puts a decision on the kind in a field that is called `id` where the instance carries it out.
pub fn decide(data: &Path, site: &str, id: &str, state: OpeningState) -> io::Result<()> {
    let name = format!("{}.{}-{id}{DECISION}", file_name(site), std::process::id());
    let text = json!({ "id": id, "state": state.name() }).to_string();
    write(&folder(data).join(name), &text)
}

/// What is in a decision.
pub fn read_decision(path: &Path) -> Result<(String, OpeningState), String> {
    let text = read(path).map_err(|error| error.to_string())?.unwrap_or_default();
    let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let of = |key: &str| value.get(key).and_then(Value::as_str);
    let state = of("state").and_then(OpeningState::from_name);
    match (of("id"), state) {
        (Some(id), Some(state)) => Ok((id.to_owned(), state)),
        _ => Err("this is no decision".to_owned()),
    }
}

/// The decisions that wait to be carried out.
pub fn decisions(data: &Path, site: &str) -> Vec<PathBuf> {
    waiting(data, site, DECISION)
}

/// Days since 1970.
pub fn today() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs() / 86_400).unwrap_or(u32::MAX)
}

/// The files that wait to be taken over.
pub fn offered(data: &Path, site: &str) -> Vec<PathBuf> {
    waiting(data, site, IMPORT)
}

/// The file of what another node has told of a site.
pub fn peer(data: &Path, site: &str, node: &str) -> PathBuf {
    folder(data).join(format!("{}.{node}{PEER}", file_name(site)))
}

/// What other nodes have told of a site, the latest last: their names, the files, and how old these are.
pub fn peers(data: &Path, site: &str) -> Vec<(String, PathBuf, Duration)> {
    let prefix = format!("{}.", file_name(site));
    let of_file = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix(&prefix)?.strip_suffix(PEER)?.to_owned();
        let written = fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        Some((name, path, SystemTime::now().duration_since(written).unwrap_or_default()))
    };
    let mut peers: Vec<_> = waiting(data, site, PEER).into_iter().filter_map(of_file).collect();
    peers.sort_by_key(|(_, _, age)| std::cmp::Reverse(*age));
    peers
}

fn waiting(data: &Path, site: &str, end: &str) -> Vec<PathBuf> {
    let prefix = format!("{}.", file_name(site));
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&prefix) && name.ends_with(end)
    };
    let entries = fs::read_dir(folder(data)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    paths.sort();
    paths
}

/// Sets a damaged file aside, so that nothing of it is lost.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".damaged");
    let aside = path.with_file_name(name);
    fs::rename(path, &aside)?;
    Ok(aside)
}
