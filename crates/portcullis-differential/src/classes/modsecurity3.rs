//! libmodsecurity 3.0.9.

use bstr::ByteSlice;

use super::{Case, Class, Kind, has_json_body};
use crate::seen::{Difference, Entry, Interruption};

pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "unset-is-empty",
        kind: Kind::Theirs,
        reason: "Flags and sizes that nothing has set yet are the empty string, or absent, where the manual and ModSecurity 2 \
                 have 0: `@eq 0` still holds, `@rx ^0` does not.",
        holds: |case| {
            names(case, |name| {
                name.starts_with(b"MULTIPART_")
                    || [
                        &b"REQBODY_ERROR"[..],
                        b"URLENCODED_ERROR",
                        b"FILES_COMBINED_SIZE",
                        b"REQUEST_BODY_LENGTH",
                        b"RESPONSE_CONTENT_LENGTH",
                        b"RESPONSE_STATUS",
                        b"HIGHEST_SEVERITY",
                    ]
                    .contains(&name)
            })
        },
    },
    Class {
        name: "size-is-a-float",
        kind: Kind::Theirs,
        reason: "ARGS_COMBINED_SIZE is written as 15.000000.",
        holds: |case| names(case, |name| name == b"ARGS_COMBINED_SIZE"),
    },
    Class {
        name: "count-has-a-key",
        kind: Kind::Theirs,
        reason: "MATCHED_VAR_NAME of a count names the selector (ARGS:a, ARGS:regex(^a)); ModSecurity 2 names the collection.",
        holds: |case| {
            let is_counted = case.about(|link| link.targets.iter().any(|target| target.starts_with('&')));
            let bare = |entry: &Entry| entry.variable.find_byte(b':').is_none();
            is_counted
                && (case.our_match().is_some_and(|e| bare(e) && is_number(&e.value))
                    || case.their_match().is_some_and(|e| !bare(e) && is_number(&e.value)))
                || case.minimal && case.rules.links().any(|l| l.targets.iter().any(|t| t.starts_with('&')))
        },
    },
    Class {
        name: "rule-has-a-key",
        kind: Kind::Theirs,
        reason: "MATCHED_VAR_NAME of RULE:id is RULE:id; ModSecurity 2 has RULE.",
        holds: |case| names(case, |name| name == b"RULE" || name.starts_with(b"RULE:")),
    },
    Class {
        name: "matched-vars",
        kind: Kind::Theirs,
        reason: "MATCHED_VAR and its kin are cleared by every rule that does not match, MATCHED_VARS keeps values beyond its \
                 chain under names of its own, and a SecAction sets none.",
        holds: |case| {
            names(case, |name| name.starts_with(b"MATCHED_VAR"))
                || case.about(|link| link.targets.iter().any(|target| target.contains("MATCHED_VAR")))
        },
    },
    Class {
        name: "below-zero",
        kind: Kind::Theirs,
        reason: "setvar:tx.n=-2 goes below zero; ModSecurity 2 stops there.",
        holds: |case| match case.difference {
            Difference::Tx { theirs: Some(theirs), .. } => theirs.starts_with(b"-"),
            _ => {
                let below = |entry: Option<&Entry>| {
                    entry.is_some_and(|e| e.variable.starts_with(b"TX:") && e.value.starts_with(b"-"))
                };
                below(case.their_match())
                    || case
                        .theirs
                        .tx
                        .iter()
                        .flatten()
                        .any(|(_, value)| value.starts_with(b"-") && is_number(&value[1..]))
            }
        },
    },
    Class {
        name: "json-names",
        kind: Kind::Theirs,
        reason: "JSON arguments are called json.a.array_0.b; ModSecurity 2 calls them a.b. A choice of theirs that rules written \
                 for ModSecurity 2 do not expect.",
        holds: |case| has_json_body(case) && names(case, |name| name.starts_with(b"ARGS")),
    },
    Class {
        name: "uri-decoded",
        kind: Kind::Theirs,
        reason: "REQUEST_URI, REQUEST_FILENAME and REQUEST_BASENAME are percent-decoded from phase 1 on, the query in \
                 REQUEST_URI, too; with ModSecurity 2 only the path, from phase 2 on.",
        holds: |case| {
            case.request.uri.find_byteset(b"%+").is_some()
                && names(case, |name| {
                    [&b"REQUEST_URI"[..], b"REQUEST_FILENAME", b"REQUEST_BASENAME"].contains(&name)
                })
        },
    },
    Class {
        name: "request-body-always",
        kind: Kind::Theirs,
        reason: "REQUEST_BODY is there for every type of body, and empty without one; ModSecurity 2 has it for forms and by \
                 force.",
        holds: |case| names(case, |name| name == b"REQUEST_BODY"),
    },
    Class {
        name: "response-body",
        kind: Kind::Theirs,
        reason: "RESPONSE_BODY is there whatever its type and before its phase, and stays out of phase 4 where body access is off.",
        holds: |case| names(case, |name| name == b"RESPONSE_BODY"),
    },
    Class {
        name: "xml-has-a-path",
        kind: Kind::Theirs,
        reason: "MATCHED_VAR_NAME of XML:/* is XML:/*, a value for each text; ModSecurity 2 has XML and one value.",
        holds: |case| names(case, |name| name.starts_with(b"XML")),
    },
    Class {
        name: "content-type-without-parameters",
        kind: Kind::Theirs,
        reason: "RESPONSE_CONTENT_TYPE loses its parameters; the Content-Type field in RESPONSE_HEADERS has them.",
        holds: |case| names(case, |name| name == b"RESPONSE_CONTENT_TYPE"),
    },
    Class {
        name: "sqlhexdecode-loses-a-byte",
        kind: Kind::Theirs,
        reason: "t:sqlHexDecode drops the last byte of its input: HTTP/1.1 becomes HTTP/1.",
        holds: |case| case.about(|link| link.has("t:sqlHexDecode")),
    },
    Class {
        name: "no-phase-4",
        kind: Kind::Theirs,
        reason: "Rules of phase 4 do not run where the response body is not read; in ModSecurity 2 they always run.",
        holds: |case| {
            case.our_match().and_then(|entry| case.phase_of(entry)) == Some(4)
                && !case.theirs.trace.iter().any(|entry| case.phase_of(entry) == Some(4))
        },
    },
    Class {
        name: "updated-actions-once",
        kind: Kind::Theirs,
        reason: "An action that SecRuleUpdateActionById adds runs once for a rule; its own actions run for each value.",
        holds: |case| matches!(case.difference, Difference::Tx { key, .. } if key == "updated"),
    },
    Class {
        name: "selector-case",
        kind: Kind::Theirs,
        reason: "A regex selector (/^x-/) tells upper and lower case apart, even for header fields.",
        holds: |case| case.about(|link| link.targets.iter().any(|target| target.contains(":/"))),
    },
    Class {
        name: "unreadable-body",
        kind: Kind::Theirs,
        reason: "Of a body whose parser fails, what was read until then is not kept; we keep it for the rules.",
        holds: |case| {
            case.ours.body_error
                && names(case, |name| name.starts_with(b"ARGS") || name.starts_with(b"FILES"))
        },
    },
    Class {
        name: "unordered",
        kind: Kind::Theirs,
        reason: "Collections are hash tables: values come in an order of their own.",
        holds: |case| {
            let (Some(ours), Some(theirs)) = (case.our_match(), case.their_match()) else { return false };
            let collection = |e: &Entry| e.variable.split(|&b| b == b':').next().map(<[u8]>::to_vec);
            let has = |list: &[Entry], wanted: &Entry| list.contains(wanted);
            ours.link == theirs.link
                && collection(ours) == collection(theirs)
                && (has(&case.ours.trace, theirs) || has(&case.theirs.trace, ours))
        },
    },
    Class {
        name: "drop-is-403",
        kind: Kind::Theirs,
        reason: "drop answers 403; the connection is the server's.",
        holds: |case| {
            case.ours.interruption == Some(Interruption::Drop)
                && matches!(case.difference, Difference::Interruption { .. })
        },
    },
    Class {
        name: "outvoted",
        kind: Kind::Theirs,
        reason: "ModSecurity 2 on Apache saw what we saw: every match of the rules in question with variable and value, or the \
                 TX key, or the interruption. Where the two ModSecuritys disagree, 2 is the reference.",
        holds: |case| case.outvoted,
    },
];

/// The variable of either entry.
fn names(case: &Case<'_>, is_such: impl Fn(&[u8]) -> bool) -> bool {
    [case.our_match(), case.their_match()].into_iter().flatten().any(|entry| is_such(&entry.variable))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}
