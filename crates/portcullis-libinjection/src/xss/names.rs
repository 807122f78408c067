//! The tags and attributes that can run scripts.
//!
//! These are facts taken from libinjection, commit 85e252a (after 3.9.2), file `src/libinjection_xss.c`: see
//! `LICENSE-libinjection` for the notice.

/// The role of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// Runs scripts, or says how to read others.
    Script,
    /// Its value is a URL.
    Url,
    /// Its value is a style.
    Style,
    /// Its value is the name of an attribute.
    Name,
}

pub(super) fn attribute(name: &[u8]) -> Option<Attribute> {
    if name.len() < 2 {
        return None;
    }
    if name.len() >= 5 {
        if name[..2].eq_ignore_ascii_case(b"ON") && is_event(&name[2..]) {
            return Some(Attribute::Script);
        }
        let head = &name[..5];
        if head.eq_ignore_ascii_case(b"XMLNS") || head.eq_ignore_ascii_case(b"XLINK") {
            return Some(Attribute::Script);
        }
    }
    let mut buffer = [0; NAME_BYTES_MAX];
    let name = normalised(name, &mut buffer)?;
    Some(match name {
        b"ATTRIBUTENAME" => Attribute::Name,
        b"DATAFORMATAS" | b"DATASRC" => Attribute::Script,
        b"FILTER" | b"STYLE" => Attribute::Style,
        b"ACTION" | b"BACKGROUND" | b"BY" | b"DYNSRC" | b"FOLDER" | b"FORMACTION" | b"FROM" | b"HANDLER"
        | b"HREF" | b"LOWSRC" | b"POSTER" | b"SRC" | b"TO" | b"VALUES" | b"XLINK:HREF" => Attribute::Url,
        _ => return None,
    })
}

pub(super) fn is_script_tag(name: &[u8]) -> bool {
    let Some(head) = name.get(..3) else { return false };
    if head.eq_ignore_ascii_case(b"SVG") || head.eq_ignore_ascii_case(b"XSL") {
        return true;
    }
    let mut buffer = [0; NAME_BYTES_MAX];
    matches!(
        normalised(name, &mut buffer),
        Some(
            b"APPLET"
                | b"BASE"
                | b"COMMENT"
                | b"EMBED"
                | b"FRAME"
                | b"FRAMESET"
                | b"HANDLER"
                | b"IFRAME"
                | b"IMPORT"
                | b"ISINDEX"
                | b"LINK"
                | b"LISTENER"
                | b"META"
                | b"NOSCRIPT"
                | b"OBJECT"
                | b"SCRIPT"
                | b"STYLE"
                | b"VMLFRAME"
                | b"XML"
                | b"XSS"
        )
    )
}

/// Returns true if the name begins with that of an event: the text after the event's name does not matter.
fn is_event(name: &[u8]) -> bool {
    let Some(initial) = name.first().map(u8::to_ascii_uppercase) else { return false };
    let from = EVENTS.partition_point(|event| event.as_bytes()[0] < initial);
    EVENTS[from..]
        .iter()
        .take_while(|event| event.as_bytes()[0] == initial)
        .any(|event| name.get(..event.len()).is_some_and(|head| head.eq_ignore_ascii_case(event.as_bytes())))
}

/// In upper case and without NULs, which old browsers skip. `None` if longer than any known name.
fn normalised<'b>(name: &[u8], buffer: &'b mut [u8; NAME_BYTES_MAX]) -> Option<&'b [u8]> {
    let mut len = 0;
    for byte in name.iter().filter(|&&byte| byte != 0) {
        *buffer.get_mut(len)? = byte.to_ascii_uppercase();
        len += 1;
    }
    Some(&buffer[..len])
}

/// Of the tags and attributes above.
const NAME_BYTES_MAX: usize = 13;

/// Sorted; names that begin with another listed one are left out, since the shorter one matches them.
#[rustfmt::skip]
const EVENTS: [&str; 254] = [
    "ABORT", "ACTIVATE", "ACTIVE", "ADDSOURCEBUFFER", "ADDSTREAM", "ADDTRACK", "AFTERPRINT",
    "ANIMATIONCANCEL", "ANIMATIONEND", "ANIMATIONITERATION", "ANIMATIONSTART", "AUDIOEND", "AUDIOPROCESS",
    "AUDIOSTART", "AUTOCOMPLETE", "BEFOREACTIVATE", "BEFORECOPY", "BEFORECUT", "BEFOREINPUT", "BEFORELOAD",
    "BEFOREPASTE", "BEFOREPRINT", "BEFOREUNLOAD", "BEGINEVENT", "BLOCKED", "BLUR", "BOUNDARY",
    "BUFFEREDAMOUNTLOW", "CACHED", "CANCEL", "CANPLAY", "CHANGE", "CHARGINGCHANGE", "CHARGINGTIMECHANGE",
    "CHECKING", "CLICK", "CLOSE", "COMPLETE", "COMPOSITIONEND", "COMPOSITIONSTART", "COMPOSITIONUPDATE",
    "CONNECT", "CONTEXTMENU", "CONTROLLERCHANGE", "COPY", "CUECHANGE", "CUT", "DATAAVAILABLE", "DATACHANNEL",
    "DBLCLICK", "DEVICECHANGE", "DEVICEMOTION", "DEVICEORIENTATION", "DISCHARGINGTIMECHANGE", "DISCONNECT",
    "DOMACTIVATE", "DOMCHARACTERDATAMODIFIED", "DOMCONTENTLOADED", "DOMFOCUSIN", "DOMFOCUSOUT",
    "DOMNODEINSERTED", "DOMNODEREMOVED", "DOMSUBTREEMODIFIED", "DOWNLOADING", "DRAG", "DROP",
    "DURATIONCHANGE", "EMPTIED", "ENCRYPTED", "END", "ENTER", "ERROR", "EXIT", "FETCH", "FINISH", "FOCUS",
    "FORMCHANGE", "FORMINPUT", "GAMEPADCONNECTED", "GAMEPADDISCONNECTED", "GESTURECHANGE", "GESTUREEND",
    "GESTURESCROLLEND", "GESTURESCROLLSTART", "GESTURESCROLLUPDATE", "GESTURESTART", "GESTURETAP",
    "GOTPOINTERCAPTURE", "HASHCHANGE", "ICECANDIDATE", "ICECONNECTIONSTATECHANGE", "ICEGATHERINGSTATECHANGE",
    "INACTIVE", "INPUT", "INSTALL", "INVALID", "KEYDOWN", "KEYPRESS", "KEYSTATUSESCHANGE", "KEYUP",
    "LANGUAGECHANGE", "LEAVEPICTUREINPICTURE", "LEVELCHANGE", "LOAD", "LOSTPOINTERCAPTURE", "MARK",
    "MERCHANTVALIDATION", "MESSAGE", "MOUSEDOWN", "MOUSEENTER", "MOUSELEAVE", "MOUSEMOVE", "MOUSEOUT",
    "MOUSEOVER", "MOUSEUP", "MOUSEWHEEL", "MUTE", "NEGOTIATIONNEEDED", "NEXTTRACK", "NOMATCH", "NOUPDATE",
    "OBSOLETE", "OFFLINE", "ONLINE", "OPEN", "ORIENTATIONCHANGE", "OVERCONSTRAINED", "OVERFLOWCHANGED",
    "PAGEHIDE", "PAGESHOW", "PASTE", "PAUSE", "PAYERDETAILCHANGE", "PAYMENTAUTHORIZED", "PAYMENTMETHODCHANGE",
    "PAYMENTMETHODSELECTED", "PLAY", "POINTERCANCEL", "POINTERDOWN", "POINTERENTER", "POINTERLEAVE",
    "POINTERLOCKCHANGE", "POINTERLOCKERROR", "POINTERMOVE", "POINTEROUT", "POINTEROVER", "POINTERUP",
    "POPSTATE", "PREVIOUSTRACK", "PROCESSORERROR", "PROGRESS", "PROPERTYCHANGE", "RATECHANGE",
    "READYSTATECHANGE", "REJECTIONHANDLED", "REMOVE", "RESET", "RESIZE", "RESOURCETIMINGBUFFERFULL", "RESULT",
    "RESUME", "SCROLL", "SEARCH", "SECURITYPOLICYVIOLATION", "SEEKED", "SEEKING", "SELECT",
    "SHIPPINGADDRESSCHANGE", "SHIPPINGCONTACTSELECTED", "SHIPPINGMETHODSELECTED", "SHIPPINGOPTIONCHANGE",
    "SHOW", "SIGNALINGSTATECHANGE", "SLOTCHANGE", "SOUNDEND", "SOUNDSTART", "SOURCECLOSE", "SOURCEENDED",
    "SOURCEOPEN", "SPEECHEND", "SPEECHSTART", "SQUEEZE", "STALLED", "START", "STATECHANGE", "STOP", "STORAGE",
    "SUBMIT", "SUCCESS", "SUSPEND", "TEXTINPUT", "TIMEOUT", "TIMEUPDATE", "TOGGLE", "TONECHANGE",
    "TOUCHCANCEL", "TOUCHEND", "TOUCHFORCECHANGE", "TOUCHMOVE", "TOUCHSTART", "TRACK", "TRANSITIONCANCEL",
    "TRANSITIONEND", "TRANSITIONRUN", "TRANSITIONSTART", "UNCAPTUREDERROR", "UNHANDLEDREJECTION", "UNLOAD",
    "UNMUTE", "UPDATE", "UPGRADENEEDED", "VALIDATEMERCHANT", "VERSIONCHANGE", "VISIBILITYCHANGE",
    "VOLUMECHANGE", "WAITING", "WEBGLCONTEXTCHANGED", "WEBGLCONTEXTCREATIONERROR", "WEBGLCONTEXTLOST",
    "WEBGLCONTEXTRESTORED", "WEBKITANIMATIONEND", "WEBKITANIMATIONITERATION", "WEBKITANIMATIONSTART",
    "WEBKITBEFORETEXTINSERTED", "WEBKITBEGINFULLSCREEN", "WEBKITCURRENTPLAYBACKTARGETISWIRELESSCHANGED",
    "WEBKITENDFULLSCREEN", "WEBKITFULLSCREENCHANGE", "WEBKITFULLSCREENERROR", "WEBKITKEYADDED",
    "WEBKITKEYERROR", "WEBKITKEYMESSAGE", "WEBKITMOUSEFORCECHANGED", "WEBKITMOUSEFORCEDOWN",
    "WEBKITMOUSEFORCEUP", "WEBKITMOUSEFORCEWILLBEGIN", "WEBKITNEEDKEY", "WEBKITNETWORKINFOCHANGE",
    "WEBKITPLAYBACKTARGETAVAILABILITYCHANGED", "WEBKITPRESENTATIONMODECHANGED", "WEBKITREGIONOVERSETCHANGE",
    "WEBKITREMOVESOURCEBUFFER", "WEBKITSOURCECLOSE", "WEBKITSOURCEENDED", "WEBKITSOURCEOPEN",
    "WEBKITSPEECHCHANGE", "WEBKITTRANSITIONEND", "WEBKITWILLREVEALBOTTOM", "WEBKITWILLREVEALLEFT",
    "WEBKITWILLREVEALRIGHT", "WEBKITWILLREVEALTOP", "WHEEL", "WRITE", "ZOOM",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sorted() {
        assert!(EVENTS.is_sorted_by(|a, b| a < b && !b.starts_with(a)));
    }

    #[test]
    fn tags() {
        for tag in ["script", "SCRIPT", "scr\0ipt", "svg", "svgfoo", "xsl:template", "iframe"] {
            assert!(is_script_tag(tag.as_bytes()), "{tag:?}");
        }
        for tag in ["", "b", "xs", "scripts", "s\0vg", "form", "attributenames"] {
            assert!(!is_script_tag(tag.as_bytes()), "{tag:?}");
        }
    }

    #[test]
    fn attributes() {
        for (name, expected) in [
            ("onclick", Some(Attribute::Script)),
            ("onclickety", Some(Attribute::Script)),
            ("ONEND", Some(Attribute::Script)),
            ("on\0click", None),
            ("once", None),
            ("on", None),
            ("xmlns:foo", Some(Attribute::Script)),
            ("xlink", Some(Attribute::Script)),
            ("h\0ref", Some(Attribute::Url)),
            ("style", Some(Attribute::Style)),
            ("attributeName", Some(Attribute::Name)),
            ("title", None),
            ("", None),
        ] {
            assert_eq!(attribute(name.as_bytes()), expected, "{name:?}");
        }
    }
}
