//! `transaction.h`: transactions and interventions.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::instance::{Instance, ModSecurity};
use super::pointers::{allocated, bytes, characters, free, owned, text};
use super::{CACHE, caught};
use crate::{RuleSet, Transaction as Core};

/// `ModSecurityIntervention` of `intervention.h`.
#[repr(C)]
#[derive(Debug)]
pub struct ModSecurityIntervention {
    /// The status of the answer.
    pub status: c_int,
    /// Always 0.
    pub pause: c_int,
    /// Where a redirect leads to; the caller's to free, like the log.
    pub url: *mut c_char,
    /// The line for the error log.
    pub log: *mut c_char,
    /// 1: the request must not go on.
    pub disruptive: c_int,
}

/// A transaction, and what it logs to.
#[derive(Debug)]
pub struct Transaction {
    core: Core,
    instance: Arc<Instance>,
    log_data: *mut c_void,
}

/// Begins a transaction; `msc_transaction_cleanup` frees it. Null if that is not possible.
///
/// # Safety
///
/// `instance` and `rules` are null or from the functions that make them; `log_data` is what the function of
/// `msc_set_log_cb` takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_new_transaction(
    instance: *mut ModSecurity,
    rules: *mut RuleSet,
    log_data: *mut c_void,
) -> *mut Transaction {
    // SAFETY: the caller promises it.
    unsafe { begin(instance, rules, None, log_data) }
}

/// The same with an id of the server's.
///
/// # Safety
///
/// As for [`msc_new_transaction`], and `id` is null or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_new_transaction_with_id(
    instance: *mut ModSecurity,
    rules: *mut RuleSet,
    id: *mut c_char,
    log_data: *mut c_void,
) -> *mut Transaction {
    // SAFETY: the caller promises it.
    unsafe { begin(instance, rules, Some(text(id)).filter(|id| !id.is_empty()), log_data) }
}

/// # Safety
///
/// As for [`msc_new_transaction`].
unsafe fn begin(
    instance: *mut ModSecurity,
    rules: *mut RuleSet,
    id: Option<&[u8]>,
    log_data: *mut c_void,
) -> *mut Transaction {
    // SAFETY: the caller promises it.
    let (Some(instance), Some(rules)) = (unsafe { (instance.as_ref(), rules.as_ref()) }) else {
        return ptr::null_mut();
    };
    let instance = Arc::clone(&instance.shared);
    match caught(|| Core::new(rules, id, &CACHE)) {
        Some(Ok(core)) => Box::into_raw(Box::new(Transaction { core, instance, log_data })),
        Some(Err(message)) => {
            instance.log(vec![message], log_data);
            ptr::null_mut()
        }
        None => ptr::null_mut(),
    }
}

/// Runs `work` on a transaction and hands its lines to the server: 1, or 0 if there is no transaction or
/// `work` says no.
///
/// # Safety
///
/// `transaction` is null, or from a function that begins one, not freed, and not used elsewhere meanwhile.
unsafe fn on(transaction: *mut Transaction, work: impl FnOnce(&mut Core) -> bool) -> c_int {
    // SAFETY: the caller promises it.
    let Some(transaction) = (unsafe { transaction.as_mut() }) else { return 0 };
    let core = &mut transaction.core;
    let done = caught(|| work(core)).unwrap_or_else(|| {
        // If that panics, too, the transaction stays as it is: the phases that follow find no inspection.
        caught(|| core.fail());
        false
    });
    let lines = core.take_lines();
    if !lines.is_empty() {
        transaction.instance.log(lines, transaction.log_data);
    }
    done.into()
}

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident => $method:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// `transaction` is null, or from `msc_new_transaction`, not freed, and not used elsewhere
            /// meanwhile.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(transaction: *mut Transaction) -> c_int {
                let work = |core: &mut Core| {
                    core.$method();
                    true
                };
                // SAFETY: the caller promises it.
                unsafe { on(transaction, work) }
            }
        )*
    };
}

phases! {
    /// Phase 1.
    msc_process_request_headers => request_headers;
    /// Phase 2.
    msc_process_request_body => request_body;
    /// Phase 4.
    msc_process_response_body => response_body;
    /// Phase 5, and the audit log.
    msc_process_logging => logging;
}

/// Takes the connection.
///
/// # Safety
///
/// As for [`msc_process_request_headers`]; the texts are null or end with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_process_connection(
    transaction: *mut Transaction,
    client: *const c_char,
    client_port: c_int,
    server: *const c_char,
    server_port: c_int,
) -> c_int {
    let port = |port: c_int| u16::try_from(port).unwrap_or(0);
    // SAFETY: the caller promises it.
    let (client, server) = unsafe { (characters(client), characters(server)) };
    let work = |core: &mut Core| {
        core.connection((&client, port(client_port)), (&server, port(server_port)));
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Takes the request line; `http_version` is `1.1` or the like.
///
/// # Safety
///
/// As for [`msc_process_connection`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_process_uri(
    transaction: *mut Transaction,
    uri: *const c_char,
    method: *const c_char,
    http_version: *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    let (uri, method, version) = unsafe { (text(uri), text(method), text(http_version)) };
    let work = |core: &mut Core| {
        core.uri(uri, method, version);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Takes the host that the server took the request for, for log lines.
///
/// # Safety
///
/// As for [`msc_process_connection`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_set_request_hostname(
    transaction: *mut Transaction,
    hostname: *const u8,
) -> c_int {
    // SAFETY: the caller promises it.
    let hostname = unsafe { characters(hostname.cast()) };
    let work = |core: &mut Core| {
        core.set_hostname(&hostname);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Adds a header field of the request.
///
/// # Safety
///
/// As for [`msc_process_connection`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_add_request_header(
    transaction: *mut Transaction,
    key: *const u8,
    value: *const u8,
) -> c_int {
    // SAFETY: the caller promises it.
    let (key, value) = unsafe { (text(key.cast()), text(value.cast())) };
    // SAFETY: the caller promises it.
    unsafe { msc_add_n_request_header(transaction, key.as_ptr(), key.len(), value.as_ptr(), value.len()) }
}

/// Adds a header field of the request.
///
/// # Safety
///
/// As for [`msc_process_request_headers`]; there are as many bytes at `key` and `value` as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_add_n_request_header(
    transaction: *mut Transaction,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
) -> c_int {
    // SAFETY: the caller promises it.
    let (key, value) = unsafe { (bytes(key, key_length), bytes(value, value_length)) };
    let work = |core: &mut Core| {
        core.add_request_header(key, value);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Takes a piece of the request body.
///
/// # Safety
///
/// As for [`msc_process_request_headers`]; there are `size` bytes at `body`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_append_request_body(
    transaction: *mut Transaction,
    body: *const u8,
    size: usize,
) -> c_int {
    // SAFETY: the caller promises it.
    let body = unsafe { bytes(body, size) };
    let work = |core: &mut Core| {
        core.append_request_body(body);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Takes the request body from a file; 0 if that cannot be read.
///
/// # Safety
///
/// As for [`msc_process_connection`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_request_body_from_file(
    transaction: *mut Transaction,
    path: *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    let path = Path::new(OsStr::from_bytes(unsafe { text(path) }));
    // SAFETY: the caller promises it.
    unsafe { on(transaction, |core| core.request_body_from_file(path)) }
}

/// Phase 3; `protocol` is `HTTP/1.1` or the like.
///
/// # Safety
///
/// As for [`msc_process_connection`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_process_response_headers(
    transaction: *mut Transaction,
    code: c_int,
    protocol: *const c_char,
) -> c_int {
    // SAFETY: the caller promises it.
    let protocol = unsafe { text(protocol) };
    let work = |core: &mut Core| {
        core.response_headers(u16::try_from(code).unwrap_or(0), protocol);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Adds a header field of the response.
///
/// # Safety
///
/// As for [`msc_process_connection`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_add_response_header(
    transaction: *mut Transaction,
    key: *const u8,
    value: *const u8,
) -> c_int {
    // SAFETY: the caller promises it.
    let (key, value) = unsafe { (text(key.cast()), text(value.cast())) };
    // SAFETY: the caller promises it.
    unsafe { msc_add_n_response_header(transaction, key.as_ptr(), key.len(), value.as_ptr(), value.len()) }
}

/// Adds a header field of the response.
///
/// # Safety
///
/// As for [`msc_add_n_request_header`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_add_n_response_header(
    transaction: *mut Transaction,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
) -> c_int {
    // SAFETY: the caller promises it.
    let (key, value) = unsafe { (bytes(key, key_length), bytes(value, value_length)) };
    let work = |core: &mut Core| {
        core.add_response_header(key, value);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Takes a piece of the response body.
///
/// # Safety
///
/// As for [`msc_append_request_body`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_append_response_body(
    transaction: *mut Transaction,
    body: *const u8,
    size: usize,
) -> c_int {
    // SAFETY: the caller promises it.
    let body = unsafe { bytes(body, size) };
    let work = |core: &mut Core| {
        core.append_response_body(body);
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// The response body as far as it was inspected; lives until more of it is shown, at least.
///
/// # Safety
///
/// As for [`msc_process_request_headers`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_get_response_body(transaction: *mut Transaction) -> *const c_char {
    // SAFETY: the caller promises it.
    let Some(transaction) = (unsafe { transaction.as_mut() }) else { return c"".as_ptr() };
    let core = &mut transaction.core;
    caught(|| core.shown_response_body().as_ptr().cast()).unwrap_or(c"".as_ptr())
}

/// Bytes of the response body as far as it was inspected.
///
/// # Safety
///
/// As for [`msc_process_request_headers`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_get_response_body_length(transaction: *mut Transaction) -> usize {
    // SAFETY: the caller promises it.
    let Some(transaction) = (unsafe { transaction.as_mut() }) else { return 0 };
    let core = &mut transaction.core;
    caught(|| core.shown_response_body().len().saturating_sub(1)).unwrap_or(0)
}

/// Bytes of the request body that came.
///
/// # Safety
///
/// As for [`msc_process_request_headers`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_get_request_body_length(transaction: *mut Transaction) -> usize {
    // SAFETY: the caller promises it.
    let transaction = unsafe { transaction.as_ref() };
    let length = transaction.map_or(0, |transaction| transaction.core.request_body_length());
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Takes the status that the server answers with.
///
/// # Safety
///
/// As for [`msc_process_request_headers`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_update_status_code(transaction: *mut Transaction, status: c_int) -> c_int {
    let work = |core: &mut Core| {
        core.set_status(u16::try_from(status).unwrap_or(0));
        true
    };
    // SAFETY: the caller promises it.
    unsafe { on(transaction, work) }
}

/// Writes what the server has to do to `intervention` and returns 1; if there is nothing, returns 0 and
/// leaves it as it is.
///
/// # Safety
///
/// As for [`msc_process_request_headers`]; `intervention` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_intervention(
    transaction: *mut Transaction,
    intervention: *mut ModSecurityIntervention,
) -> c_int {
    // SAFETY: the caller promises it.
    let (Some(transaction), false) = (unsafe { transaction.as_mut() }, intervention.is_null()) else {
        return 0;
    };
    let Some(asked) = transaction.core.take_intervention() else { return 0 };
    let asked = ModSecurityIntervention {
        status: asked.status.into(),
        pause: 0,
        url: asked.url.map_or(ptr::null_mut(), |url| allocated(&url)),
        log: allocated(asked.log.as_bytes()),
        disruptive: 1,
    };
    // SAFETY: not null, and the caller promises the rest. What it held before is the caller's.
    unsafe { intervention.write(asked) };
    1
}

/// Frees the log and the address of an intervention.
///
/// # Safety
///
/// `intervention` is null, or what it holds is null or not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_intervention_cleanup(intervention: *mut ModSecurityIntervention) {
    // SAFETY: the caller promises it.
    let Some(intervention) = (unsafe { intervention.as_mut() }) else { return };
    for text in [&mut intervention.url, &mut intervention.log] {
        // SAFETY: from `malloc`, and the caller promises that it is not freed yet.
        unsafe { free(text.cast()) };
        *text = ptr::null_mut();
    }
    (intervention.status, intervention.pause, intervention.disruptive) = (200, 0, 0);
}

/// Frees a transaction.
///
/// # Safety
///
/// `transaction` is null, or from a function that begins one and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msc_transaction_cleanup(transaction: *mut Transaction) {
    // SAFETY: the caller promises it.
    caught(|| drop(unsafe { owned(transaction) }));
}
