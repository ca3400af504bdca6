//! By what a run is explained: its limit, and whether a drive could stream.

base::rules! {
    /// What held a run back: one of these speaks at the end of each run.
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
        speaks_when: "one is busy for 60 % of the run, or has 85 % of a processor time that uses \
                      up 85 % of all cores",
        source: "docs/explanation.md",
    }
    FEW_THREADS {
        id: "limit.few-threads",
        looks_at: "a stage of many threads, the stages behind it, and the disk of a tree",
        speaks_when: "one of its threads is busy for 60 % of the run, and all stages behind it \
                      starve for half of theirs, or the disk had requests for 60 % of the run and \
                      1.2 times as long as any other stage had work",
        source: "docs/explanation.md",
    }
    SOURCE {
        id: "limit.source",
        looks_at: "what the first stage waited for",
        speaks_when: "it is the busiest, and more than half of its time is the wait for the source",
        source: "docs/explanation.md",
    }
    RATE_LIMIT {
        id: "limit.rate-limit",
        looks_at: "what the writer waited for under --rate-limit",
        speaks_when: "it is the busiest, and more than half of its time is the wait for that \
                      limit; or what went to the target takes 90 % of the run at that rate, \
                      or 60 % where nothing else is busy for as much",
        source: "docs/explanation.md",
    }
    PROCESSOR {
        id: "limit.processor",
        looks_at: "the cores, and how long stages wait for one",
        speaks_when: "the stages use 85 % of all cores; or the one that holds the run back, or \
                      all together where none does, had none for 25 % of its time, had or wanted \
                      one for 75 % of it, and 60 % of the cores are in use",
        source: "docs/explanation.md; /proc/thread-self/schedstat, /proc/stat",
    }
    TURNS {
        id: "limit.turns",
        looks_at: "the times of all stages; of a pipe also what each block cost",
        speaks_when: "none is busy for 60 % of the run, or a larger ring would bring 80 % of what \
                      the busiest would, if it cost nothing",
        source: "docs/explanation.md",
    }
}

base::rules! {
    /// Whether the drive could stream: one of these speaks at the end of a backup to tape.
    pub STREAMING = "A backup to tape", told by "takeup backup";

    STREAMED {
        id: "streaming.could",
        looks_at: "what the drive was given, and the lowest speed of the medium's generation",
        speaks_when: "it was given that much or more",
        source: "makers' manuals, or what the sentence says instead",
    }
    STOPPED {
        id: "streaming.stopped",
        looks_at: "the same, and how often the ring ran empty",
        speaks_when: "the drive was given less, and the ring ran empty",
        source: "makers' manuals, or what the sentence says instead",
    }
    TOO_LITTLE {
        id: "streaming.too-little",
        looks_at: "the same, and how often the ring ran empty",
        speaks_when: "the drive was given less, though the ring never ran empty",
        source: "makers' manuals, or what the sentence says instead",
    }
    IN_THE_BUFFER {
        id: "streaming.in-the-buffer",
        looks_at: "the bytes of the set, and the drive's buffer",
        speaks_when: "all of it fits into the buffer",
        source: "makers' manuals, or an assumption, as `takeup probe` says",
    }
    NO_SPEEDS {
        id: "streaming.no-speeds",
        looks_at: "the density code of the medium",
        speaks_when: "it is that of no LTO generation",
        source: "the status of the driver (MTIOCGET)",
    }
}
