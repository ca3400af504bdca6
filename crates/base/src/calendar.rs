//! Points in time as people read them.

const DAY_SECONDS: i64 = 86_400;

/// A point in Unix time as `2026-11-20 08:33:01`, in UTC. Far outside of the calendar's useful part
/// it is the number itself, as `@9223372036854775807`.
pub fn time_text(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    if !(-1_000_000..=3_000_000).contains(&days) {
        return format!("@{seconds}");
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{} {hour:02}:{minute:02}:{second:02}", day_text(days))
}

/// The day of a point in Unix time as `2026-11-20`, in UTC.
pub fn date_text(seconds: i64) -> String {
    day_text(seconds.div_euclid(DAY_SECONDS))
}

fn day_text(days: i64) -> String {
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day counted from 1970-01-01, by walking whole eras of 400 years, each
/// of 146,097 days, whose years begin in March.
fn date(days: i64) -> (i64, i64, i64) {
    let from_march_0000 = days + 719_468;
    let (era, day_of_era) =
        (from_march_0000.div_euclid(146_097), from_march_0000.rem_euclid(146_097));
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_those_of_date() {
        let cases = [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_795_163_581, "2026-11-20 08:33:01"),
            (i64::MAX, "@9223372036854775807"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(time_text(seconds), expected);
            if !expected.starts_with('@') {
                assert_eq!(date_text(seconds), expected[..10]);
            }
        }
    }

    proptest! {
        #[test]
        fn dates_agree_with_a_walk_over_the_calendar(years in 0i64..300, day_of_year in 0i64..365) {
            let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days: i64 = (1970..1970 + years).map(|year| 365 + i64::from(is_leap(year))).sum();
            let mut left = day_of_year;
            let mut month = 1;
            let february = 28 + i64::from(is_leap(1970 + years));
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            while left >= lengths[month - 1] {
                left -= lengths[month - 1];
                month += 1;
            }
            prop_assert_eq!(date(days + day_of_year), (1970 + years, month as i64, left + 1));
        }
    }
}
