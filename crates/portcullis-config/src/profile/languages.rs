//! Languages of the texts that a field may carry because the application stores, shows or runs them.
//!
//! A program mixes strings, names and operators as it likes, so that no list of kinds of findings is
//! complete for a field of programs. A language opens the field for the classes of findings that any text in
//! it may have, and for the rules of the CRS of the same subject. What no text in a language is stays:
//! lookups of log4j, serialised objects, addresses that hand out a cloud's credentials.

use portcullis_types::Class;

/// A language, and what stops texts in it.
#[derive(Debug)]
pub(super) struct Language {
    /// The name in `carries`.
    pub name: &'static str,
    /// Classes of findings.
    pub classes: &'static [Class],
    /// Ids of rules of the CRS 4 of the same subject, of all paranoia levels; none that finds lookups of
    /// log4j, serialised objects, class loaders, Shellshock or services of clouds.
    pub rules: &'static [&'static [u32]],
}

/// All languages, by name.
pub(super) const LANGUAGES: [Language; 5] = [
    Language { name: "markup", classes: &[Class::Xss, Class::Ssi], rules: &[XSS] },
    Language {
        name: "program",
        classes: &[Class::Code, Class::Command, Class::Path],
        rules: &[FILES, COMMANDS, PHP, PROGRAMS, JAVA],
    },
    Language { name: "shell", classes: &[Class::Command, Class::Path], rules: &[FILES, COMMANDS] },
    Language { name: "sql", classes: &[Class::Sqli], rules: &[SQL] },
    Language { name: "templates", classes: &[Class::Template], rules: &[TEMPLATES] },
];

/// The language of this name.
pub(super) fn language(name: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.name == name)
}

/// REQUEST-930: traversal and names of files.
const FILES: &[u32] = &[930100, 930110, 930120, 930121, 930130];
/// REQUEST-932: commands.
const COMMANDS: &[u32] = &[
    932120, 932125, 932130, 932131, 932140, 932160, 932161, 932175, 932190, 932200, 932205, 932206, 932207,
    932210, 932220, 932230, 932231, 932232, 932235, 932236, 932237, 932238, 932239, 932240, 932250, 932260,
    932270, 932271, 932280, 932281, 932300, 932301, 932310, 932311, 932320, 932321, 932330, 932331, 932340,
    932350, 932370, 932371, 932380, 932390,
];
/// REQUEST-933: PHP.
const PHP: &[u32] = &[
    933100, 933110, 933111, 933120, 933130, 933131, 933135, 933140, 933150, 933151, 933152, 933153, 933160,
    933161, 933180, 933190, 933200, 933210, 933211, 933220,
];
/// REQUEST-934: programs of Node.js, Perl and Ruby.
const PROGRAMS: &[u32] = &[934100, 934101, 934140, 934150, 934160, 934170];
/// REQUEST-934 and 941: expressions of templates.
const TEMPLATES: &[u32] = &[934180, 941380];
/// REQUEST-944: classes and methods of Java.
const JAVA: &[u32] = &[944100, 944110, 944130, 944250];
/// REQUEST-941: markup and scripts.
const XSS: &[u32] = &[
    941100, 941101, 941110, 941120, 941130, 941140, 941150, 941160, 941170, 941180, 941181, 941190, 941200,
    941210, 941220, 941230, 941240, 941250, 941260, 941270, 941280, 941290, 941300, 941310, 941320, 941330,
    941340, 941350, 941360, 941370, 941380, 941390, 941400,
];
/// REQUEST-942: SQL.
const SQL: &[u32] = &[
    942100, 942101, 942120, 942130, 942131, 942140, 942150, 942151, 942152, 942160, 942170, 942180, 942190,
    942200, 942210, 942220, 942230, 942240, 942250, 942251, 942260, 942270, 942280, 942290, 942300, 942310,
    942320, 942321, 942330, 942340, 942350, 942360, 942361, 942362, 942370, 942380, 942390, 942400, 942410,
    942420, 942421, 942430, 942431, 942432, 942440, 942450, 942460, 942470, 942480, 942490, 942500, 942510,
    942511, 942520, 942521, 942522, 942530, 942540, 942550, 942560,
];
