//! Countries by their codes of ISO 3166-1, and the continents they are on.

use std::fmt;

/// Two letters: a country or a continent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code([u8; 2]);

/// By continent, as the usual databases have it; `XK` (Kosovo) is not in the standard, and used all the same.
const COUNTRIES: [(&str, &str); 7] = [
    (
        "AF",
        "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE \
         RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW",
    ),
    ("AN", "AQ BV GS HM TF"),
    (
        "AS",
        "AE AF AM AZ BD BH BN BT CC CN GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY NP OM PH PK PS \
         QA SA SG SY TH TJ TM TR TW UZ VN YE",
    ),
    (
        "EU",
        "AD AL AT AX BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL \
         NO PL PT RO RS RU SE SI SJ SK SM UA VA XK",
    ),
    (
        "NA",
        "AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM PR SV SX TC TT US VC \
         VG VI",
    ),
    ("OC", "AS AU CK CX FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TL TO TV UM VU WF WS"),
    ("SA", "AR BO BR CL CO EC FK GF GY PE PY SR UY VE"),
];

impl Code {
    /// Two letters of any case.
    pub fn new(text: &str) -> Option<Code> {
        match text.as_bytes() {
            [a, b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => {
                Some(Code([a.to_ascii_uppercase(), b.to_ascii_uppercase()]))
            }
            _ => None,
        }
    }

    /// In capitals.
    pub fn as_str(&self) -> &str {
        // They are letters of ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The continent of a country; none if there is no such country.
    pub fn continent(self) -> Option<Code> {
        let has = |countries: &str| countries.split(' ').any(|country| country == self.as_str());
        COUNTRIES.iter().find(|(_, countries)| has(countries)).and_then(|(continent, _)| Code::new(continent))
    }

    /// It is a continent.
    pub fn is_continent(self) -> bool {
        COUNTRIES.iter().any(|(continent, _)| *continent == self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_country_is_on_one_continent() {
        let mut all: Vec<&str> = COUNTRIES.iter().flat_map(|(_, countries)| countries.split(' ')).collect();
        assert_eq!(all.len(), 249 + 1, "ISO 3166-1, and XK");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 250);
        assert!(all.iter().all(|code| code.len() == 2));
    }

    #[test]
    fn codes() {
        let of = |text: &str| Code::new(text).and_then(Code::continent).map(|code| code.to_string());
        assert_eq!((of("de"), of("US"), of("NZ")), (Some("EU".into()), Some("NA".into()), Some("OC".into())));
        assert_eq!((of("UK"), of("D"), of("DEU"), of("1A")), (None, None, None, None));
        assert!(
            Code::new("as").is_some_and(Code::is_continent)
                && !Code::new("DE").is_some_and(Code::is_continent)
        );
    }
}
