//! What becomes of each option of fio in a job: it is passed on, left out, or refused.
//!
//! An option that may harm is refused: it names files of its own, removes files, runs programs or
//! loads code. An option that only shapes fio's own output, or that asks for what takeup does
//! itself, is left out. An option that is not in the table is refused: a new fio may have given it
//! any meaning. A test holds the table against the options that the installed fio has.

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It goes to fio as it is, with a plain value.
    Passed,
    /// It does not go to fio. The text says why, and is empty where the run is the same without.
    LeftOut(&'static str),
    /// The job is not run. The text says why, and what to do.
    Refused(&'static str),
    /// As `Refused`, unless its value is 0, which is fio's own default.
    RefusedIfSet(&'static str),
}

/// Engines that do nothing but read and write the files of a section.
pub const ENGINES: &[&str] =
    &["sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring"];

/// Engines that use no file at all.
pub const ENGINES_WITHOUT_FILES: &[&str] = &["null", "cpuio"];

/// Why an engine is refused.
pub fn engine_advice(engine: &str) -> &'static str {
    match engine.split(':').next().unwrap_or(engine) {
        "external" => "it loads code from a file: name one of fio's own engines",
        "exec" => "it runs programs: start them beside `takeup bench disk`",
        "filecreate" | "filestat" | "filedelete" | "dircreate" | "dirstat" | "dirdelete"
        | "ftruncate" | "falloc" | "e4defrag" => {
            "it makes, cuts or removes files, and moves no bytes: --load writefiles,readfiles \
             measures many files"
        }
        "mmap" | "splice" | "page_fault" => {
            "it is not held to its files here: use psync, libaio or io_uring"
        }
        _ => {
            "takeup runs sync, psync, vsync, pvsync, pvsync2, posixaio, libaio, io_uring, null and \
             cpuio"
        }
    }
}

const TAKEUPS_REPORT: &str = "takeup reports each run itself";
const LOGS: &str = "no log files are written; the record of the run has each latency (`--output`)";
const ERRORS: &str = "a run with errors ends with them";
const OWN_FILES: &str = "takeup makes the files before the run and removes them after it";

const EXECUTES: &str = "it runs a program: run it by hand, before or after `takeup bench disk`";
const REPLAYS: &str =
    "it works on files that the trace names: write the load as rw, bs and iodepth";
const REMOVES: &str = "it removes files: leave it out; takeup removes the files that it made";
const OUTGROWS: &str = "it goes past the size that was checked: give size=";
const STATES: &str = "it uses files of an earlier fio: leave it out";
const CGROUPS: &str = "it changes control groups of the machine: start takeup itself in one, with \
                       `systemd-run --scope`";
const USERS: &str = "takeup does not change the user of fio: run `sudo -u USER takeup bench disk`";

use Treatment::{LeftOut, Passed, Refused, RefusedIfSet};

/// Options by what becomes of them, with the second names that fio knows them by.
const TABLE: &[(Treatment, &[&str])] = &[
    // The load: what is asked for, of which size, where, and how fast.
    (
        Passed,
        &[
            "atomic",
            "ba",
            "blockalign",
            "blocksize",
            "blocksize_range",
            "blocksize_unaligned",
            "bs",
            "bs_is_seq_rand",
            "bs_unaligned",
            "bsrange",
            "bssplit",
            "buffered",
            "direct",
            "directory",
            "end_fsync",
            "end_syncfs",
            "fallocate",
            "fadvise_hint",
            "fdatasync",
            "file_service_type",
            "filename",
            "filename_format",
            "fileoffset",
            "filesize",
            "flow",
            "flow_id",
            "flow_sleep",
            "flow_watermark",
            "fsync",
            "fsync_on_close",
            "io_limit",
            "io_size",
            "io_submit_mode",
            "ioengine",
            "iodepth",
            "iodepth_batch",
            "iodepth_batch_complete",
            "iodepth_batch_complete_max",
            "iodepth_batch_complete_min",
            "iodepth_batch_submit",
            "iodepth_low",
            "lockfile",
            "loops",
            "norandommap",
            "nr_files",
            "nrfiles",
            "number_ios",
            "numjobs",
            "offset",
            "offset_increment",
            "openfiles",
            "overwrite",
            "percentage_random",
            "percentage_sequential",
            "pre_read",
            "random_distribution",
            "random_generator",
            "random_sequence_stride",
            "allrandrepeat",
            "randrepeat",
            "randseed",
            "readwrite",
            "rw",
            "rw_sequencer",
            "rwmixcycle",
            "rwmixread",
            "rwmixwrite",
            "serialize_overlap",
            "size",
            "softrandommap",
            "sync",
            "sync_file_range",
            "write_barrier",
            "write_hint",
        ],
    ),
    // When, on which processors, with which priority.
    (
        Passed,
        &[
            "clocksource",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "exit_what",
            "exitall",
            "exitall_on_error",
            "gtod_cpu",
            "invalidate",
            "latency_percentile",
            "latency_run",
            "latency_target",
            "latency_window",
            "max_latency",
            "new_group",
            "nice",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "prio",
            "prioclass",
            "priohint",
            "ramp_time",
            "rate",
            "rate_cycle",
            "rate_ignore_thinktime",
            "rate_iops",
            "rate_iops_min",
            "rate_min",
            "rate_process",
            "ratecycle",
            "ratemin",
            "runtime",
            "ss",
            "ss_dur",
            "ss_interval",
            "ss_ramp",
            "startdelay",
            "steadystate",
            "steadystate_check_interval",
            "steadystate_duration",
            "steadystate_ramp_time",
            "stonewall",
            "thinkcycles",
            "thinktime",
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_iotime",
            "thinktime_spin",
            "time_based",
            "timeout",
            "wait_for",
            "wait_for_previous",
        ],
    ),
    // What is written, and whether it is read back.
    (
        Passed,
        &[
            "buffer_compress_chunk",
            "buffer_compress_percentage",
            "buffer_pattern",
            "dedupe_global",
            "dedupe_mode",
            "dedupe_percentage",
            "dedupe_working_set_percentage",
            "do_verify",
            "experimental_verify",
            "hugepage-size",
            "iomem",
            "iomem_align",
            "mem",
            "mem_align",
            "refill_buffers",
            "scramble_buffers",
            "trim_backlog",
            "trim_backlog_batch",
            "trim_percentage",
            "trim_verify_zero",
            "verify",
            "verify_async",
            "verify_async_cpus",
            "verify_backlog",
            "verify_backlog_batch",
            "verify_fatal",
            "verify_header_seed",
            "verify_interval",
            "verify_offset",
            "verify_pattern",
            "verify_pattern_interval",
            "verify_write_sequence",
            "verifysort",
            "verifysort_nr",
            "zero_buffers",
        ],
    ),
    // Parts of a file or a device in turn; zones.
    (
        Passed,
        &[
            "ignore_zone_limits",
            "job_max_open_zones",
            "max_open_zones",
            "read_beyond_wp",
            "zone_reset_frequency",
            "zone_reset_threshold",
            "zonecapacity",
            "zonemode",
            "zonerange",
            "zonesize",
            "zoneskip",
        ],
    ),
    // What fio counts of it.
    (
        Passed,
        &[
            "clat_percentiles",
            "description",
            "disable_bw",
            "disable_bw_measurement",
            "disable_clat",
            "disable_lat",
            "disable_slat",
            "gtod_reduce",
            "kb_base",
            "lat_percentiles",
            "percentile_list",
            "slat_percentiles",
        ],
    ),
    // Of the engines.
    (
        Passed,
        &[
            "cmdprio",
            "cmdprio_bssplit",
            "cmdprio_class",
            "cmdprio_percentage",
            "cpuchunks",
            "cpuload",
            "cpumode",
            "exit_on_io_done",
            "fixedbufs",
            "force_async",
            "hipri",
            "hipri_percentage",
            "nonvectored",
            "nowait",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "uncached",
            "userspace_reap",
        ],
    ),
    // The section has a name; all of fio is one process; each section has its rows.
    (
        LeftOut(""),
        &[
            "allow_file_create",
            "allow_mounted_write",
            "bwavgtime",
            "create_fsync",
            "create_serialize",
            "disk_util",
            "error_dump",
            "group_reporting",
            "iopsavgtime",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
            "log_avg_msec",
            "log_compression",
            "log_compression_cpus",
            "log_entries",
            "log_hist_coarseness",
            "log_hist_msec",
            "log_issue_time",
            "log_max_value",
            "log_offset",
            "log_prio",
            "log_store_compressed",
            "log_unix_epoch",
            "log_window_value",
            "job_start_clock_id",
            "name",
            "per_job_logs",
            "significant_figures",
            "thread",
            "threads",
            "unique_filename",
            "unit_base",
            "verify_state_save",
        ],
    ),
    (
        LeftOut(LOGS),
        &["write_bw_log", "write_hist_log", "write_iolog", "write_iops_log", "write_lat_log"],
    ),
    (LeftOut(TAKEUPS_REPORT), &["block_error_percentiles", "stats", "unified_rw_reporting"]),
    (LeftOut(ERRORS), &["continue_on_error", "ignore_error", "recover_zbd_write_error"]),
    (LeftOut(OWN_FILES), &["create_on_open"]),
    (LeftOut("a job ends with its size, never with a full disk"), &["fill_device", "fill_fs"]),
    (LeftOut("blocks that fail verification are not written to files"), &["verify_dump"]),
    (Refused(EXECUTES), &["exec_postrun", "exec_prerun"]),
    (
        Refused(REPLAYS),
        &[
            "merge_blktrace_file",
            "merge_blktrace_iters",
            "merge_blktrace_scalars",
            "read_iolog",
            "read_iolog_chunked",
            "replay_align",
            "replay_no_stall",
            "replay_redirect",
            "replay_scale",
            "replay_skip",
            "replay_time_scale",
        ],
    ),
    (RefusedIfSet(REMOVES), &["unlink", "unlink_each_loop"]),
    (RefusedIfSet(OUTGROWS), &["file_append"]),
    (Refused("it adds files that the job does not name: name them with filename="), &["opendir"]),
    (RefusedIfSet("it makes the files and measures nothing: leave it out"), &["create_only"]),
    (RefusedIfSet(STATES), &["verify_only", "verify_state_load"]),
    (
        Refused("it changes the disk: --scheduler NAME sets it and puts it back after the runs"),
        &["ioscheduler"],
    ),
    (
        Refused("it moves the start of what is used: give offset= as it should be"),
        &["offset_align"],
    ),
    (Refused("it locks memory that others need: leave it out"), &["lockmem"]),
    (Refused(CGROUPS), &["cgroup", "cgroup_nodelete", "cgroup_weight"]),
    (Refused(USERS), &["gid", "uid"]),
    (Refused("it stands for a load that is not in the file: write that load"), &["profile"]),
    (
        Refused("it needs io_uring_cmd, which sends commands past the kernel: leave it out"),
        &["cmd_type"],
    ),
    (Refused("it puts another file into the job: copy the lines of that file"), &["include"]),
];

/// What becomes of the option of this name; `None` for an unknown one.
pub fn treatment(name: &str) -> Option<Treatment> {
    let found = TABLE.iter().find(|(_, names)| names.contains(&name));
    found.map(|(treatment, _)| *treatment)
}

/// Names with the same meaning have the first of these.
const SAME: &[(&str, &[&str])] = &[
    ("rw", &["readwrite"]),
    ("bs", &["blocksize"]),
    ("ba", &["blockalign"]),
    ("bsrange", &["blocksize_range"]),
    ("bs_unaligned", &["blocksize_unaligned"]),
    ("iodepth_batch", &["iodepth_batch_submit"]),
    ("iodepth_batch_complete_min", &["iodepth_batch_complete"]),
    ("io_size", &["io_limit"]),
    ("fill_device", &["fill_fs"]),
    ("offset", &["fileoffset"]),
    ("nrfiles", &["nr_files"]),
    ("runtime", &["timeout"]),
    ("mem", &["iomem"]),
    ("iomem_align", &["mem_align"]),
    ("rate_min", &["ratemin"]),
    ("rate_cycle", &["ratecycle"]),
    ("stonewall", &["wait_for_previous"]),
    ("disable_bw_measurement", &["disable_bw"]),
    ("steadystate", &["ss"]),
    ("steadystate_duration", &["ss_dur"]),
    ("steadystate_ramp_time", &["ss_ramp"]),
    ("steadystate_check_interval", &["ss_interval"]),
    ("thread", &["threads"]),
];

/// The first name of an option.
pub fn first_name(name: &str) -> &str {
    let found = SAME.iter().find(|(_, others)| others.contains(&name));
    found.map_or(name, |(first, _)| first)
}

/// Options of these names, in the order of the alphabet, for the documentation.
#[cfg(test)]
pub fn names(wanted: fn(&Treatment) -> bool) -> Vec<&'static str> {
    let found = TABLE.iter().filter(|(treatment, _)| wanted(treatment));
    let mut names: Vec<&str> = found.flat_map(|(_, names)| names.iter().copied()).collect();
    names.sort_unstable();
    names
}
