//! Operators with their arguments compiled.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_engine::{GeoDb, Number, NumberKind, Operator, Part, Pattern, Rbl, Scanner, Template};
use portcullis_match::{
    IpSet, Pcre, RegexFlags, WordSet, parse_byte_range, parse_pm_words, parse_text, parse_word_file,
};
use portcullis_seclang::operators::{OperatorName, leading_number};
use portcullis_seclang::standing::{self, Standing};
use portcullis_seclang::{Files, ast};
use portcullis_types::ByteSet;

use crate::names::Names;
use crate::patterns::Patterns;
use crate::rsub;
use crate::template::template;

/// Message and hint.
pub(crate) type OperatorError = (String, Option<String>);

/// Compiles operators; word files are read once for all rules that name them.
pub(crate) struct Operators<'a> {
    files: &'a dyn Files,
    words: HashMap<Vec<PathBuf>, Arc<WordSet>>,
    patterns: &'a Patterns,
    /// `^` and `$` match at line ends, too, as in libmodsecurity.
    multi_line: bool,
    /// `SecHttpBlKey`.
    pub(crate) http_bl_key: Option<String>,
    /// `SecGeoLookupDb`.
    pub(crate) geo: Option<Arc<GeoDb>>,
    /// Warnings for operators that ModSecurity 2 loads though they cannot match; they are loaded as operators
    /// that find nothing.
    warnings: Vec<OperatorError>,
    /// The operator compiled last is one that ModSecurity 2 can carry out and this engine cannot.
    vain: bool,
}

impl<'a> Operators<'a> {
    pub(crate) fn new(files: &'a dyn Files, patterns: &'a Patterns, multi_line: bool) -> Self {
        Operators {
            files,
            words: HashMap::new(),
            patterns,
            multi_line,
            http_bl_key: None,
            geo: None,
            warnings: vec![],
            vain: false,
        }
    }

    /// Returns the warnings about operators compiled since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<OperatorError> {
        std::mem::take(&mut self.warnings)
    }

    /// True, once, if the last operator is one that this engine cannot carry out: neither it nor its negation
    /// matches.
    pub(crate) fn take_never_matches(&mut self) -> bool {
        std::mem::take(&mut self.vain)
    }

    /// As [`Operators::never_matches`], for what ModSecurity 2 carries out.
    fn unable(&mut self, (why, hint): OperatorError) -> Operator {
        self.vain = true;
        self.warnings.push((format!("{why}: it finds nothing"), hint));
        Operator::NoMatch
    }

    /// A pattern that PCRE takes and this engine does not finds nothing.
    fn searched(&mut self, made: Result<Operator, PatternError>) -> Result<Operator, OperatorError> {
        match made {
            Ok(operator) => Ok(operator),
            Err(PatternError { told, is_valid_pcre: true }) => Ok(self.unable(told)),
            Err(PatternError { told, .. }) => Err(told),
        }
    }

    /// A pattern with macros, of which ModSecurity 2 escapes all.
    fn tell_of_escapes(&mut self, template: &Template) {
        let escaped = template.parts.iter().find_map(|part| {
            if let Part::Literal(text) = part {
                text.iter().copied().find(|byte| br#"+.?/:()[]\""#.contains(byte))
            } else {
                None
            }
        });
        if let Some(byte) = escaped.filter(|byte| !self.multi_line && !b"/:\"".contains(byte)) {
            let why = format!(
                "@rx: in a pattern with macros {} stands for itself, as in ModSecurity 2",
                char::from(byte)
            );
            let hint = "write the pattern without macros, or set SecCompatibility ModSecurity3";
            self.warnings.push((why, Some(hint.to_owned())));
        }
    }

    /// An operator that never matches, with the reason told.
    fn never_matches(&mut self, why: String, hint: &str) -> Operator {
        self.warnings.push((format!("{why}: it finds nothing"), Some(hint.to_owned())));
        Operator::NoMatch
    }

    /// `folder`: where data files are looked for, the folder of the rule file.
    pub(crate) fn compile(
        &mut self,
        operator: &ast::Operator,
        folder: &Path,
        names: &mut Names,
    ) -> Result<Operator, OperatorError> {
        let argument = operator.argument.as_slice();
        self.vain = false;
        let mut text = |make: fn(Template) -> Operator| Ok(make(template(argument, names)));
        match operator.name {
            OperatorName::Rx => {
                let made = pattern(self.patterns, argument, self.multi_line, names);
                if let Ok(Pattern::Computed(template)) = &made {
                    self.tell_of_escapes(template);
                }
                self.searched(made.map(Operator::Rx))
            }
            OperatorName::RxGlobal => {
                let made = pattern(self.patterns, argument, self.multi_line, names).map(Operator::RxGlobal);
                self.searched(made)
            }
            OperatorName::VerifyCc => self.number_pattern(NumberKind::Card, argument),
            OperatorName::VerifySsn => self.number_pattern(NumberKind::Ssn, argument),
            OperatorName::VerifyCpf => self.number_pattern(NumberKind::Cpf, argument),
            OperatorName::VerifySvnr => self.number_pattern(NumberKind::Svnr, argument),
            OperatorName::Pm => Ok(Operator::Pm(word_set(self.patterns, parse_pm_words(argument), "@pm")?)),
            OperatorName::PmFromFile => self.word_files(argument, folder),
            OperatorName::Contains => text(Operator::Contains),
            OperatorName::ContainsWord => text(Operator::ContainsWord),
            OperatorName::Within => text(Operator::Within),
            OperatorName::Rsub if operator.negated => Ok(Operator::UnconditionalMatch),
            OperatorName::Rsub => match rsub::parse(argument, names) {
                Ok(found) => Ok(Operator::Rsub(Box::new(found))),
                Err(told) => Ok(self.unable(told)),
            },
            OperatorName::Streq => text(Operator::StrEq),
            // Without macros, with the escapes of @pm (msre_op_strmatch_param_init).
            OperatorName::StrMatch => Ok(Operator::StrMatch(Template::literal(&parse_text(argument)))),
            OperatorName::BeginsWith => text(Operator::BeginsWith),
            OperatorName::EndsWith => text(Operator::EndsWith),
            OperatorName::Eq => Ok(Operator::Eq(number(argument, names))),
            OperatorName::Ge => Ok(Operator::Ge(number(argument, names))),
            OperatorName::Gt => Ok(Operator::Gt(number(argument, names))),
            OperatorName::Le => Ok(Operator::Le(number(argument, names))),
            OperatorName::Lt => Ok(Operator::Lt(number(argument, names))),
            // The parser has told.
            OperatorName::IpMatch if argument.is_empty() => Ok(Operator::NoMatch),
            OperatorName::IpMatch => ip_set(argument),
            OperatorName::IpMatchFromFile => {
                let text = self.read(argument, folder)?;
                let lines: Vec<_> = parse_word_file(&text);
                if lines.is_empty() {
                    let why = format!("{} has no addresses", String::from_utf8_lossy(argument));
                    return Ok(self.never_matches(why, "add one to the file, or remove the rule"));
                }
                ip_set(&lines.join(b",".as_slice()))
            }
            OperatorName::DetectSqli => Ok(Operator::DetectSqli),
            OperatorName::DetectXss => Ok(Operator::DetectXss),
            OperatorName::ValidateByteRange => match parse_byte_range(&String::from_utf8_lossy(argument)) {
                Ok(range) => Ok(Operator::ValidateByteRange(range)),
                Err(error) => match byte_range_of_words(argument) {
                    Some(range) => {
                        let why = format!("@validateByteRange: {error}; it counts as 0");
                        self.warnings.push((why, Some("write byte codes from 0 to 255".to_owned())));
                        Ok(Operator::ValidateByteRange(range))
                    }
                    None => Err((format!("@validateByteRange: {error}"), None)),
                },
            },
            OperatorName::ValidateUrlEncoding => Ok(Operator::ValidateUrlEncoding),
            OperatorName::ValidateUtf8Encoding => Ok(Operator::ValidateUtf8Encoding),
            OperatorName::UnconditionalMatch => Ok(Operator::UnconditionalMatch),
            OperatorName::NoMatch => Ok(Operator::NoMatch),
            OperatorName::Rbl => self.block_list(argument),
            OperatorName::GeoLookup => match &self.geo {
                Some(database) => Ok(Operator::GeoLookup(Arc::clone(database))),
                None => Ok(self.never_matches(
                    "@geoLookup has no database".to_owned(),
                    "name an .mmdb file with SecGeoLookupDb",
                )),
            },
            OperatorName::InspectFile => match scanner(argument) {
                Ok(scanner) => Ok(scanner),
                // A place of clamd is our word, so a wrong one is an error.
                Err(told) if argument.trim_ascii().starts_with(b"clamd:") => Err(told),
                Err(told) => Ok(self.unable(told)),
            },
            other @ (OperatorName::FuzzyHash
            | OperatorName::GsbLookup
            | OperatorName::IpMatchFromDataset
            | OperatorName::PmFromDataset
            | OperatorName::RestPath
            | OperatorName::ValidateDtd
            | OperatorName::ValidateHash
            | OperatorName::ValidateNid
            | OperatorName::ValidateSchema) => {
                if let Standing::Vain(refusal) = standing::operator(other) {
                    let why = format!("{other} is not carried out: {}", refusal.why);
                    Ok(self.unable((why, Some(refusal.instead.to_owned()))))
                } else {
                    Err(refusal(other))
                }
            }
        }
    }

    /// Payment card and other numbers; `^` and `$` match at every newline (`msre_op_verifyCC_init`).
    fn number_pattern(&mut self, kind: NumberKind, argument: &[u8]) -> Result<Operator, OperatorError> {
        let flags = RegexFlags { multi_line: true, ..RegexFlags::default() };
        let made = compile(self.patterns, argument, flags).map(|regex| Operator::Verify(kind, regex));
        self.searched(made)
    }

    fn block_list(&mut self, argument: &[u8]) -> Result<Operator, OperatorError> {
        let zone = String::from_utf8_lossy(argument);
        if zone.trim().is_empty() {
            return Ok(
                self.never_matches("@rbl has no zone".to_owned(), "write the zone of a DNS block list")
            );
        }
        if self.http_bl_key.is_none()
            && Rbl::new(&zone, Some("key")).is_ok()
            && Rbl::new(&zone, None).is_err()
        {
            let why = format!("@rbl: {zone} takes an access key");
            return Ok(self.never_matches(why, "set SecHttpBlKey"));
        }
        match Rbl::new(&zone, self.http_bl_key.as_deref()) {
            Ok(list) => Ok(Operator::Rbl(Arc::new(list))),
            Err(why) => Ok(self.unable((
                format!("@rbl: {why}"),
                Some("write the zone of a DNS block list; it takes no macros".to_owned()),
            ))),
        }
    }

    fn word_files(&mut self, argument: &[u8], folder: &Path) -> Result<Operator, OperatorError> {
        let names: Vec<&[u8]> =
            argument.split(|b| b.is_ascii_whitespace()).filter(|name| !name.is_empty()).collect();
        let paths: Vec<PathBuf> =
            names.iter().map(|name| folder.join(&*String::from_utf8_lossy(name))).collect();
        if let Some(known) = self.words.get(&paths) {
            return Ok(Operator::Pm(Arc::clone(known)));
        }
        let mut words = Vec::new();
        for name in names {
            words.extend(parse_word_file(&self.read(name, folder)?));
        }
        if words.is_empty() {
            let why = format!("{} has no words", String::from_utf8_lossy(argument));
            return Ok(self.never_matches(why, "add one to the file, or remove the rule"));
        }
        let set = word_set(self.patterns, words, "@pmFromFile")?;
        self.words.insert(paths, Arc::clone(&set));
        Ok(Operator::Pm(set))
    }

    fn read(&self, name: &[u8], folder: &Path) -> Result<Vec<u8>, OperatorError> {
        let path = folder.join(&*String::from_utf8_lossy(name.trim_ascii()));
        self.files.read(&path).map_err(|error| {
            (
                format!("cannot read {}: {error}", path.display()),
                Some("data files are looked for beside the rule file that names them".to_owned()),
            )
        })
    }
}

/// The bytes of an argument of `@validateByteRange` in which words count as 0
/// (`msre_op_validateByteRange_init` reads them with `atoi`).
fn byte_range_of_words(argument: &[u8]) -> Option<ByteSet> {
    let code = |text: &[u8]| u8::try_from(leading_number(text.trim_ascii_start())).ok();
    let mut set = ByteSet::EMPTY;
    for item in argument.split(|&b| b == b',').filter(|item| !item.trim_ascii().is_empty()) {
        let (low, high) = match item.iter().position(|&b| b == b'-') {
            None => (code(item)?, code(item)?),
            Some(0) => return None,
            Some(at) => (code(&item[..at])?, code(&item[at + 1..])?),
        };
        if low > high {
            return None;
        }
        set = set.union(ByteSet::range(low, high));
    }
    Some(set)
}

fn refusal(name: OperatorName) -> OperatorError {
    if let Standing::Refused(refusal) = standing::operator(name) {
        (format!("{name} is refused: {}", refusal.why), Some(refusal.instead.to_owned()))
    } else {
        (format!("{name} is not supported by this version"), None)
    }
}

/// The reason why a pattern is not compiled.
struct PatternError {
    told: OperatorError,
    is_valid_pcre: bool,
}

/// A pattern; with macros in it, a template of one (`msre_op_rx_param_init`).
fn pattern(
    patterns: &Patterns,
    argument: &[u8],
    multi_line: bool,
    names: &mut Names,
) -> Result<Pattern, PatternError> {
    if argument.windows(2).any(|pair| pair == b"%{") {
        let template = template(argument, names);
        // One whose macros stand for nothing is a pattern with macros all the same.
        if template.as_literal() != Some(argument) {
            return Ok(Pattern::Computed(template));
        }
    }
    compile(patterns, argument, RegexFlags { multi_line, ..RegexFlags::default() }).map(Pattern::Fixed)
}

fn compile(patterns: &Patterns, argument: &[u8], flags: RegexFlags) -> Result<Arc<Pcre>, PatternError> {
    patterns.regex(argument, flags).map_err(|error| {
        let is_valid_pcre = error.is_valid_pcre;
        PatternError { told: (format!("@rx: {error}"), None), is_valid_pcre }
    })
}

fn scanner(argument: &[u8]) -> Result<Operator, OperatorError> {
    let text = String::from_utf8_lossy(argument);
    match Scanner::parse(&text) {
        Some(scanner) => Ok(Operator::InspectFile(Arc::new(scanner))),
        None if text.trim().starts_with("clamd:") => Err((
            format!("@inspectFile: {text:?} is no place of a clamd socket"),
            Some("write clamd:/path/of/clamd.sock or clamd:127.0.0.1:3310, an address and a port".to_owned()),
        )),
        None => Err((
            format!("@inspectFile {text}: a rule may not start programs or scripts"),
            Some(
                "have clamd look at the file: @inspectFile clamd:/path/of/clamd.sock or clamd:127.0.0.1:3310"
                    .to_owned(),
            ),
        )),
    }
}

fn word_set(patterns: &Patterns, words: Vec<Vec<u8>>, operator: &str) -> Result<Arc<WordSet>, OperatorError> {
    if words.is_empty() {
        return Err((format!("{operator} has no words to look for"), None));
    }
    patterns.words(words).map_err(|error| (format!("{operator}: {error}"), None))
}

fn ip_set(argument: &[u8]) -> Result<Operator, OperatorError> {
    let text =
        std::str::from_utf8(argument).map_err(|_| ("addresses must be plain text".to_owned(), None))?;
    IpSet::parse(text).map(Operator::IpMatch).map_err(|error| (format!("@ipMatch: {error}"), None))
}

fn number(argument: &[u8], names: &mut Names) -> Number {
    let template = template(argument, names);
    match template.as_literal() {
        None => Number::Computed(template),
        // The parser has told what is no number.
        Some(text) => Number::Constant(leading_number(text)),
    }
}
