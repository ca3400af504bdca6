//! The rules that explain the numbers of block devices and tape drives.

base::rules! {
    /// Rules for a busy block device.
    pub DEVICE = "A busy block device", told by "takeup watch";

    MERGED {
        id: "device.merged",
        looks_at: "the share of reads or of writes that were merged",
        speaks_when: "it is 20 % or more",
        source: "/proc/diskstats; adjacent requests are merged while they wait",
    }
    WRITE_BACK {
        id: "device.write-back",
        looks_at: "the share of merged writes, and their size before merging",
        speaks_when: "95 % or more were merged, from pages of 4 KiB (up to 10 % more)",
        source: "/proc/diskstats; the page cache submits single pages",
    }
    MERGING_OFF {
        id: "device.merging-off",
        looks_at: "nomerges, and the size of requests",
        speaks_when: "nomerges is 2, and requests are smaller than 64 KiB",
        source: "the kernel's Documentation/ABI/stable/sysfs-block",
    }
    READ_AHEAD_WINDOW {
        id: "device.read-ahead-window",
        looks_at: "the size of reads, and read_ahead_kb",
        speaks_when: "reads are as large as read_ahead_kb or twice as large (10 % less to 2 % \
                      more), and not larger than max_sectors_kb",
        source: "mm/readahead.c: the kernel reads one window ahead; mm/fadvise.c: two after \
                 POSIX_FADV_SEQUENTIAL",
    }
    SPLIT {
        id: "device.split",
        looks_at: "the size of requests, max_sectors_kb, and max_segments pages",
        speaks_when: "the size is 75 % of one of these limits or more: larger requests are split \
                      there, and the last part is smaller",
        source: "block/blk-merge.c; a memory segment has one page at least",
    }
    NOT_MERGED {
        id: "device.not-merged",
        looks_at: "the size of requests, and the share that was merged",
        speaks_when: "they are smaller than 64 KiB, and less than 20 % were merged",
        source: "/proc/diskstats",
    }
    AS_MADE {
        id: "device.as-made",
        looks_at: "the size of requests, and the share that was merged",
        speaks_when: "they are 64 KiB or larger, less than 20 % were merged, and no limit is near",
        source: "/proc/diskstats",
    }
    DISCARDS {
        id: "device.discards",
        looks_at: "discards among all requests",
        speaks_when: "they are 10 % or more",
        source: "/proc/diskstats, since Linux 4.19",
    }
    FLUSHES {
        id: "device.flushes",
        looks_at: "flushes of the device's cache, and writes",
        speaks_when: "there is at least one flush per four writes",
        source: "/proc/diskstats, since Linux 5.5",
    }
    QUEUE_IN_HOST {
        id: "device.queue-in-host",
        looks_at: "mean requests in flight (aqu-sz), the queue depth of the device, and the \
                   scheduler's queue",
        speaks_when: "requests in flight exceed the depth by 10 %, or fill 90 % of the \
                      scheduler's queue",
        source: "/proc/diskstats; queue_depth, or nr_requests where there is no scheduler",
    }
    QUEUE_FULL {
        id: "device.queue-full",
        looks_at: "mean requests in flight, and the queue depth of the device",
        speaks_when: "they differ by 10 % at most",
        source: "/proc/diskstats; queue_depth, or nr_requests where there is no scheduler",
    }
    SLOW {
        id: "device.slow",
        looks_at: "the latency of requests, and how many are in flight",
        speaks_when: "the device is busy half of the time with 2 or fewer in flight, and requests \
                      take longer than 5 ms plus 2 ms per MiB, or on a rotating disk 30 ms plus \
                      10 ms per MiB",
        source: "/proc/diskstats; with so few in flight there is no queue to wait in",
    }
    ROOM_LEFT {
        id: "device.room-left",
        looks_at: "%util, mean requests in flight, and the queue depth of the device",
        speaks_when: "%util is 95 or more, and requests in flight are at most half of a depth of 4 \
                      or more, on a device that does not rotate",
        source: "/proc/diskstats: %util is the time with at least one request in flight",
    }
    STACKED {
        id: "device.stacked",
        looks_at: "the devices directly below",
        speaks_when: "there is at least one",
        source: "/sys/block/*/slaves; block/blk-core.c: bios are counted in ticks of the clock",
    }
    NO_TIMES {
        id: "device.no-times",
        looks_at: "all times of an md array, and queue/iostats",
        speaks_when: "the times are 0 for 100 requests or more that are counted although iostats \
                      is 0",
        source: "/proc/diskstats; drivers/md/md.c of Linux 4.18 and of Debian 11's 5.10 counts \
                 requests and sectors only",
    }
    HIDDEN_PATH {
        id: "device.hidden-path",
        looks_at: "the number of the device",
        speaks_when: "it is 0:0",
        source: "drivers/nvme/host/multipath.c",
    }
    HUNG {
        id: "device.hung",
        looks_at: "requests in flight, and those that are finished",
        speaks_when: "some are in flight, and none finished in two intervals and 2 s",
        source: "/proc/diskstats; only finished requests add to its times",
    }
    NOT_COUNTED {
        id: "device.not-counted",
        looks_at: "queue/iostats",
        speaks_when: "it is 0, and the device has a request queue, or is NVMe or an md array that \
                      counts nothing; other devices ignore the setting",
        source: "the kernel's Documentation/ABI/stable/sysfs-block; block/blk-core.c",
    }
    APPEARED {
        id: "device.appeared",
        looks_at: "the names and numbers of devices from reading to reading",
        speaks_when: "a device is new",
        source: "/proc/diskstats",
    }
    COUNTED_ANEW {
        id: "device.counted-anew",
        looks_at: "the number of a device, and its counters, which only grow",
        speaks_when: "the number changed, or counters decreased without a wrap",
        source: "/proc/diskstats",
    }
}

base::rules! {
    /// Rules for a busy tape drive.
    pub TAPE = "A busy tape drive", told by "takeup watch";

    TAPE_SMALL_BLOCKS {
        id: "tape.small-blocks",
        looks_at: "bytes per call that reads or writes",
        speaks_when: "they are fewer than 65 536, and there are 20 calls or more",
        source: "scsi_tape statistics; each call is one command with a fixed cost",
    }
    TAPE_HOST_SLOWER {
        id: "tape.host-slower",
        looks_at: "the share of the time in which the drive has a command",
        speaks_when: "data are transferred, and it is less than 80 %",
        source: "scsi_tape statistics: io_ns is the time in commands of any kind",
    }
    TAPE_BUSY {
        id: "tape.busy",
        looks_at: "the share of the time in which the drive has a command, and the share of reads \
                   and writes",
        speaks_when: "the first is 95 % or more, and reads and writes take 75 % or more",
        source: "scsi_tape statistics; a drive has one command at a time, so this is its load",
    }
    TAPE_OTHER_COMMANDS {
        id: "tape.other-commands",
        looks_at: "the time in commands that are neither read nor write",
        speaks_when: "some of these ended, and they took 25 % of the time or more",
        source: "scsi_tape statistics: io_ns minus read_ns and write_ns",
    }
    TAPE_STOPS {
        id: "tape.stops",
        looks_at: "the rate while reads and writes are in progress, and the block size",
        speaks_when: "the rate is less than 15 MB/s, reads and writes take 50 % of the time or \
                      more, and blocks have 65 536 bytes or more",
        source: "LTO drives since the third generation do not stream below 20 MB/s: a lower rate \
                 within commands means that the tape stops",
    }
    TAPE_SHORT {
        id: "tape.short",
        looks_at: "transfers that were shorter than requested (resid_cnt), and reads",
        speaks_when: "there are 20 reads or more, and at least half of them were short",
        source: "drivers/scsi/st.c: a block is shorter than the buffer of the program",
    }
    TAPE_WAITS {
        id: "tape.waits",
        looks_at: "the command in flight, and those that ended",
        speaks_when: "one is in flight, and none ended in two intervals and 10 s",
        source: "scsi_tape statistics; winding, loading and erasing take minutes",
    }
    TAPE_CAME {
        id: "tape.came",
        looks_at: "the names of drives and their counters, which only grow",
        speaks_when: "a drive is new, or its counters restarted",
        source: "/sys/class/scsi_tape",
    }
}
