use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment in UTC, in milliseconds since 1970; written as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// 9999-12-31T23:59:59.999Z: the last moment with a four-digit year.
const MILLIS_MAX: u64 = 253_402_300_799_999;

/// From 1970-01-01 on, a Thursday.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Timestamp {
    /// From milliseconds since 1970-01-01T00:00:00Z; moments after the year 9999 become its last.
    pub fn from_epoch_millis(millis: u64) -> Timestamp {
        Timestamp(millis.min(MILLIS_MAX))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub fn epoch_millis(self) -> u64 {
        self.0
    }

    /// RFC 3339 in UTC: `2026-09-21T14:13:20.123Z`.
    pub fn rfc3339(self) -> String {
        let c = self.civil();
        let mut out = String::with_capacity(24);
        let _ = write!(
            out,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            c.year, c.month, c.day, c.hour, c.minute, c.second, c.millis
        );
        out
    }

    /// From what [`rfc3339`](Timestamp::rfc3339) returns; no other form is read.
    pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        // Years counted from March, as in `civil`.
        let year = year.checked_sub(u64::from(month <= 2))?;
        let march_month = (month + 9) % 12;
        let day_of_year = (153 * march_month + 2) / 5 + day.checked_sub(1)?;
        let since_0000_03_01 = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
        let seconds = since_0000_03_01.checked_sub(719_468)? * 86_400 + hour * 3600 + minute * 60 + second;
        let time = Timestamp::from_epoch_millis(seconds * 1000 + number(20, 23)?);
        // Days that no month has, other signs between the numbers, and what stands behind.
        (time.rfc3339() == text).then_some(time)
    }

    /// As Apache's error log writes it, in UTC: `Mon Sep 21 14:13:20.123000 2026`.
    pub(crate) fn apache(self) -> String {
        let c = self.civil();
        format!(
            "{} {} {:02} {:02}:{:02}:{:02}.{:03}000 {:04}",
            DAYS[c.days_since_1970 as usize % 7],
            MONTHS[c.month as usize - 1],
            c.day,
            c.hour,
            c.minute,
            c.second,
            c.millis,
            c.year
        )
    }

    /// As access logs write it, in UTC: `21/Sep/2026:14:13:20.123000 +0000`.
    pub fn common_log(self) -> String {
        let c = self.civil();
        let month = MONTHS[c.month as usize - 1];
        format!(
            "{:02}/{month}/{:04}:{:02}:{:02}:{:02}.{:03}000 +0000",
            c.day, c.year, c.hour, c.minute, c.second, c.millis
        )
    }

    /// As C's `asctime` writes it, in UTC: `Mon Sep 21 14:13:20 2026`.
    pub fn asctime(self) -> String {
        let c = self.civil();
        let (day, month) = (DAYS[c.days_since_1970 as usize % 7], MONTHS[c.month as usize - 1]);
        format!("{day} {month} {:2} {:02}:{:02}:{:02} {:04}", c.day, c.hour, c.minute, c.second, c.year)
    }

    /// As `Date` of HTTP has it (RFC 9110, section 5.6.7): `Mon, 21 Sep 2026 14:13:20 GMT`.
    pub fn http_date(self) -> String {
        let c = self.civil();
        let (day, month) = (DAYS[c.days_since_1970 as usize % 7], MONTHS[c.month as usize - 1]);
        format!("{day}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT", c.day, c.year, c.hour, c.minute, c.second)
    }

    /// For file names, in UTC: `20260921-141320`.
    pub fn compact(self) -> String {
        let c = self.civil();
        format!("{:04}{:02}{:02}-{:02}{:02}{:02}", c.year, c.month, c.day, c.hour, c.minute, c.second)
    }

    fn civil(self) -> Civil {
        let days = self.0 / 86_400_000;
        let millis = self.0 % 86_400_000;
        // Years counted from March: the leap day is then the last day of a year, and months have a regular
        // length.
        let since_0000_03_01 = days + 719_468;
        let era = since_0000_03_01 / 146_097;
        let day_of_era = since_0000_03_01 % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Civil {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * march_month + 2) / 5 + 1,
            hour: millis / 3_600_000,
            minute: millis / 60_000 % 60,
            second: millis / 1000 % 60,
            millis: millis % 1000,
            days_since_1970: days,
        }
    }
}

struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    millis: u64,
    days_since_1970: u64,
}

impl From<SystemTime> for Timestamp {
    /// Moments before 1970 become 1970.
    fn from(time: SystemTime) -> Timestamp {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::from_epoch_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        crate::wire::named(deserializer, Timestamp::from_rfc3339)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z", "Thu Jan 01 00:00:00.000000 1970"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z", "Mon Feb 28 23:59:59.999000 2000"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z", "Tue Feb 29 00:00:00.000000 2000"),
            (1_790_000_000_123, "2026-09-21T14:13:20.123Z", "Mon Sep 21 14:13:20.123000 2026"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z", "Mon Mar 01 00:00:00.000000 2100"),
            (u64::MAX, "9999-12-31T23:59:59.999Z", "Fri Dec 31 23:59:59.999000 9999"),
        ];
        for (millis, rfc3339, apache) in cases {
            let t = Timestamp::from_epoch_millis(millis);
            assert_eq!((t.rfc3339(), Timestamp::from_rfc3339(rfc3339)), (rfc3339.to_owned(), Some(t)));
            assert_eq!(t.apache(), apache);
        }
    }

    #[test]
    fn other_texts_are_no_moments() {
        let lies = [
            "",
            "2026-02-29T00:00:00.000Z",
            "2026-00-01T00:00:00.000Z",
            "2026-01-00T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "2026-01-01T00:00:00.000ZZ",
            "2026-01-01 00:00:00.000Z",
            "+026-01-01T00:00:00.000Z",
            "0000-01-01T00:00:00.000Z",
            "2026-01-0\u{e9}T00:00:00.000Z",
        ];
        assert_eq!(lies.map(Timestamp::from_rfc3339), [None; 11]);
    }

    #[test]
    fn formats_of_audit_logs() {
        let t = Timestamp::from_epoch_millis(1_790_000_000_123);
        assert_eq!(t.common_log(), "21/Sep/2026:14:13:20.123000 +0000");
        assert_eq!(t.asctime(), "Mon Sep 21 14:13:20 2026");
        assert_eq!(t.compact(), "20260921-141320");
        assert_eq!(Timestamp::from_epoch_millis(0).asctime(), "Thu Jan  1 00:00:00 1970");
    }

    #[test]
    fn every_day_follows_the_day_before() {
        let mut previous = String::new();
        for day in 0..200_000u64 {
            let now = Timestamp::from_epoch_millis(day * 86_400_000).rfc3339();
            assert!(now > previous, "{previous} before {now}");
            let read = Timestamp::from_rfc3339(&now).map(Timestamp::epoch_millis);
            assert_eq!(read, Some(day * 86_400_000), "{now}");
            previous = now;
        }
    }

    #[test]
    fn a_clock_before_1970_does_not_panic() {
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_secs(1)).epoch_millis(), 0);
    }
}
