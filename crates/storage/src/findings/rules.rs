//! By what something about the layers below a path stands out.

base::rules! {
    /// What stands out in the storage below a path.
    pub STACK = "The storage below a path", told by "takeup probe";

    FAILING {
        id: "stack.failing",
        looks_at: "whether a disk takes itself for good",
        speaks_when: "it does not",
        source: "smartctl --json: smart_status",
    }
    DEFECTS {
        id: "stack.defects",
        looks_at: "blocks that a disk has replaced or cannot read, and errors that it could not \
                   correct",
        speaks_when: "there are any",
        source: "smartctl --json: attributes 5 and 197 of ATA, grown defects and error counters of \
                 SCSI, media errors of NVMe",
    }
    WORN {
        id: "stack.worn",
        looks_at: "how much of the life that its maker expects of a disk is over",
        speaks_when: "it is 90 % or more",
        source: "smartctl --json: percentage_used of NVMe",
    }
    NOT_RUNNING {
        id: "stack.not-running",
        looks_at: "the state of a disk, of its session over iSCSI and of its port at Fibre Channel",
        speaks_when: "one of them does not run, and there is no layer above that has other paths",
        source: "/sys/class/block/*/device/state, iscsi_session/*/state, \
                 fc_remote_ports/*/port_state",
    }
    PATH_DOWN {
        id: "stack.path-down",
        looks_at: "the paths to a disk that has several",
        speaks_when: "one has failed, or the controller at its end is not live",
        source: "dmsetup status (drivers/md/dm-mpath.c), device/state; state and ana_state of NVMe",
    }
    ONE_PATH {
        id: "stack.one-path",
        looks_at: "how many paths there are to a disk that may have several",
        speaks_when: "there is one, and it is not a slot of this machine",
        source: "/sys/class/block/*/slaves; the controllers of a subsystem of NVMe",
    }
    DEGRADED {
        id: "stack.degraded",
        looks_at: "the members of an array or a pool",
        speaks_when: "one is missing or has failed, or a pool is not ONLINE",
        source: "md/degraded and md/dev-*/state; fs/btrfs/*/devinfo/*/missing; \
                 /proc/spl/kstat/zfs/*/state",
    }
    REBUILDING {
        id: "stack.rebuilding",
        looks_at: "what an array does besides",
        speaks_when: "it is not idle: it checks, repairs or copies to a new member",
        source: "md/sync_action; the kernel's Documentation/admin-guide/md.rst",
    }
    FLUSHES_DROPPED {
        id: "stack.flushes-dropped",
        looks_at: "write_cache of a layer and of those below it",
        speaks_when: "it is write through, and one of them is write back",
        source: "block/blk-flush.c and blk-core.c: a flush ends at the first layer that has no \
                 cache",
    }
    UNALIGNED {
        id: "stack.unaligned",
        looks_at: "where a partition or a device on others begins",
        speaks_when: "alignment_offset is not 0, or, where there is none, the beginning of a \
                      partition is no multiple of the disk's physical block",
        source: "the kernel's Documentation/ABI/stable/sysfs-block",
    }
    UNALIGNED_CHUNK {
        id: "stack.unaligned-chunk",
        looks_at: "where a partition on an array begins",
        speaks_when: "that is no multiple of the smallest request that suits it, which is larger \
                      than its blocks; with RAID 4, 5 and 6 no multiple of the whole stripe",
        source: "queue/minimum_io_size and optimal_io_size; the kernel's \
                 Documentation/ABI/stable/sysfs-block",
    }
    READ_AHEAD_ELSEWHERE {
        id: "stack.read-ahead-elsewhere",
        looks_at: "read_ahead_kb of layers where it does nothing for this path",
        speaks_when: "it is none of the kernel's own values: 128 KiB, twice optimal_io_size, twice \
                      max_sectors_kb",
        source: "the kernel's Documentation/ABI/testing/sysfs-class-bdi; block/blk-settings.c",
    }
    WINDOW_BELOW_REQUEST {
        id: "stack.window-below-request",
        looks_at: "the read-ahead that acts, and the reads of the program, where --request tells \
                   them",
        speaks_when: "the first is smaller",
        source: "mm/readahead.c: a read is cut at the window, or at max_sectors_kb where that is \
                 more",
    }
    SHARE_WINDOW {
        id: "stack.share-window",
        looks_at: "the read-ahead of a share, and rsize",
        speaks_when: "the first is smaller",
        source: "mm/readahead.c; nfsrahead(5): the kernel's own value is 128 KiB since Linux 5.4",
    }
    LARGE_WINDOW {
        id: "stack.large-window",
        looks_at: "the read-ahead that acts",
        speaks_when: "it is 16 MiB or more",
        source: "block/blk-settings.c: it begins as twice optimal_io_size, which some storage \
                 tells to be very large",
    }
    VXFS_WINDOW {
        id: "stack.vxfs-window",
        looks_at: "read_pref_io and read_nstream of VxFS, which vxtunefs tells",
        speaks_when: "their product is below 1 MiB, or below twice the reads of the program, where \
                      --request tells them",
        source: "vxtunefs(1M); a published account of both (docs/replay.md)",
    }
    NVME_SCHEDULER {
        id: "stack.nvme-scheduler",
        looks_at: "the scheduler of a namespace of NVMe",
        speaks_when: "it is not none",
        source: "block/blk-mq-sched.c: requests of all processors pass through one lock",
    }
    FEWER_REQUESTS {
        id: "stack.fewer-requests",
        looks_at: "nr_requests with a scheduler, in all hardware queues, and queue_depth",
        speaks_when: "the first is less",
        source: "the kernel's Documentation/ABI/stable/sysfs-block; block/blk-mq-tag.c",
    }
    CACHED_TWICE {
        id: "stack.cached-twice",
        looks_at: "loop/dio of a loop device over a file on a device",
        speaks_when: "it is 0",
        source: "losetup(8), --direct-io; drivers/block/loop.c",
    }
    NOT_READABLE {
        id: "stack.not-readable",
        looks_at: "what this user may not read",
        speaks_when: "there is any",
        source: "the kernel (EACCES)",
    }
}
