//! `modsecurity.h`: an instance of the library.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use super::caught;
use super::pointers::owned;

/// The type of the function that takes lines for the server's log: the transaction's data, and the line.
pub type LogCallback = unsafe extern "C" fn(*mut c_void, *const c_void);

/// Name and version: as libmodsecurity begins it, since log parsers read it, with ours behind it.
const WHO: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
    concat!("ModSecurity v3.0.13 (Linux) Portcullis/", env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
) {
    Ok(who) => who,
    Err(_) => c"ModSecurity v3.0.13 (Linux) Portcullis",
};

/// An instance: what transactions log to.
#[derive(Debug, Default)]
pub struct ModSecurity {
    pub(super) shared: Arc<Instance>,
}

#[derive(Debug, Default)]
pub(super) struct Instance {
    log: Mutex<Option<LogCallback>>,
}

impl Instance {
    /// Hands `lines` to the server; without a function for that they go to standard error.
    pub(super) fn log(&self, lines: Vec<String>, data: *mut c_void) {
        let log = *self.log.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines {
            let Some(log) = log else {
                eprintln!("{line}");
                continue;
            };
            // Lines have no NUL: whatever is not printable is escaped in them.
            let Ok(line) = CString::new(line) else { continue };
            // SAFETY: `msc_set_log_cb` was given a function of this type, and `data` is what the transaction
            // was begun with for it. The line lives until the function returns, as in libmodsecurity.
            unsafe { log(data, line.as_ptr().cast()) };
        }
    }
}

/// Makes an instance; `msc_cleanup` frees it.
#[unsafe(no_mangle)]
pub extern "C" fn msc_init() -> *mut ModSecurity {
    caught(|| Box::into_raw(Box::default())).unwrap_or(ptr::null_mut())
}

/// Name and version of the library; lives as long as the library.
#[unsafe(no_mangle)]
pub extern "C" fn msc_who_am_i(_instance: *mut ModSecurity) -> *const c_char {
    WHO.as_ptr()
}

/// Takes the connector's name. Our records name the program that inspects, so nothing is done with it.
#[unsafe(no_mangle)]
pub extern "C" fn msc_set_connector_info(_instance: *mut ModSecurity, _connector: *const c_char) {}

/// Takes the function for lines of the server's log; null takes it away.
///
/// # Safety
///
/// `instance` is null or from `msc_init`; `log` may be called as long as transactions of it live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_set_log_cb(instance: *mut ModSecurity, log: Option<LogCallback>) {
    // SAFETY: the caller promises it.
    let Some(instance) = (unsafe { instance.as_ref() }) else { return };
    caught(|| *instance.shared.log.lock().unwrap_or_else(PoisonError::into_inner) = log);
}

/// Frees an instance. Transactions of it may live longer.
///
/// # Safety
///
/// `instance` is null, or from `msc_init` and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_cleanup(instance: *mut ModSecurity) {
    // SAFETY: the caller promises it.
    caught(|| drop(unsafe { owned(instance) }));
}
