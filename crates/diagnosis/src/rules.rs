//! The rules of a diagnosis.

base::rules! {
    /// What holds back a backup from its source to its target, and what would help.
    pub DIAGNOSIS = "A backup, from its source to its target", told by "takeup diagnose";

    READ_AHEAD {
        id: "diagnose.read-ahead",
        looks_at: "short reads of the large files: as they are read now, and with two direct \
                   reads of a larger size under way",
        speaks_when: "a larger read-ahead makes the whole chain 5 % faster or more, and no other \
                      change more",
        source: "trials on this machine; mm/readahead.c: two windows are under way",
    }
    SMALL_FILES {
        id: "diagnose.small-files",
        looks_at: "small files of the source, opened and read one by one and 16 at once",
        speaks_when: "the chain is 5 % faster or more with several files at once, and no other \
                      change brings more; or behind all changes, or beside such as bring little, \
                      the small files are what limits it",
        source: "trials on this machine",
    }
    AT_ONCE {
        id: "diagnose.at-once",
        looks_at: "the same, and large files with many requests at once",
        speaks_when: "reading at several places makes the chain 5 % faster or more, 15 % more \
                      than any other change does",
        source: "trials on this machine",
    }
    SOURCE {
        id: "diagnose.source",
        looks_at: "the highest rate of all trials of the large files",
        speaks_when: "no change brings more than a third of what the chain would gain if its large \
                      files cost nothing, or behind all changes",
        source: "trials on this machine, 16 requests of 1 MiB at once among them",
    }
    COMPRESSOR {
        id: "diagnose.compressor",
        looks_at: "the compressor of the line, tried on data of the source",
        speaks_when: "a program with all cores in its place makes the chain 5 % faster or more, \
                      and no other change more; or, where no change without a price does, its \
                      fastest level or the compression of takeup backup make it faster by more \
                      than they may be wrong; or behind all changes, or beside such as bring \
                      little, the compressor is what limits it",
        source: "a trial on this machine; what other programs take is measured",
    }
    PACE {
        id: "diagnose.pace",
        looks_at: "rate limits among the options of the line's programs",
        speaks_when: "the chain is 5 % faster or more without it, and no other change brings more; \
                      or behind all changes, or beside such as bring little, it is what limits it",
        source: "the options of pv -L, mbuffer -r and -R, takeup pipe --rate-limit",
    }
    BLOCKS {
        id: "diagnose.blocks",
        looks_at: "the size of the writes to a tape drive, or to a file of a fast disk, by the \
                   options of the line",
        speaks_when: "larger writes make the chain 5 % faster or more, and no other change more",
        source: "the model of the drive: each write costs a fixed time beside its bytes, which is \
                 known of a virtual drive and assumed of a real one; two calls for 512 bytes cost \
                 a processor 1 µs; the kernel hands a read that is larger than the read-ahead to \
                 the disk as a whole, up to max_sectors_kb (mm/readahead.c)",
    }
    TURNS {
        id: "diagnose.turns",
        looks_at: "programs that read, work and write in turn",
        speaks_when: "a buffer in front of the target makes the chain 5 % faster or more, and no \
                      other change more",
        source: "the model of programs, pipes and drive",
    }
    DRIVE {
        id: "diagnose.drive",
        looks_at: "the highest rate of the tape drive, and what it takes to start and to end",
        speaks_when: "no change brings more than a third of what the chain would gain with another \
                      target, or behind all changes",
        source: "the drive's generation, or how a virtual drive is set",
    }
    TARGET {
        id: "diagnose.target",
        looks_at: "the rate of the target, where it was tried with --write-test",
        speaks_when: "no change brings more than a third of what the chain would gain with another \
                      target, or behind all changes",
        source: "a trial on this machine",
    }
    SAME_DISK {
        id: "diagnose.same-disk",
        looks_at: "the disks below source and target, where the target was tried with --write-test",
        speaks_when: "they have one in common",
        source: "/sys/dev/block",
    }
    PROGRAM {
        id: "diagnose.program",
        looks_at: "what each program costs by itself",
        speaks_when: "no change brings more than a third of what the chain would gain without that \
                      program, or behind all changes",
        source: "the model of programs and pipes",
    }
    ALIKE {
        id: "diagnose.alike",
        looks_at: "what each station gives by itself",
        speaks_when: "two of them are within 10 %",
        source: "the numbers of both",
    }
    NOT_KNOWN {
        id: "diagnose.not-known",
        looks_at: "what no trial may touch: programs that are not understood, targets",
        speaks_when: "the answer could be another one for it",
        source: "nothing is run of the line without --run, and nothing is written",
    }
    NOT_READ {
        id: "diagnose.not-read",
        looks_at: "the archive of a tar, by the options of the line",
        speaks_when: "it is /dev/null: GNU tar does not read its files then",
        source: "GNU tar 1.34, traced",
    }
    STOPS {
        id: "diagnose.stops",
        looks_at: "stops of the tape in the forecast",
        speaks_when: "the drive gets less than its lowest speed, and would stop once or more in \
                      this run",
        source: "the model of the drive",
    }
    OTHERS {
        id: "diagnose.others",
        looks_at: "what others did with the source's disks and the processors meanwhile",
        speaks_when: "the disks were busy for others for a tenth of the time or more, or others \
                      used half a processor or more",
        source: "/proc/diskstats",
    }
    CACHED {
        id: "diagnose.cached",
        looks_at: "which share of the trials' files lay in memory",
        speaks_when: "half of them or more",
        source: "cachestat(2)",
    }
}
