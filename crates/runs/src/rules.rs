//! Rules on runs: the limit of a run, and whether a drive could stream.

base::rules! {
    /// What held a run back: one of these reports at the end of each run.
    pub LIMIT = "The limit of a run", told by "takeup backup, restore, list, verify, pipe";

    UNKNOWN {
        id: "limit.unknown",
        looks_at: "the stages of a run and its length",
        speaks_when: "there are no stages, or the run took less than 20 ms",
        source: "docs/explanation.md",
    }
    STAGE {
        id: "limit.stage",
        looks_at: "the times of all stages and their use of the cores",
        speaks_when: "one stage is busy for 60 % of the run; or the stages use 85 % of all cores, \
                      and one stage takes 85 % of that time",
        source: "docs/explanation.md",
    }
    FEW_THREADS {
        id: "limit.few-threads",
        looks_at: "a stage with several threads, the stages behind it, and the disk of a tree",
        speaks_when: "at least one of its threads is busy for 60 % of the run, and all stages \
                      behind it starve for half of their time; or the disk had requests for \
                      60 % of the run, and 1.2 times as long as any other stage had work",
        source: "docs/explanation.md",
    }
    SOURCE {
        id: "limit.source",
        looks_at: "the time that the first stage waits for the source",
        speaks_when: "the first stage is the busiest, and more than half of its time is that wait",
        source: "docs/explanation.md",
    }
    RATE_LIMIT {
        id: "limit.rate-limit",
        looks_at: "the time that the writer waits for --rate-limit",
        speaks_when: "the writer is the busiest stage, and more than half of its time is that \
                      wait; or the data for the target take 90 % of the run at that rate, or \
                      60 % where no other stage is busy for as long",
        source: "docs/explanation.md",
    }
    PROCESSOR {
        id: "limit.processor",
        looks_at: "the cores, and how long stages wait for a core",
        speaks_when: "the stages use 85 % of all cores; or the stage that holds the run back (all \
                      stages together, where none does) had no core for 25 % of its time, had or \
                      wanted one for 75 % of it, and 60 % of the cores are in use",
        source: "docs/explanation.md; /proc/thread-self/schedstat, /proc/stat",
    }
    TURNS {
        id: "limit.turns",
        looks_at: "the times of all stages; for a pipe also the cost of each block",
        speaks_when: "no stage is busy for 60 % of the run; or a larger ring would bring 80 % of \
                      what the busiest stage would bring if it cost nothing",
        source: "docs/explanation.md",
    }
}

base::rules! {
    /// Whether the drive could stream: one of these reports at the end of a backup to tape.
    pub STREAMING = "A backup to tape", told by "takeup backup";

    STREAMED {
        id: "streaming.could",
        looks_at: "the rate of data to the drive, and the lowest speed of the medium's generation",
        speaks_when: "the rate is at least the lowest speed",
        source: "makers' manuals, or the source that the sentence names",
    }
    STOPPED {
        id: "streaming.stopped",
        looks_at: "the same, and how often the ring ran empty",
        speaks_when: "the rate is below the lowest speed, and the ring ran empty",
        source: "makers' manuals, or the source that the sentence names",
    }
    TOO_LITTLE {
        id: "streaming.too-little",
        looks_at: "the same, and how often the ring ran empty",
        speaks_when: "the rate is below the lowest speed, though the ring never ran empty",
        source: "makers' manuals, or the source that the sentence names",
    }
    IN_THE_BUFFER {
        id: "streaming.in-the-buffer",
        looks_at: "the bytes of the set, and the size of the drive's buffer",
        speaks_when: "the whole set fits into the buffer",
        source: "makers' manuals, or an assumption, as `takeup probe` says",
    }
    NO_SPEEDS {
        id: "streaming.no-speeds",
        looks_at: "the density code of the medium",
        speaks_when: "the code belongs to no LTO generation",
        source: "the status of the driver (MTIOCGET)",
    }
}
