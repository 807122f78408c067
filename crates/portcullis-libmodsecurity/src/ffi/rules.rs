//! `rules_set.h`: rule sets.

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::ptr;

use super::pointers::{allocated, characters, free, owned, text};
use super::{CACHE, caught};
use crate::RuleSet;

/// Makes an empty rule set; `msc_rules_cleanup` frees it.
#[unsafe(no_mangle)]
pub extern "C" fn msc_create_rules_set() -> *mut RuleSet {
    caught(|| Box::into_raw(Box::default())).unwrap_or(ptr::null_mut())
}

/// Writes the sources of a rule set to standard output.
///
/// # Safety
///
/// `rules` is null or from `msc_create_rules_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_dump(rules: *const RuleSet) {
    // SAFETY: the caller promises it.
    let Some(rules) = (unsafe { rules.as_ref() }) else { return };
    caught(|| print!("{}", rules.describe()));
}

/// Puts `inner` inside `outer`. Returns the number of rules that came, or -1 and an error.
///
/// # Safety
///
/// Both are null or from `msc_create_rules_set`, and not used elsewhere meanwhile; `error` is null or may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_merge(
    inner: *mut RuleSet,
    outer: *mut RuleSet,
    error: *mut *const c_char,
) -> c_int {
    if ptr::eq(inner, outer) {
        // SAFETY: the caller promises that `error` may be written to.
        return unsafe {
            count(Some(Err("Rules error. A rule set cannot be merged with itself".to_owned())), error)
        };
    }
    // SAFETY: the caller promises it, and they are not the same.
    let (inner, outer) = unsafe { (inner.as_mut(), outer.as_ref()) };
    let merged = inner.zip(outer).and_then(|(inner, outer)| caught(|| inner.merge(outer, &CACHE)));
    // SAFETY: as above.
    unsafe { count(merged, error) }
}

/// Adds the rules of a server; see [`RuleSet::add_remote`] on the checksum. Returns their number, or -1 and
/// an error.
///
/// # Safety
///
/// `rules` is null or from `msc_create_rules_set`, and not used elsewhere meanwhile; the texts are null or
/// end with a NUL; `error` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_add_remote(
    rules: *mut RuleSet,
    key: *const c_char,
    uri: *const c_char,
    error: *mut *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    let (rules, key, uri) = unsafe { (rules.as_mut(), characters(key), characters(uri)) };
    let added = rules.and_then(|rules| caught(|| rules.add_remote(&key, &uri, &CACHE)));
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { count(added, error) }
}

/// Adds the rules of a file. Returns their number, or -1 and an error.
///
/// # Safety
///
/// As for [`msc_rules_add_remote`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_add_file(
    rules: *mut RuleSet,
    file: *const c_char,
    error: *mut *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    let (rules, file) = unsafe { (rules.as_mut(), text(file)) };
    let path = PathBuf::from(OsStr::from_bytes(file));
    let added = rules.and_then(|rules| caught(|| rules.add_file(path, &CACHE)));
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { count(added, error) }
}

/// Adds rules. Returns their number, or -1 and an error.
///
/// # Safety
///
/// As for [`msc_rules_add_remote`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_add(
    rules: *mut RuleSet,
    plain_rules: *const c_char,
    error: *mut *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    let (rules, plain_rules) = unsafe { (rules.as_mut(), text(plain_rules)) };
    let added = rules.and_then(|rules| caught(|| rules.add_text(plain_rules, &CACHE)));
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { count(added, error) }
}

/// Frees an error of the functions above.
///
/// # Safety
///
/// `error` is null, or such an error and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_error_cleanup(error: *const c_char) {
    // SAFETY: the caller promises it.
    unsafe { free(error.cast_mut().cast()) };
}

/// Frees a rule set. Transactions under it may live longer. Always 1.
///
/// # Safety
///
/// `rules` is null, or from `msc_create_rules_set` and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_rules_cleanup(rules: *mut RuleSet) -> c_int {
    // SAFETY: the caller promises it.
    caught(|| drop(unsafe { owned(rules) }));
    1
}

/// The number of rules, or -1 and an error at `error`. No result stands for a null pointer or a panic.
///
/// # Safety
///
/// `error` is null or may be written to.
unsafe fn count(result: Option<Result<usize, String>>, error: *mut *const c_char) -> c_int {
    let message = match result {
        Some(Ok(count)) => return c_int::try_from(count).unwrap_or(c_int::MAX),
        Some(Err(message)) => message,
        None => "Rules error. Loading the rules failed by an error of the library".to_owned(),
    };
    if !error.is_null() {
        // SAFETY: not null, and the caller promises the rest.
        unsafe { error.write(allocated(message.as_bytes())) };
    }
    -1
}
