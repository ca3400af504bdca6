//! The rules for what stands in the way of Takeup on a machine.

base::rules! {
    /// Rules of `takeup doctor`.
    pub DOCTOR = "This machine and the state of Takeup", told by "takeup doctor";

    IO_URING_REFUSED {
        id: "doctor.io-uring-refused",
        looks_at: "whether the kernel lets this process use io_uring",
        speaks_when: "it does not",
        source: "the call io_uring_setup(2)",
    }
    DRIVE_REFUSED {
        id: "doctor.drive-refused",
        looks_at: "whether this user may read and write the nodes of tape drives",
        speaks_when: "the permissions of a node refuse it",
        source: "the call access(2)",
    }
    STATE_REFUSED {
        id: "doctor.state-refused",
        looks_at: "whether this user may write where Takeup keeps its catalogue and journal",
        speaks_when: "the permissions of the folder refuse it, or there is no folder for it",
        source: "the call access(2)",
    }
    JOBS_UNREADABLE {
        id: "doctor.jobs-unreadable",
        looks_at: "the file with the jobs",
        speaks_when: "it is there and cannot be used",
        source: "the file",
    }
    LAST_RUN_FAILED {
        id: "doctor.last-run-failed",
        looks_at: "the last run of each job in the journal",
        speaks_when: "it failed",
        source: "the journal",
    }
    JOURNAL_DAMAGED {
        id: "doctor.journal-damaged",
        looks_at: "the journal of jobs and its lines",
        speaks_when: "it is there and cannot be read, or some lines cannot",
        source: "the journal",
    }
    SETTINGS_LEFT {
        id: "doctor.settings-left",
        looks_at: "settings that an experiment changes until it ends",
        speaks_when: "the experiment was killed, and they are still changed",
        source: "the journal of settings",
    }
    SETTINGS_LOST {
        id: "doctor.settings-lost",
        looks_at: "settings that takeup tune has set",
        speaks_when: "some do not have the value any more",
        source: "the list of changes, and the files of the kernel",
    }
    SETTINGS_UNREADABLE {
        id: "doctor.settings-unreadable",
        looks_at: "the list of changed settings",
        speaks_when: "it is there and cannot be used",
        source: "the list of changes",
    }
    NOT_OPTIMIZED {
        id: "doctor.not-optimized",
        looks_at: "how the program was built",
        speaks_when: "it was built for its tests, not for speed",
        source: "the program itself",
    }
}
