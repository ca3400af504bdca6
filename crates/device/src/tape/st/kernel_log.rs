//! What the tape driver wrote to the kernel's log about the last call.
//!
//! A failed call returns only an error number. The driver prints the sense data, which show what
//! really happened, to the log (`st_chk_result` in `drivers/scsi/st.c`, except for sense keys that
//! are no failure), and they cannot be queried again. If the log can be read, which takes root on
//! most systems, its lines are turned back into codes.
//!
//! Format of a record, `Documentation/ABI/testing/dev-kmsg`: fields, a semicolon, the text, a
//! newline, and lines that begin with a space.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::sysfs::TapeFolder;
use crate::tape::sense::Sense;

/// More records than one call of the driver could ever write.
const RECORDS_MAX: usize = 4096;

/// The kernel's log, open at its end.
#[derive(Debug)]
pub struct KernelLog {
    file: OwnedFd,
    /// The beginning of this drive's records: `st 2:0:0:1: [st0] `.
    prefix: String,
}

impl KernelLog {
    /// Opens the log for records of one drive; `None` without the right to read it.
    pub fn open(folder: &TapeFolder) -> Option<KernelLog> {
        let name = folder.node()?.trim_start_matches('n').trim_end_matches(['l', 'm', 'a']);
        let prefix = format!("st {}: [{name}] ", folder.address()?);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = base::interruptible::open("/dev/kmsg", flags, Mode::empty()).ok()?;
        Some(KernelLog { file, prefix })
    }

    /// Skips what was logged so far. Costs one system call.
    pub fn mark(&mut self) {
        // If the seek failed, older lines would count as new. Nothing else here can fail.
        let _ = rustix::fs::seek(&self.file, SeekFrom::End(0));
    }

    /// The last sense data that were logged for this drive since the mark.
    pub fn sense_since_mark(&mut self) -> Option<Sense> {
        let mut lines = LogLines::default();
        let mut record = [0u8; 8192];
        for _ in 0..RECORDS_MAX {
            match rustix::io::read(&self.file, &mut record) {
                Ok(0) => break,
                Ok(bytes) => lines.take(&record[..bytes], &self.prefix),
                // Records were overwritten before they were read: the next read continues after the
                // gap.
                Err(Errno::PIPE | Errno::INTR) => {}
                Err(_) => break,
            }
        }
        lines.sense
    }
}

/// Partial sense data: the log has the key in one line and the code in the next.
#[derive(Debug, Default)]
struct LogLines {
    sense: Option<Sense>,
}

impl LogLines {
    /// Parses one record of the log.
    fn take(&mut self, record: &[u8], prefix: &str) {
        let record = String::from_utf8_lossy(record);
        let Some((_, text)) = record.split_once(';') else { return };
        let line = text.lines().next().unwrap_or_default();
        let Some(said) = line.strip_prefix(prefix) else { return };
        if let Some(key) = said.strip_prefix("Sense Key : ") {
            self.sense = Sense::from_log_key(key);
        } else if let Some(code) = said.strip_prefix("Add. Sense: ")
            && let Some(sense) = &mut self.sense
        {
            sense.take_log_code(code);
        } else if let Some(codes) = said.strip_prefix("<<vendor>>")
            && let Some(sense) = &mut self.sense
        {
            sense.take_log_code(codes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "st 2:0:0:1: [st0] ";

    #[track_caller]
    fn check(records: &[&str], expected: Option<Sense>) {
        let mut lines = LogLines::default();
        records.iter().for_each(|record| lines.take(record.as_bytes(), PREFIX));
        assert_eq!(lines.sense, expected);
    }

    #[test]
    fn lines_become_codes() {
        let sense = Sense { key: 3, code: 0x11, qualifier: 0, deferred: false };
        check(
            &[
                "4,900,10,-;st 2:0:0:1: [st0] Sense Key : Medium Error [current] \n",
                "4,901,10,-;st 2:0:0:1: [st0] Add. Sense: Unrecovered read error\n\
                 \u{20}SUBSYSTEM=scsi\n",
            ],
            Some(sense),
        );
        let sense = Sense { key: 4, code: 0x15, qualifier: 1, deferred: true };
        check(
            &[
                "4,900,10,-;st 2:0:0:1: [st0] Sense Key : Hardware Error [deferred] \n",
                "4,901,10,-;st 2:0:0:1: [st0] Add. Sense: Mechanical positioning error\n",
            ],
            Some(sense),
        );
    }

    proptest::proptest! {
        /// Holds for any content of the log, and any damage to its records.
        #[test]
        fn any_record_is_taken(
            records in proptest::collection::vec(
                concat!(
                    "(4,1,1,-;)?(st 2:0:0:1: \\[st0\\] )?",
                    "(Sense Key : |Add. Sense: |<<vendor>>|ASC=0x)?\\PC{0,30}"
                ),
                0..6,
            ),
            cut in 0..60usize,
        ) {
            let mut lines = LogLines::default();
            for record in &records {
                let bytes = record.as_bytes();
                lines.take(&bytes[..cut.min(bytes.len())], PREFIX);
                lines.take(bytes, PREFIX);
            }
            let _ = lines.sense.map(|sense| sense.to_string());
        }
    }

    #[test]
    fn codes_without_words() {
        let sense = Sense { key: 3, code: 0x99, qualifier: 7, deferred: false };
        check(
            &[
                "4,1,1,-;st 2:0:0:1: [st0] Sense Key : Medium Error [current] \n",
                "4,2,1,-;st 2:0:0:1: [st0] <<vendor>>ASC=0x99 ASCQ=0x7\n",
            ],
            Some(sense),
        );
    }

    #[test]
    fn other_drives_and_other_lines_are_not_meant() {
        check(&["4,1,1,-;st 2:0:0:2: [st1] Sense Key : Medium Error [current] \n"], None);
        check(&["6,1,1,-;st 2:0:0:1: [st0] Block limits 4 - 1048576 bytes.\n"], None);
        check(&["", ";", "garbage", "4,1,1,-;", "\u{fffd};st 2:0:0:1: [st0] "], None);
    }
}
