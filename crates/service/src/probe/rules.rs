//! The rules for a tape drive.

base::rules! {
    /// Rules for the survey of a drive.
    pub DRIVE = "A tape drive", told by "takeup probe";

    EMPTY {
        id: "drive.empty",
        looks_at: "whether a medium is in the drive",
        speaks_when: "there is none",
        source: "the status of the driver (MTIOCGET)",
    }
    NOT_READY {
        id: "drive.not-ready",
        looks_at: "whether the drive is ready",
        speaks_when: "the drive has a medium but is not ready",
        source: "the status of the driver (MTIOCGET)",
    }
    BUSY {
        id: "drive.busy",
        looks_at: "which program has the drive open",
        speaks_when: "another program has it open; takeup did not query it",
        source: "the driver, which lets one program open a drive, its counters, and /proc",
    }
    FILEMARKS_DO_NOT_WAIT {
        id: "drive.filemarks-do-not-wait",
        looks_at: "the driver's option no-wait-eof",
        speaks_when: "it is set",
        source: "the kernel's Documentation/scsi/st.rst",
    }
    REWINDING_DOES_NOT_WAIT {
        id: "drive.rewinding-does-not-wait",
        looks_at: "the driver's option no-wait",
        speaks_when: "it is set",
        source: "the kernel's Documentation/scsi/st.rst",
    }
    TWO_FILEMARKS {
        id: "drive.two-filemarks",
        looks_at: "the driver's option two-fms",
        speaks_when: "it is set",
        source: "the kernel's Documentation/scsi/st.rst",
    }
    FAST_END_OF_DATA {
        id: "drive.fast-end-of-data",
        looks_at: "the driver's option fast-eod",
        speaks_when: "it is set",
        source: "the kernel's Documentation/scsi/st.rst",
    }
    NO_DIRECT_IO {
        id: "drive.no-direct-io",
        looks_at: "the driver's parameter try_direct_io",
        speaks_when: "it is 0",
        source: "the kernel's Documentation/scsi/st.rst",
    }
    TAPE_ALERT {
        id: "drive.tape-alert",
        looks_at: "the TapeAlert flags of the drive",
        speaks_when: "one is set, with the severity that the standard gives it",
        source: "SSC-4, annex A",
    }
    CLEANING {
        id: "drive.cleaning",
        looks_at: "the drive's request for a cleaning cartridge",
        speaks_when: "it is set",
        source: "SSC-4, log page 0Ch (sequential access device)",
    }
    WRITE_PROTECTED {
        id: "drive.write-protected",
        looks_at: "whether the medium can be written",
        speaks_when: "it cannot",
        source: "the status of the driver (MTIOCGET)",
    }
    MEDIUM_ERRORS {
        id: "drive.medium-errors",
        looks_at: "uncorrected errors in the life of the medium",
        speaks_when: "there is at least one; writing and reading are reported separately",
        source: "SSC-4, log page 17h (volume statistics)",
    }
    WRITE_ONCE {
        id: "drive.write-once",
        looks_at: "whether the medium can be overwritten",
        speaks_when: "it cannot",
        source: "SSC-4, log page 17h (volume statistics)",
    }
    OLDER_MEDIUM {
        id: "drive.older-medium",
        looks_at: "the generations of drive and medium",
        speaks_when: "the medium is of an older generation",
        source: "the drive's name and the density code of the medium",
    }
    NOT_BUFFERED {
        id: "drive.not-buffered",
        looks_at: "the buffered mode of a drive with a medium",
        speaks_when: "it is off",
        source: "MODE SENSE, device-specific parameter (SSC-4)",
    }
    LOWEST_SPEED {
        id: "drive.lowest-speed",
        looks_at: "the lowest speed of the medium's generation, and the drive's compression",
        speaks_when: "the generation of the medium is known",
        source: "makers' manuals, or else published reports: the line `streams at` says which",
    }
    SMALL_TRANSFERS {
        id: "drive.small-transfers",
        looks_at: "the largest transfer of the host adapter or of FUSE",
        speaks_when: "it is less than 1 MiB and the smallest of all limits",
        source: "the generic device, or fs.fuse.max_pages_limit",
    }
    LIMITS_TRIED {
        id: "drive.limits-tried",
        looks_at: "how the block size limits were found",
        speaks_when: "takeup could not query the drive, and set sizes until one was refused",
        source: "READ BLOCK LIMITS, MTSETBLK",
    }
    LIMITS_UNKNOWN {
        id: "drive.limits-unknown",
        looks_at: "how the block size limits were found",
        speaks_when: "they could not be found",
        source: "READ BLOCK LIMITS",
    }
    FIXED_BLOCKS {
        id: "drive.fixed-blocks",
        looks_at: "the block size that is set in the drive",
        speaks_when: "it is not 0 (variable blocks)",
        source: "the status of the driver (MTIOCGET)",
    }
    NO_ANSWER {
        id: "drive.no-answer",
        looks_at: "each query to the drive",
        speaks_when: "the drive did not answer one",
        source: "the error of the command",
    }
}
