//! The words that rule sets and requests are made of. A new word of the language is a line here.

use portcullis_decode::Transformation;
#[cfg(test)]
use portcullis_seclang::operators::OperatorName;
#[cfg(test)]
use portcullis_types::Variable;

pub(crate) const TARGETS: &[&str] = &[
    "ARGS",
    "ARGS",
    "ARGS",
    "ARGS:a",
    "ARGS:/^[ab]/",
    "ARGS:b",
    "ARGS_NAMES",
    "ARGS_NAMES:a",
    "ARGS_GET",
    "ARGS_GET:a",
    "ARGS_GET_NAMES",
    "ARGS_POST",
    "ARGS_POST:a",
    "ARGS_POST_NAMES",
    "ARGS_COMBINED_SIZE",
    "REQUEST_HEADERS:x-a",
    "REQUEST_HEADERS:/^x-/",
    "REQUEST_HEADERS:User-Agent",
    "REQUEST_HEADERS:Content-Type",
    "REQUEST_HEADERS_NAMES",
    "REQUEST_HEADERS",
    "REQUEST_COOKIES",
    "REQUEST_COOKIES:a",
    "REQUEST_COOKIES:/a/",
    "REQUEST_COOKIES_NAMES",
    "REQUEST_URI",
    "REQUEST_URI_RAW",
    "REQUEST_FILENAME",
    "REQUEST_BASENAME",
    "REQUEST_LINE",
    "REQUEST_METHOD",
    "REQUEST_PROTOCOL",
    "QUERY_STRING",
    "REQUEST_BODY",
    "REQUEST_BODY_LENGTH",
    "REQBODY_PROCESSOR",
    "REQBODY_ERROR",
    "REMOTE_ADDR",
    "SERVER_NAME",
    "TX:n",
    "TX:s",
    "TX:1",
    "TX:0",
    "TX:10",
    "TX:/^k_/",
    "TX:spelled",
    "MATCHED_VAR",
    "MATCHED_VAR_NAME",
    "MATCHED_VARS",
    "MATCHED_VARS_NAMES",
    "HIGHEST_SEVERITY",
    "FILES",
    "FILES_NAMES",
    "FILES_SIZES",
    "FILES_COMBINED_SIZE",
    "XML:/*",
    "XML://@*",
    "MULTIPART_STRICT_ERROR",
    "MULTIPART_UNMATCHED_BOUNDARY",
    "MULTIPART_PART_HEADERS",
    "URLENCODED_ERROR",
    "RULE:id",
    "RULE:msg",
    "RULE:logdata",
    "MULTIPART_NAME",
    "MULTIPART_FILENAME",
    "MULTIPART_BOUNDARY_QUOTED",
    "MULTIPART_BOUNDARY_WHITESPACE",
    "MULTIPART_CRLF_LF_LINES",
    "MULTIPART_DATA_AFTER",
    "MULTIPART_DATA_BEFORE",
    "MULTIPART_FILE_LIMIT_EXCEEDED",
    "MULTIPART_HEADER_FOLDING",
    "MULTIPART_INVALID_HEADER_FOLDING",
    "MULTIPART_INVALID_PART",
    "MULTIPART_INVALID_QUOTING",
    "MULTIPART_LF_LINE",
    "MULTIPART_MISSING_SEMICOLON",
];

/// In rule sets that open collections.
pub(crate) const COLLECTION_TARGETS: &[&str] = &[
    "IP:n",
    "IP:N",
    "IP:s",
    "IP:/^n/",
    "IP:k_1",
    "IP:IS_NEW",
    "IP:UPDATE_COUNTER",
    "IP:TIMEOUT",
    "GLOBAL:n",
    "GLOBAL:/^m/",
    "SESSION:n",
];

pub(crate) const COLLECTION_ACTS: &[&str] = &[
    "setvar:ip.n=+1",
    "setvar:ip.n=-2",
    "setvar:ip.n=7",
    "setvar:'ip.s=%{MATCHED_VAR}'",
    "setvar:!ip.n",
    "setvar:!ip.s",
    "setvar:'ip.k_%{tx.n}=%{ip.n}'",
    "setvar:global.n=%{ip.n}",
    "setvar:global.m=+%{global.n}",
    "setvar:session.n=+1",
    "setvar:tx.n=+%{ip.n}",
    "setvar:'tx.p=%{ip.s}/%{global.n}/%{IP.N}'",
    "setvar:ip.TIMEOUT=60",
    "expirevar:ip.s=0",
    "expirevar:ip.s=-5",
    "deprecatevar:ip.n=1/60",
    "initcol:global=%{UNIQUE_ID}",
    "initcol:global=Kx_%{UNIQUE_ID}_Yy",
];

/// Beside `/*` and `//@*`.
pub(crate) const XPATHS: &[&str] = &[
    "/a",
    "/a/b",
    "/a/*",
    "//b",
    "//b/text()",
    "/a/@b",
    "//@c",
    "/a/b[1]",
    "/a/b[last()]",
    "/a/*[2]",
    "//*[@c]",
    "//*[@c='1']",
    "/a/b[position()=2]",
    "'//d|//b'",
    "//d[.='union']",
    "/a[b='ab']/d",
    "//p:b",
    "//p:*/@c",
    "//*[local-name()='b']",
    "//*[local-name()='b']/@c",
    "/q",
];

pub(crate) const RESPONSE_TARGETS: &[&str] = &[
    "RESPONSE_STATUS",
    "RESPONSE_HEADERS:Content-Type",
    "RESPONSE_HEADERS:x-r",
    "RESPONSE_HEADERS:/^x-/",
    "RESPONSE_BODY",
    "RESPONSE_BODY",
    "RESPONSE_CONTENT_TYPE",
    "RESPONSE_CONTENT_LENGTH",
    "RESPONSE_PROTOCOL",
    "STATUS_LINE",
];

pub(crate) const EXCLUSIONS: &[&str] = &[
    "ARGS:a",
    "REQUEST_HEADERS:Host",
    "REQUEST_COOKIES",
    "ARGS:/b/",
    "ARGS_NAMES:b",
    "REQUEST_HEADERS:x-a",
    "ARGS",
    "XML://@*",
    "XML:/a/b",
];

pub(crate) const WORDS: &[&str] = &[
    "a", "b", "ab", "1", "22", "x y", "Sel", "union", "../", "%41", "0", "", "AB", "aB cd", "a,b", "<a",
    "-1", "007",
];

/// Values with a form that some transformation or operator looks for.
pub(crate) const VALUES: &[&str] = &[
    "%253Cscript%253E",
    "%u0061%u0062",
    "%3cscript%3ealert(1)%3c/script%3e",
    "1'%20or%20'1'='1",
    "YWI=",
    "YWI",
    "6162",
    "a%00b",
    "%c0%af",
    "%e4%bd%a0",
    "%f4%90%80%80",
    "%ff%fe",
    "/a/./b/../c//d",
    "a%2f%2e%2e%2fb",
    "c:%5cwin%5c..%5cx",
    "a/**/b",
    "a--%20b",
    "a%23b%0ac",
    "/*%20a%20*/b",
    "%26lt%3bb%26%2397%3b%26%23x62%3b",
    "%5cx61%5c142%5cn",
    "%5c61%20b",
    "%5cu0061",
    "0x6162",
    "a%20%09%0a%0d%0b%0c%a0b",
    "%20a%20",
    "a^b,c%3bd",
    "un%20ion%20sel/**/ect",
    "a%",
    "%zz",
    "%4",
    "+a+",
    "a%2bb",
    "javascript:alert(1)",
    "192.168.0.1",
    "10.0.0.300",
    "4111111111111111",
    "99999999999",
    "-5",
    "+3",
    "1e3",
    " 7",
];

pub(crate) const OPERATORS: &[&str] = &[
    "@rx a",
    "@rx (?i)^(s)el|(u)n",
    "@rx ^.*$",
    "@rx (a)(b)?",
    "@rx \\d+",
    "@rx ^$",
    "@rx [^a-z]",
    "@rx (?:^|/)b",
    "@rx b$",
    "@rx (x)?(y)?(b)",
    "@rx \\1(a)",
    "@rx (?:\\2b|(a)(b))+",
    "@rx (?i)^(.)?(.)?(.)?(.)?(.)?(.)?(.)?(.)?(.)?(.)?(.)?",
    "@rx ^(a|%{tx.s}).*$",
    "@rx ^%{ARGS.a}$",
    "@rx %{tx.s}",
    "@pm union ab",
    "@pm a b script",
    "@contains a",
    "@contains %{tx.s}",
    "@containsWord ab",
    "@within ab 22 %{tx.s}",
    "@within GET POST HEAD",
    "@streq ab",
    "@streq %{MATCHED_VAR}",
    "@strmatch ab",
    "@beginsWith a",
    "@beginsWith %{tx.s}",
    "@endsWith b",
    "@endsWith %{tx.s}",
    "@eq 1",
    "@eq %{tx.n}",
    "@ge %{tx.n}",
    "@gt 0",
    "@lt 22",
    "@le 0",
    "@eq 0",
    "@gt %{ARGS.a}",
    "@detectSQLi",
    "@detectXSS",
    "@validateByteRange 32-96",
    "@validateByteRange 10,13,32-126",
    "@validateByteRange 1-255",
    "@validateByteRange x,48-57",
    "@validateByteRange",
    "@validateUrlEncoding",
    "@validateUtf8Encoding",
    "@ipMatch 127.0.0.0/8",
    "@ipMatch 10.0.0.0/8,127.0.0.1,::1",
    "@unconditionalMatch",
    "@noMatch",
];

/// Transformations that one of the two ModSecuritys refuses, and with them a rule set.
pub(crate) const IN_ONE_ONLY: &[Transformation] = &[Transformation::Uppercase];

pub(crate) const DISRUPTIVE: &[&str] = &[
    "pass",
    "pass",
    "pass",
    "pass",
    "pass",
    "pass",
    "pass",
    "pass",
    "block",
    "block",
    "deny",
    "deny,status:406",
    "deny,status:501",
    "drop",
    "allow",
    "allow:phase",
    "allow:request",
    "redirect:http://h/%{tx.s}",
    "redirect:http://h/,status:307",
];

pub(crate) const MACROS: &[&str] = &[
    "MATCHED_VAR",
    "MATCHED_VAR_NAME",
    "tx.s",
    "tx.0",
    "ARGS.a",
    "REQUEST_METHOD",
    "rule.id",
    "rule.msg",
    "rule.logdata",
];

pub(crate) const ACTS: &[&str] = &[
    "setvar:tx.n=+1",
    "setvar:tx.n=-2",
    "setvar:tx.n=%{tx.m}",
    "setvar:tx.m=+%{tx.n}",
    "setvar:'tx.s=%{MATCHED_VAR}'",
    "setvar:!tx.s",
    "setvar:'tx.k_%{MATCHED_VAR_NAME}=+1'",
    "setvar:'tx.c=%{tx.1}-%{tx.2}'",
    "setvar:tx.flag",
    "setvar:'tx.u=%{REQUEST_METHOD} %{ARGS.a} %{rule.id}'",
    "setvar:'tx.r=%{rule.msg}/%{rule.logdata}'",
    "setvar:tx.Spelled=1",
    "setvar:'tx.Spelled=%{tx.spelled}+'",
    "setvar:'tx.v=%{MATCHED_VAR_NAME}'",
    "setvar:tx.n=+-1",
    "setvar:tx.z=-%{tx.n}",
    "setvar:'tx.w=%{REQUEST_HEADERS.x-a}/%{REQUEST_COOKIES.a}/%{TX.s}'",
    "setvar:tx.d_%{tx.n}=%{tx.s}",
    "setvar:'tx.y=%{REQUEST_HEADERS:x-a}/%{TX:s}'",
    "capture",
    "capture",
    "multiMatch",
    "nolog",
    "noauditlog",
    "log",
];

/// Operators that are not drawn: those of files, databases and services outside, those that only one of the
/// engines knows, and what none carries out.
#[cfg(test)]
const NOT_DRAWN: &[OperatorName] = &[
    OperatorName::FuzzyHash,
    OperatorName::GeoLookup,
    OperatorName::GsbLookup,
    OperatorName::InspectFile,
    OperatorName::IpMatchFromDataset,
    OperatorName::IpMatchFromFile,
    OperatorName::PmFromDataset,
    OperatorName::PmFromFile,
    OperatorName::Rbl,
    OperatorName::RestPath,
    OperatorName::Rsub,
    OperatorName::RxGlobal,
    OperatorName::ValidateDtd,
    OperatorName::ValidateHash,
    OperatorName::ValidateNid,
    OperatorName::ValidateSchema,
    OperatorName::VerifyCc,
    OperatorName::VerifyCpf,
    OperatorName::VerifySsn,
    OperatorName::VerifySvnr,
];

/// Variables that are not drawn.
#[cfg(test)]
const VARIABLES_NOT_DRAWN: &[Variable] = &[
    // Other values for each engine or request: clocks, connections, records, files.
    Variable::Duration,
    Variable::Env,
    Variable::FilesTmpContent,
    Variable::FilesTmpnames,
    Variable::ModsecBuild,
    Variable::RemotePort,
    Variable::ServerAddr,
    Variable::ServerPort,
    Variable::Sessionid,
    Variable::Time,
    Variable::TimeDay,
    Variable::TimeEpoch,
    Variable::TimeHour,
    Variable::TimeMin,
    Variable::TimeMon,
    Variable::TimeSec,
    Variable::TimeWday,
    Variable::TimeYear,
    Variable::UniqueId,
    Variable::Userid,
    // Texts in each engine's own words.
    Variable::MscPcreError,
    Variable::MscPcreLimitsExceeded,
    Variable::ReqbodyErrorMsg,
    Variable::ReqbodyProcessorErrorMsg,
    // The server's, not the module's.
    Variable::AuthType,
    Variable::FullRequest,
    Variable::FullRequestLength,
    Variable::Geo,
    Variable::PathInfo,
    Variable::RemoteHost,
    Variable::RemoteUser,
    Variable::ResponseHeadersNames,
    Variable::UseragentIp,
    Variable::Webappid,
    // Of a body over its limit: the plain evaluator knows none, and Apache's own error page may be over it.
    Variable::InboundDataError,
    Variable::OutboundDataError,
    // As `IP`, `GLOBAL` and `SESSION`.
    Variable::Resource,
    Variable::User,
    // Another name of `REQBODY_ERROR`.
    Variable::ReqbodyProcessorError,
    // Of streams, which need directives of their own.
    Variable::StreamInputBody,
    Variable::StreamOutputBody,
    // Not in both ModSecuritys.
    Variable::ArgsPath,
    Variable::Json,
    Variable::MultipartCrlfLine,
    Variable::ReqbodyAmbiguity,
    Variable::ResBodyError,
    Variable::ResBodyErrorMsg,
    Variable::ResBodyProcessor,
    Variable::ResBodyProcessorError,
    Variable::ResBodyProcessorErrorMsg,
    Variable::ResponseArgs,
    Variable::ResponseXml,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_drawn() {
        // Without a value for us (`docs/seclang-reference.md`).
        let valueless = ["PERF_", "SCRIPT_", "SDBM_", "WEBSERVER_"];
        for &variable in Variable::ALL {
            let name = variable.name();
            let is_such = |target: &&&str| target.split(':').next() == Some(name);
            let lists = [TARGETS, RESPONSE_TARGETS, COLLECTION_TARGETS];
            let is_drawn = lists.iter().any(|list| list.iter().any(|target| is_such(&target)));
            let is_left_out = VARIABLES_NOT_DRAWN.contains(&variable)
                || valueless.iter().any(|start| name.starts_with(start));
            assert_ne!(is_drawn, is_left_out, "{name}");
        }
    }

    #[test]
    fn every_operator_is_drawn() {
        // Drawn with a word for an argument.
        let with_words = ["contains", "streq", "beginsWith", "endsWith", "within", "containsWord"];
        for &operator in OperatorName::ALL {
            let name = operator.name();
            let is_drawn = with_words.contains(&name)
                || OPERATORS.iter().any(|text| text[1..].split(' ').next() == Some(name));
            assert_ne!(is_drawn, NOT_DRAWN.contains(&operator), "@{name}");
        }
    }
}
