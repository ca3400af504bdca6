//! The rules that judge an experiment. `docs/design/statistics.md` has the methods, their limits
//! and their sources.

base::rules! {
    /// What the runs show.
    pub EXPERIMENT = "An experiment", told by "takeup bench, report";

    SETTING {
        id: "experiment.setting",
        looks_at: "the rates over the levels of a setting, all else as recommended",
        speaks_when: "a level differs from the others, or all are the same within 2 %. Takeup \
                      keeps the level in force unless another one is shown to be faster",
        source: "docs/design/statistics.md",
    }
    PLATEAU {
        id: "experiment.plateau",
        looks_at: "the intervals of all levels of a number against the fastest one",
        speaks_when: "from some level on, at least two levels lie within 15 % of the fastest, and \
                      none of them is shown to differ from the recommended one",
        source: "docs/design/statistics.md",
    }
    NOT_SETTLED {
        id: "experiment.not-settled",
        looks_at: "the intervals of all levels and combinations against the recommended one",
        speaks_when: "no level is shown to differ, and not all are the same within 2 %; or no run \
                      on tape was longer than the drive's buffer",
        source: "docs/design/statistics.md",
    }
    NOT_TESTED {
        id: "experiment.not-tested",
        looks_at: "the place of the recommended level among the tested ones",
        speaks_when: "it is the largest one",
        source: "the plan of the experiment",
    }
    ONE_FOR_ALL {
        id: "experiment.one-for-all",
        looks_at: "the share of each load's best rate that each combination of settings reaches",
        speaks_when: "there are several loads. Takeup names the settings with which the \
                      worst-served load loses least",
        source: "docs/design/statistics.md",
    }
    GAIN {
        id: "experiment.gain",
        looks_at: "the recommended combination against the one in force, corrected for the number \
                   of comparisons",
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
        speaks_when: "a cost grows by more than 15 %, the device reads 5 % more than requested, or \
                      a drive stops more often; the 99 % interval over the repeats excludes no \
                      change, and the changed setting can affect that cost",
        source: "the counters of the kernel and the drive during the runs",
    }
    DRIVE_COMPRESSION {
        id: "experiment.drive-compression",
        looks_at: "the rates of random data with the drive's compression on and off",
        speaks_when: "both were measured",
        source: "docs/design/statistics.md",
    }
    CURVE {
        id: "experiment.curve",
        looks_at: "the rates over more than three levels of a number",
        speaks_when: "a level differs, so that there is a curve, or all are the same within 2 %. \
                      The numbers are values, ranges or bounds, as far as they are known",
        source: "docs/design/statistics.md",
    }
    KNOWN_LIMIT {
        id: "experiment.known-limit",
        looks_at: "the highest rate of such a curve, and the known limits of the hardware",
        speaks_when: "they are less than 6 % apart",
        source: "--limit, or the native rate of the drive's generation",
    }
    FOREIGN_LOAD {
        id: "experiment.foreign-load",
        looks_at: "the activity of other programs during each run: cores that a stage of the run \
                   waited for, and bytes on its disk",
        speaks_when: "a run waited for a core for 5 % of its time while other programs used 10 % \
                      of the cores or more, or they moved a tenth of its bytes on its disk. For \
                      programs whose waiting is unknown, the limit is half of the cores",
        source: "/proc/stat, /proc/PID/schedstat, /sys/block; docs/bench.md",
    }
    OFF_THE_CURVE {
        id: "experiment.off-the-curve",
        looks_at: "how far each level lies from such a curve",
        speaks_when: "the distance is more than 15 %. If more than one level in four lies that far \
                      off, Takeup reports nothing else about the curve",
        source: "docs/design/statistics.md",
    }
    JOINT_EFFECT {
        id: "experiment.joint-effect",
        looks_at: "the effect of a setting at each level of a load, and with each other setting",
        speaks_when: "the effects differ by more than chance explains, over all levels of the load \
                      together; or the setting is shown to be faster with some settings and slower \
                      with others, and then no average is reported",
        source: "docs/design/statistics.md",
    }
    CONDITION {
        id: "experiment.condition",
        looks_at: "the average effect of a condition that you do not choose, over everything else",
        speaks_when: "conclusions are drawn over such conditions",
        source: "docs/design/statistics.md",
    }
    LENGTH {
        id: "experiment.file-length",
        looks_at: "the rates over the lengths of files, or over one length cut into more files, as \
                   a fixed time of each file and a rate after it",
        speaks_when: "the longest are shown to be faster than the shortest, no length lies more \
                      than 5 % off the line, and the fixed time has a lower bound as well as an \
                      upper one",
        source: "docs/design/statistics.md",
    }
    TWO_BLOCK_SIZES {
        id: "experiment.two-block-sizes",
        looks_at: "the effects of the block size of the reads and of the writes, each on average \
                   over the other",
        speaks_when: "both were varied, and each is settled: it has an effect, or all levels are \
                      the same within 2 %",
        source: "docs/design/statistics.md",
    }
    LEFT_OUT {
        id: "experiment.left-out",
        looks_at: "the runs of each setting under each of the conditions that are averaged",
        speaks_when: "a setting has no result under a condition or in a repeat where others have \
                      one",
        source: "the record of the runs",
    }
    BOUND {
        id: "experiment.bound",
        looks_at: "stopped runs, and the recommended rate of their load. The rate of a stopped run \
                   is below the rate of a run that ended at that moment",
        speaks_when: "there were stopped runs. A run below the interval of the recommended rate \
                      has lost; for all others nothing is settled",
        source: "docs/design/statistics.md",
    }
    READ_AHEAD_TOO_SMALL {
        id: "experiment.read-ahead-too-small",
        looks_at: "the rate with a read-ahead below the program's request, against the smallest \
                   one that holds a request",
        speaks_when: "it is shown to be slower",
        source: "mm/readahead.c; docs/design/statistics.md",
    }
    READ_AHEAD_TOO_LARGE {
        id: "experiment.read-ahead-too-large",
        looks_at: "the largest read-ahead against the knee, and what each costs random reads and \
                   the page cache",
        speaks_when: "it is not shown to be faster, and one of these costs grows by more than 15 %",
        source: "random reads and counters of the kernel with each setting in force",
    }
    READ_AHEAD_CONFLICT {
        id: "experiment.read-ahead-conflict",
        looks_at: "the rate at the largest read-ahead against the fastest, with at least three of \
                   them",
        speaks_when: "always. Takeup describes how a conflict with the read-ahead of an array \
                      shows, and whether the rate falls",
        source: "a published account of read_pref_io and read_nstream; docs/bench.md",
    }
    SPLIT {
        id: "experiment.requests-split",
        looks_at: "the size of requests in the program and at the device, and max_sectors_kb",
        speaks_when: "the program's requests are 5 % larger than that limit, and the device's are \
                      not",
        source: "/proc/diskstats during the runs",
    }
    SLOW_PROGRAM {
        id: "experiment.slow-program",
        looks_at: "how full the pipes between the programs of a command are, every 10 ms",
        speaks_when: "exactly one program has a full pipe into it and an empty pipe behind it, \
                      each in 60 % of at least 20 looks",
        source: "FIONREAD at the read end of each pipe",
    }
    MERGED {
        id: "experiment.requests-merged",
        looks_at: "the share of requests that the kernel merged into another one",
        speaks_when: "it is 20 % or more",
        source: "/proc/diskstats during the runs",
    }
    UNCHANGED {
        id: "experiment.requests-unchanged",
        looks_at: "that share, and the size of requests in the program and at the device",
        speaks_when: "less than 2 % are merged, and the sizes are less than 3 % apart",
        source: "/proc/diskstats during the runs",
    }
    HOST_QUEUE {
        id: "experiment.queue-in-the-host",
        looks_at: "the time of a request in the program and at the device",
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
        speaks_when: "the filemarks were timed",
        source: "the clock before and after the filemark",
    }
    STOPS {
        id: "experiment.drive-stops",
        looks_at: "the recommended rate, and the lowest speed of the drive",
        speaks_when: "the rate is more than 2 % below that speed, and the drive's counters do not \
                      show that it never stopped",
        source: "makers' manuals, or reports where there is none; the drive's own counters",
    }
    ZEROS {
        id: "experiment.zeros",
        looks_at: "the rate of zeros, which a drive compresses to almost nothing",
        speaks_when: "the rate is 10 % above the drive's native rate, or that is unknown, and the \
                      rate matches no limit given with --limit",
        source: "docs/design/statistics.md",
    }
    PRINTED_RATE {
        id: "experiment.printed-rate",
        looks_at: "a printed rate, and bytes divided by seconds",
        speaks_when: "they are more than 5 % apart",
        source: "rounding, and units of 1000 instead of 1024, explain less than that",
    }
    FAILED_RUNS {
        id: "experiment.failed-runs",
        looks_at: "the errors of runs",
        speaks_when: "a run failed",
        source: "the error of the run",
    }
    OUTLIERS {
        id: "experiment.outliers",
        looks_at: "the repeats of each combination, from five on",
        speaks_when: "the modified z-score of a repeat is larger than in 99 % of combinations \
                      without outliers; the limit depends on the number of repeats",
        source: "Iglewicz and Hoaglin 1993; docs/design/statistics.md",
    }
    REGIME_CHANGE {
        id: "experiment.regime-change",
        looks_at: "the rate within each run of a second and more",
        speaks_when: "after the first third it changes by a fifth, and at least the last fifth of \
                      the run has the new rate",
        source: "Jackson et al. 2005; docs/design/statistics.md",
    }
    DIP {
        id: "experiment.dip",
        looks_at: "the rate within each run of a second and more",
        speaks_when: "it changes by a fifth for a tenth of the run or more, then returns",
        source: "Jackson et al. 2005; docs/design/statistics.md",
    }
    WARM_UP {
        id: "experiment.warm-up",
        looks_at: "the rate within each run of a second and more",
        speaks_when: "it changes permanently by a fifth within the first third, or MSER-5 finds \
                      that a fifth of a run without such changes is warm-up",
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
        looks_at: "the rates of all runs over the order of the runs, without the effect of their \
                   combinations, from three repeats on",
        speaks_when: "a straight line through them changes by more than 3 %, and its 99 % interval \
                      excludes no change",
        source: "docs/design/statistics.md",
    }
    DEPENDENT_REPEATS {
        id: "experiment.dependent-repeats",
        looks_at: "each repeat of a combination and the one before it, with at least five repeats \
                   and nine pairs of neighbours over all combinations",
        speaks_when: "fewer than 2 % of other orders of the repeats have neighbours as similar, \
                      and the machine does not drift",
        source: "Wald and Wolfowitz 1943; docs/design/statistics.md",
    }
    TWO_KINDS {
        id: "experiment.two-kinds",
        looks_at: "the repeats of each combination, split into two groups, from six repeats on",
        speaks_when: "two groups explain more than in 98 % of samples with one speed, over all \
                      combinations, or more than in 99.9 %, in one; and the machine does not drift",
        source: "docs/design/statistics.md",
    }
    NOT_TESTABLE {
        id: "experiment.not-testable",
        looks_at: "the number of repeats",
        speaks_when: "there are too few for one of the two rules above",
        source: "docs/design/statistics.md",
    }
    NOTE {
        id: "experiment.note",
        looks_at: "the notes of runs",
        speaks_when: "a run has a note",
        source: "the program that made the record",
    }
    ONE_RUN_EACH {
        id: "experiment.one-run-each",
        looks_at: "how often each combination was run",
        speaks_when: "a combination was run only once",
        source: "the record of the runs",
    }
    SEEN_ONCE {
        id: "experiment.seen-once",
        looks_at: "the rates of combinations that were run only once",
        speaks_when: "there are such combinations. Takeup reports the rates, and which scatter of \
                      runs would explain the difference",
        source: "docs/design/statistics.md",
    }
}
