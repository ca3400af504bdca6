//! The rules by which `takeup capture` describes how a program uses its files.

base::rules! {
    /// How a program uses its files.
    pub CAPTURE = "How a program uses its files", told by "takeup capture";

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
        speaks_when: "9 in 10 or more, or all but the first, begin where one of the last few of \
                      their kind ended",
        source: "offsets and lengths",
    }
    RANDOM {
        id: "capture.random",
        looks_at: "where reads and writes of a file begin",
        speaks_when: "2 in 10 or fewer begin where one of the last few of their kind ended, or \
                      within the last write",
        source: "offsets and lengths",
    }
    MIXED {
        id: "capture.mixed",
        looks_at: "where reads and writes of a file begin",
        speaks_when: "they are neither in order nor random, or their offsets are not known",
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
        source: "PERF_RECORD_LOST, or the count of dropped events in an imported trace",
    }
    LEFT_OUT {
        id: "capture.left-out",
        looks_at: "the number of files",
        speaks_when: "there were more than a profile holds",
        source: "the limits of the profile",
    }
    UNSEEN {
        id: "capture.unseen",
        looks_at: "the way of recording",
        speaks_when: "it cannot show something",
        source: "what the kernel and the format record of a call: docs/capture.md",
    }
    COST {
        id: "capture.cost",
        looks_at: "how many events came, and the processor time of one",
        speaks_when: "there were 100,000 a second or more",
        source: "calls that Takeup makes after the recording, with and without recording them",
    }
    TOTALS {
        id: "capture.totals",
        looks_at: "the kernel's counters of each process",
        speaks_when: "calls could not be recorded, and anything was counted",
        source: "/proc/PID/io and /proc/PID/stat, children included",
    }
    POSITION {
        id: "capture.position",
        looks_at: "samples of the position of an open file",
        speaks_when: "calls could not be recorded, and the position moved",
        source: "/proc/PID/fdinfo",
    }
    BESIDE {
        id: "capture.beside",
        looks_at: "bytes of calls, movement of positions, and bytes of devices",
        speaks_when: "calls could not be recorded, and a tenth or more of one of these is in \
                      neither of the others",
        source: "/proc/PID/io and /proc/PID/fdinfo",
    }
}
