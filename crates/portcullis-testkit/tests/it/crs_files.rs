//! The pinned suite is read whole: a runner that lost tests on the way would still say "0 failed".

use portcullis_testkit::{crs, ftw};

#[test]
fn every_test_of_the_pinned_suite_is_read() {
    let folder = crs::tests().unwrap_or_else(|error| panic!("{error}"));
    let suite = ftw::read_folder(&folder).unwrap_or_else(|error| panic!("{error}"));
    assert!(suite.unreadable.is_empty(), "{:?}", suite.unreadable);
    assert_eq!(suite.files.len(), 317);
    assert_eq!(suite.counts(), (4_674, 4_680));
    let names: Vec<_> = suite.empty.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["920539.yaml"], "files without a test");
    assert!(suite.tests().all(|(file, test)| !file.family.is_empty() && !test.stages.is_empty()));
}
