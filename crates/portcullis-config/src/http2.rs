//! `http2` of a listener: whether it speaks HTTP/2, and what one connection may ask of us.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::units::Size;

/// HTTP/2 to clients.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// Offer HTTP/2 to TLS clients (ALPN `h2`). Default: `true`.
    pub enabled: Option<Spanned<bool>>,
    /// Take HTTP/2 with prior knowledge on a listener without TLS (h2c). Default: `false`.
    pub cleartext: Option<Spanned<bool>>,
    /// Streams that a connection may have open at one time; more are refused. Default: 128.
    #[schemars(range(min = 1, max = 10_000))]
    pub streams: Option<Spanned<u32>>,
    /// Streams that a client may reset, at once and then in each minute; more end the connection. Default:
    /// 600.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub resets: Option<Spanned<u32>>,
    /// PING, SETTINGS, PRIORITY, unknown and empty DATA frames that a client may send, at once and then in
    /// each minute; more end the connection. Default: 6000.
    #[schemars(range(min = 10, max = 10_000_000))]
    pub control_frames: Option<Spanned<u32>>,
    /// CONTINUATION frames of one head; more end the connection. Default: 16.
    #[schemars(range(min = 1, max = 1024))]
    pub continuations: Option<Spanned<u32>>,
    /// Bytes of one head after decompression, as RFC 9113 counts them. Default: 64KiB.
    pub header_list: Option<Spanned<Size>>,
    /// Bytes that a client may send of one body before we have read them. Default: 256KiB.
    pub stream_window: Option<Spanned<Size>>,
    /// The same for all bodies of a connection together. Default: 1MiB.
    pub connection_window: Option<Spanned<Size>>,
    /// Bytes in each second that a client must take, on average, of an answer that waits for its window;
    /// slower streams are reset after the `write` timeout. Default: 256.
    pub send_rate: Option<Size>,
}

/// HTTP/2 to clients: whether, and what one connection may ask of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Offered by ALPN, where there is TLS.
    pub enabled: bool,
    /// Taken with prior knowledge, where there is none.
    pub cleartext: bool,
    /// Streams open at one time.
    pub streams_max: u32,
    /// Streams reset by the client in each minute, and at once.
    pub resets_per_minute_max: u32,
    /// Frames without content in each minute, and at once.
    pub control_frames_per_minute_max: u32,
    /// CONTINUATION frames of one head.
    pub continuations_max: u32,
    /// Bytes of one head as RFC 9113, section 6.5.2 counts them.
    pub header_list_bytes_max: u32,
    /// The receive window of a stream, in bytes.
    pub stream_window_bytes: u32,
    /// The receive window of a connection, in bytes.
    pub connection_window_bytes: u32,
    /// Bytes in each second that a client whose window is the bottleneck must take.
    pub send_rate_bytes_min: u64,
}

impl Default for Http2 {
    fn default() -> Self {
        Http2 {
            enabled: true,
            cleartext: false,
            streams_max: 128,
            resets_per_minute_max: 600,
            control_frames_per_minute_max: 6000,
            continuations_max: 16,
            header_list_bytes_max: 64 * 1024,
            stream_window_bytes: 256 * 1024,
            connection_window_bytes: 1024 * 1024,
            send_rate_bytes_min: 256,
        }
    }
}

/// `tls`: the listener has TLS.
pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: &Raw, tls: bool) -> Http2 {
    let mut http2 = Http2::default();
    let mut number = |given: &Option<Spanned<u32>>, range: std::ops::RangeInclusive<u32>, into: &mut u32| {
        let Some(given) = given else { return };
        if !range.contains(&given.value) {
            let (start, end) = range.into_inner();
            mistakes.wrong(given.span.clone(), format!("this must be {start} to {end}"));
        }
        *into = given.value;
    };
    number(&raw.streams, 1..=10_000, &mut http2.streams_max);
    number(&raw.resets, 1..=1_000_000, &mut http2.resets_per_minute_max);
    number(&raw.control_frames, 10..=10_000_000, &mut http2.control_frames_per_minute_max);
    number(&raw.continuations, 1..=1024, &mut http2.continuations_max);
    let mut size = |given: &Option<Spanned<Size>>, range: std::ops::RangeInclusive<u64>, into: &mut u32| {
        let Some(given) = given else { return };
        if !range.contains(&given.value.0) {
            let (start, end) = range.into_inner();
            mistakes.wrong(given.span.clone(), format!("this must be {start} to {end} bytes"));
        }
        *into = u32::try_from(given.value.0).unwrap_or(u32::MAX);
    };
    size(&raw.header_list, 1024..=1 << 20, &mut http2.header_list_bytes_max);
    size(&raw.stream_window, 65_535..=(1 << 31) - 1, &mut http2.stream_window_bytes);
    size(&raw.connection_window, 65_535..=(1 << 31) - 1, &mut http2.connection_window_bytes);
    if let Some(rate) = raw.send_rate {
        http2.send_rate_bytes_min = rate.0;
    }
    match (&raw.enabled, &raw.cleartext) {
        (Some(enabled), _) if !tls => mistakes.wrong_with_hint(
            enabled.span.clone(),
            "HTTP/2 is offered in the TLS handshake, and this listener has no TLS".to_string(),
            "for clients that know beforehand, say `cleartext = true`".to_string(),
        ),
        (_, Some(cleartext)) if tls => mistakes.wrong(
            cleartext.span.clone(),
            "this listener has TLS, so nothing comes in clear text".to_string(),
        ),
        _ => {}
    }
    http2.enabled = tls && raw.enabled.as_ref().is_none_or(|on| on.value);
    http2.cleartext = !tls && raw.cleartext.as_ref().is_some_and(|on| on.value);
    http2
}
