//! Archives that lie, overflow or lead elsewhere.

use std::io::{Cursor, Write};

use portcullis_crs::{Error, limits, unpack};

use crate::packing::{Files, gzip, module, official, small, tar_of};

fn refused(archive: &[u8]) -> String {
    match unpack(archive) {
        Err(Error::Archive(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn one(name: &str) -> Files {
    vec![(name.to_owned(), b"SecAction \"id:1,phase:1,pass\"".to_vec())]
}

#[test]
fn names_that_lead_out_are_refused_in_every_form() {
    for name in [
        "a/../../etc/x.conf",
        "../x",
        "/etc/passwd",
        "a/rules/../x.conf",
        "..",
        "a/rules\\..\\x.conf",
        "a/..",
    ] {
        assert!(refused(&gzip(&tar_of(&one(name)))).contains("leads out of it"), "{name}");
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"x").unwrap();
        let zip = zip.finish().unwrap().into_inner();
        assert!(refused(&zip).contains("leads out of it"), "{name}");
    }
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Fifo, tar::EntryType::Char] {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_path("a/rules/x.conf").unwrap();
        header.set_link_name("/etc/passwd").unwrap();
        header.set_cksum();
        tar.append(&header, &[][..]).unwrap();
        assert!(refused(&gzip(&tar.into_inner().unwrap())).contains("is a link or a device"), "{kind:?}");
    }
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("a/rules/x.conf", "/etc/passwd", zip::write::SimpleFileOptions::default()).unwrap();
    assert!(refused(&zip.finish().unwrap().into_inner()).contains("is a link or a device"));
}

#[test]
fn a_file_that_comes_twice_is_refused() {
    let mut files = small();
    files.push(files[1].clone());
    assert!(refused(&official(&files)).contains("twice"));
}

#[test]
fn bombs_are_refused() {
    // In a file that is kept, in one that is passed over, and behind the last entry.
    let large = vec![0; limits::FILE_BYTES_MAX as usize + 1];
    assert!(
        refused(&gzip(&tar_of(&vec![("a/rules/x.conf".to_owned(), large.clone())])))
            .contains("unpacks to more")
    );
    assert!(refused(&module(&vec![("rules/x.conf".to_owned(), large)])).contains("unpacks to more"));
    let endless = vec![0; limits::UNPACKED_BYTES_MAX as usize + 1];
    let tar =
        tar_of(&vec![("a/rules/x.conf".to_owned(), Vec::new()), ("a/tests/y".to_owned(), endless.clone())]);
    let packed = gzip(&tar);
    assert!(packed.len() < 2 << 20, "{}", packed.len());
    refused(&packed);
    assert!(refused(&gzip(&[tar_of(&small()), endless].concat())).contains("unpacks to more"));
}

#[test]
fn entries_are_bounded() {
    let name = "a/README".to_owned();
    let files: Files = vec![(name, Vec::new()); limits::ENTRIES_MAX + 1];
    assert!(refused(&gzip(&tar_of(&files))).contains("more than 20000 entries"));
}

#[test]
fn damaged_archives_are_refused_wherever_they_are_cut() {
    for archive in [official(&small()), module(&small())] {
        assert!(unpack(&archive).is_ok());
        for length in 0..archive.len() {
            refused(&archive[..length]);
        }
    }
    refused(b"<!DOCTYPE html><title>Sign in</title>");
    refused(&gzip(b""));
}

#[test]
fn changed_bytes_never_panic() {
    for archive in [official(&small()), module(&small())] {
        for at in 0..archive.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = archive.clone();
                changed[at] ^= flip;
                // It may still be an archive; then it is one within the limits.
                if let Ok(files) = unpack(&changed) {
                    assert!(files.keys().all(|place| !place.contains("..")), "{:?}", files.keys());
                }
            }
        }
    }
}

#[test]
fn names_are_shown_without_what_terminals_obey() {
    let why = refused(&gzip(&tar_of(&one("../\u{1b}[2J"))));
    assert!(!why.contains('\u{1b}'), "{why:?}");
}
