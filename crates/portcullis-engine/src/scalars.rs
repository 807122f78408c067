//! Scalars that are worked out when a rule asks for them.

use std::io::Write as _;

use portcullis_types::{Span, Variable};

use crate::Class;
use crate::store::ValueId;
use crate::transaction::Transaction;

impl Transaction {
    /// The value of a scalar variable; `None` where ModSecurity has no value either.
    pub(crate) fn scalar(&mut self, variable: Variable) -> Option<ValueId> {
        if let Some(known) = self.store.scalar(variable) {
            return Some(known);
        }
        let text = self.computed_scalar(variable)?;
        let span = self.store.push(&text);
        Some(self.store.temporary(Span::default(), span))
    }

    fn computed_scalar(&self, variable: Variable) -> Option<Vec<u8>> {
        let number = |n: u64| Some(n.to_string().into_bytes());
        let size =
            |class| -> u64 { self.store.class(class).map(|id| self.store.data(id).len() as u64).sum() };
        match variable {
            Variable::ArgsCombinedSize => number(
                [Class::ArgsGet, Class::ArgsGetNames, Class::ArgsPost, Class::ArgsPostNames]
                    .map(size)
                    .iter()
                    .sum(),
            ),
            Variable::FilesCombinedSize => number(self.body.files_combined_size()),
            Variable::MatchedVar => Some(self.store.text(self.matched.value).to_vec()),
            Variable::MatchedVarName => Some(self.matched.name(&self.store)),
            Variable::HighestSeverity => number(self.highest_severity.into()),
            Variable::ReqbodyProcessor => {
                Some(self.body.processor().map_or("", |processor| processor.name()).as_bytes().to_vec())
            }
            Variable::RequestBodyLength => number(self.body.length()),
            Variable::Duration => number(self.elapsed_us),
            Variable::Webappid => self.plan().settings.web_app_id.clone(),
            Variable::ModsecBuild => Some(b"portcullis".to_vec()),
            _ => self.time_scalar(variable),
        }
    }

    fn time_scalar(&self, variable: Variable) -> Option<Vec<u8>> {
        let epoch = self.epoch_seconds;
        let (days, second_of_day) = (epoch.div_euclid(86_400), epoch.rem_euclid(86_400));
        let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        let mut text = Vec::new();
        let written = match variable {
            Variable::TimeEpoch => write!(text, "{epoch}"),
            Variable::Time => write!(text, "{hour:02}:{minute:02}:{second:02}"),
            Variable::TimeHour => write!(text, "{hour}"),
            Variable::TimeMin => write!(text, "{minute}"),
            Variable::TimeSec => write!(text, "{second}"),
            // 1970-01-01 was a Thursday; Sunday is 0.
            Variable::TimeWday => write!(text, "{}", (days + 4).rem_euclid(7)),
            Variable::TimeDay => write!(text, "{}", civil(days).2),
            Variable::TimeMon => write!(text, "{}", civil(days).1 - 1),
            Variable::TimeYear => write!(text, "{}", civil(days).0),
            _ => return None,
        };
        written.ok().map(|()| text)
    }
}

/// Year, month (1 to 12) and day (1 to 31) of a day count since 1970-01-01, proleptic Gregorian.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #[test]
    fn civil_dates() {
        assert_eq!(super::civil(0), (1970, 1, 1));
        assert_eq!(super::civil(11_016), (2000, 2, 29));
        assert_eq!(super::civil(20_778), (2026, 11, 21));
        assert_eq!(super::civil(-1), (1969, 12, 31));
    }
}
