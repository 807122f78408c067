//! The one table of operators.

/// The type of an operator's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// It takes none.
    None,
    /// A regular expression.
    Regex,
    /// A text, macros allowed.
    Text,
    /// A whole number, macros allowed.
    Number,
    /// Words separated by blanks.
    Words,
    /// Addresses and networks separated by commas.
    Addresses,
    /// The name of a file.
    File,
    /// Byte values and ranges separated by commas.
    Bytes,
}

macro_rules! operators {
    ($($variant:ident $name:literal $([$($alias:literal),*])? $argument:ident $meaning:literal,)*) => {
        /// Every operator of the ModSecurity 2.9 and 3 references, and what Coraza has beyond them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum OperatorName { $(#[doc = $meaning] $variant,)* }

        impl OperatorName {
            /// All operators in name order.
            pub const ALL: &'static [OperatorName] = &[$(OperatorName::$variant,)*];
            const TABLE: &'static [(&'static str, &'static [&'static str], Argument, &'static str)] =
                &[$(($name, &[$($($alias,)*)?], Argument::$argument, $meaning),)*];
        }
    };
}

operators! {
    BeginsWith "beginsWith" Text "The value begins with the text.",
    Contains "contains" Text "The text occurs in the value.",
    ContainsWord "containsWord" Text "The text occurs in the value as a word of its own.",
    DetectSqli "detectSQLi" None "libinjection sees SQL injection in the value.",
    DetectXss "detectXSS" None "libinjection sees cross-site scripting in the value.",
    EndsWith "endsWith" Text "The value ends with the text.",
    Eq "eq" Number "The value, read as a number, is equal to the number.",
    FuzzyHash "fuzzyHash" Text "The value is similar to one of a list of ssdeep hashes.",
    Ge "ge" Number "The value, read as a number, is the number or above.",
    GeoLookup "geoLookup" None "The address is in the geography database; fills GEO.",
    GsbLookup "gsbLookup" Regex "A URL in the value is in the local Google Safe Browsing database.",
    Gt "gt" Number "The value, read as a number, is above the number.",
    InspectFile "inspectFile" Text "A virus scanner finds something in the uploaded file.",
    IpMatch "ipMatch" Addresses "The address is one of the addresses or in one of the networks.",
    IpMatchFromDataset "ipMatchFromDataset" Text "Coraza: as ipMatch, with a named list of the rule files.",
    IpMatchFromFile "ipMatchFromFile" ["ipMatchF"] File "As ipMatch, with a file of addresses and networks.",
    Le "le" Number "The value, read as a number, is the number or below.",
    Lt "lt" Number "The value, read as a number, is below the number.",
    NoMatch "noMatch" None "Never matches.",
    Pm "pm" Words "One of the words occurs in the value, in any ASCII case.",
    PmFromDataset "pmFromDataset" Text "Coraza: as pm, with a named list of the rule files.",
    PmFromFile "pmFromFile" ["pmf"] File "As pm, with files of phrases, one a line.",
    Rbl "rbl" Text "The address is listed in the DNS block list.",
    RestPath "restpath" Text "Coraza: the path fits a pattern with named parts; fills ARGS_PATH.",
    Rsub "rsub" Text "Substitutes in a stream body by regular expression.",
    Rx "rx" Regex "The regular expression matches somewhere in the value.",
    RxGlobal "rxGlobal" Regex "As rx, capturing every match in the value.",
    Streq "streq" Text "The value is the text.",
    StrMatch "strmatch" Text "The text occurs in the value; a faster contains without macros.",
    UnconditionalMatch "unconditionalMatch" None "Always matches.",
    ValidateByteRange "validateByteRange" Bytes "A byte of the value is outside the ranges.",
    ValidateDtd "validateDTD" File "The XML body does not follow the document type definition.",
    ValidateHash "validateHash" Regex "A link that should carry a hash has none or a wrong one.",
    ValidateNid "validateNid" Regex "Coraza: the regular expression finds a national identity number.",
    ValidateSchema "validateSchema" File "The XML body does not follow the schema.",
    ValidateUrlEncoding "validateUrlEncoding" None "The value has a percent sign without two hex digits.",
    ValidateUtf8Encoding "validateUtf8Encoding" None "The value is not valid UTF-8.",
    VerifyCc "verifyCC" Regex "The regular expression finds a payment card number with a right check digit.",
    VerifyCpf "verifyCPF" Regex "The regular expression finds a Brazilian tax number with right check digits.",
    VerifySsn "verifySSN" Regex "The regular expression finds a possible US social security number.",
    VerifySvnr "verifySVNR" Regex "The regular expression finds an Austrian social insurance number with a right check digit.",
    Within "within" Text "The value occurs in the text.",
}

impl OperatorName {
    /// The name without `@`, as the references spell it.
    pub fn name(self) -> &'static str {
        OperatorName::TABLE[self as usize].0
    }

    /// Other names of it.
    pub fn aliases(self) -> &'static [&'static str] {
        OperatorName::TABLE[self as usize].1
    }

    /// Returns the type of its argument.
    pub fn argument(self) -> Argument {
        OperatorName::TABLE[self as usize].2
    }

    /// Returns the condition for a match, one sentence.
    pub fn meaning(self) -> &'static str {
        OperatorName::TABLE[self as usize].3
    }

    /// From a name or alias in any case, without `@`.
    pub fn from_name(name: &str) -> Option<OperatorName> {
        let is = |candidate: &&str| candidate.eq_ignore_ascii_case(name);
        OperatorName::ALL.iter().copied().find(|o| is(&o.name()) || o.aliases().iter().any(is))
    }
}

/// The number that a text begins with, as C's `atoi` reads it; 0 if there is none.
pub fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let number = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |sum, &digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if negative { -number } else { number }
}

impl std::fmt::Display for OperatorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "@{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found_in_any_case() {
        let mut seen = std::collections::HashSet::new();
        for &operator in OperatorName::ALL {
            for name in operator.aliases().iter().copied().chain([operator.name()]) {
                assert!(seen.insert(name.to_lowercase()), "{name} twice");
                assert_eq!(OperatorName::from_name(&name.to_uppercase()), Some(operator));
            }
        }
        assert_eq!(OperatorName::from_name("rxx"), None);
    }
}
