//! The document of a program that is started with flags. With a data folder it is kept there, so that console
//! and API can change it, and the next start takes the changes up.
//!
//! ```text
//!  flags ──> text ──> DATA/portcullis.toml <── console, API, an editor
//!              └────> DATA/flags.toml: the same, as the flags said it at the last start
//! ```
//!
//! A flag that differs from the last start changes its keys of the document; all others stay as they are.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};

use portcullis_config::{Config, Flags, Format, LISTEN};
use portcullis_revisions::{DOCUMENT_BYTES_MAX, Document, Text};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::outcome::Failure;
use crate::{data_folder, learned_files};

/// The document of these flags in a data folder, made at the first start.
pub fn take_up(data: &Path, flags: &Flags) -> Result<PathBuf, Failure> {
    let path = data.join(data_folder::DOCUMENT);
    let wrong = |what: &dyn Display| {
        Failure::failed(format_args!(
            "{}: {what}\n  help: it has the settings of earlier starts with flags; start with `--config {0}` to use it as it \
             is, or move it away to begin anew",
            path.display()
        ))
    };
    // Mistakes of the flags, in words of the flags.
    Config::from_flags(flags.clone()).map_err(Failure::usage)?;
    data_folder::create(data).map_err(|error| data_folder::wrong(data, &error))?;
    let (said, text) = (data.join(data_folder::FLAGS), text(flags));
    if path.symlink_metadata().is_err() {
        write(&said, &text).and_then(|()| write(&path, &text))?;
        eprintln!("portcullis: settings are kept in {}: console and API change them there", path.display());
        return Ok(path);
    }
    let document = Document::new(&path).ok_or_else(|| wrong(&"not a document"))?;
    let kept = document.read().map_err(|error| wrong(&error))?;
    let before = learned_files::read_to(&said, DOCUMENT_BYTES_MAX as u64).map_err(|error| wrong(&error))?;
    let before = before.and_then(|before| String::from_utf8(before).ok());
    let before = before.ok_or_else(|| wrong(&"it was not made of flags"))?;
    let (merged, changed) = merged(&before, &text, kept.as_str()).map_err(|error| wrong(&error))?;
    if !changed.is_empty() {
        Config::parse(&merged, Format::Toml, &document.name()).map_err(|error| wrong(&error))?;
        document.write(&Text::new(merged)).map_err(|error| wrong(&error))?;
        eprintln!(
            "portcullis: flags differ from the last start: {} changed in {}",
            changed.into_iter().collect::<Vec<_>>().join(", "),
            path.display()
        );
    }
    write(&said, &text)?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    learned_files::write(path, text)
        .map_err(|error| Failure::failed(format_args!("{}: {error}", path.display())))
}

/// The flags as a document. Paths in it are absolute: those of a document begin at its folder.
pub fn text(flags: &Flags) -> String {
    let mut text = String::from(
        "# Settings of `portcullis run --upstream`, made from its flags. Console and API change this file; a flag\n\
         # that differs at the next start changes its key here.\n\n",
    );
    let mut top = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    };
    let in_file = |path: &PathBuf| format!("{{ file = {} }}", quoted_path(path));
    top("workers", flags.workers.map(|workers| workers.to_string()));
    top("worker_affinity", flags.worker_affinity.then(|| "true".to_owned()));
    top("events", flags.events.as_ref().map(in_file));
    top("error_log", flags.error_log.as_ref().map(in_file));
    top("plan_cache", flags.plan_cache.as_ref().map(|path| quoted_path(path)));
    top("admin", flags.admin.as_ref().map(|address| format!("{{ listen = {} }}", quoted(address))));
    let listen = flags.listen.as_deref().unwrap_or(LISTEN);
    let _ = write!(text, "\n[[listeners]]\nname = \"http\"\naddress = {}\n", quoted(listen));
    if let Some(compat) = &flags.http_compat {
        let _ = writeln!(text, "http = {{ compat = {} }}", quoted(compat));
    }
    let _ = write!(
        text,
        "\n[[sites]]\nname = \"default\"\nhosts = [\"*\"]\nupstream = \"default\"\nmode = {}\n",
        quoted(mode(flags))
    );
    if let Some(level) = &flags.policy.level {
        let _ = writeln!(text, "level = {}", quoted(level));
    }
    let rules = rules(flags);
    if mode(flags) != "off" && !rules.is_empty() {
        let _ = writeln!(text, "rules = {{ {} }}", rules.join(", "));
    }
    if mode(flags) != "off" && flags.policy.detect_only {
        text.push_str("engine = \"detection_only\"\n");
    }
    let _ = write!(text, "\n[upstreams.default]\nendpoints = [{}]\n", quoted(&flags.upstream));
    text
}

/// The mode that counts, as the flags alone have it.
fn mode(flags: &Flags) -> &str {
    let default = if rules(flags).is_empty() { "semantic" } else { "crs" };
    flags.policy.mode.as_deref().unwrap_or(default)
}

fn rules(flags: &Flags) -> Vec<String> {
    let list = |key: &str, files: &[PathBuf]| {
        let files: Vec<String> = files.iter().map(|file| quoted_path(file)).collect();
        (!files.is_empty()).then(|| format!("{key} = [{}]", files.join(", ")))
    };
    let parts = [
        list("setup", &flags.policy.setup),
        flags.policy.crs.as_ref().map(|folder| format!("crs = {}", quoted_path(folder))),
        flags.policy.paranoia.map(|level| format!("paranoia = {level}")),
        list("include", &flags.policy.include),
    ];
    parts.into_iter().flatten().collect()
}

fn quoted_path(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    quoted(&path.display().to_string())
}

/// A string of TOML. Its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The document with what the flags say differently than `before`, and the keys of it.
fn merged(before: &str, now: &str, kept: &str) -> Result<(String, BTreeSet<String>), String> {
    let parsed = |text: &str| text.parse::<DocumentMut>().map_err(|error| error.to_string());
    let (before, now, mut kept) = (parsed(before)?, parsed(now)?, parsed(kept)?);
    let mut changed = BTreeSet::new();
    merge(before.as_table(), now.as_table(), kept.as_table_mut(), "", &mut changed)?;
    Ok((kept.to_string(), changed))
}

fn merge(
    before: &dyn TableLike,
    now: &dyn TableLike,
    kept: &mut dyn TableLike,
    place: &str,
    changed: &mut BTreeSet<String>,
) -> Result<(), String> {
    let keys: BTreeSet<&str> = before.iter().chain(now.iter()).map(|(key, _)| key).collect();
    for key in keys {
        let shown = if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
        let (old, new) = (before.get(key), now.get(key));
        if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
            continue;
        }
        let lists = (old.and_then(Item::as_array_of_tables), new.and_then(Item::as_array_of_tables));
        if let (Some(old), Some(new)) = lists {
            let gone = || format!("the flags change `{shown}`, which is not there any more");
            let list = kept.get_mut(key).and_then(Item::as_array_of_tables_mut).ok_or_else(gone)?;
            for (index, (old, new)) in old.iter().zip(new.iter()).enumerate() {
                merge(old, new, list.get_mut(index).ok_or_else(gone)?, &shown, changed)?;
            }
            continue;
        }
        // A table that is on one side only: its keys come or go, those of others stay.
        let none = Item::Table(Table::new());
        let (old_table, new_table) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let there = kept.get_mut(key).and_then(Item::as_table_like_mut);
        if let (Some(old), Some(new), Some(table)) =
            (old_table.as_table_like(), new_table.as_table_like(), there)
        {
            merge(old, new, table, &shown, changed)?;
            if table.is_empty() {
                kept.remove(key);
            }
            continue;
        }
        changed.insert(shown);
        match new {
            Some(new) => set(kept, key, new.clone()),
            None => drop(kept.remove(key)),
        }
    }
    Ok(())
}

/// Sets a key, and keeps what is written around its value.
fn set(table: &mut dyn TableLike, key: &str, mut new: Item) {
    match table.get_mut(key) {
        Some(there) => {
            if let (Item::Value(old), Item::Value(new)) = (&*there, &mut new) {
                *new.decor_mut() = old.decor().clone();
            }
            *there = new;
        }
        None => drop(table.insert(key, new)),
    }
}

/// True if two items say the same, whatever is written around it.
fn is_same(one: &Item, other: &Item) -> bool {
    let lists = (one.as_array_of_tables(), other.as_array_of_tables());
    let tables = (one.as_table_like(), other.as_table_like());
    match (lists, tables, one, other) {
        ((Some(one), Some(other)), ..) => {
            one.len() == other.len()
                && one.iter().zip(other.iter()).all(|(one, other)| is_same_table(one, other))
        }
        (_, (Some(one), Some(other)), ..) => is_same_table(one, other),
        (_, _, Item::Value(one), Item::Value(other)) => one.to_string().trim() == other.to_string().trim(),
        _ => one.is_none() && other.is_none(),
    }
}

fn is_same_table(one: &dyn TableLike, other: &dyn TableLike) -> bool {
    let is_there = |(key, item): (&str, &Item)| other.get(key).is_some_and(|found| is_same(item, found));
    one.len() == other.len() && one.iter().all(is_there)
}

#[cfg(test)]
mod tests {
    use portcullis_config::PolicyFlags;

    use super::*;

    fn flags() -> Flags {
        Flags { upstream: "http://127.0.0.1:9".to_owned(), ..Flags::default() }
    }

    /// All flags at once, each of them, and none.
    fn all() -> Vec<Flags> {
        let path = |name: &str| Some(PathBuf::from(format!("/somewhere/a \"{name}\"")));
        let full = Flags {
            listen: Some("127.0.0.1:8123".to_owned()),
            upstream: "https://shop.example:8443".to_owned(),
            policy: PolicyFlags {
                mode: Some("both".to_owned()),
                level: Some("strict".to_owned()),
                crs: path("crs"),
                paranoia: Some(3),
                detect_only: true,
                setup: vec!["/s/1.conf".into(), "/s/2*.conf".into()],
                include: vec!["/s/3.conf".into()],
            },
            http_compat: Some("apache".to_owned()),
            events: path("events"),
            error_log: path("errors"),
            plan_cache: path("plans"),
            workers: Some(3),
            worker_affinity: true,
            admin: Some("127.0.0.1:9091".to_owned()),
        };
        let mut all = vec![flags(), full.clone()];
        let none = PolicyFlags::default;
        let off = || Some("off".to_owned());
        let policies = [
            PolicyFlags { mode: off(), ..none() },
            PolicyFlags { mode: off(), detect_only: true, crs: path("crs"), ..none() },
            PolicyFlags { crs: path("crs"), ..none() },
            PolicyFlags { include: vec!["/s/3.conf".into()], ..none() },
            PolicyFlags { detect_only: true, ..none() },
        ];
        all.extend(policies.map(|policy| Flags { policy, ..flags() }));
        let policy = PolicyFlags { level: Some("balanced".to_owned()), ..none() };
        all.push(Flags { policy, events: path("events"), ..flags() });
        all
    }

    fn parsed(text: &str) -> Config {
        Config::parse(text, Format::Toml, "kept").unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The document serves as the flags do.
    #[test]
    fn a_document_says_what_its_flags_say() {
        for flags in all() {
            let (kept, meant) = (parsed(&text(&flags)), Config::from_flags(flags.clone()).unwrap());
            assert_eq!((kept.workers, kept.worker_affinity), (meant.workers, meant.worker_affinity));
            assert_eq!((&kept.events, &kept.error_log), (&meant.events, &meant.error_log), "{flags:?}");
            assert_eq!((&kept.plan_cache, kept.admin), (&meant.plan_cache, meant.admin));
            let listener = |config: &Config| (config.listeners[0].address, config.listeners[0].compat);
            assert_eq!(listener(&kept), listener(&meant));
            assert_eq!(kept.sites[0].hosts, meant.sites[0].hosts);
            assert_eq!(kept.sites[0].name, meant.sites[0].name);
            assert_eq!(kept.upstreams[0].endpoints, meant.upstreams[0].endpoints);
            assert_eq!(kept.upstreams[0].tls.is_some(), meant.upstreams[0].tls.is_some());
            let policy = |config: &Config| {
                let policy = config.policies.first()?;
                let rules = (policy.setup.clone(), policy.crs.clone(), policy.include.clone());
                Some((policy.mode, policy.level, policy.paranoia, policy.engine, rules))
            };
            assert_eq!(policy(&kept), policy(&meant), "{}", text(&flags));
        }
    }

    /// From any flags to any others: the document is then that of the others, and what console and API have
    /// put into it is still there.
    #[test]
    fn a_flag_that_differs_changes_its_keys_only() {
        let all = all();
        for (before, now) in all.iter().flat_map(|before| all.iter().map(move |now| (before, now))) {
            let (before, now) = (text(before), text(now));
            let (same, _) = merged(&before, &now, &before).unwrap();
            assert_eq!(parsed(&same), parsed(&now), "{before}\n{now}\n{same}");
            let own = before.replace(
                "[upstreams.default]",
                "access = { deny = { networks = [\"192.0.2.0/24\"] } } # mine\n[upstreams.default]",
            );
            parsed(&own);
            let (kept, changed) = merged(&before, &now, &own).unwrap();
            assert_eq!(changed.is_empty(), before == now, "{changed:?}");
            assert!(kept.contains("[\"192.0.2.0/24\"] } } # mine"), "{kept}");
            parsed(&kept);
        }
    }

    #[test]
    fn what_the_flags_name_must_still_be_there() {
        let policy = PolicyFlags { detect_only: true, ..PolicyFlags::default() };
        let (before, now) = (text(&flags()), text(&Flags { policy, ..flags() }));
        let error = merged(&before, &now, "[[listeners]]\naddress = \"127.0.0.1:1\"\n").unwrap_err();
        assert!(error.contains("`sites`"), "{error}");
        assert!(merged(&before, &before, "anything = 1\n").unwrap().1.is_empty());
    }
}
