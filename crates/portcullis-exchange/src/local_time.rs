//! Local time, for the `TIME_*` variables of rules: ModSecurity compares with the clock on the wall.

use tz::TimeZone;

/// The time zone of the process: what `TZ` names, or else the system's.
#[derive(Clone, Debug)]
pub struct LocalTime(TimeZone);

impl LocalTime {
    /// Reads the zone; UTC if there is none that can be read, as the C library does.
    pub fn of_process() -> LocalTime {
        let named = std::env::var("TZ").ok();
        let zone = match &named {
            Some(name) => TimeZone::from_posix_tz(name),
            None => TimeZone::local(),
        };
        LocalTime(zone.unwrap_or_else(|_| TimeZone::utc()))
    }

    /// Seconds by which local time is ahead of UTC at a moment, given in seconds since 1970.
    pub fn utc_offset_seconds(&self, epoch_seconds: i64) -> i32 {
        self.0.find_local_time_type(epoch_seconds).map_or(0, |found| found.ut_offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_time_counts() {
        let berlin = LocalTime(TimeZone::from_posix_tz("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        assert_eq!(berlin.utc_offset_seconds(1_700_000_000), 3_600);
        assert_eq!(berlin.utc_offset_seconds(1_690_000_000), 7_200);
        assert_eq!(LocalTime(TimeZone::utc()).utc_offset_seconds(0), 0);
    }
}
