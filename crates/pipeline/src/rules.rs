//! By what the limit of a pipeline is named.

base::rules! {
    /// Which stage of a pipeline of other programs is the limit, and what would help.
    pub PIPELINE = "A pipeline of other programs", told by "takeup explain";

    WORK {
        id: "pipeline.work",
        looks_at: "how long each stage was neither starved nor blocked",
        speaks_when: "that is 85 % of the run or more for the longest, or 65 % while what feeds it \
                      is blocked and what it feeds is starved for 75 %, time in which another \
                      stage waited for a core left out, and it worked for most of it; or stages \
                      take turns, one of them works for half of the run or more, and more cores \
                      for it bring more than a buffer",
        source: "/proc/PID/task/TID/syscall and schedstat",
    }
    DEVICE {
        id: "pipeline.device",
        looks_at: "the same",
        speaks_when: "the longest waited for a file or a device for half of that or more, or, \
                      while stages take turns, for 65 % of the run, or for a drive that writes \
                      for 85 % of it",
        source: "/proc/PID/task/TID/syscall, and where its file leads",
    }
    IN_TURN {
        id: "pipeline.in-turn",
        looks_at: "what the longest stage did for how long",
        speaks_when: "it waited for what it writes to a file or device for 15 % of the run, and \
                      was busy with the rest for 15 %",
        source: "a program of one thread that reads, works and writes does one at a time",
    }
    PACE {
        id: "pipeline.pace",
        looks_at: "the same, and the rate that a program was told to hold",
        speaks_when: "the longest waited for something else for half of that or more: the clock, a \
                      socket, another process; or its data take longest at the rate that it was \
                      told (pv -L, mbuffer -r and -R, takeup pipe --rate-limit)",
        source: "/proc/PID/task/TID/syscall and /proc/PID/cmdline",
    }
    QUOTA {
        id: "pipeline.quota",
        looks_at: "for how long a quota kept the longest stage from the cores",
        speaks_when: "that is a fifth of the run or more",
        source: "cpu.stat of its control group, with schedstat: a thread that is kept back looks \
                 as if it ran",
    }
    CORES {
        id: "pipeline.cores",
        looks_at: "the processor time of all stages, and how long the longest waited for a core",
        speaks_when: "they used 90 % or more of all cores, and it waited for a tenth of the run",
        source: "/proc/PID/stat and schedstat",
    }
    TURNS {
        id: "pipeline.turns",
        looks_at: "how long each stage was neither starved nor blocked",
        speaks_when: "none is the limit by that",
        source: "/proc/PID/task/TID/syscall",
    }
    OUTSIDE {
        id: "pipeline.outside",
        looks_at: "how long the first stage was starved and the last one blocked",
        speaks_when: "one of them is half of the run or more: whoever has the other end of that \
                      pipe is no stage that was looked at",
        source: "/proc/PID/task/TID/syscall",
    }
    SHORT {
        id: "pipeline.short",
        looks_at: "how long the pipeline ran, and how often it was looked at",
        speaks_when: "it was less than 0.3 seconds or 10 looks",
        source: "the clock",
    }
    LONE_BLOCKER {
        id: "pipeline.lone-blocker",
        looks_at: "a dd that is not the first stage",
        speaks_when: "no stage is the limit, and it was starved for 15 % of the run and waited for \
                      what it writes to for 15 %",
        source: "dd reads nothing while it writes",
    }
    SMALL_TAPE_WRITES {
        id: "pipeline.small-tape-writes",
        looks_at: "bytes and calls that the last stage writes, and how long it waited for them",
        speaks_when: "it is the longest, writes less than 60 KiB to a tape with each call, 200 \
                      times or more, and waits for it for a tenth of the run",
        source: "/proc/PID/io; what a write costs, of a virtual drive as it is set",
    }
    DRIVE_STOPS {
        id: "pipeline.drive-stops",
        looks_at: "how long the last stage waited for a drive to take its writes",
        speaks_when: "that is 0.3 seconds more than half as long again as the drive takes at its \
                      highest rate, with what each write costs",
        source: "/proc/PID/task/TID/syscall; the drive's rates, of a virtual one as it is set",
    }
    LEVEL {
        id: "pipeline.level",
        looks_at: "the words of a compressor that is the limit by its work",
        speaks_when: "nothing else is proposed, and it has a lower level",
        source: "gzip(1), xz(1), zstd(1)",
    }
    READS {
        id: "pipeline.reads",
        looks_at: "what the stage that is the limit waits for",
        speaks_when: "nothing else is proposed, and it is a file that it reads",
        source: "/proc/PID/task/TID/syscall, and where its file leads",
    }
    NO_ADVICE {
        id: "pipeline.no-advice",
        looks_at: "all that was found",
        speaks_when: "none of it says what to do",
        source: "the rules of this list",
    }
    SMALL_CALLS {
        id: "pipeline.small-calls",
        looks_at: "bytes and calls of the stage that is the limit",
        speaks_when: "it reads or writes less than 4 KiB with each call on average, in 1,000 calls \
                      or more",
        source: "/proc/PID/io",
    }
    SMALL_PIPE {
        id: "pipeline.small-pipe",
        looks_at: "what the pipes hold",
        speaks_when: "one holds less than 64 KiB, which is what the kernel gives if it can",
        source: "F_GETPIPE_SZ; beyond fs.pipe-user-pages-soft new pipes are smaller",
    }
    TAR_BLOCKING {
        id: "pipeline.tar-blocking",
        looks_at: "the words that tar was started with",
        speaks_when: "it compresses into a file or device and has a blocking factor too",
        source: "GNU tar lets the compressor write its archive, in blocks of its own",
    }
    ONE_CORE {
        id: "pipeline.one-core",
        looks_at: "the stage that is the limit by its work, and how many cores were free",
        speaks_when: "it is a compressor that works with one thread, or starts one, was not told \
                      how many to have, does not decompress, and half a core or more was free",
        source: "/proc/PID/stat and /proc/stat",
    }
    NOT_SEEN {
        id: "pipeline.not-seen",
        looks_at: "what this process may read of a stage",
        speaks_when: "the calls of one may not be looked at",
        source: "ptrace(2), access mode checking",
    }
}
