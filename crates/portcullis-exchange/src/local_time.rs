//! Local time, for the `TIME_*` variables of rules: ModSecurity compares with the clock on the wall.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time zone of the process: what `TZ` names, or else the system's.
#[derive(Clone, Debug)]
pub struct LocalTime(TimeZone);

impl LocalTime {
    /// Reads the zone; UTC if there is none that can be read, as the C library does.
    pub fn of_process() -> LocalTime {
        LocalTime(TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }

    /// Seconds by which local time is ahead of UTC at a moment, given in seconds since 1970.
    pub fn utc_offset_seconds(&self, epoch_seconds: i64) -> i32 {
        Timestamp::from_second(epoch_seconds).map_or(0, |time| self.0.to_offset(time).seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_time_counts() {
        let berlin = LocalTime(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        assert_eq!(berlin.utc_offset_seconds(1_700_000_000), 3_600);
        assert_eq!(berlin.utc_offset_seconds(1_690_000_000), 7_200);
        assert_eq!(berlin.utc_offset_seconds(i64::MAX), 0);
        assert_eq!(LocalTime(TimeZone::UTC).utc_offset_seconds(0), 0);
    }
}
