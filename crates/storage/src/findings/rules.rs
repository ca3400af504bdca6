//! The rules for the storage below a path.

base::rules! {
    /// Rules for the storage below a path.
    pub STACK = "The storage below a path", told by "takeup probe";

    FAILING {
        id: "stack.failing",
        looks_at: "SMART health of a disk",
        speaks_when: "the disk reports that it is failing",
        source: "smartctl --json: smart_status",
    }
    DEFECTS {
        id: "stack.defects",
        looks_at: "replaced blocks, unreadable blocks and uncorrected medium errors of a disk",
        speaks_when: "one of these counts is above 0",
        source: "smartctl --json: ATA attributes 5 and 197, SCSI grown defects and error counters, \
                 NVMe media errors",
    }
    WORN {
        id: "stack.worn",
        looks_at: "wear: how much of its rated life a disk has used",
        speaks_when: "it is 90 % or more",
        source: "smartctl --json: NVMe percentage_used",
    }
    NOT_RUNNING {
        id: "stack.not-running",
        looks_at: "the state of a disk, its iSCSI session and its Fibre Channel port",
        speaks_when: "one of them is down, and no layer above has another path",
        source: "/sys/class/block/*/device/state, iscsi_session/*/state, \
                 fc_remote_ports/*/port_state",
    }
    PATH_DOWN {
        id: "stack.path-down",
        looks_at: "the paths of a multipath disk",
        speaks_when: "a path has failed, or its controller is not live",
        source: "dmsetup status (drivers/md/dm-mpath.c), device/state; NVMe state and ana_state",
    }
    ONE_PATH {
        id: "stack.one-path",
        looks_at: "the number of paths of a multipath disk",
        speaks_when: "there is only one, and it is not a PCIe slot of this machine",
        source: "/sys/class/block/*/slaves; the controllers of an NVMe subsystem",
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
        looks_at: "background work of an md array",
        speaks_when: "the array checks, repairs, or rebuilds a member",
        source: "md/sync_action; the kernel's Documentation/admin-guide/md.rst",
    }
    FLUSHES_DROPPED {
        id: "stack.flushes-dropped",
        looks_at: "write_cache of a layer and of the devices below it",
        speaks_when: "the layer is write through, and a device below it is write back",
        source: "block/blk-flush.c and blk-core.c: a flush ends at the first layer that has no \
                 cache",
    }
    UNALIGNED {
        id: "stack.unaligned",
        looks_at: "the start of a partition, or of a device on other devices",
        speaks_when: "alignment_offset is not 0; or, without alignment_offset, a partition does \
                      not start at a multiple of the disk's physical block",
        source: "the kernel's Documentation/ABI/stable/sysfs-block",
    }
    UNALIGNED_CHUNK {
        id: "stack.unaligned-chunk",
        looks_at: "the start of a partition on an array",
        speaks_when: "minimum_io_size is larger than a physical block, and the start is not a \
                      multiple of it, or with RAID 4, 5 and 6 of the whole stripe",
        source: "queue/minimum_io_size and optimal_io_size; the kernel's \
                 Documentation/ABI/stable/sysfs-block",
    }
    READ_AHEAD_ELSEWHERE {
        id: "stack.read-ahead-elsewhere",
        looks_at: "read_ahead_kb of layers where it has no effect on this path",
        speaks_when: "it differs from the kernel's own values: 128 KiB, twice optimal_io_size, \
                      twice max_sectors_kb",
        source: "the kernel's Documentation/ABI/testing/sysfs-class-bdi; block/blk-settings.c",
    }
    WINDOW_BELOW_REQUEST {
        id: "stack.window-below-request",
        looks_at: "the read-ahead in effect, and the program's read size (--request)",
        speaks_when: "the read-ahead is smaller than the reads",
        source: "mm/readahead.c: a read is cut at the window, or at max_sectors_kb if that is \
                 larger",
    }
    SHARE_WINDOW {
        id: "stack.share-window",
        looks_at: "read-ahead and rsize of an NFS mount",
        speaks_when: "the read-ahead is smaller than rsize",
        source: "mm/readahead.c; nfsrahead(5): the kernel's own value is 128 KiB since Linux 5.4",
    }
    LARGE_WINDOW {
        id: "stack.large-window",
        looks_at: "the read-ahead in effect",
        speaks_when: "it is 16 MiB or more",
        source: "block/blk-settings.c: the default is twice optimal_io_size, and some storage \
                 reports a very large one",
    }
    VXFS_WINDOW {
        id: "stack.vxfs-window",
        looks_at: "read_pref_io and read_nstream of VxFS, as vxtunefs prints them",
        speaks_when: "their product is below 1 MiB, or below twice the program's read size \
                      (--request)",
        source: "vxtunefs(1M); a published account of both (docs/replay.md)",
    }
    NVME_SCHEDULER {
        id: "stack.nvme-scheduler",
        looks_at: "the scheduler of an NVMe namespace",
        speaks_when: "it is not none",
        source: "block/blk-mq-sched.c: requests of all processors pass through one lock",
    }
    FEWER_REQUESTS {
        id: "stack.fewer-requests",
        looks_at: "nr_requests times the hardware queues, with a scheduler, and queue_depth",
        speaks_when: "the scheduler's queues hold fewer requests than the device accepts",
        source: "the kernel's Documentation/ABI/stable/sysfs-block; block/blk-mq-tag.c",
    }
    CACHED_TWICE {
        id: "stack.cached-twice",
        looks_at: "loop/dio of a loop device whose file lies on a block device",
        speaks_when: "it is 0",
        source: "losetup(8), --direct-io; drivers/block/loop.c",
    }
    NOT_READABLE {
        id: "stack.not-readable",
        looks_at: "files that this user may not read",
        speaks_when: "there is at least one",
        source: "the kernel (EACCES)",
    }
}
