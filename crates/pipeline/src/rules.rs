//! The rules by which the bottleneck of a pipeline is named.

base::rules! {
    /// Which stage of a pipeline of other programs is the bottleneck, and what would help.
    pub PIPELINE = "A pipeline of other programs", told by "takeup explain";

    WORK {
        id: "pipeline.work",
        looks_at: "how long each stage was neither starved nor blocked",
        speaks_when: "the busiest stage worked for most of its busy time, and was busy for 85 % of \
                      the run, without the time in which another stage waited for a core; 65 % is \
                      enough where the stage before it was blocked and the stage after it starved \
                      for 75 % of the run; or stages take turns, one works for half of the run or \
                      more, and more cores for it gain more than a buffer",
        source: "/proc/PID/task/TID/syscall and schedstat",
    }
    DEVICE {
        id: "pipeline.device",
        looks_at: "how long each stage was neither starved nor blocked",
        speaks_when: "the busiest stage is the bottleneck and waited for a file or a device for \
                      half of its busy time or more; or stages take turns, and it waited for a \
                      device for 65 % of the run, or for a drive that writes for 85 % of the run",
        source: "/proc/PID/task/TID/syscall, and the file or device behind its descriptor",
    }
    IN_TURN {
        id: "pipeline.in-turn",
        looks_at: "what the busiest stage did for how long",
        speaks_when: "it waited for its writes to a file or device for 15 % of the run, and did \
                      other work for 15 %",
        source: "a program of one thread reads, works and writes one after the other",
    }
    PACE {
        id: "pipeline.pace",
        looks_at: "how long each stage was neither starved nor blocked, and rate limits among the \
                   options of the programs",
        speaks_when: "the busiest stage waited for the clock, a socket or another process for half \
                      of its busy time or more; or the data take longest at its rate limit \
                      (pv -L, mbuffer -r and -R, takeup pipe --rate-limit)",
        source: "/proc/PID/task/TID/syscall and /proc/PID/cmdline",
    }
    QUOTA {
        id: "pipeline.quota",
        looks_at: "how long a CPU quota kept the busiest stage from the cores",
        speaks_when: "that is a fifth of the run or more",
        source: "cpu.stat of its control group, and schedstat: a thread that a quota holds back \
                 looks as if it ran",
    }
    CORES {
        id: "pipeline.cores",
        looks_at: "the processor time of all stages, and how long the busiest waited for a core",
        speaks_when: "the stages used 90 % or more of all cores, and the busiest waited for a core \
                      for a tenth of the run",
        source: "/proc/PID/stat and schedstat",
    }
    TURNS {
        id: "pipeline.turns",
        looks_at: "how long each stage was neither starved nor blocked",
        speaks_when: "no stage is the bottleneck by that",
        source: "/proc/PID/task/TID/syscall",
    }
    OUTSIDE {
        id: "pipeline.outside",
        looks_at: "how long the first stage was starved and the last one blocked",
        speaks_when: "one of them is half of the run or more: the program at the other end of that \
                      pipe is the bottleneck, and was not measured",
        source: "/proc/PID/task/TID/syscall",
    }
    SHORT {
        id: "pipeline.short",
        looks_at: "how long the pipeline ran, and how many samples were taken",
        speaks_when: "it ran for less than 0.3 seconds, or there are fewer than 10 samples",
        source: "the clock",
    }
    LONE_BLOCKER {
        id: "pipeline.lone-blocker",
        looks_at: "a dd that is not the first stage",
        speaks_when: "no stage is the bottleneck, and dd was starved for 15 % of the run and \
                      waited for its output for 15 %",
        source: "dd reads nothing while it writes",
    }
    SMALL_TAPE_WRITES {
        id: "pipeline.small-tape-writes",
        looks_at: "bytes and write calls of the last stage, and how long it waited for them",
        speaks_when: "the last stage is the busiest, writes less than 60 KiB to a tape per call in \
                      200 calls or more, and waits for these writes for a tenth of the run",
        source: "/proc/PID/io; the cost of a write from the settings of a virtual drive",
    }
    DRIVE_STOPS {
        id: "pipeline.drive-stops",
        looks_at: "how long the last stage waited for a drive to accept its writes",
        speaks_when: "that is more than 1.5 times what the drive needs for the data at its highest \
                      rate, with the cost of each write, plus 0.3 seconds",
        source: "/proc/PID/task/TID/syscall; the rates of the drive, or the settings of a virtual \
                 drive",
    }
    LEVEL {
        id: "pipeline.level",
        looks_at: "the options of a compressor that is the bottleneck",
        speaks_when: "there is no other proposal, and it has a lower level",
        source: "gzip(1), xz(1), zstd(1)",
    }
    READS {
        id: "pipeline.reads",
        looks_at: "what the bottleneck waits for",
        speaks_when: "there is no other proposal, and it waits for a file that it reads",
        source: "/proc/PID/task/TID/syscall, and the file behind its descriptor",
    }
    NO_ADVICE {
        id: "pipeline.no-advice",
        looks_at: "all findings",
        speaks_when: "none of them says what to do",
        source: "the rules of this list",
    }
    SMALL_CALLS {
        id: "pipeline.small-calls",
        looks_at: "bytes and calls of the bottleneck",
        speaks_when: "it reads or writes less than 4 KiB per call on average, in 1,000 calls or \
                      more",
        source: "/proc/PID/io",
    }
    SMALL_PIPE {
        id: "pipeline.small-pipe",
        looks_at: "the capacity of the pipes",
        speaks_when: "a pipe holds less than 64 KiB, the kernel's default",
        source: "F_GETPIPE_SZ; beyond fs.pipe-user-pages-soft new pipes are smaller",
    }
    TAR_BLOCKING {
        id: "pipeline.tar-blocking",
        looks_at: "the options of tar",
        speaks_when: "it compresses into a file or device and has a blocking factor too",
        source: "GNU tar lets the compressor write the archive, in blocks of the compressor",
    }
    ONE_CORE {
        id: "pipeline.one-core",
        looks_at: "the stage that is the bottleneck by its work, and how many cores were free",
        speaks_when: "it is, or starts, a compressor with one thread; its options set no number of \
                      threads and do not decompress; and half a core or more was free",
        source: "/proc/PID/stat and /proc/stat",
    }
    NOT_SEEN {
        id: "pipeline.not-seen",
        looks_at: "whether Takeup may trace the stages",
        speaks_when: "the kernel denies access to the system calls of a stage",
        source: "ptrace(2), access mode checking",
    }
}
