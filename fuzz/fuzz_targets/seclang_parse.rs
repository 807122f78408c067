//! Rule texts: nothing panics, every diagnostic renders, and what was understood prints to a text that reads
//! back as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_seclang::{MemoryFiles, Parsed, Root, parse, print};

fn read(text: &[u8], files: &MemoryFiles) -> Parsed {
    parse(&[Root::Text { name: "root.conf".into(), text: text.to_vec() }], files)
}

// Texts are separated by a form feed: the first one is read, the others are files that it can include.
fuzz_target!(|input: &[u8]| {
    let mut texts = input.split(|&b| b == 0x0c);
    let root = texts.next().unwrap_or_default();
    let files = texts.enumerate().take(4).map(|(i, text)| (format!("{i}.conf").into(), text.to_vec()));
    let files = MemoryFiles(files.collect());
    let parsed = read(root, &files);
    for diagnostic in &parsed.diagnostics {
        assert!(!diagnostic.render(&parsed.sources).is_empty());
    }
    let printed = print(&parsed.document);
    let again = read(&printed, &MemoryFiles::default());
    assert!(!again.has_errors(), "{}", String::from_utf8_lossy(&printed));
    assert!(parsed.document.says_the_same_as(&again.document), "{}", String::from_utf8_lossy(&printed));
});
