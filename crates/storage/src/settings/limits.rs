//! Checks before a write whether the kernel would keep a value.
//!
//! Kernels differ: one refuses a `max_sectors_kb` that is too large, the next silently sets less.
//! So Takeup does not write a value that the kernel would change, and reads back every value it
//! wrote.

use std::fs;

use super::{Setting, SettingKind};
use crate::StorageError;

/// The kernel's minimum of `nr_requests` (`BLKDEV_MIN_RQ`, include/linux/blkdev.h).
const REQUESTS_MIN: u64 = 4;

/// The largest number that any kernel accepts (`queue_var_store`, block/blk-sysfs.c).
const NUMBER_MAX: u64 = u32::MAX as u64;

/// Why a value is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is not one of the valid values.
    #[error("{what} {value} is not valid: use {offered}")]
    NotOffered {
        what: &'static str,
        value: String,
        /// The valid values.
        offered: String,
    },
    /// The kernel would set another value.
    #[error("{what} {value} would become {becomes}: {why}")]
    Clipped {
        what: &'static str,
        value: String,
        /// The value that the kernel would set.
        becomes: u64,
        why: String,
    },
}

/// Why the kernel would not keep a value; `None` if it would.
///
/// # Errors
/// When the limits of the device cannot be read.
pub fn unfit(setting: &Setting, value: &str) -> Result<Option<Unfit>, StorageError> {
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
                clipped(most, "that is the maximum of the device".to_owned())
            }
            _ if kib < page_kib => {
                clipped(page_kib, "a request holds one page at least".to_owned())
            }
            _ => None,
        },
        (SettingKind::Requests, Ok(requests)) if requests < REQUESTS_MIN => {
            clipped(REQUESTS_MIN, "that is the minimum of the kernel".to_owned())
        }
        (SettingKind::ReadAhead, Ok(kib)) if !kib.is_multiple_of(page_kib) => {
            clipped(kib / page_kib * page_kib, format!("the kernel reads {page_kib} KiB pages"))
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
        let page_kib = rustix::param::page_size() as u64 / 1024;
        let page =
            format!("max_sectors_kb 1 would become {page_kib}: a request holds one page at least");
        let whole = 777 / page_kib * page_kib;
        let odd =
            format!("read-ahead 777 would become {whole}: the kernel reads {page_kib} KiB pages");
        let small = format!("read-ahead 3 would become 0: the kernel reads {page_kib} KiB pages");
        check(SettingKind::MaxSectors, "1280", None);
        check(
            SettingKind::MaxSectors,
            "99999",
            Some("max_sectors_kb 99999 would become 1280: that is the maximum of the device"),
        );
        check(SettingKind::MaxSectors, "1", Some(&page));
        check(
            SettingKind::Requests,
            "2",
            Some("nr_requests 2 would become 4: that is the minimum of the kernel"),
        );
        check(SettingKind::ReadAhead, "777", Some(&odd));
        check(SettingKind::ReadAhead, "3", Some(&small));
        for (kind, value) in [
            (SettingKind::ReadAhead, "0"),
            (SettingKind::ReadAhead, "64"),
            (SettingKind::NoMerges, "2"),
            (SettingKind::WriteBackLatency, "-1"),
            (SettingKind::WriteCache, "write back"),
        ] {
            check(kind, value, None);
        }
        check(SettingKind::NoMerges, "3", Some("nomerges 3 is not valid: use 0, 1, 2"));
        let sideways = "write cache write sideways is not valid: use 'write back', 'write through'";
        check(SettingKind::WriteCache, "write sideways", Some(sideways));
        check(SettingKind::WriteCache, "write through", None);
        check(
            SettingKind::Requests,
            "many",
            Some("nr_requests many is not valid: use a number up to 4294967295"),
        );
        // No hint may suggest a value that is invalid too.
        for value in ["99999999999", "300000000000000000000", "-1"] {
            let refused = format!("read-ahead {value} is not valid: use a number up to 4294967295");
            check(SettingKind::ReadAhead, value, Some(&refused));
        }
    }
}
