/// Rule severity, the syslog scale as SecLang uses it: 0 is the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Severity {
    Emergency = 0,
    Alert = 1,
    Critical = 2,
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

impl Severity {
    const TABLE: [(Severity, &'static str); 8] = [
        (Severity::Emergency, "EMERGENCY"),
        (Severity::Alert, "ALERT"),
        (Severity::Critical, "CRITICAL"),
        (Severity::Error, "ERROR"),
        (Severity::Warning, "WARNING"),
        (Severity::Notice, "NOTICE"),
        (Severity::Info, "INFO"),
        (Severity::Debug, "DEBUG"),
    ];

    /// The upper-case SecLang name.
    pub fn name(self) -> &'static str {
        Severity::TABLE[self as usize].1
    }

    /// From a number `0` to `7` or a name in any case.
    pub fn parse(text: &str) -> Option<Severity> {
        if let Ok(n) = text.parse::<usize>() {
            return Severity::TABLE.get(n).map(|row| row.0);
        }
        Severity::TABLE.iter().find(|row| row.1.eq_ignore_ascii_case(text)).map(|row| row.0)
    }

    /// SecLang number, 0 to 7.
    pub fn number(self) -> u8 {
        self as u8
    }
}
