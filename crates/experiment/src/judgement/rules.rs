//! By what an experiment is judged. The methods, their limits and their sources stand in
//! `docs/design/statistics.md`.

base::rules! {
    /// What runs come to.
    pub EXPERIMENT = "An experiment", told by "takeup bench, report";

    SETTING {
        id: "experiment.setting",
        looks_at: "the rates over the levels of a setting, all else as recommended",
        speaks_when: "a level differs from the others, or all are the same within 2 %: what is in \
                      force, unless another one is shown to be faster",
        source: "docs/design/statistics.md",
    }
    PLATEAU {
        id: "experiment.plateau",
        looks_at: "the intervals of all levels of a number against the fastest one",
        speaks_when: "from some level on all of them lie within 15 % of it, and none of these is \
                      shown to differ from the one that is recommended; two levels at least",
        source: "docs/design/statistics.md",
    }
    NOT_SETTLED {
        id: "experiment.not-settled",
        looks_at: "the intervals of all levels and combinations against the one that is \
                   recommended",
        speaks_when: "none is shown to differ, and not all are the same within 2 %; or no run on \
                      tape was longer than the drive's buffer",
        source: "docs/design/statistics.md",
    }
    NOT_TESTED {
        id: "experiment.not-tested",
        looks_at: "the place of the recommended level among those that were tested",
        speaks_when: "it is the largest number",
        source: "the plan of the experiment",
    }
    ONE_FOR_ALL {
        id: "experiment.one-for-all",
        looks_at: "what each combination of settings gets of the best of each load",
        speaks_when: "there are several loads: the settings with which the one that loses most \
                      loses least",
        source: "docs/design/statistics.md",
    }
    GAIN {
        id: "experiment.gain",
        looks_at: "the recommended combination against the one in force, as one of all",
        speaks_when: "it is shown to be faster",
        source: "docs/design/statistics.md",
    }
    NO_GAIN {
        id: "experiment.no-gain",
        looks_at: "all combinations against the one in force",
        speaks_when: "none can be faster by 2 % or more",
        source: "docs/design/statistics.md",
    }
    COST {
        id: "experiment.cost",
        looks_at: "memory, processor, page cache, device and others, recommended against in force",
        speaks_when: "one grows by more than 15 %, the device gives 5 % more than was asked for, \
                      or a drive stops more often; its 99 % interval over the repeats leaves out \
                      that it does not, and what differs can act on it",
        source: "the counters of the kernel and the drive during the runs",
    }
    DRIVE_COMPRESSION {
        id: "experiment.drive-compression",
        looks_at: "the rates of random data with the drive's compression on and off",
        speaks_when: "both were run",
        source: "docs/design/statistics.md",
    }
    CURVE {
        id: "experiment.curve",
        looks_at: "the rates over more than three levels of a number",
        speaks_when: "a level differs, so that there is a curve, or all are the same within 2 %; \
                      its numbers are told as values, ranges or bounds, as they are known",
        source: "docs/design/statistics.md",
    }
    KNOWN_LIMIT {
        id: "experiment.known-limit",
        looks_at: "what such a curve comes to, and the limits that are known of the hardware",
        speaks_when: "they are less than 6 % apart",
        source: "--limit, or the native rate of the drive's generation",
    }
    FOREIGN_LOAD {
        id: "experiment.foreign-load",
        looks_at: "what other programs did during each run: cores that a stage of the run waited \
                   for, and bytes on its disk",
        speaks_when: "a run waited for a core for 5 % of its time while others used 10 % of the \
                      cores or more, or they moved a tenth of its bytes on its disk; programs that \
                      are run tell no waiting: half of the cores",
        source: "/proc/stat, /proc/PID/schedstat, /sys/block; docs/bench.md",
    }
    OFF_THE_CURVE {
        id: "experiment.off-the-curve",
        looks_at: "how far each level lies from such a curve",
        speaks_when: "it is more than 15 %; where that is so of more than one level in four, \
                      nothing else is told of the curve",
        source: "docs/design/statistics.md",
    }
    JOINT_EFFECT {
        id: "experiment.joint-effect",
        looks_at: "what a setting brings at each level of a load, and with each other setting",
        speaks_when: "that differs by more than chance explains, all levels of the load taken at \
                      once; or it is shown to be faster with some settings and slower with others, \
                      in which case no average is told",
        source: "docs/design/statistics.md",
    }
    CONDITION {
        id: "experiment.condition",
        looks_at: "what a condition that nobody chooses does on average over all else",
        speaks_when: "conclusions are drawn over such conditions",
        source: "docs/design/statistics.md",
    }
    LENGTH {
        id: "experiment.file-length",
        looks_at: "the rates over the lengths of files, or one length in one file and in many, as \
                   a fixed time of each file and a rate behind it",
        speaks_when: "the longest are shown to be faster than the shortest, no length lies more \
                      than 5 % off, and the fixed time is not only bounded from above",
        source: "docs/design/statistics.md",
    }
    TWO_BLOCK_SIZES {
        id: "experiment.two-block-sizes",
        looks_at: "what the block size of the reads and that of the writes do, each on average \
                   over the other",
        speaks_when: "both were varied, and of each it is settled that it does something or that \
                      all is the same within 2 %",
        source: "docs/design/statistics.md",
    }
    LEFT_OUT {
        id: "experiment.left-out",
        looks_at: "the runs of each setting over the conditions that conclusions are drawn over",
        speaks_when: "a setting has no number under a condition or in a repeat that others have",
        source: "the record of the runs",
    }
    BOUND {
        id: "experiment.bound",
        looks_at: "runs that were stopped, whose rate is below what it would have been had they \
                   ended then, and the recommended rate of their load",
        speaks_when: "there were any: one that is below the interval of that rate has lost, of \
                      all others nothing is settled",
        source: "docs/design/statistics.md",
    }
    READ_AHEAD_TOO_SMALL {
        id: "experiment.read-ahead-too-small",
        looks_at: "the rate with a read-ahead below the program's request, against the first that \
                   holds one",
        speaks_when: "it is shown to be slower",
        source: "mm/readahead.c; docs/design/statistics.md",
    }
    READ_AHEAD_TOO_LARGE {
        id: "experiment.read-ahead-too-large",
        looks_at: "the largest read-ahead against the knee, and what random reads and the page \
                   cache pay for each",
        speaks_when: "it is not shown to be faster, and one of these grows by more than 15 %",
        source: "random reads and counters of the kernel with each setting in force",
    }
    READ_AHEAD_CONFLICT {
        id: "experiment.read-ahead-conflict",
        looks_at: "the rate at the largest of three read-aheads and more, against the fastest",
        speaks_when: "always: what a conflict with the read-ahead of an array would look like, and \
                      whether the rate does fall",
        source: "a published account of read_pref_io and read_nstream; docs/bench.md",
    }
    SPLIT {
        id: "experiment.requests-split",
        looks_at: "bytes of a request of the program, at the device, and max_sectors_kb",
        speaks_when: "the program's are 5 % larger than that limit, and the device's are not",
        source: "/proc/diskstats during the runs",
    }
    SLOW_PROGRAM {
        id: "experiment.slow-program",
        looks_at: "how full the pipes between the programs of a command are, every 10 ms",
        speaks_when: "one program alone has its pipe before it full and the one behind it empty in \
                      60 % of at least 20 looks each",
        source: "FIONREAD at the read end of each pipe",
    }
    MERGED {
        id: "experiment.requests-merged",
        looks_at: "the share of requests that joined another one",
        speaks_when: "it is 20 % or more",
        source: "/proc/diskstats during the runs",
    }
    UNCHANGED {
        id: "experiment.requests-unchanged",
        looks_at: "the same, and bytes of a request of the program and at the device",
        speaks_when: "less than 2 % joined, and the bytes are less than 3 % apart",
        source: "/proc/diskstats during the runs",
    }
    HOST_QUEUE {
        id: "experiment.queue-in-the-host",
        looks_at: "the time of a request in the program, and at the device",
        speaks_when: "the first is more than twice the second",
        source: "fio and /proc/diskstats during the runs",
    }
    SUBMISSION {
        id: "experiment.submission",
        looks_at: "the time until a request is accepted, and from there to its answer",
        speaks_when: "the first is longer",
        source: "fio (slat and clat)",
    }
    FILEMARK {
        id: "experiment.filemark",
        looks_at: "runs to tape with and without the filemark that ends them",
        speaks_when: "they were timed",
        source: "the clock before and behind the filemark",
    }
    STOPS {
        id: "experiment.drive-stops",
        looks_at: "the recommended rate, and the lowest speed of the drive",
        speaks_when: "it is more than 2 % less, and the drive did not count that it never stopped",
        source: "makers' manuals, or reports where there is none; the drive's own counters",
    }
    ZEROS {
        id: "experiment.zeros",
        looks_at: "the rate of zeros, which a drive compresses to next to nothing",
        speaks_when: "it is 10 % above the drive's native rate or that is not known, and is no \
                      limit given",
        source: "docs/design/statistics.md",
    }
    PRINTED_RATE {
        id: "experiment.printed-rate",
        looks_at: "a rate that was printed, and bytes by seconds",
        speaks_when: "they are more than 5 % apart",
        source: "rounding, and units of 1000 for 1024, explain less than that",
    }
    FAILED_RUNS {
        id: "experiment.failed-runs",
        looks_at: "the errors of runs",
        speaks_when: "there were any",
        source: "the error of the run",
    }
    OUTLIERS {
        id: "experiment.outliers",
        looks_at: "the repeats of each combination, from five on",
        speaks_when: "the modified z-score of one is larger than in 99 % of combinations without \
                      any, a limit that depends on the number of repeats",
        source: "Iglewicz and Hoaglin 1993; docs/design/statistics.md",
    }
    REGIME_CHANGE {
        id: "experiment.regime-change",
        looks_at: "the rate within each run of a second and more",
        speaks_when: "behind the first third it changes by a fifth, and the last fifth of the run \
                      or more has the new rate",
        source: "Jackson et al. 2005; docs/design/statistics.md",
    }
    DIP {
        id: "experiment.dip",
        looks_at: "the rate within each run of a second and more",
        speaks_when: "it is another one by a fifth for a tenth of the run or more, and goes back",
        source: "Jackson et al. 2005; docs/design/statistics.md",
    }
    WARM_UP {
        id: "experiment.warm-up",
        looks_at: "the rate within each run of a second and more",
        speaks_when: "it changes for good by a fifth within the first third, or a fifth of a run \
                      without such changes is warm-up by MSER-5",
        source: "White, Cobb and Spratt 2000; docs/design/statistics.md",
    }
    SHORT_RUNS {
        id: "experiment.short-runs",
        looks_at: "the median length of runs",
        speaks_when: "it is less than a second",
        source: "docs/design/statistics.md",
    }
    DRIFT {
        id: "experiment.drift",
        looks_at: "the rates of all runs, less their combinations, over the order of the runs, \
                   from three repeats on",
        speaks_when: "a straight line changes by more than 3 %, and its 99 % interval leaves out \
                      none",
        source: "docs/design/statistics.md",
    }
    DEPENDENT_REPEATS {
        id: "experiment.dependent-repeats",
        looks_at: "the repeats of each combination beside those before them, from five repeats \
                   on and nine pairs of neighbours over all combinations",
        speaks_when: "fewer than 2 % of other orders of the repeats look as alike, and the \
                      machine does not drift",
        source: "Wald and Wolfowitz 1943; docs/design/statistics.md",
    }
    TWO_KINDS {
        id: "experiment.two-kinds",
        looks_at: "the repeats of each combination, cut in two, from six on",
        speaks_when: "that explains more than in 98 % of samples of one kind, over all \
                      combinations, or than in 99.9 % in one; and the machine does not drift",
        source: "docs/design/statistics.md",
    }
    NOT_TESTABLE {
        id: "experiment.not-testable",
        looks_at: "how many repeats there are",
        speaks_when: "they are too few for one of the two above",
        source: "docs/design/statistics.md",
    }
    NOTE {
        id: "experiment.note",
        looks_at: "the notes of runs",
        speaks_when: "there are any",
        source: "whatever ran it",
    }
    ONE_RUN_EACH {
        id: "experiment.one-run-each",
        looks_at: "how often each combination was run",
        speaks_when: "there are some that were run once",
        source: "the record of the runs",
    }
    SEEN_ONCE {
        id: "experiment.seen-once",
        looks_at: "the rates of combinations that were run once",
        speaks_when: "there are such: what was seen, and which scatter of runs would explain it",
        source: "docs/design/statistics.md",
    }
}
