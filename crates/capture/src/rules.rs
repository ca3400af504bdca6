//! By what it is said how a program uses its files.

base::rules! {
    /// What a program does to its files.
    pub CAPTURE = "What a program does to its files", told by "takeup capture";

    LOG {
        id: "capture.log",
        looks_at: "where writes of a file begin, and what follows them",
        speaks_when: "the file is a write-ahead log, by its name or because it is written in order \
                      with a sync for every 16 writes or fewer",
        source: "offsets of writes, and syncs among them",
    }
    IN_ORDER {
        id: "capture.in-order",
        looks_at: "where reads and writes of a file begin",
        speaks_when: "9 in 10 or more begin where one of the last few of their kind ended",
        source: "offsets and lengths",
    }
    RANDOM {
        id: "capture.random",
        looks_at: "the same",
        speaks_when: "2 in 10 or fewer do, or begin within what the last write wrote",
        source: "offsets and lengths",
    }
    MIXED {
        id: "capture.mixed",
        looks_at: "the same",
        speaks_when: "it is neither, or where they begin is not known",
        source: "offsets and lengths",
    }
    SYNCED {
        id: "capture.synced",
        looks_at: "writes of a file, other than a log, between two of its syncs",
        speaks_when: "there were two syncs or more",
        source: "calls of fsync, fdatasync, sync_file_range and msync",
    }
    LOST {
        id: "capture.lost",
        looks_at: "events that the kernel or the recorder dropped",
        speaks_when: "there is one",
        source: "PERF_RECORD_LOST, or what a trace says that it dropped",
    }
    LEFT_OUT {
        id: "capture.left-out",
        looks_at: "files, and how many of them are kept",
        speaks_when: "there were more",
        source: "the limits of the profile",
    }
    UNSEEN {
        id: "capture.unseen",
        looks_at: "what this way of recording shows",
        speaks_when: "it does not show something",
        source: "what kernel and format tell of a call: docs/capture.md",
    }
    COST {
        id: "capture.cost",
        looks_at: "how many events came, and what one costs",
        speaks_when: "there were 100,000 a second or more",
        source: "calls of the recorder's own, alone and recorded, behind the recording",
    }
    TOTALS {
        id: "capture.totals",
        looks_at: "what the kernel counts of each process",
        speaks_when: "calls could not be recorded, and anything was counted",
        source: "/proc/PID/io and /proc/PID/stat, those of children included",
    }
    POSITION {
        id: "capture.position",
        looks_at: "where the position of an open file stands, time and again",
        speaks_when: "calls could not be recorded, and the position was seen to move",
        source: "/proc/PID/fdinfo",
    }
    BESIDE {
        id: "capture.beside",
        looks_at: "what calls have moved, how far positions moved, and what devices were asked for",
        speaks_when: "calls could not be recorded, and a tenth or more of one of them is in no \
                      other",
        source: "/proc/PID/io and /proc/PID/fdinfo",
    }
}
