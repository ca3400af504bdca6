//! What the kernel would make of a value, as far as that is known before it is written.
//!
//! Kernels differ: one refuses a `max_sectors_kb` that is too large, the next takes it and sets
//! less without a word. So a value that would not stay as it is is not written at all, and whatever
//! was written is read back all the same.

use std::fs;

use super::{Setting, SettingError, SettingKind};

/// Requests below which no kernel goes (`BLKDEV_MIN_RQ`, include/linux/blkdev.h).
const REQUESTS_MIN: u64 = 4;

/// Numbers of a queue above which every kernel refuses them (`queue_var_store`, block/blk-sysfs.c).
const NUMBER_MAX: u64 = u32::MAX as u64;

/// Why a value is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There are others to choose from.
    #[error("{what} {value} is not what the device offers: {offered}")]
    NotOffered {
        /// The setting.
        what: &'static str,
        /// The value.
        value: String,
        /// What there is.
        offered: String,
    },
    /// The kernel would make another value of it.
    #[error("{what} {value} would become {becomes}: {why}")]
    Clipped {
        /// The setting.
        what: &'static str,
        /// The value.
        value: String,
        /// What it would be.
        becomes: u64,
        /// Why.
        why: String,
    },
}

/// Why a value would not stay as it is, if it would not.
///
/// # Errors
/// When what the device offers cannot be read.
pub fn unfit(setting: &Setting, value: &str) -> Result<Option<Unfit>, SettingError> {
    let what = setting.kind.name();
    let not_offered = |offered: &str| {
        let (value, offered) = (value.to_owned(), offered.to_owned());
        Some(Unfit::NotOffered { what, value, offered })
    };
    let clipped = |becomes: u64, why: String| {
        Some(Unfit::Clipped { what, value: value.to_owned(), becomes, why })
    };
    let page_kib = rustix::param::page_size() as u64 / 1024;
    Ok(match (setting.kind, value.parse::<u64>()) {
        (SettingKind::Scheduler, _) => {
            let choices = setting.choices()?;
            let is_one = choices.iter().any(|choice| choice == value);
            if is_one { None } else { not_offered(&choices.join(", ")) }
        }
        (SettingKind::WriteCache, _) if ["write back", "write through"].contains(&value) => None,
        (SettingKind::WriteCache, _) => not_offered("'write back', 'write through'"),
        (SettingKind::WriteBackLatency, Err(_)) if value == "-1" => None,
        (SettingKind::Rotational, Ok(0 | 1)) | (SettingKind::NoMerges, Ok(0..=2)) => None,
        (SettingKind::Rotational, _) => not_offered("0, 1"),
        (SettingKind::NoMerges, _) => not_offered("0, 1, 2"),
        (SettingKind::WriteBackLatency, Err(_)) => not_offered("-1, or a number"),
        (_, Err(_)) => not_offered(&format!("a number up to {NUMBER_MAX}")),
        (SettingKind::Requests | SettingKind::ReadAhead, Ok(number)) if number > NUMBER_MAX => {
            not_offered(&format!("a number up to {NUMBER_MAX}"))
        }
        (SettingKind::MaxSectors, Ok(kib)) => match hardware_kib(setting) {
            Some(most) if kib > most => {
                clipped(most, "that is what the device takes at most".to_owned())
            }
            _ if kib < page_kib => clipped(page_kib, "a request holds a page".to_owned()),
            _ => None,
        },
        (SettingKind::Requests, Ok(requests)) if requests < REQUESTS_MIN => {
            clipped(REQUESTS_MIN, "no queue is shorter".to_owned())
        }
        (SettingKind::ReadAhead, Ok(kib)) if !kib.is_multiple_of(page_kib) => {
            clipped(kib / page_kib * page_kib, format!("pages of {page_kib} KiB are read"))
        }
        (SettingKind::WriteBackLatency | SettingKind::Requests | SettingKind::ReadAhead, Ok(_)) => {
            None
        }
    })
}

/// The largest request of the device itself.
fn hardware_kib(setting: &Setting) -> Option<u64> {
    let limit = setting.path.with_file_name("max_hw_sectors_kb");
    fs::read_to_string(limit).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_stay_is_known_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("max_hw_sectors_kb"), "1280\n").unwrap();
        let check = |kind, value: &str, expected: Option<&str>| {
            let setting = Setting::of_queue(kind, folder.path());
            let found = unfit(&setting, value).unwrap().map(|unfit| unfit.to_string());
            assert_eq!(found.as_deref(), expected, "{kind:?} {value}");
        };
        check(SettingKind::MaxSectors, "1280", None);
        check(
            SettingKind::MaxSectors,
            "99999",
            Some("max_sectors_kb 99999 would become 1280: that is what the device takes at most"),
        );
        check(
            SettingKind::MaxSectors,
            "1",
            Some("max_sectors_kb 1 would become 4: a request holds a page"),
        );
        check(
            SettingKind::Requests,
            "2",
            Some("nr_requests 2 would become 4: no queue is shorter"),
        );
        check(
            SettingKind::ReadAhead,
            "777",
            Some("read-ahead 777 would become 776: pages of 4 KiB are read"),
        );
        check(
            SettingKind::ReadAhead,
            "3",
            Some("read-ahead 3 would become 0: pages of 4 KiB are read"),
        );
        for (kind, value) in [
            (SettingKind::ReadAhead, "0"),
            (SettingKind::ReadAhead, "64"),
            (SettingKind::NoMerges, "2"),
            (SettingKind::WriteBackLatency, "-1"),
            (SettingKind::WriteCache, "write back"),
        ] {
            check(kind, value, None);
        }
        check(
            SettingKind::NoMerges,
            "3",
            Some("nomerges 3 is not what the device offers: 0, 1, 2"),
        );
        let sideways = "write cache write sideways is not what the device offers: \
                        'write back', 'write through'";
        check(SettingKind::WriteCache, "write sideways", Some(sideways));
        check(SettingKind::WriteCache, "write through", None);
        check(
            SettingKind::Requests,
            "many",
            Some("nr_requests many is not what the device offers: a number up to 4294967295"),
        );
        // No hint may name a value that is none either.
        for value in ["99999999999", "300000000000000000000", "-1"] {
            let refused = format!(
                "read-ahead {value} is not what the device offers: a number up to 4294967295"
            );
            check(SettingKind::ReadAhead, value, Some(&refused));
        }
    }
}
