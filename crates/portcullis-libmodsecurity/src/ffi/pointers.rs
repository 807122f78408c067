//! Between C's pointers and Rust's types.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// The text at `text`; empty if that is null.
///
/// # Safety
///
/// `text` is null, or ends with a NUL and lives as long as `'a`.
pub(super) unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: not null, and the caller promises the rest.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// The same as characters; what is not UTF-8 is replaced.
///
/// # Safety
///
/// As for [`text`].
pub(super) unsafe fn characters<'a>(characters: *const c_char) -> Cow<'a, str> {
    // SAFETY: the caller promises what `text` asks for.
    String::from_utf8_lossy(unsafe { text(characters) })
}

/// `length` bytes at `start`; none if that is null.
///
/// # Safety
///
/// `start` is null, or there are `length` bytes that live and do not change as long as `'a`.
pub(super) unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if start.is_null() || length == 0 {
        return b"";
    }
    // SAFETY: not null, and the caller promises the rest. No buffer is longer than `isize::MAX`.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// A copy of `text` from `malloc`, up to the first NUL in it; null if there is no memory.
pub(super) fn allocated(text: &[u8]) -> *mut c_char {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    // SAFETY: `malloc` may be called with any size.
    let copy = unsafe { libc::malloc(text.len() + 1) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: there is room for the text and the NUL behind it, and new memory overlaps nothing.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
            copy.add(text.len()).write(0);
        }
    }
    copy.cast()
}

/// Frees what [`allocated`] made, or what the caller has from `malloc`.
///
/// # Safety
///
/// `memory` is null, or from `malloc` and not freed yet.
pub(super) unsafe fn free(memory: *mut c_void) {
    // SAFETY: the caller promises it.
    unsafe { libc::free(memory) };
}

/// What `made` points to, freed with the value that is returned; `None` if it is null.
///
/// # Safety
///
/// `made` is null, or from [`Box::into_raw`] and not freed yet.
pub(super) unsafe fn owned<T>(made: *mut T) -> Option<Box<T>> {
    if made.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller promises the rest.
    Some(unsafe { Box::from_raw(made) })
}
