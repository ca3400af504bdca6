//! By what the numbers of a block device are explained.

base::rules! {
    /// What a busy device does, and what that means.
    pub DEVICE = "A busy block device", told by "takeup watch";

    MERGED {
        id: "device.merged",
        looks_at: "the share of requests of a direction that joined another one",
        speaks_when: "it is 20 % or more",
        source: "/proc/diskstats; requests that follow each other are joined while they wait",
    }
    WRITE_BACK {
        id: "device.write-back",
        looks_at: "the same of writes, and how large they were before",
        speaks_when: "95 % or more joined, and they were pages of 4 KiB, by a tenth at most",
        source: "/proc/diskstats; the page cache hands over single pages",
    }
    MERGING_OFF {
        id: "device.merging-off",
        looks_at: "nomerges, and the size of requests",
        speaks_when: "it is 2, and requests are smaller than 64 KiB",
        source: "the kernel's Documentation/ABI/stable/sysfs-block",
    }
    READ_AHEAD_WINDOW {
        id: "device.read-ahead-window",
        looks_at: "the size of reads, and read_ahead_kb",
        speaks_when: "they are as large as it or twice as large, by 10 % less or 2 % more, and no \
                      larger than max_sectors_kb lets them be",
        source: "mm/readahead.c: a reader is ahead by one window; mm/fadvise.c: by two where a \
                 program says that it reads sequentially",
    }
    SPLIT {
        id: "device.split",
        looks_at: "the size of requests, max_sectors_kb, and max_segments pages",
        speaks_when: "it is 75 % of one of these or more: what is larger is cut there, and the \
                      last piece of it is smaller",
        source: "block/blk-merge.c; a piece of memory has one page at least",
    }
    NOT_MERGED {
        id: "device.not-merged",
        looks_at: "the size of requests, and the share that joined another one",
        speaks_when: "they are smaller than 64 KiB, and less than 20 % joined",
        source: "/proc/diskstats",
    }
    AS_MADE {
        id: "device.as-made",
        looks_at: "the same",
        speaks_when: "they are larger, less than 20 % joined, and no limit is near",
        source: "/proc/diskstats",
    }
    DISCARDS {
        id: "device.discards",
        looks_at: "discards among all requests",
        speaks_when: "they are 10 % or more",
        source: "/proc/diskstats, since Linux 4.18",
    }
    FLUSHES {
        id: "device.flushes",
        looks_at: "flushes of the device's cache, and writes",
        speaks_when: "there is one for each four writes or more",
        source: "/proc/diskstats, since Linux 5.5",
    }
    QUEUE_IN_HOST {
        id: "device.queue-in-host",
        looks_at: "requests in flight on average (aqu-sz), how many the device takes at once, and \
                   how many fit into the scheduler's queue",
        speaks_when: "they are 10 % more than the first, or 90 % of the second",
        source: "/proc/diskstats; queue_depth, or nr_requests where there is no scheduler",
    }
    QUEUE_FULL {
        id: "device.queue-full",
        looks_at: "requests in flight on average, and how many the device takes at once",
        speaks_when: "they differ by 10 % at most",
        source: "the same",
    }
    SLOW {
        id: "device.slow",
        looks_at: "the time of requests, and how many are in flight",
        speaks_when: "the device is busy for half of the time with 2 or fewer, and they take \
                      longer than 5 ms and 2 ms for each MiB, or with heads that move 30 ms and \
                      10 ms for each MiB",
        source: "/proc/diskstats; with so few in flight there is no queue to wait in",
    }
    ROOM_LEFT {
        id: "device.room-left",
        looks_at: "%util, requests in flight on average, and how many the device takes at once",
        speaks_when: "the first is 95 or more, and the second at most half of the third, which is \
                      4 or more, on a device without heads that move",
        source: "/proc/diskstats: %util is the time with at least one request in flight",
    }
    STACKED {
        id: "device.stacked",
        looks_at: "what the device is made of",
        speaks_when: "there is something below it",
        source: "/sys/block/*/slaves; block/blk-core.c: bios are counted in ticks of the clock",
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
        speaks_when: "some are in flight and none was finished in two intervals and 2 s",
        source: "/proc/diskstats; finished requests alone add to its times",
    }
    NOT_COUNTED {
        id: "device.not-counted",
        looks_at: "queue/iostats",
        speaks_when: "it is 0, and the device makes requests, or is one of md or NVMe: others \
                      count without asking for it",
        source: "the kernel's Documentation/ABI/stable/sysfs-block; block/blk-core.c",
    }
    APPEARED {
        id: "device.appeared",
        looks_at: "the names and numbers of devices from reading to reading",
        speaks_when: "there is one that was not there before",
        source: "/proc/diskstats",
    }
    COUNTED_ANEW {
        id: "device.counted-anew",
        looks_at: "the number of a device, and its counters, which only grow",
        speaks_when: "there is another number, or counters are below what they were and that is no \
                      wrap of one of them",
        source: "/proc/diskstats",
    }
}

base::rules! {
    /// What a busy tape drive does, and what that means.
    pub TAPE = "A busy tape drive", told by "takeup watch";

    TAPE_SMALL_BLOCKS {
        id: "tape.small-blocks",
        looks_at: "bytes in a call that reads or writes",
        speaks_when: "they are fewer than 65 536, and there are 20 calls or more",
        source: "scsi_tape statistics; each call is a command, which takes its time whatever it \
                 moves",
    }
    TAPE_HOST_SLOWER {
        id: "tape.host-slower",
        looks_at: "the share of the time in which the drive has a command",
        speaks_when: "data move, and it is less than 80 %",
        source: "scsi_tape statistics: io_ns is the time in commands of any kind",
    }
    TAPE_BUSY {
        id: "tape.busy",
        looks_at: "the same, and how much of it reads and writes take",
        speaks_when: "it is 95 % or more, and reads and writes have 75 % or more",
        source: "the same; a drive has one command at a time, so that here it is load",
    }
    TAPE_OTHER_COMMANDS {
        id: "tape.other-commands",
        looks_at: "the time in commands that are neither read nor write",
        speaks_when: "some of these ended, and they took 25 % of the time or more",
        source: "scsi_tape statistics: io_ns less read_ns and write_ns",
    }
    TAPE_STOPS {
        id: "tape.stops",
        looks_at: "bytes for each second that reads and writes take, and how large blocks are",
        speaks_when: "it is less than 15 MB/s, reads and writes have 50 % of the time or more, and \
                      blocks have 65 536 bytes or more",
        source: "LTO drives since the third generation do not stream below 20 MB/s: what is slower \
                 while a command is under way is no streaming",
    }
    TAPE_SHORT {
        id: "tape.short",
        looks_at: "transfers that were shorter than asked for (resid_cnt), and reads",
        speaks_when: "there are 20 reads or more, and half as many short ones or more",
        source: "drivers/scsi/st.c: a block that is shorter than the buffer of the program",
    }
    TAPE_WAITS {
        id: "tape.waits",
        looks_at: "the command in flight, and those that ended",
        speaks_when: "one is in flight and none ended in two intervals and 10 s",
        source: "scsi_tape statistics; winding, loading and erasing take minutes",
    }
    TAPE_CAME {
        id: "tape.came",
        looks_at: "the names of drives and their counters, which only grow",
        speaks_when: "there is one that was not there before, or that counts anew",
        source: "/sys/class/scsi_tape",
    }
}
