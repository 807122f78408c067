//! Scalars that are worked out when a rule asks for them.

use std::io::Write as _;

use portcullis_types::{Decimal, Phase, Span, Variable};

use crate::Class;
use crate::execution::Execution;
use portcullis_values::ValueId;

impl Execution<'_> {
    /// The value of a scalar variable; `None` where ModSecurity has no value either.
    pub(crate) fn scalar(&mut self, variable: Variable) -> Option<ValueId> {
        if let Some(known) = self.message.store.scalar(variable) {
            return Some(known);
        }
        let text = self.computed_scalar(variable)?;
        if variable == Variable::FullRequest && self.run.phase > Phase::RequestHeaders {
            // It does not change any more, and it is long.
            self.message.store.set_scalar(variable, &text);
            return self.message.store.scalar(variable);
        }
        let span = self.message.store.push(&text);
        Some(self.message.store.temporary(Span::default(), span))
    }

    /// The number that stands for a variable which is one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most variables are no numbers")]
    pub(crate) fn scalar_number(&self, variable: Variable) -> Option<u64> {
        let size = |class| -> u64 {
            self.message.store.class(class).map(|id| self.message.store.data(id).len() as u64).sum()
        };
        Some(match variable {
            Variable::ArgsCombinedSize => {
                let classes = [Class::ArgsGet, Class::ArgsGetNames, Class::ArgsPost, Class::ArgsPostNames];
                classes.map(size).iter().sum()
            }
            Variable::FilesCombinedSize => self.message.body.files_combined_size(),
            Variable::HighestSeverity => self.vars.highest_severity.into(),
            Variable::RequestBodyLength => self.message.body.length(),
            Variable::Duration => self.message.elapsed_us,
            // Without the request line, and with a byte for the end: as ModSecurity 2 counts.
            Variable::FullRequestLength => self.headers_length() + self.message.body.length() + 1,
            _ => return None,
        })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a variable that is not listed has no computed value")]
    pub(crate) fn computed_scalar(&self, variable: Variable) -> Option<Vec<u8>> {
        if let Some(number) = self.scalar_number(variable) {
            return Some(number.to_string().into_bytes());
        }
        match variable {
            Variable::MatchedVar => Some(self.message.store.text(self.vars.matched.value).to_vec()),
            Variable::MatchedVarName => Some(self.vars.matched.name(&self.message.store)),
            Variable::ReqbodyProcessor => Some(
                self.message.body.processor().map_or("", |processor| processor.name()).as_bytes().to_vec(),
            ),
            variable if is_flag(variable) || variable == Variable::ResponseStatus => Some(b"0".to_vec()),
            Variable::ReqbodyErrorMsg | Variable::ReqbodyProcessorErrorMsg => Some(Vec::new()),
            Variable::ReqbodyAmbiguity => self.message.body.has_ended().then(Vec::new),
            Variable::RemotePort => Some(Decimal::new(self.message.client_port.into()).to_vec()),
            Variable::ServerPort => Some(Decimal::new(self.message.server.port().into()).to_vec()),
            Variable::ServerAddr => Some(self.message.server.ip().to_string().into_bytes()),
            Variable::Webappid => Some(self.plan.settings.web_app_id.clone()),
            // Of version 2.9.7, whose language this is, in the form of `get_modsec_build_version`.
            Variable::ModsecBuild => Some(b"020907900".to_vec()),
            Variable::Userid => self.vars.user_id.map(|id| self.message.store.text(id).to_vec()),
            Variable::Sessionid => self.vars.session_id.map(|id| self.message.store.text(id).to_vec()),
            // The store is no SDBM file.
            Variable::SdbmDeleteError => Some(b"0".to_vec()),
            Variable::FullRequest => Some(self.full_request()),
            _ => self.time_scalar(variable),
        }
    }

    /// Request line, headers and body, with plain newlines, as ModSecurity 2 puts them together. The body is
    /// there where `REQUEST_BODY` is.
    fn full_request(&self) -> Vec<u8> {
        let text = |variable| {
            self.message
                .store
                .scalar(variable)
                .map_or(&b""[..], |value| self.message.store.text(self.message.store.data(value)))
        };
        let mut out = [text(Variable::RequestLine), b"\n\n"].concat();
        for header in self.message.store.class(Class::RequestHeaders) {
            for piece in [
                self.message.store.text(self.message.store.key(header)),
                b": ",
                self.message.store.text(self.message.store.data(header)),
                b"\n",
            ] {
                out.extend_from_slice(piece);
            }
        }
        out.push(b'\n');
        out.extend_from_slice(text(Variable::RequestBody));
        out
    }

    fn headers_length(&self) -> u64 {
        let header = |id| {
            self.message.store.text(self.message.store.key(id)).len()
                + self.message.store.text(self.message.store.data(id)).len()
                + 3
        };
        self.message.store.class(Class::RequestHeaders).map(header).sum::<usize>() as u64 + 1
    }

    /// Local time, each number with the digits that ModSecurity 2 gives it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these are times")]
    fn time_scalar(&self, variable: Variable) -> Option<Vec<u8>> {
        let epoch = self.message.epoch_seconds;
        let local = epoch.saturating_add(self.message.utc_offset_seconds.into());
        let (days, second_of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        let (year, month, day) = civil(days);
        let mut text = Vec::new();
        let written = match variable {
            Variable::TimeEpoch => write!(text, "{epoch}"),
            Variable::Time => {
                write!(text, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
            }
            Variable::TimeHour => write!(text, "{hour:02}"),
            Variable::TimeMin => write!(text, "{minute:02}"),
            Variable::TimeSec => write!(text, "{second:02}"),
            // 1970-01-01 was a Thursday; Sunday is 0.
            Variable::TimeWday => write!(text, "{}", (days + 4).rem_euclid(7)),
            Variable::TimeDay => write!(text, "{day:02}"),
            Variable::TimeMon => write!(text, "{month:02}"),
            Variable::TimeYear => write!(text, "{year:04}"),
            _ => return None,
        };
        written.ok().map(|()| text)
    }
}

/// Flags that the parsers of a message set: 0 until they do.
pub(crate) fn is_flag(variable: Variable) -> bool {
    matches!(
        variable,
        Variable::ReqbodyError
            | Variable::ReqbodyProcessorError
            | Variable::UrlencodedError
            | Variable::InboundDataError
            | Variable::OutboundDataError
            | Variable::MultipartBoundaryQuoted
            | Variable::MultipartBoundaryWhitespace
            | Variable::MultipartCrlfLfLines
            | Variable::MultipartDataAfter
            | Variable::MultipartDataBefore
            | Variable::MultipartFileLimitExceeded
            | Variable::MultipartHeaderFolding
            | Variable::MultipartInvalidHeaderFolding
            | Variable::MultipartInvalidPart
            | Variable::MultipartInvalidQuoting
            | Variable::MultipartLfLine
            | Variable::MultipartMissingSemicolon
            | Variable::MultipartStrictError
            | Variable::MultipartUnmatchedBoundary
    )
}

/// Year, month (1 to 12) and day (1 to 31) of a day count since 1970-01-01, proleptic Gregorian.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
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
