//! Operators with their arguments compiled.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_engine::{GeoDb, Number, NumberKind, Operator, Pattern, Rbl, Scanner, Template};
use portcullis_match::{
    IpSet, Pcre, RegexFlags, WordSet, parse_byte_range, parse_pm_words, parse_text, parse_word_file,
};
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::standing::{self, Standing};
use portcullis_seclang::{Files, ast};

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
    /// What ModSecurity 2 loads and what cannot match: told, and loaded as an operator that finds nothing.
    warnings: Vec<OperatorError>,
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
        }
    }

    /// What there is to tell of the operators compiled since the last call.
    pub(crate) fn take_warnings(&mut self) -> Vec<OperatorError> {
        std::mem::take(&mut self.warnings)
    }

    /// An operator that never matches, with the reason told.
    fn in_vain(&mut self, why: String, hint: &str) -> Operator {
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
        let mut text = |make: fn(Template) -> Operator| macros(argument, names).map(make);
        match operator.name {
            OperatorName::Rx => pattern(self.patterns, argument, self.multi_line, names).map(Operator::Rx),
            OperatorName::RxGlobal => {
                pattern(self.patterns, argument, self.multi_line, names).map(Operator::RxGlobal)
            }
            OperatorName::VerifyCc => number_pattern(self.patterns, NumberKind::Card, argument),
            OperatorName::VerifySsn => number_pattern(self.patterns, NumberKind::Ssn, argument),
            OperatorName::VerifyCpf => number_pattern(self.patterns, NumberKind::Cpf, argument),
            OperatorName::VerifySvnr => number_pattern(self.patterns, NumberKind::Svnr, argument),
            OperatorName::Pm => Ok(Operator::Pm(word_set(self.patterns, parse_pm_words(argument), "@pm")?)),
            OperatorName::PmFromFile => self.word_files(argument, folder),
            OperatorName::Contains => text(Operator::Contains),
            OperatorName::ContainsWord => text(Operator::ContainsWord),
            OperatorName::Within => text(Operator::Within),
            OperatorName::Rsub => rsub::parse(argument, names).map(|found| Operator::Rsub(Box::new(found))),
            OperatorName::Streq => text(Operator::StrEq),
            // Without macros, with the escapes of @pm (msre_op_strmatch_param_init).
            OperatorName::StrMatch => Ok(Operator::StrMatch(Template::literal(&parse_text(argument)))),
            OperatorName::BeginsWith => text(Operator::BeginsWith),
            OperatorName::EndsWith => text(Operator::EndsWith),
            OperatorName::Eq => number(argument, names).map(Operator::Eq),
            OperatorName::Ge => number(argument, names).map(Operator::Ge),
            OperatorName::Gt => number(argument, names).map(Operator::Gt),
            OperatorName::Le => number(argument, names).map(Operator::Le),
            OperatorName::Lt => number(argument, names).map(Operator::Lt),
            OperatorName::IpMatch => ip_set(argument),
            OperatorName::IpMatchFromFile => {
                let text = self.read(argument, folder)?;
                let lines: Vec<_> = parse_word_file(&text);
                if lines.is_empty() {
                    let why = format!("{} has no addresses", String::from_utf8_lossy(argument));
                    return Ok(self.in_vain(why, "add one to the file, or remove the rule"));
                }
                ip_set(&lines.join(b",".as_slice()))
            }
            OperatorName::DetectSqli => Ok(Operator::DetectSqli),
            OperatorName::DetectXss => Ok(Operator::DetectXss),
            OperatorName::ValidateByteRange => parse_byte_range(&String::from_utf8_lossy(argument))
                .map(Operator::ValidateByteRange)
                .map_err(|error| (format!("@validateByteRange: {error}"), None)),
            OperatorName::ValidateUrlEncoding => Ok(Operator::ValidateUrlEncoding),
            OperatorName::ValidateUtf8Encoding => Ok(Operator::ValidateUtf8Encoding),
            OperatorName::UnconditionalMatch => Ok(Operator::UnconditionalMatch),
            OperatorName::NoMatch => Ok(Operator::NoMatch),
            OperatorName::Rbl => self.block_list(argument),
            OperatorName::GeoLookup => match &self.geo {
                Some(database) => Ok(Operator::GeoLookup(Arc::clone(database))),
                None => Ok(self.in_vain(
                    "@geoLookup has no database".to_owned(),
                    "name an .mmdb file with SecGeoLookupDb",
                )),
            },
            OperatorName::InspectFile => scanner(argument),
            other => Err(refusal(other)),
        }
    }

    fn block_list(&mut self, argument: &[u8]) -> Result<Operator, OperatorError> {
        let zone = String::from_utf8_lossy(argument);
        if self.http_bl_key.is_none()
            && Rbl::new(&zone, Some("key")).is_ok()
            && Rbl::new(&zone, None).is_err()
        {
            let why = format!("@rbl: {zone} takes an access key");
            return Ok(self.in_vain(why, "set SecHttpBlKey"));
        }
        match Rbl::new(&zone, self.http_bl_key.as_deref()) {
            Ok(list) => Ok(Operator::Rbl(Arc::new(list))),
            Err(why) => Err((
                format!("@rbl: {why}"),
                Some("write the zone of a DNS block list; it takes no macros".to_owned()),
            )),
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
            return Ok(self.in_vain(why, "add one to the file, or remove the rule"));
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

fn refusal(name: OperatorName) -> OperatorError {
    match standing::operator(name) {
        Standing::Refused(refusal) => {
            (format!("{name} is refused: {}", refusal.why), Some(refusal.instead.to_owned()))
        }
        _ => (format!("{name} is not supported by this version"), None),
    }
}

/// A pattern; with macros in it, a template of one (`msre_op_rx_param_init`).
fn pattern(
    patterns: &Patterns,
    argument: &[u8],
    multi_line: bool,
    names: &mut Names,
) -> Result<Pattern, OperatorError> {
    if argument.windows(2).any(|pair| pair == b"%{") {
        let template = macros(argument, names)?;
        if template.as_literal().is_none() {
            return Ok(Pattern::Computed(template));
        }
    }
    compile(patterns, argument, RegexFlags { multi_line, ..RegexFlags::default() }).map(Pattern::Fixed)
}

/// Payment card and other numbers; `^` and `$` match at every newline (`msre_op_verifyCC_init`).
fn number_pattern(patterns: &Patterns, kind: NumberKind, argument: &[u8]) -> Result<Operator, OperatorError> {
    let flags = RegexFlags { multi_line: true, ..RegexFlags::default() };
    compile(patterns, argument, flags).map(|regex| Operator::Verify(kind, regex))
}

fn compile(patterns: &Patterns, argument: &[u8], flags: RegexFlags) -> Result<Arc<Pcre>, OperatorError> {
    patterns.regex(argument, flags).map_err(|error| (format!("@rx: {error}"), None))
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

fn macros(argument: &[u8], names: &mut Names) -> Result<Template, OperatorError> {
    template(argument, names).map_err(|error| (error.message, error.hint))
}

fn number(argument: &[u8], names: &mut Names) -> Result<Number, OperatorError> {
    let template = macros(argument, names)?;
    match template.as_literal() {
        None => Ok(Number::Computed(template)),
        Some(text) => match std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()) {
            Some(number) => Ok(Number::Constant(number)),
            None => Err((format!("{:?} is not a number", bstr::BStr::new(text)), None)),
        },
    }
}
