//! libmodsecurity 3.0.9.

use bstr::{BStr, ByteSlice};
use portcullis_types::percent_decode;

use super::{Case, Class, Kind, has_json_body};
use crate::Link;
use crate::engines::ours::joined;
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
                        b"RESPONSE_CONTENT_TYPE",
                        b"RESPONSE_PROTOCOL",
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
            // A transformation made something else of the number.
            let same = case
                .our_match()
                .zip(case.their_match())
                .is_some_and(|(ours, theirs)| bare(ours) && !bare(theirs) && ours.value == theirs.value);
            is_counted
                && (same
                    || case.our_match().is_some_and(|e| bare(e) && is_number(&e.value))
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
            // The part that a SecAction kept of it, which in ModSecurity 2 is the client's address.
            let keeps = |link: &crate::Link| {
                link.targets.is_empty() && link.actions.iter().any(|action| action.contains("%{MATCHED_VAR"))
            };
            let kept = || case.rules.links().any(keeps);
            let about_kept = names(case, |name| name.eq_ignore_ascii_case(b"TX:s"))
                || case.about(|link| link.operator.contains("%{tx.s}"))
                || if let Difference::Tx { key, ours, .. } = case.difference {
                    let ours = ours.as_ref().map_or(&b""[..], |ours| ours);
                    key == "s" || key.contains_str("remote_addr") || ours.contains_str("127")
                } else {
                    false
                };
            names(case, |name| name.starts_with(b"MATCHED_VAR"))
                || about_kept && kept()
                || case.about(|link| {
                    link.operator.contains("%{MATCHED_VAR")
                        || link.targets.iter().any(|target| target.contains("MATCHED_VAR"))
                })
        },
    },
    Class {
        name: "captures-beyond-nine",
        kind: Kind::Choice,
        reason: "Capture sets TX:10 and on, too; ours are TX:0 to TX:9, as the manual has them (docs/compatibility.md).",
        holds: |case| {
            let is_such = |key: &[u8]| key.len() == 2 && key.iter().all(u8::is_ascii_digit);
            let reads = |link: &Link| link.targets.iter().any(|target| target.contains("TX:10"));
            matches!(case.difference, Difference::Tx { key, .. } if is_such(key)) || case.about(reads)
        },
    },
    Class {
        name: "line-is-a-status",
        kind: Kind::Theirs,
        reason: "STATUS_LINE is RESPONSE_STATUS, 200 and not 200 OK.",
        holds: |case| {
            case.about(|link| link.targets.iter().any(|target| target.ends_with("STATUS_LINE")))
                && names(case, |name| name == b"STATUS_LINE" || name == b"RESPONSE_STATUS")
        },
    },
    Class {
        name: "beyond-unicode",
        kind: Kind::Theirs,
        reason: "@validateUtf8Encoding takes F4 90 80 80, which is above U+10FFFF; for us it is not valid.",
        holds: |case| {
            let has = |entry: &Entry| entry.value.find(b"\xf4\x90\x80\x80").is_some();
            case.about(|link| link.operator.contains("@validateUtf8Encoding"))
                && [case.our_match(), case.their_match()].into_iter().flatten().any(has)
        },
    },
    Class {
        name: "below-zero",
        kind: Kind::Theirs,
        reason: "setvar:tx.n=-2 goes below zero; ModSecurity 2 stops there.",
        holds: |case| {
            // Theirs is below zero and ours is not; or a rule went by such a key.
            let is_below = |value: &[u8]| value.strip_prefix(b"-").is_some_and(is_number);
            let below = |entry: Option<&Entry>| {
                entry.is_some_and(|e| e.variable.starts_with(b"TX:") && is_below(&e.value))
            };
            let keys = || {
                let theirs = case.theirs.tx.iter().flatten();
                theirs
                    .filter(|(_, value)| is_below(value))
                    .map(|(key, _)| key.to_string())
                    .collect::<Vec<_>>()
            };
            if let Difference::Tx { theirs: Some(theirs), .. } = case.difference {
                is_below(theirs)
            } else if let Difference::Tx { .. } = case.difference {
                false
            } else {
                below(case.their_match())
                    || case.about(|link| {
                        keys().iter().any(|key| {
                            link.operator.contains(&format!("%{{tx.{key}}}"))
                                || link.targets.iter().any(|t| *t == format!("TX:{key}"))
                        })
                    })
            }
        },
    },
    Class {
        name: "json-names",
        kind: Kind::Theirs,
        reason: "JSON arguments are called json.a.array_0.b; ModSecurity 2 calls them a.b. A choice of theirs that rules written \
                 for ModSecurity 2 do not expect.",
        holds: |case| {
            let is_macro = matches!(case.difference, Difference::Tx { key, .. } if key == "u");
            has_json_body(case) && (is_macro || names(case, |name| name.starts_with(b"ARGS")))
        },
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
        // All of our keys are in lower case, so that only a key with a capital letter can show it.
        holds: |case| {
            let has_capital = |entry: Option<&Entry>| {
                let key = entry.and_then(|entry| entry.variable.splitn(2, |&byte| byte == b':').nth(1));
                key.is_some_and(|key| key.iter().any(u8::is_ascii_uppercase))
            };
            case.about(|link| link.targets.iter().any(|target| target.contains(":/")))
                && (has_capital(case.our_match()) || has_capital(case.their_match()))
        },
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
        name: "collection-names",
        kind: Kind::Theirs,
        reason: "MATCHED_VAR_NAME of a variable of a collection has the key of the record in it: IP:192.0.2.1::::n.",
        holds: |case| {
            names(case, |name| {
                let starts = |start: &&[u8]| name.starts_with(start);
                [&b"IP:"[..], b"GLOBAL:", b"SESSION:"].iter().any(starts)
            })
        },
    },
    Class {
        name: "body-limits",
        kind: Kind::Theirs,
        reason: "SecRequestBodyNoFilesLimit is read and does nothing, a body over SecRequestBodyLimit is refused with 403, and \
                 read in part where no action is named; ModSecurity 2 and we answer 413.",
        holds: |case| {
            let refused = [413, 500].map(|status| Some(Interruption::Status(status)));
            case.ours.over_limit
                && (refused.contains(&case.ours.interruption)
                    || names(case, |name| {
                        [&b"ARGS"[..], b"FILES", b"MULTIPART_", b"REQUEST_BODY", b"REQBODY_", b"XML"]
                            .iter()
                            .any(|start| name.starts_with(start))
                    }))
        },
    },
    Class {
        name: "unread-response",
        kind: Kind::Choice,
        reason: "SecResponseBodyLimit refuses responses that no rule reads, too, with 403; we hold no such body, so that its length is of no \
                 interest.",
        holds: |case| {
            let limits = case.rules.lines().any(|line| line.starts_with("SecResponseBodyLimit "));
            limits
                && !case.ours.over_limit
                && case.ours.interruption.is_none()
                && case.theirs.interruption == Some(Interruption::Status(403))
        },
    },
    Class {
        name: "takes-the-last",
        kind: Kind::Theirs,
        reason: "Of several values a macro (%{ARGS.a}) stands for the last, and of several Content-Type fields the last chooses the body \
                 parser; ModSecurity 2 takes the first.",
        holds: |case| {
            let is_macro = matches!(case.difference, Difference::Tx { key, .. } if key == "w" || key == "u");
            let body = case.request.body.as_ref().map_or(&b""[..], |body| body);
            let mut text = [case.request.uri.as_slice(), b"&", body].concat().to_ascii_lowercase();
            for (_, value) in
                case.request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"Cookie"))
            {
                text.extend_from_slice(value);
            }
            let count = |name: &str| text.find_iter(name).count();
            let several = count("a=") + count("%61=") + count("\"a\"") > 1;
            let types =
                case.request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"Content-Type"));
            let about_body = || names(case, |name| name.starts_with(b"ARGS") || name.starts_with(b"FILES"));
            is_macro && (several || joined(case.request).is_some()) || types.count() > 1 && about_body()
        },
    },
    Class {
        name: "goes-on-after-the-end",
        kind: Kind::Theirs,
        reason: "After deny, redirect, drop or allow a rule goes on with its other values; in ModSecurity 2 the phase is over at once.",
        holds: |case| {
            // Theirs is one more match of the link that ended the phase for us.
            let Some(theirs) = case.their_match() else { return false };
            let goes_on =
                case.theirs.trace.windows(2).any(|two| two[0].link == theirs.link && two[1] == *theirs);
            let ends = case.rules.link((theirs.link.0, 0)).is_some_and(|first| {
                let ends = ["deny", "redirect", "drop", "allow", "block"];
                first.head.split(',').any(|action| ends.iter().any(|end| action.starts_with(end)))
            });
            ends && goes_on
        },
    },
    Class {
        name: "action-has-no-targets",
        kind: Kind::Theirs,
        reason: "SecRuleUpdateTarget... does nothing to a SecAction; in ModSecurity 2 it matches the new targets, too.",
        holds: |case| {
            case.rules.lines().any(|line| line.starts_with("SecRuleUpdateTarget"))
                && case.about(|link| link.targets.is_empty())
        },
    },
    Class {
        name: "skip-goes-on",
        kind: Kind::Theirs,
        reason: "skip and skipAfter go on in the phases after their own; in ModSecurity 2 they end with their phase.",
        holds: |case| {
            // Up to the rules that would tell us what happened.
            let has_skip = || case.rules.links().any(|link| link.has("skip"));
            if case.theirs.tx.is_none() && case.ours.tx.is_some() {
                return has_skip();
            }
            let Some(missing) = case.our_match() else { return false };
            let skips = |entry: &Entry| {
                case.rules.link((entry.link.0, 0)).is_some_and(|first| first.has("skip"))
                    && case.phase_of(entry) < case.phase_of(missing)
            };
            case.ours.trace.iter().take_while(|entry| *entry != missing).any(skips)
                && !case.theirs.trace.iter().any(|entry| entry.link == missing.link)
        },
    },
    Class {
        name: "allow-in-detection",
        kind: Kind::Theirs,
        reason: "allow takes effect in DetectionOnly, too; in ModSecurity 2 it changes nothing then.",
        holds: |case| {
            let Some(missing) = case.our_match() else { return false };
            let allows = |entry: &Entry| {
                let head = case.rules.link((entry.link.0, 0)).map_or("", |first| &first.head);
                head.contains(",allow")
            };
            case.detects_only()
                && case.ours.trace.iter().take_while(|entry| *entry != missing).any(allows)
                && !case.theirs.trace.contains(missing)
        },
    },
    Class {
        name: "base64-all-or-nothing",
        kind: Kind::Theirs,
        reason: "t:base64Decode gives nothing for text that is no whole Base64; in ModSecurity 2 what comes before.",
        holds: |case| case.about(|link| link.actions.iter().any(|action| action == "t:base64Decode")),
    },
    Class {
        name: "word-of-letters",
        kind: Kind::Theirs,
        reason: "@containsWord takes only letters for parts of words: it finds 1 in 841956.",
        holds: |case| case.about(|link| link.operator.contains("@containsWord")),
    },
    Class {
        name: "body-without-access",
        kind: Kind::Theirs,
        reason: "Arguments of the body are there where SecRequestBodyAccess is off, too.",
        holds: |case| {
            let is_on = case.rules.lines().any(|line| line == "SecRequestBodyAccess On")
                && !case.rules.links().any(|link| link.has("ctl:requestBodyAccess=Off"));
            !is_on
                && case.request.body.is_some()
                && names(case, |name| name.starts_with(b"ARGS") || name.starts_with(b"FILES"))
        },
    },
    Class {
        name: "exclusion-of-kin",
        kind: Kind::Theirs,
        reason: "An exclusion of ARGS:/^b/ that SecRuleUpdateTarget... adds takes values of ARGS_GET_NAMES away, too.",
        holds: |case| {
            let excluded =
                case.rules.lines().any(|l| l.starts_with("SecRuleUpdateTarget") && l.contains("\"!ARGS"));
            let kin = case.our_match().is_some_and(|entry| entry.variable.starts_with(b"ARGS_"));
            excluded && kin && case.our_match().is_some_and(|entry| !case.theirs.trace.contains(entry))
        },
    },
    Class {
        name: "updated-status",
        kind: Kind::Theirs,
        reason: "The status that SecRuleUpdateActionById gives a rule does not replace the one that it has.",
        holds: |case| {
            let updated =
                case.rules.lines().any(|l| l.starts_with("SecRuleUpdateActionById") && l.contains("status:"));
            updated && matches!(case.difference, Difference::Interruption { ours: Some(_), theirs: Some(_) })
        },
    },
    Class {
        name: "part-without-name",
        kind: Kind::Theirs,
        reason: "A multipart body with a part whose name is empty is unreadable, and all of its arguments are gone.",
        holds: |case| {
            let body = case.request.body.as_ref();
            body.is_some_and(|body| body.find(b" name=\"\"").is_some())
                && names(case, |name| name.starts_with(b"ARGS") || name.starts_with(b"FILES"))
        },
    },
    Class {
        name: "changed-while-matching",
        kind: Kind::Theirs,
        reason: "A TX key that a match of a rule sets or takes away is another one for the values that the rule tries after it; in \
                 ModSecurity 2 values stay as they were when the rule began.",
        holds: |case| {
            let reads_and_sets = |link: &crate::Link| {
                let keys = link.targets.iter().filter_map(|target| target.strip_prefix("TX:"));
                keys.into_iter().any(|key| {
                    link.has(&format!("setvar:!tx.{key}")) || link.has(&format!("setvar:tx.{key}="))
                })
            };
            let names_tx = names(case, |name| name.starts_with(b"TX:"));
            names_tx && case.about(|link| reads_and_sets(link) || link.has("setvar:!tx"))
        },
    },
    Class {
        name: "default-of-a-phase",
        kind: Kind::Theirs,
        reason: "SecDefaultAction is for rules of the phase that it names; in ModSecurity 2 the last one is for all rules behind it.",
        holds: |case| {
            let phases = case.rules.lines().filter_map(|line| line.strip_prefix("SecDefaultAction "));
            let phases: Vec<u32> =
                phases.filter_map(|line| line.split("phase:").nth(1)?.chars().next()?.to_digit(10)).collect();
            let blocks_elsewhere = |entry: &Entry| {
                let head = case.rules.link((entry.link.0, 0)).map_or("", |link| &link.head);
                head.split(',').any(|action| action == "block")
                    && case.phase_of(entry).is_some_and(|phase| !phases.contains(&phase))
            };
            !phases.is_empty()
                && case.ours.interruption != case.theirs.interruption
                && case.ours.trace.iter().any(blocks_elsewhere)
        },
    },
    Class {
        name: "last-of-a-name",
        kind: Kind::Theirs,
        reason: "A macro %{ARGS.a} is the last value of that name; in ModSecurity 2 the first.",
        holds: |case| {
            let reads = |text: &str| text.contains("%{ARGS.a}");
            let sets = |key: &BStr| {
                let action = format!("setvar:'tx.{key}=");
                case.rules.links().flat_map(|link| &link.actions).any(|a| a.starts_with(&action) && reads(a))
            };
            let about = if let Difference::Tx { key, .. } = case.difference {
                sets(key.as_bstr())
            } else {
                case.about(|link| reads(&link.operator))
            };
            let body = case.request.body.as_ref().map_or(&b""[..], |body| body);
            let query = case.request.uri.splitn_str(2, "?").nth(1).unwrap_or_default();
            let names = |part: &[u8]| {
                let pairs = part.split(|&byte| byte == b'&').map(|pair| pair.splitn_str(2, "=").next());
                pairs.filter(|name| percent_decode(name.unwrap_or_default(), true) == b"a").count()
            };
            about && names(query) + names(body) > 1
        },
    },
    Class {
        name: "empty-query",
        kind: Kind::Theirs,
        reason: "QUERY_STRING is empty where there is no query; in ModSecurity 2 it has no value then.",
        holds: |case| {
            case.request.uri.find_byte(b'?').is_none() && names(case, |name| name == b"QUERY_STRING")
        },
    },
    Class {
        name: "sum-of-signs",
        kind: Kind::Theirs,
        reason: "setvar:tx.n=+-1 takes one away, setvar:tx.n=-2 goes below zero on the way; in ModSecurity 2 the first adds nothing and \
                 the second stops at zero.",
        holds: |case| {
            // An operator that compares with such a sum.
            let is_compared = |link: &crate::Link| {
                link.operator.split("%{tx.").skip(1).filter_map(|rest| rest.split_once('}')).any(
                    |(name, _)| {
                        let acts = [format!("setvar:tx.{name}=-"), format!("setvar:tx.{name}=+-")];
                        case.rules.links().any(|link| acts.iter().any(|act| link.has(act)))
                    },
                )
            };
            if case.about(is_compared) {
                return true;
            }
            let (Difference::Tx { key, .. }, Some(ours), Some(theirs)) =
                (case.difference, &case.ours.tx, &case.theirs.tx)
            else {
                return false;
            };
            let number = |text: &[u8]| text.to_str().ok().and_then(|text| text.parse::<i64>().ok());
            let is_counted_otherwise = |name: &BStr| {
                let acts = [format!("setvar:tx.{name}=-"), format!("setvar:tx.{name}=+-")];
                let counts = case.rules.links().any(|link| acts.iter().any(|act| link.has(act)));
                let values =
                    (ours.get(name).and_then(|v| number(v)), theirs.get(name).and_then(|v| number(v)));
                counts && matches!(values, (Some(ours), Some(theirs)) if ours > theirs)
            };
            // A key with such a number in its name is another key; a sum with it another sum.
            let made_with = |name: &BStr| {
                let number = format!("%{{tx.{name}}}");
                case.rules.links().flat_map(|link| &link.actions).any(|action| {
                    let Some((before, _)) = action.split_once(&number) else { return false };
                    let Some((_, set)) = before.rsplit_once("setvar:tx.") else { return false };
                    match set.split_once('=') {
                        Some((whole, _)) => key == whole,
                        None => key.starts_with(set.as_bytes()),
                    }
                })
            };
            is_counted_otherwise(key.as_bstr())
                || ours.keys().any(|name| is_counted_otherwise(name.as_bstr()) && made_with(name.as_bstr()))
        },
    },
    Class {
        name: "exclusion-anywhere",
        kind: Kind::Theirs,
        reason: "An exclusion holds wherever it stands among the targets; in ModSecurity 2 it takes away what stands before it.",
        holds: |case| {
            // Targets of an update come behind the exclusions that are there.
            let added =
                case.rules.lines().any(|l| l.starts_with("SecRuleUpdateTarget") && !l.contains("\"!"));
            case.about(|link| {
                let first = link.targets.iter().position(|target| target.starts_with('!'));
                first.is_some_and(|at| {
                    added || link.targets[at..].iter().any(|target| !target.starts_with('!'))
                })
            })
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
