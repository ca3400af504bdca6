//! The rules by which pasted text is read.

base::rules! {
    /// Rules for what other programs printed.
    pub GIVEN = "What other programs printed", told by "takeup diagnose --given";

    BLOCK_SIZE {
        id: "given.block-size",
        looks_at: "runs of dd, tar or btape with the same data and target, in blocks of several \
                   sizes",
        speaks_when: "there are two sizes or more; a size is enough if no other was 5 % faster",
        source: "the times that dd and time printed, the rates of btape",
    }
    COMPRESSES {
        id: "given.compresses",
        looks_at: "rates of one tape drive with several sources, in blocks of one size",
        speaks_when: "one is 1.2 times another or more, and both took 10 s or longer",
        source: "the times that dd printed",
    }
    BUFFERED {
        id: "given.buffered",
        looks_at: "times of one pipeline to /dev/null, to its target, and through dd to it",
        speaks_when: "at least two of these are there",
        source: "the times that time printed",
    }
    PROCESSOR {
        id: "given.processor",
        looks_at: "elapsed and processor time of a pipeline to /dev/null",
        speaks_when: "the processor was busy for 90 % of it or more",
        source: "the times that time printed",
    }
    PROGRAM_BUSY {
        id: "given.program-busy",
        looks_at: "elapsed and processor time of one program",
        speaks_when: "it took 5 s or longer, and the processor was busy for 90 % of it or more",
        source: "the times that time printed, of zsh also those of a pipeline's programs",
    }
    AS_MADE {
        id: "given.as-made",
        looks_at: "the size and direction of a device's requests, and those of the job",
        speaks_when: "the sizes differ by 3 % at most, and less than 1 % were merged",
        source: "iostat -x, and fio or its job",
    }
    MERGED {
        id: "given.merged",
        looks_at: "the share of reads or of writes that were merged",
        speaks_when: "it is 20 % or more, and the device was busy for 5 % of the time",
        source: "iostat -x",
    }
    SPLIT {
        id: "given.split",
        looks_at: "the size of a device's requests, the job's block size, and max_sectors_kb",
        speaks_when: "the job's blocks are larger than the limit, and the requests have half of \
                      the limit or more",
        source: "iostat -x, fio or its job, and /sys/block/DEVICE/queue",
    }
    MERGING_OFF {
        id: "given.merging-off",
        looks_at: "nomerges, and intervals with and without merging on the same device",
        speaks_when: "nomerges is 2 where the interval stands, and nothing was merged",
        source: "iostat -x, and what was typed",
    }
    OFFERED {
        id: "given.offered",
        looks_at: "the engine, depth and processes of a job of fio, and the rates and latencies \
                   that fio measured with it",
        speaks_when: "depth and processes are there; that all is in flight if rate times latency \
                      is 95 % of it or more (Little 1961), but not of libaio without direct=1",
        source: "fio or its job",
    }
    IN_FLIGHT {
        id: "given.in-flight",
        looks_at: "the mean number of requests in flight, and what the job offers: its depth times \
                   its processes",
        speaks_when: "a device was busy for 90 % of the time or more",
        source: "iostat -x, and fio or its job",
    }
    SYNC_EACH {
        id: "given.sync-each",
        looks_at: "writes, and the calls of fsync and fdatasync on the same file",
        speaks_when: "95 % of the writes to a file are followed by one",
        source: "strace",
    }
    ONE_AT_A_TIME {
        id: "given.one-at-a-time",
        looks_at: "the calls that submit reads and writes",
        speaks_when: "one process has made them, and none is in flight beside another",
        source: "strace",
    }
    OTHER_RATE {
        id: "given.other-rate",
        looks_at: "size, time and rate of a summary",
        speaks_when: "there is one size, and the rate differs from size divided by time by more \
                      than 5 %, in units of 1000 and of 1024",
        source: "the summary itself",
    }
    NO_TAPE {
        id: "given.no-tape",
        looks_at: "the status bits of a tape drive",
        speaks_when: "DR_OPEN is set and ONLINE is not, or Ready is no",
        source: "mt status, tapeinfo",
    }
    TAPE_UNBUFFERED {
        id: "given.tape-unbuffered",
        looks_at: "the status bits of a tape drive with a tape",
        speaks_when: "IM_REP_EN is not set (st sets it for a drive that buffers writes), or \
                      BufferedMode is no",
        source: "mt status, tapeinfo",
    }
    FIXED_BLOCKS {
        id: "given.fixed-blocks",
        looks_at: "the block size that a tape drive is set to",
        speaks_when: "it is not 0; a warning below 64 KiB",
        source: "mt status, tapeinfo",
    }
    TAPE_CARE {
        id: "given.tape-care",
        looks_at: "status bits and recovered errors of a tape drive",
        speaks_when: "it asks for cleaning, has recovered from errors, sets a flag of TapeAlert, \
                      or its tape is write-protected",
        source: "mt status, tapeinfo, sg_logs",
    }
    TAPE_COMPRESSION {
        id: "given.tape-compression",
        looks_at: "the compression of a tape drive, and what it brought",
        speaks_when: "it is there",
        source: "tapeinfo, sg_logs",
    }
    TAPE_SPEED {
        id: "given.tape-speed",
        looks_at: "the density code of a medium",
        speaks_when: "a generation of LTO has it",
        source: "mt status or tapeinfo, and the speeds in the table of docs/design/models.md",
    }
    BELOW_LOWEST {
        id: "given.below-lowest",
        looks_at: "the rate at which a drive was written to, and the lowest speed of its medium's \
                   generation",
        speaks_when: "it took 30 s or longer for more than 2 GiB, no command changed the medium in \
                      between, and the rate on the tape is below that of all makers' drives",
        source: "mt status or tapeinfo, the ratio of sg_logs, and what dd, tar and pv printed",
    }
    ZEROS {
        id: "given.zeros",
        looks_at: "rates of one drive with zeros and with random data, in blocks of one size",
        speaks_when: "zeros are 1.5 times as fast or more, or differ by 10 % at most",
        source: "btape speed",
    }
    AT_HIGHEST {
        id: "given.at-highest",
        looks_at: "the rate of data that the drive does not compress, and the highest speed of the \
                   medium's generation",
        speaks_when: "the rate is 90 % of it or more, and zeros are not as slow on a drive that \
                      may compress",
        source: "btape speed, or dd with the compression off, and mt status or tapeinfo of the \
                 same device",
    }
    DISK_REPORT {
        id: "given.disk-report",
        looks_at: "the busiest interval of each device",
        speaks_when: "the device was busy for 5 % of it or more",
        source: "sar -d",
    }
    MOVED {
        id: "given.moved",
        looks_at: "what a program says at its end that it moved",
        speaks_when: "size, and time or rate, are there; of a job 100 MB and 10 s or more",
        source: "tar --totals, pv, rsync, restic, job reports of Bacula and Bareos",
    }
    COVERED {
        id: "given.covered",
        looks_at: "what a program that stores only what is new went through, and in which time",
        speaks_when: "a tenth of it or more was not new, and the job took 10 s or more",
        source: "rsync --stats, borg create --stats",
    }
    CLIENT_COMPRESSES {
        id: "given.client-compresses",
        looks_at: "the compression of a job",
        speaks_when: "the file daemon compresses",
        source: "job reports of Bacula and Bareos",
    }
    JOB_FAILED {
        id: "given.job-failed",
        looks_at: "the line Termination of a job",
        speaks_when: "it has an error, or the job was canceled",
        source: "job reports of Bacula and Bareos",
    }
    DESPOOLED {
        id: "given.despooled",
        looks_at: "the time and rate of spools that went to a tape",
        speaks_when: "all of a job have 100 MB and 10 s or more",
        source: "the storage daemon of Bacula or Bareos",
    }
    LAYERS {
        id: "given.layers",
        looks_at: "the devices below a mount point",
        speaks_when: "not all of them are disks and partitions",
        source: "lsblk",
    }
}
