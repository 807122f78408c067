//! Apache with ModSecurity 2.9.7.

use bstr::ByteSlice;
use portcullis_reference::Request;

use super::{Case, Class, Kind, has_json_body};
use crate::Link;
use crate::seen::{Difference, Entry, Interruption};

mod apache;

pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "body-error-500",
        kind: Kind::Theirs,
        reason: "A body whose parser fails at its end is answered with 500 before phase 2, in DetectionOnly, too; the rules \
                 that ask for REQBODY_ERROR never run (owasp-modsecurity/ModSecurity#2807, open). We run phase 2.",
        holds: |case| {
            case.request.body.is_some()
                && (has_status(case, 500)
                    || (case.ours.body_error && !ran_in_phase(case, &case.theirs.trace, 2)))
        },
    },
    Class {
        name: "location-with-control-bytes",
        kind: Kind::Choice,
        reason: "A redirect whose Location has control bytes, from a macro, is 500 with Apache; our proxy writes the field \
                 without them.",
        holds: |case| {
            has_status(case, 500) && matches!(case.ours.interruption, Some(Interruption::Status(300..400)))
        },
    },
    Class {
        name: "apache-refuses",
        kind: Kind::Choice,
        reason: "Apache answers 400 to a target or a field by itself; for us the HTTP profile decides.",
        holds: |case| {
            let by_rule = case.rules.lines().any(|line| line.contains("status:400"))
                || case.rules.links().any(|link| link.head.contains("status:400") || link.has("status:400"));
            has_status(case, 400) && !by_rule && apache::refuses(case.request)
        },
    },
    Class {
        name: "error-page-inspected",
        kind: Kind::Choice,
        reason: "After an interruption Apache's own error page goes through phases 3 to 5 as a response; we do not inspect our \
                 own answers, and RESPONSE_... is what the upstream sent, or not there. The status in phase 5 is that of the answer \
                 for both.",
        holds: |case| {
            let is_status_of_answer = |entry: &Entry| {
                (entry.variable == "RESPONSE_STATUS" || entry.variable == "STATUS_LINE")
                    && case.phase_of(entry) == Some(5)
            };
            let about_response = |entry: Option<&Entry>| {
                entry.is_some_and(|entry| !is_status_of_answer(entry))
                    && entry.is_some_and(|entry| {
                        let is_response = entry.variable.starts_with(b"RESPONSE_");
                        is_response || case.phase_of(entry).is_some_and(|phase| phase >= 3)
                    })
            };
            let interrupted = case.ours.interruption.is_some();
            // Captures of a link of those phases from it, though it did not match.
            let captured = || {
                let late =
                    |link: &Link| ["phase:3", "phase:4", "phase:5"].iter().any(|p| link.head.contains(p));
                let ids: Vec<u32> = case.rules.links().filter(|l| late(l)).map(|l| l.name.0).collect();
                let is_capture = matches!(case.difference, Difference::Tx { key, .. } if key.len() == 1 && key[0].is_ascii_digit());
                is_capture && case.rules.links().any(|l| ids.contains(&l.name.0) && l.has("capture"))
            };
            interrupted
                && (about_response(case.our_match()) || about_response(case.their_match()) || captured())
        },
    },
    Class {
        name: "multipart-every-part",
        kind: Kind::Choice,
        reason: "MULTIPART_NAME and MULTIPART_FILENAME are of the last part there; for us of every part, as in libmodsecurity, so that \
                 a part in front of another one is not hidden (docs/compatibility.md).",
        holds: |case| {
            let is_part = |entry: Option<&Entry>| {
                entry.is_some_and(|entry| {
                    entry.variable.starts_with(b"MULTIPART_NAME")
                        || entry.variable.starts_with(b"MULTIPART_FILENAME")
                })
            };
            is_part(case.our_match()) || is_part(case.their_match())
        },
    },
    Class {
        name: "reason-of-the-server",
        kind: Kind::Choice,
        reason: "STATUS_LINE of an answer of the server's own has Apache's words, as 413 Request Entity Too Large; ours are those \
                 of RFC 9110.",
        holds: |case| {
            let words = |entry: Option<&Entry>| {
                entry
                    .filter(|e| e.variable == "STATUS_LINE")
                    .map(|e| e.value.split(|b| *b == b' ').next().map(<[u8]>::to_vec))
            };
            let (ours, theirs) = (words(case.our_match()), words(case.their_match()));
            ours.is_some() && ours == theirs && case.ours.interruption.is_some()
        },
    },
    Class {
        name: "captures-beyond-nine",
        kind: Kind::Choice,
        reason: "With PCRE2 capture sets TX:10 and on, too, and later captures leave them as they are; ours are TX:0 to TX:9, as the \
                 manual has them (docs/compatibility.md).",
        holds: |case| {
            let is_such = |key: &[u8]| key.len() == 2 && key.iter().all(u8::is_ascii_digit);
            let reads = |link: &Link| link.targets.iter().any(|target| target.contains("TX:10"));
            matches!(case.difference, Difference::Tx { key, .. } if is_such(key)) || case.about(reads)
        },
    },
    Class {
        name: "macro-with-a-colon",
        kind: Kind::Choice,
        reason: "A macro %{REQUEST_HEADERS:x-a} stands for nothing; for us, as for libmodsecurity, it is the value \
                 (docs/compatibility.md).",
        holds: |case| {
            let colon = |action: &String| action.starts_with("setvar:'tx.y=") && action.contains(':');
            let sets = || case.rules.links().any(|link| link.actions.iter().any(colon));
            matches!(case.difference, Difference::Tx { key, .. } if key == "y") && sets()
        },
    },
    Class {
        name: "beyond-unicode",
        kind: Kind::Theirs,
        reason: "@validateUtf8Encoding takes F4 90 80 80, which is above U+10FFFF; for us it is not valid.",
        holds: |case| {
            let has =
                |entry: Option<&Entry>| entry.is_some_and(|e| e.value.find(b"\xf4\x90\x80\x80").is_some());
            case.about(|link| link.operator.contains("@validateUtf8Encoding"))
                && (has(case.our_match()) || has(case.their_match()))
        },
    },
    Class {
        name: "xml-path-by-name",
        kind: Kind::Theirs,
        reason: "Exclusions compare names, and every value of XML has the same: `!XML://@*` takes the whole document away where \
                 there is an attribute, and ctl:ruleRemoveTarget...;XML://@* takes nothing. Ours take away what the path selects.",
        holds: |case| {
            let is_xml = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.variable == "XML");
            let has_path = |text: &str| {
                text.contains("!XML:") || (text.contains("ruleRemoveTarget") && text.contains(";XML:"))
            };
            let excludes = case.rules.lines().any(has_path)
                || case
                    .rules
                    .links()
                    .any(|link| link.targets.iter().chain(&link.actions).any(|part| has_path(part)));
            excludes && (is_xml(case.our_match()) || is_xml(case.their_match()))
        },
    },
    Class {
        name: "ctl-target-by-regex",
        kind: Kind::Choice,
        reason: "In ctl:ruleRemoveTarget...;ARGS:/x/ the key is the text /x/ there; for us it is a pattern, as in libmodsecurity and in \
                 the targets of rules (docs/compatibility.md).",
        holds: |case| {
            let variable = |action: &String| {
                let (_, target) = action.strip_prefix("ctl:ruleRemoveTarget")?.rsplit_once(';')?;
                let (variable, key) = target.split_once(':')?;
                (key.len() > 2 && key.starts_with('/') && key.ends_with('/')).then(|| variable.to_owned())
            };
            let taken: Vec<String> =
                case.rules.links().flat_map(|link| link.actions.iter().filter_map(variable)).collect();
            // They have the entries that we left out.
            let is_taken = |entry: &Entry| {
                taken.iter().any(|name| entry.variable.starts_with(name.as_bytes()))
                    && !case.ours.trace.contains(entry)
            };
            case.their_match().is_some_and(is_taken)
        },
    },
    Class {
        name: "multimatch-without-transformation",
        kind: Kind::Theirs,
        reason: "With multiMatch and no transformation msre_rule_process_normal never calls the operator.",
        holds: |case| {
            let idle = |link: &Link| link.has("multiMatch") && !transforms(link);
            let captured = || {
                let is_group = matches!(case.difference, Difference::Tx { key, .. } if key.len() == 1 && key[0].is_ascii_digit());
                is_group && case.rules.links().any(|link| idle(link) && link.has("capture"))
            };
            case.about(idle) || captured()
        },
    },
    Class {
        name: "multimatch-change-by-claim",
        kind: Kind::Theirs,
        reason: "multiMatch tests a value again whenever a transformation claims a change: cmdLine and sqlHexDecode claim one \
                 where there is none, compressWhitespace, base64Decode and utf8toUnicode none where there is one. We compare the \
                 values.",
        holds: |case| {
            let claims =
                ["t:cmdLine", "t:sqlHexDecode", "t:compressWhitespace", "t:base64Decode", "t:utf8toUnicode"];
            let is_such = |link: &Link| link.has("multiMatch") && claims.iter().any(|claim| link.has(claim));
            case.about(|link| link.has("multiMatch")) && repeats(case) || case.about(is_such)
        },
    },
    Class {
        name: "update-action-breaks-chain",
        kind: Kind::Theirs,
        reason: "SecRuleUpdateActionById on the first link of a chain loses `chain`: the links after it run as rules of their \
                 own (update_rule_action).",
        holds: |case| {
            let updated = |id: u32| {
                case.rules.lines().any(|line| line.starts_with(&format!("SecRuleUpdateActionById {id} ")))
            };
            let is_chain = |id: u32| case.rules.link((id, 1)).is_some();
            case.rules.links().any(|link| {
                let id = link.name.0;
                let about = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.link.0 == id);
                let is_theirs_alone = || {
                    case.ours.interruption.is_none()
                        && case.theirs.interruption.is_some()
                        && case.theirs.trace.iter().any(|entry| entry.link.0 == id)
                };
                updated(id)
                    && is_chain(id)
                    && (case.minimal
                        || about(case.our_match())
                        || about(case.their_match())
                        || is_theirs_alone()
                        || is_capture(case.difference)
                        || is_stopped(case, id)
                        || matches!(case.difference, Difference::Interruption { .. }))
            })
        },
    },
    Class {
        name: "ipmatch-of-no-address",
        kind: Kind::Theirs,
        reason: "A value that is no address is an operator error, and an error ends the rule: a negated @ipMatch lets it \
                 through, and the targets after it are not looked at. For us it is a value that does not match.",
        holds: |case| {
            let may_fail = |link: &Link| link.operator.contains("@ipMatch") && !sees_addresses_only(link);
            case.about(may_fail) || (case.minimal && case.rules.links().any(may_fail))
        },
    },
    Class {
        name: "number-wraps",
        kind: Kind::Theirs,
        reason: "Numbers are C ints there: 4111111111111111 compares as a negative number.",
        holds: |case| {
            let is_numeric =
                |link: &Link| ["@eq", "@ge", "@gt", "@le", "@lt"].iter().any(|op| link.operator.contains(op));
            let is_large = |entry: Option<&Entry>| entry.is_some_and(|entry| is_beyond_int(&entry.value));
            (case.about(is_numeric) && (is_large(case.our_match()) || is_large(case.their_match())))
                || (case.minimal && mentions_beyond_int(case.request))
        },
    },
    Class {
        name: "json-in-args-post",
        kind: Kind::Choice,
        reason: "JSON arguments are in ARGS only there; ours are in ARGS_POST, too, as in ModSecurity 3 and Coraza, so \
                 that a rule about posted arguments cannot be avoided by posting JSON.",
        holds: |case| {
            let posted = |entry: Option<&Entry>| entry.is_some_and(|e| e.variable.starts_with(b"ARGS_POST"));
            let reads = || case.rules.links().any(|l| l.targets.iter().any(|t| t.contains("ARGS_POST")));
            has_json_body(case)
                && (posted(case.our_match())
                    || posted(case.their_match())
                    || case.minimal && reads()
                    || captures(case, "ARGS_POST"))
        },
    },
    Class {
        name: "allowed-response-body",
        kind: Kind::Choice,
        reason: "After `allow` the response is not held back for us, and RESPONSE_BODY is empty in phase 5.",
        holds: |case| {
            let allows = |link: &Link| link.head.split(',').any(|action| action == "allow");
            case.rules.links().any(allows) && case.mentions("RESPONSE_BODY")
        },
    },
    Class {
        name: "xml-encoding",
        kind: Kind::Choice,
        reason: "libxml2 decodes XML in EBCDIC, UTF-16 and the like by itself; what we do with it is in docs/seclang.md.",
        holds: |case| {
            let is_encoded =
                case.request.body.as_ref().is_some_and(|body| !body.is_ascii() || body.contains(&0));
            let about_xml =
                |entry: Option<&Entry>| entry.is_some_and(|entry| entry.variable.starts_with(b"XML"));
            is_encoded && (about_xml(case.our_match()) || about_xml(case.their_match()))
        },
    },
    Class {
        name: "xml-cdata",
        kind: Kind::Choice,
        reason: "libxml2 has text and CDATA that touch as several text nodes; for us they are one (docs/seclang.md, Variables).",
        holds: |case| {
            let is_text = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.variable == "XML");
            let has = case.request.body.as_ref().is_some_and(|body| body.find(b"<![CDATA[").is_some());
            has && case.about(|link| link.targets.iter().any(|target| target.contains("text()")))
                && (is_text(case.our_match()) || is_text(case.their_match()))
        },
    },
    Class {
        name: "body-we-refuse",
        kind: Kind::Choice,
        reason: "XML with a document type, JSON with bytes that are no UTF-8 or deeper than 512 levels (theirs: 10,000), and what else \
                 our parsers refuse and theirs read: for us REQBODY_ERROR is 1, and rule 9000103 denies it.",
        holds: |case| {
            let about_body = |entry: Option<&Entry>| {
                entry.is_some_and(|entry| {
                    let starts = |start: &str| entry.variable.starts_with(start.as_bytes());
                    ["ARGS", "XML", "REQBODY_", "FILES", "MULTIPART_", "REQUEST_BODY"].into_iter().any(starts)
                })
            };
            let is_deep = |body: &[u8]| body.iter().filter(|byte| b"[{".contains(byte)).count() > JSON_DEPTH;
            let is_odd = case.request.body.as_ref().is_some_and(|body| {
                body.find(b"<!").is_some() || std::str::from_utf8(body).is_err() || is_deep(body)
            });
            case.ours.body_error
                && is_odd
                && (about_body(case.our_match()) || about_body(case.their_match()) || case.minimal)
        },
    },
    Class {
        name: "response-content-length",
        kind: Kind::Theirs,
        reason: "RESPONSE_CONTENT_LENGTH is what Apache knows before the body is there, 0 for a proxied response; ours is \
                 the Content-Length field.",
        holds: |case| case.mentions("RESPONSE_CONTENT_LENGTH") || captures(case, "RESPONSE_CONTENT_LENGTH"),
    },
    Class {
        name: "path-normalised",
        kind: Kind::Choice,
        reason: "Apache merges slashes, resolves dot segments and keeps %2F in the path before phase 2; we show the path that \
                 the upstream gets, percent-encoding undone (docs/seclang.md, Variables).",
        holds: |case| {
            let path = case.request.uri.split(|&b| b == b'?').next().unwrap_or_default().to_ascii_lowercase();
            let is_odd =
                [&b"//"[..], b"/.", b"%2f", b"%2e", b"%00"].iter().any(|odd| path.find(odd).is_some());
            is_odd
                && ["REQUEST_FILENAME", "REQUEST_BASENAME", "REQUEST_URI", "REQUEST_URI_RAW"]
                    .iter()
                    .any(|name| case.mentions(name))
        },
    },
    Class {
        name: "unread-response",
        kind: Kind::Choice,
        reason: "SecResponseBodyLimit refuses Apache's own pages, too, and responses that no rule reads or that are allowed; we hold no \
                 such body, so that its length is of no interest.",
        holds: |case| {
            let limits = case.rules.lines().any(|line| line.starts_with("SecResponseBodyLimit "));
            has_status(case, 500) && limits && !case.ours.over_limit
        },
    },
    Class {
        name: "detection-reads-all",
        kind: Kind::Choice,
        reason: "With DetectionOnly ModSecurity 2 reads a request body of any length; we inspect what fits the limit, as with \
                 ProcessPartial.",
        holds: |case| {
            let limits = case.rules.lines().any(|l| l.starts_with("SecRequestBodyLimit "));
            case.ours.over_limit && limits && case.detects_only()
        },
    },
    Class {
        name: "cut-body",
        kind: Kind::Choice,
        reason: "With ProcessPartial the parsers of ModSecurity 2 see the rest of the piece in which the limit lies; for us a body ends at \
                 the limit, byte for byte. One that is cut before its first boundary has data before it for us, a strict error.",
        holds: |case| {
            let of_body = |entry: Option<&Entry>| {
                entry.is_some_and(|entry| {
                    let starts = |start: &str| entry.variable.starts_with(start.as_bytes());
                    ["ARGS", "XML", "FILES", "MULTIPART_", "REQUEST_BODY", "REQBODY_"].into_iter().any(starts)
                })
            };
            let counts = || {
                let limits = case.rules.lines().any(|line| line.starts_with("SecRequestBodyNoFilesLimit "));
                limits && has_status(case, 413)
            };
            case.ours.over_limit && (of_body(case.our_match()) || of_body(case.their_match()) || counts())
        },
    },
    Class {
        name: "wide-number",
        kind: Kind::Choice,
        reason: "Numbers wrap at 32 bits: 4294967297 is 1 to @gt, by which a client can be below any bound. Ours have 64 bits and stop at \
                 their ends.",
        holds: |case| {
            let compares = |link: &Link| {
                ["@eq ", "@gt ", "@ge ", "@lt ", "@le "]
                    .iter()
                    .any(|operator| link.operator.contains(operator))
            };
            let is_wide = |text: &[u8]| {
                text.split(|b| !b.is_ascii_digit()).any(|digits| {
                    digits
                        .to_str()
                        .ok()
                        .and_then(|digits| digits.parse::<u64>().ok())
                        .is_some_and(|n| n > i32::MAX as u64)
                })
            };
            let request = case.request;
            let given = || {
                is_wide(&request.line)
                    || request.body.as_ref().is_some_and(|body| is_wide(body))
                    || request.headers.iter().any(|(_, value)| is_wide(value))
            };
            (case.about(compares) || case.minimal && case.rules.links().any(compares)) && given()
        },
    },
    Class {
        name: "name-escaped-again",
        kind: Kind::Theirs,
        reason: "MATCHED_VARS escapes the name of a value that MATCHED_VAR_NAME had escaped already.",
        holds: |case| {
            let (Some(ours), Some(theirs)) = (case.our_match(), case.their_match()) else { return false };
            case.about(|link| link.targets.iter().any(|target| target.contains("MATCHED_VARS")))
                && theirs.variable.replace(br"\\", br"\") == ours.variable.as_slice()
                && theirs.value == ours.value
        },
    },
    Class {
        name: "matched-vars-overwritten",
        kind: Kind::Theirs,
        reason: "MATCHED_VARS of a link with transformations points at memory that is used again before the next link reads it.",
        holds: |case| {
            let (Some(ours), Some(theirs)) = (case.our_match(), case.their_match()) else { return false };
            let transformed = |at: usize| case.rules.link((ours.link.0, at)).is_some_and(transforms);
            case.about(|link| link.targets.iter().any(|target| target.starts_with("MATCHED_VARS")))
                && (0..ours.link.1).any(transformed)
                && ours.variable == theirs.variable
                && ours.value.len() == theirs.value.len()
        },
    },
    Class {
        name: "backslash-left",
        kind: Kind::Theirs,
        reason: "t:normalizePathWin leaves a backslash of a run of them behind; ours leaves a slash.",
        holds: |case| {
            case.about(|link| link.has("t:normalizePathWin"))
                && case.their_match().is_some_and(|entry| entry.value.contains(&b'\\'))
        },
    },
    Class {
        name: "reads-beyond",
        kind: Kind::Theirs,
        reason: "t:base64Decode, t:cmdLine, t:sqlHexDecode and t:base64DecodeExt read up to a zero byte: behind a transformation that made \
                 the value shorter in place they read on in what stood there before. Of `a b` without its space base64Decode \
                 decodes `abb`.",
        holds: |case| case.about(|link| apache::reads_beyond(link, case)),
    },
    Class {
        name: "zero-byte-ends-value",
        kind: Kind::Theirs,
        reason: "t:cmdLine, t:sqlHexDecode and t:base64DecodeExt stop at a zero byte, and what follows it is lost to the \
                 operator: a%00<attack> passes.",
        holds: |case| case.about(|link| apache::loses_what_follows_a_zero(link, case)),
    },
];

/// All that the link tests is an address of a connection, as it is.
fn sees_addresses_only(link: &Link) -> bool {
    let is_address =
        |target: &String| matches!(target.as_str(), "REMOTE_ADDR" | "SERVER_ADDR" | "USERAGENT_IP");
    link.targets.iter().all(is_address) && !link.actions.iter().any(|action| action.starts_with("t:"))
}

/// Our default for `SecRequestBodyJsonDepthLimit`.
const JSON_DEPTH: usize = 512;

/// Transformations of its own.
fn transforms(link: &Link) -> bool {
    let own = link.actions.iter().rposition(|action| action == "t:none").map_or(0, |at| at + 1);
    link.actions[own..].iter().any(|action| action.starts_with("t:"))
}

/// The difference is in what a rule captured, `TX:0` to `TX:9`.
fn is_capture(difference: &Difference) -> bool {
    matches!(difference, Difference::Tx { key, .. } if matches!(key[..], [b'0'..=b'9']))
}

/// The same, and a rule captures from `variable`. A negated pattern captures where its rule does not match.
fn captures(case: &Case<'_>, variable: &str) -> bool {
    is_capture(case.difference)
        && case
            .rules
            .links()
            .any(|link| link.has("capture") && link.targets.iter().any(|target| target.starts_with(variable)))
}

/// They were stopped behind the first link of rule `id`, and nothing of theirs follows.
fn is_stopped(case: &Case<'_>, id: u32) -> bool {
    case.their_match().is_none()
        && case.theirs.interruption.is_some()
        && case.theirs.trace.last().is_some_and(|entry| entry.link == (id, 0))
}

fn has_status(case: &Case<'_>, status: u16) -> bool {
    case.theirs.interruption == Some(Interruption::Status(status))
}

fn ran_in_phase(case: &Case<'_>, trace: &[Entry], phase: u32) -> bool {
    trace.iter().any(|entry| case.phase_of(entry) == Some(phase))
}

/// Their entry says again what the one before it said.
fn repeats(case: &Case<'_>) -> bool {
    let Some(theirs) = case.their_match() else { return false };
    case.theirs.trace.windows(2).any(|two| two[0] == two[1] && two[1] == *theirs)
}

fn is_beyond_int(text: &[u8]) -> bool {
    let digits = text.iter().skip_while(|b| !b.is_ascii_digit()).take_while(|b| b.is_ascii_digit()).count();
    digits >= 10
}

fn mentions_beyond_int(request: &Request) -> bool {
    let is_long = |text: &[u8]| text.split(|b| !b.is_ascii_digit()).any(|digits| digits.len() >= 10);
    is_long(&crate::wire(request))
}
