//! Values of a setting to try: those that the kernel accepts, and for the others the value that the
//! kernel would set.

use std::path::Path;

use experiment::record::binary_size;
use loads::disk::queue::settings_of;
use storage::StorageError;
use storage::layers::Storage;
use storage::settings::limits::{Unfit, unfit};
use storage::settings::{Guard, Setting, SettingKind};

use super::apply::acting;

/// Queue lengths and largest requests to try besides the present values.
const REQUESTS: [u64; 6] = [16, 32, 64, 128, 256, 512];
const REQUEST_KIB: [u64; 5] = [64, 128, 256, 512, 1024];

/// Why an ordinary user cannot try anything.
pub const NOT_ROOT: &str = "only root can set it";

/// A setting, or one value of it, that is not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTried {
    pub kind: SettingKind,
    /// The value; `None` for the setting as a whole.
    pub value: Option<ValueNotTried>,
    pub why: String,
}

/// A value that the kernel does not accept unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueNotTried {
    /// In the kernel's words.
    pub value: String,
    /// The value that the kernel would set; `None` if it refuses it.
    pub becomes: Option<String>,
}

impl NotTried {
    /// A whole setting.
    pub fn whole(kind: SettingKind, why: String) -> NotTried {
        NotTried { kind, value: None, why }
    }

    /// For people.
    pub fn words(&self) -> String {
        let Some(ValueNotTried { value, becomes }) = &self.value else { return self.why.clone() };
        let shown = |value: &str| match (self.kind, value.parse::<u64>()) {
            (SettingKind::MaxSectors, Ok(kib)) => binary_size(kib.saturating_mul(1024)),
            _ => value.to_owned(),
        };
        let value = shown(value);
        match becomes {
            Some(becomes) => {
                format!("{value} is not tried: it would become {}: {}", shown(becomes), self.why)
            }
            None => format!("{value} is not tried: {}", self.why),
        }
    }
}

/// The values of a setting to try.
#[derive(Debug, Default)]
pub struct TriedLevels {
    /// Values, in the kernel's words; empty if the setting is not tried.
    pub values: Vec<String>,
    /// Values that are not tried, or why the setting is not.
    pub left_out: Vec<NotTried>,
}

/// The load on the disks.
#[derive(Clone, Copy, Debug)]
pub struct LevelSearch<'a> {
    /// The path, as typed.
    pub path: &'a Path,
    /// The disks.
    pub storage: &'a Storage,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Whether requests are sequential, and may be merged.
    pub is_sequential: bool,
}

impl LevelSearch<'_> {
    /// The values of a setting that can be tried.
    pub fn levels(&self, kind: SettingKind) -> TriedLevels {
        let mut left_out = Vec::new();
        let values = self.found(kind, &mut left_out).unwrap_or_else(|why| {
            left_out.insert(0, NotTried::whole(kind, why));
            Vec::new()
        });
        TriedLevels { values, left_out }
    }

    /// Values to try, in the kernel's words; or why there are none.
    fn found(
        &self,
        kind: SettingKind,
        left_out: &mut Vec<NotTried>,
    ) -> Result<Vec<String>, String> {
        let settings = settings_of(kind, self.storage).map_err(|error| error.to_string())?;
        let first = &settings[0];
        let value = first.value().map_err(|error| error.to_string())?;
        for setting in &settings {
            if let Err(error) = setting.check_settable() {
                return Err(not_settable(&error));
            }
            // There is a present level only if all disks have the same value.
            if setting.value().is_ok_and(|other| other != value) {
                return Err("the disks have different values".to_owned());
            }
        }
        let present: u64 = value.parse().unwrap_or(0);
        let wanted = match kind {
            SettingKind::Scheduler => {
                let choices = first.choices().map_err(|error| error.to_string())?;
                if choices.len() < 2 {
                    return Err(format!("{value} is the only choice"));
                }
                return Ok(choices);
            }
            SettingKind::MaxSectors => {
                acting(kind, &value, self.storage, self.path)
                    .map_err(|refused| refused.message().to_owned())?;
                &REQUEST_KIB[..]
            }
            SettingKind::Requests => &REQUESTS[..],
            _ => return Ok(["0", "1", "2"].map(str::to_owned).to_vec()),
        };
        let others = wanted.iter().copied().filter(|level| *level != present).collect();
        let (mut own, refused) = match kind {
            SettingKind::MaxSectors => within_limits(&settings, others),
            _ => taken(&settings, others)?,
        };
        own.push(present);
        own.sort_unstable();
        let request_kib = self.block_bytes.div_ceil(1024);
        // Sequential reads may be merged to requests of any size.
        if kind == SettingKind::MaxSectors
            && !self.is_sequential
            && own.iter().all(|it| *it >= request_kib)
        {
            return Err(format!("no value splits requests of {request_kib} KiB"));
        }
        left_out.extend(refused);
        if own.len() < 2 {
            return Err(format!("the device accepts only {value}"));
        }
        Ok(own.into_iter().map(|level: u64| level.to_string()).collect())
    }
}

/// Why it cannot be written: a missing permission, or another error.
fn not_settable(error: &StorageError) -> String {
    use std::io::ErrorKind;
    match error {
        StorageError::Setting { source, .. } if source.kind() != ErrorKind::PermissionDenied => {
            base::failures::with_causes(error)
        }
        _ => NOT_ROOT.to_owned(),
    }
}

/// Values that the kernel would keep, known without a write, and the others.
fn within_limits(settings: &[Setting], levels: Vec<u64>) -> (Vec<u64>, Vec<NotTried>) {
    let (mut own, mut left_out) = (Vec::new(), Vec::new());
    for level in levels {
        let value = level.to_string();
        let refused = settings.iter().find_map(|setting| match unfit(setting, &value) {
            Ok(None) => None,
            Ok(Some(Unfit::Clipped { becomes, why, .. })) => Some((Some(becomes.to_string()), why)),
            Ok(Some(unfit)) => Some((None, unfit.to_string())),
            Err(error) => Some((None, base::failures::with_causes(&error))),
        });
        match refused {
            None => own.push(level),
            Some((becomes, why)) => {
                let value = Some(ValueNotTried { value, becomes });
                left_out.push(NotTried { kind: settings[0].kind, value, why });
            }
        }
    }
    (own, left_out)
}

/// Values that the kernel accepts, found by a write that is restored at once, and the others.
fn taken(settings: &[Setting], levels: Vec<u64>) -> Result<(Vec<u64>, Vec<NotTried>), String> {
    let told = |error: StorageError| base::failures::with_causes(&error);
    let journal = crate::state::journal();
    let mut guard = Guard::new(journal.as_deref(), settings).map_err(told)?;
    let (mut own, mut left_out) = (Vec::new(), Vec::new());
    for level in levels {
        let value = level.to_string();
        match settings.iter().try_for_each(|setting| guard.set(setting, &value)) {
            Ok(()) => own.push(level),
            Err(error) => left_out.push(not_taken(settings[0].kind, value, &error)),
        }
    }
    guard.put_back().map_err(told)?;
    Ok((own, left_out))
}

fn not_taken(kind: SettingKind, value: String, error: &StorageError) -> NotTried {
    let (becomes, why) = match error {
        StorageError::NotTaken { found, .. } => {
            (Some(found.clone()), "the kernel set that instead".to_owned())
        }
        StorageError::Setting { source, .. } => {
            (None, format!("the kernel refuses it: {}", base::failures::with_causes(source)))
        }
        _ => (None, base::failures::with_causes(error)),
    };
    NotTried { kind, value: Some(ValueNotTried { value, becomes }), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_taken_is_told_with_what_it_would_become() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("max_hw_sectors_kb"), "256\n").unwrap();
        let setting = Setting::of_queue(SettingKind::MaxSectors, folder.path());
        let (own, left_out) =
            within_limits(std::slice::from_ref(&setting), vec![64, 128, 512, 1024]);
        assert_eq!(own, [64, 128]);
        let words: Vec<String> = left_out.iter().map(NotTried::words).collect();
        let why = "it would become 256 KiB: that is the maximum of the device";
        let expected =
            [format!("512 KiB is not tried: {why}"), format!("1 MiB is not tried: {why}")];
        assert_eq!(words, expected);
        assert_eq!(left_out[1].value.as_ref().unwrap().becomes.as_deref(), Some("256"));
        let made = StorageError::NotTaken { setting, written: "512".into(), found: "128".into() };
        let clipped = not_taken(SettingKind::Requests, "512".to_owned(), &made);
        let why = "512 is not tried: it would become 128: the kernel set that instead";
        assert_eq!(clipped.words(), why);
        let refused = StorageError::Setting {
            what: "write",
            path: "/sys/block/sda/queue/nr_requests".into(),
            source: std::io::Error::from_raw_os_error(22),
        };
        let refused = not_taken(SettingKind::Requests, "512".to_owned(), &refused).words();
        let why = "512 is not tried: the kernel refuses it: Invalid argument (os error 22)";
        assert_eq!(refused, why);
    }
}
