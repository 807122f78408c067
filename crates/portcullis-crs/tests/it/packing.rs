//! Archives of the CRS on this machine, and of what tests make up.

use std::io::{Cursor, Write};

use flate2::{Compression, write::GzEncoder};

/// Files by the place that they have in a release.
pub type Files = Vec<(String, Vec<u8>)>;

/// The CRS that the other tests use, as the files of a release.
pub fn crs() -> Files {
    let folder = portcullis_testkit::crs::rules().expect("run make crs");
    let mut files =
        vec![("crs-setup.conf.example".to_owned(), std::fs::read(folder.join("crs-setup.conf")).unwrap())];
    for entry in std::fs::read_dir(folder.join("rules")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        files.push((format!("rules/{name}"), std::fs::read(entry.path()).unwrap()));
    }
    assert!(files.len() > 40, "{}", files.len());
    files
}

/// A small release that compiles, of a version that nobody knows.
pub fn small() -> Files {
    let rules = "SecAction \"id:901001,phase:1,pass,nolog,ver:'OWASP_CRS/9.9.9'\"\n";
    vec![
        ("crs-setup.conf.example".to_owned(), b"SecAction \"id:900990,phase:1,pass,nolog\"\n".to_vec()),
        ("rules/REQUEST-901-INITIALIZATION.conf".to_owned(), rules.into()),
        ("rules/words.data".to_owned(), b"word\n".to_vec()),
    ]
}

/// Those files, one of them with another text.
pub fn with(mut files: Files, place: &str, text: &str) -> Files {
    files.retain(|(other, _)| other != place);
    files.push((place.to_owned(), text.into()));
    files
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A tar file with entries of these names, as they are.
pub fn tar_of(files: &Files) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        // `set_path` would refuse what hostile archives have.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o777);
        header.set_cksum();
        tar.append(&header, &bytes[..]).unwrap();
    }
    tar.into_inner().unwrap()
}

fn below(folder: &str, files: &Files) -> Files {
    files.iter().map(|(place, bytes)| (format!("{folder}/{place}"), bytes.clone())).collect()
}

/// As the CRS project packs a release, with files beside the rules.
pub fn official(files: &Files) -> Vec<u8> {
    let mut files = below("coreruleset-9", files);
    files.push(("coreruleset-9/README.md".to_owned(), b"read me".to_vec()));
    files.push(("coreruleset-9/plugins/empty-before.conf".to_owned(), b"".to_vec()));
    files.push(("coreruleset-9/tests/regression/rules/x.conf".to_owned(), b"no rules".to_vec()));
    gzip(&tar_of(&files))
}

/// As the Go module of the Coraza project packs it.
pub fn module(files: &Files) -> Vec<u8> {
    let root = "github.com/corazawaf/coraza-coreruleset/v4@v9.9.9";
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (place, bytes) in files {
        let inside = match place.strip_prefix("rules/") {
            Some(file) => format!("rules/@owasp_crs/{file}"),
            None => format!("rules/@{place}"),
        };
        zip.start_file(format!("{root}/{inside}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.start_file(format!("{root}/tests/REQUEST-911/911100.yaml"), options).unwrap();
    zip.write_all(b"no rules").unwrap();
    zip.finish().unwrap().into_inner()
}
