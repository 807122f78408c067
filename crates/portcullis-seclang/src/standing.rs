//! Support status of each word of the language: works as in ModSecurity 2, works differently, or is refused
//! and why.
//!
//! The parser and the compiler take their refusals and their "no effect" warnings from here, and so does the
//! reference page `docs/seclang-reference.md`; a test tries every word and fails where a row and the truth
//! differ. A word that has no row works as in ModSecurity 2.

use portcullis_decode::Transformation;
use portcullis_types::Variable;

use crate::actions::{ActionName, CtlOption};
use crate::directives::{DirectiveName, Handling};
use crate::operators::OperatorName;

/// The support status of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As in ModSecurity 2.
    Works,
    /// It works, and this is what is different.
    Differs(&'static str),
    /// It is read with a warning and changes nothing, for this reason.
    NoEffect(&'static str),
    /// ModSecurity 2 has it; here it is read with a warning and never does anything: a rule with it finds
    /// nothing.
    Vain(Refusal),
    /// It is an error.
    Refused(Refusal),
}

/// The reason why a word is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: &'static str,
    /// The replacement to use instead.
    pub instead: &'static str,
}

const fn refused(why: &'static str, instead: &'static str) -> Standing {
    Standing::Refused(Refusal { why, instead })
}

const fn vain(why: &'static str, instead: &'static str) -> Standing {
    Standing::Vain(Refusal { why, instead })
}

use Standing::{Differs, NoEffect, Works};

/// Returns the support status of a directive.
#[expect(clippy::wildcard_enum_match_arm, reason = "a word without a row works as in ModSecurity 2")]
pub fn directive(name: DirectiveName) -> Standing {
    use DirectiveName::*;
    if let Handling::Refused(refusal) = name.handling() {
        return Standing::Refused(refusal);
    }
    if let Handling::Vain(refusal) = name.handling() {
        return Standing::Vain(refusal);
    }
    match name {
        AuditLog => Differs("a file, never a program after |"),
        AuditLogType => Differs("HTTPS is refused: let a log shipper forward the file"),
        AuditLogFormat => Differs("OCSF is refused; JsonLegacy is the JSON of ModSecurity 2"),
        DebugLog => Differs("written when the transaction has ended, through the queue of the audit log"),
        DataDir => Differs(
            "one folder for the whole process, the first that a policy names, unless the configuration's `store.folder` \
             says another; without either, collections are kept in memory only. In libmodsecurity all processes that name \
             the folder share what is in it",
        ),
        PcreMatchLimit => Differs(
            "counts the choices that a pattern takes back from one starting position, and only for patterns that need \
             backtracking; 50,000 if it is not given, and 2,000,000 steps for a whole search in any case",
        ),
        PcreMatchLimitRecursion => Differs(
            "bounds the choices that are open at once, and only for patterns that need backtracking; at most 100,000",
        ),
        RequestBodyInMemoryLimit => NoEffect(
            "a body that is inspected is held in memory, up to SecRequestBodyLimit; to bound the memory of all of them \
                 together set `limits.held_bodies` in the configuration",
        ),
        StatusEngine => Differs("nothing is reported to anyone; On gives a warning that says so"),
        TmpDir | TmpSaveUploadedFiles => NoEffect(
            "uploads are inspected in memory, and no temporary file is written; to keep uploads write SecUploadKeepFiles and \
             SecUploadDir, to scan them @inspectFile with the socket of clamd",
        ),
        UploadFileMode => Differs("the bits to execute are left out"),
        UploadKeepFiles => Differs(
            "files are written after the request, whole or not at all, within the limits of `uploads`",
        ),
        RuleInheritance => Differs(
            "scopes are not nested and a policy names all of its rule files, so it changes nothing; Off gives a warning",
        ),
        RemoteRules => Differs(
            "the checksum of the file is required as a third argument, sha256:HEX: an attacker who controls the server \
             cannot change the rules unseen",
        ),
        ServerSignature => {
            Differs("replaces the Server header of upstreams and of our own answers; empty removes it")
        }
        Compatibility => Differs("ours: which ModSecurity's reading counts, see docs/compatibility.md"),
        SecondReadings => Differs("ours: rules also see arguments as other applications read them"),
        ExpansionLimit => Differs(
            "ours: a text that grows beyond 1 MiB, or 16 MiB of them in a transaction, is cut, counted and decided by \
             `failure.pattern_limit`",
        ),
        EventSocket => Differs(
            "ours: sends events to `events.listen` of a Portcullis, from a server that loads our libmodsecurity; the proxy \
             has its own events",
        ),
        SemanticDetector => Differs(
            "ours: runs the semantic detector beside the rules in a server that loads our libmodsecurity; the proxy has a \
             mode for it",
        ),
        GeoLookupDb => Differs("the file is a MaxMind DB (.mmdb); the old .dat format is no longer made"),
        XmlExternalDtd => {
            Differs("ours: a document type without declarations of its own is skipped, not refused")
        }
        XmlExternalEntity => {
            Differs("always Off, and On gives a warning: external entities are an attack of their own")
        }
        RuleScript => vain(
            "Lua scripts are not run",
            "write the check as SecRule, or put the actions in a SecRule of their own",
        ),
        _ => Works,
    }
}

const NO_FILES: Standing = vain(
    "a reverse proxy has no script files",
    "look at REQUEST_FILENAME, or at what the application itself reports in a response header",
);
const NO_TIMES: Standing = vain(
    "a rule cannot act on how long rules take",
    "read the durations from the metrics endpoint; DURATION has the age of the transaction",
);
const ONLY_TEXT: Standing =
    refused("response bodies are not taken apart", "look at RESPONSE_BODY, which has the whole text");

/// Returns the support status of a variable.
#[expect(clippy::wildcard_enum_match_arm, reason = "a word without a row works as in ModSecurity 2")]
pub fn variable(variable: Variable) -> Standing {
    use Variable::*;
    match variable {
        ScriptBasename | ScriptFilename | ScriptGid | ScriptGroupname | ScriptMode | ScriptUid
        | ScriptUsername => NO_FILES,
        PerfAll | PerfCombined | PerfGc | PerfLogging | PerfPhase1 | PerfPhase2 | PerfPhase3 | PerfPhase4
        | PerfPhase5 | PerfRules | PerfSread | PerfSwrite => NO_TIMES,
        AuthType => Differs("the scheme in the Authorization header: nothing here checks the password"),
        RemoteUser => Differs(
            "the user that a Basic or Digest Authorization header names: nothing here checks the password",
        ),
        FilesTmpnames => Differs(
            "the path of a kept upload; of others, which are in no file, a name such as upload-1, by which @inspectFile finds the bytes",
        ),
        Env => Differs(
            "what setenv set in this transaction: the environment of the process is not shown to rules; takes regexes, too",
        ),
        FullRequest => Differs("without the NUL that ModSecurity 2 puts at its end"),
        PathInfo => Differs(
            "the whole path, as in ModSecurity 3: a proxy does not know which part of it names a program",
        ),
        SdbmDeleteError => Differs("always 0: persistent collections are not in SDBM files"),
        MultipartName | MultipartFilename => Differs(
            "one of each part, with its name as key, as in ModSecurity 3; ModSecurity 2 has that of the last part",
        ),
        StatusLine => Differs("with the usual phrase of the status, whatever the upstream wrote"),
        MscPcreError | MscPcreLimitsExceeded => {
            Differs("as in ModSecurity 3: no value until a pattern was given up")
        }
        WebserverErrorLog => vain(
            "what the proxy writes to its own log about a request comes after the rules",
            "look at REQBODY_ERROR_MSG; events name refusals and upstream errors",
        ),
        ReqbodyAmbiguity => {
            Differs("ours: why applications may read the body differently, see docs/seclang.md")
        }
        ArgsPath => refused(
            "it is filled by @restpath, which only Coraza has",
            "use @rx with capture on REQUEST_FILENAME and look at TX:1",
        ),
        Json => refused("only Coraza has it", "look at ARGS, where the values of JSON bodies are"),
        ResponseArgs
        | ResponseXml
        | ResBodyError
        | ResBodyErrorMsg
        | ResBodyProcessor
        | ResBodyProcessorError
        | ResBodyProcessorErrorMsg => ONLY_TEXT,
        Xml => Differs(
            "XPath expressions are location paths from the root with names, `*`, `@a`, `text()`, positions and equality, and unions \
             of them; whatever else is an error when rules are loaded; text and CDATA that touch are one text",
        ),
        RequestUri | RequestFilename | RequestBasename => Differs(
            "from phase 2 on the path has its percent-encoding undone, as under Apache; slashes are not merged and dot \
             segments not resolved, since the upstream gets the path as it came",
        ),
        RemoteHost => Differs("the address: names are not looked up"),
        ModsecBuild => Differs("always 020907900, the build of ModSecurity 2.9.7, whose language this is"),
        _ => Works,
    }
}

/// Returns the support status of an operator.
pub fn operator(operator: OperatorName) -> Standing {
    use OperatorName::*;
    match operator {
        FuzzyHash => vain(
            "similarity hashes are slow, weak and in no rule set",
            "compare exact digests with t:sha1,t:hexEncode and @pmFromFile",
        ),
        ValidateHash => vain(
            "links are not signed here (SecHashEngine), so there is no hash to check",
            "let the application sign its links, or list the allowed ones with @rx or @pmFromFile",
        ),
        ValidateDtd | ValidateSchema => vain(
            "validating against a document type or schema takes unbounded time and loads further documents",
            "check the values that matter with XML:/* and XML://@* targets, or validate in the application",
        ),
        Rsub => Differs(
            "`\\1` in the replacement needs no second backslash, the replacement may be empty, and 10,000 places in a body are \
             replaced at most",
        ),
        GsbLookup => vain(
            "Google ended the local database format it reads",
            "ask a URI block list with @rbl, or list bad host names in a file for @pmFromFile",
        ),
        GeoLookup => {
            Differs("databases are MaxMind's .mmdb; addresses only, names are not resolved; AREA_CODE is 0")
        }
        InspectFile => Differs(
            "instead of starting a program it has clamd scan the upload: @inspectFile clamd:/path/of/socket or \
             clamd:127.0.0.1:3310; the targets are FILES_TMPNAMES and FILES_TMP_CONTENT, without transformations",
        ),
        Rbl => Differs(
            "IPv6 addresses are asked for, too; without an answer in time failure.lookup of the route decides",
        ),
        Rx => Differs(
            "patterns are matched in linear time; those that need backtracking (lookaround, back references, atomic groups) under \
             limits; with recursion, verbs and Unicode classes a rule finds nothing, and a warning says so",
        ),
        RxGlobal => Differs("as in ModSecurity 3; at most 100 captures"),
        VerifySvnr => Differs("as in ModSecurity 3"),
        RestPath => refused("only Coraza has it", "use @rx with capture on REQUEST_FILENAME"),
        PmFromDataset | IpMatchFromDataset => refused(
            "data sets inside rule files are Coraza's",
            "put the words or addresses in a file for @pmFromFile or @ipMatchFromFile",
        ),
        ValidateNid => refused(
            "only Coraza has it",
            "use @verifySSN, @verifyCPF or @verifySVNR, or @rx for the form of the number",
        ),
        BeginsWith | Contains | ContainsWord | DetectSqli | DetectXss | EndsWith | Eq | Ge | Gt | IpMatch
        | IpMatchFromFile | Le | Lt | NoMatch | Pm | PmFromFile | Streq | StrMatch | UnconditionalMatch
        | ValidateByteRange | ValidateUrlEncoding | ValidateUtf8Encoding | VerifyCc | VerifyCpf
        | VerifySsn | Within => Works,
    }
}

/// Returns the support status of an action.
pub fn action(action: ActionName) -> Standing {
    use ActionName::*;
    match action {
        Exec => vain(
            "a rule may not start programs",
            "let a program read the events: every match is written to the event file and the error log",
        ),
        SetEnv => Differs("sets ENV of this transaction only: neither the process nor an upstream sees it"),
        Marker => vain("marker is not an action of rules", "write SecMarker NAME on a line of its own"),
        Pause => Differs(
            "it delays whatever else the rule does, for `limits.pause` at most, and the rules after it still run; ModSecurity 2 \
             lets the transaction pass where `pause` is the last disruptive action, and does not wait where it is not",
        ),
        Proxy => Differs(
            "the server must be an endpoint of an upstream in the configuration; macros may make its path, not its host",
        ),
        Accuracy
        | Allow
        | Append
        | AuditLog
        | Block
        | Capture
        | Chain
        | Ctl
        | Deny
        | DeprecateVar
        | Drop
        | ExpireVar
        | Id
        | InitCol
        | Log
        | LogData
        | Maturity
        | Msg
        | MultiMatch
        | NoAuditLog
        | NoLog
        | Pass
        | Phase
        | Prepend
        | Redirect
        | Rev
        | SanitiseArg
        | SanitiseMatched
        | SanitiseMatchedBytes
        | SanitiseRequestHeader
        | SanitiseResponseHeader
        | SetRsc
        | SetSid
        | SetUid
        | SetVar
        | Severity
        | Skip
        | SkipAfter
        | Status
        | T
        | Tag
        | Ver
        | Xmlns => Works,
    }
}

/// Returns the support status of an option of `ctl:`.
pub fn ctl(option: CtlOption) -> Standing {
    use CtlOption::*;
    match option {
        HashEngine | HashEnforcement => {
            vain("links are not signed here (SecHashEngine)", "remove it; other rules do not depend on it")
        }
        ResponseBodyProcessor | ForceResponseBodyVariable => refused(
            "only Coraza has it: response bodies are not taken apart here",
            "remove it; RESPONSE_BODY has the text of every body that is inspected",
        ),
        RateLimit => {
            Differs("ours: in phases 1 and 2; the limit has `rule` in its key, see docs/configuration.md")
        }
        AuditEngine
        | AuditLogParts
        | DebugLogLevel
        | ForceRequestBodyVariable
        | ParseXmlIntoArgs
        | RequestBodyAccess
        | RequestBodyLimit
        | RequestBodyProcessor
        | ResponseBodyAccess
        | ResponseBodyLimit
        | RuleEngine
        | RuleRemoveById
        | RuleRemoveByMsg
        | RuleRemoveByTag
        | RuleRemoveTargetById
        | RuleRemoveTargetByMsg
        | RuleRemoveTargetByTag => Works,
    }
}

/// Returns the support status of a transformation.
pub fn transformation(_: Transformation) -> Standing {
    Works
}
