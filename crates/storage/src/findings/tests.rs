//! Each rule on recorded machines: one where it must report, and one where it must not.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::stack::{Stack, StackTarget};
use machine::Machine;

use super::findings;
use super::rules::STACK;

/// A path of a recorded machine, edits to the record, and whether a rule must report.
struct Case {
    rule: &'static str,
    speaks: bool,
    machine: &'static str,
    place: (&'static str, &'static str),
    /// Edits to the record: text to replace, and its replacement.
    edits: &'static [(&'static str, &'static str)],
    request_bytes: Option<u64>,
}

const VOLUME: (&str, (&str, &str)) = ("sas-disks", ("253:1", "/srv/my data/file"));
const DATABASE: (&str, (&str, &str)) = ("san", ("253:2", "/var/lib/db/base"));
const PAIR: (&str, (&str, &str)) = ("nvme", ("0:33", "/data/file"));
const SHARE: (&str, (&str, &str)) = ("nvme", ("0:50", "/share/file"));
const POOL: (&str, (&str, &str)) = ("nvme", ("0:51", "/tank/file"));
const IMAGE: (&str, (&str, &str)) = ("nvme", ("252:0", "/ceph/file"));
const MIRROR: (&str, (&str, &str)) = ("lab-multipath-md", ("9:100", "/dev/md100"));
const PATHS: (&str, (&str, &str)) = ("lab-multipath-md", ("254:1", "/dev/dm-1"));
const LOOP: (&str, (&str, &str)) = ("loop-on-virtio", ("7:0", "/mnt/disk/file"));

type Edits = &'static [(&'static str, &'static str)];

fn case(
    rule: &'static str,
    speaks: bool,
    (machine, place): (&'static str, (&'static str, &'static str)),
    edits: Edits,
) -> Case {
    Case { rule, speaks, machine, place, edits, request_bytes: None }
}

fn speaks(
    rule: &'static str,
    of: (&'static str, (&'static str, &'static str)),
    edits: Edits,
) -> Case {
    case(rule, true, of, edits)
}

fn silent(
    rule: &'static str,
    of: (&'static str, (&'static str, &'static str)),
    edits: Edits,
) -> Case {
    case(rule, false, of, edits)
}

/// A folder in memory where possible: each case unpacks a machine into many small files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Case {
    fn stack(&self) -> Stack {
        let mut text = testkit::samples::machine(self.machine);
        for (from, to) in self.edits {
            assert!(text.contains(from), "{} has no {from}", self.machine);
            text = text.replace(from, to);
        }
        let folder = folder();
        testkit::samples::unpack_machine(&text, folder.path()).unwrap();
        let (number, path) = self.place;
        let is_device = path.starts_with("/dev/");
        let place = StackTarget { number: number.to_owned(), path: PathBuf::from(path), is_device };
        Stack::of(&Machine::recorded(folder.path()).unwrap(), &place)
    }
}

const SAS_PASSED: &str = "{\"smart_status\": {\"passed\": true}, \"temperature\"";
const WORN_90: &str =
    "{\"nvme_smart_health_information_log\": {\"percentage_used\": 90}, \"temperature\"";
const WORN_89: &str =
    "{\"nvme_smart_health_information_log\": {\"percentage_used\": 89}, \"temperature\"";
const NO_CHANGE: Edits = &[];

fn state_cases() -> Vec<Case> {
    vec![
        speaks("stack.failing", POOL, NO_CHANGE),
        silent("stack.failing", VOLUME, NO_CHANGE),
        speaks("stack.defects", POOL, NO_CHANGE),
        speaks(
            "stack.defects",
            VOLUME,
            &[("\"scsi_grown_defect_list\": 0", "\"scsi_grown_defect_list\": 1")],
        ),
        silent("stack.defects", VOLUME, NO_CHANGE),
        speaks("stack.worn", VOLUME, &[(SAS_PASSED, WORN_90)]),
        silent("stack.worn", VOLUME, &[(SAS_PASSED, WORN_89)]),
        speaks("stack.not-running", VOLUME, &[("state: running", "state: offline")]),
        silent("stack.not-running", VOLUME, NO_CHANGE),
        // There is another path.
        silent("stack.not-running", DATABASE, NO_CHANGE),
    ]
}

fn path_cases() -> Vec<Case> {
    vec![
        speaks("stack.path-down", DATABASE, NO_CHANGE),
        speaks("stack.path-down", PATHS, NO_CHANGE),
        speaks("stack.path-down", PAIR, NO_CHANGE),
        silent("stack.path-down", PAIR, &[("state: connecting", "state: live")]),
        silent(
            "stack.path-down",
            DATABASE,
            &[("8:32 F 4", "8:32 A 4"), ("transport-offline", "running")],
        ),
        silent("stack.path-down", PATHS, &[("7:1 F 1", "7:1 A 1")]),
        speaks(
            "stack.path-down",
            PAIR,
            &[
                ("state: connecting", "state: live"),
                ("nvme1c2n1/ana_state: optimized", "nvme1c2n1/ana_state: inaccessible"),
            ],
        ),
        speaks(
            "stack.one-path",
            PAIR,
            &[("nvme2 -> /sys/devices/virtual/nvme-fabrics/ctl/nvme2", "")],
        ),
        silent(
            "stack.one-path",
            PAIR,
            &[
                ("nvme2 -> /sys/devices/virtual/nvme-fabrics/ctl/nvme2", ""),
                ("transport: tcp", "transport: pcie"),
            ],
        ),
        silent("stack.one-path", PAIR, NO_CHANGE),
    ]
}

fn array_cases() -> Vec<Case> {
    vec![
        speaks("stack.degraded", MIRROR, NO_CHANGE),
        speaks("stack.degraded", POOL, NO_CHANGE),
        speaks("stack.degraded", PAIR, &[("devinfo/2/missing: 0", "devinfo/2/missing: 1")]),
        silent("stack.degraded", PAIR, NO_CHANGE),
        silent(
            "stack.degraded",
            MIRROR,
            &[("state: faulty", "state: in_sync"), ("degraded: 1", "degraded: 0")],
        ),
        silent(
            "stack.degraded",
            POOL,
            &[("UNAVAIL", "ONLINE"), ("state: DEGRADED", "state: ONLINE")],
        ),
        speaks("stack.rebuilding", MIRROR, &[("sync_action: idle", "sync_action: recover")]),
        silent("stack.rebuilding", MIRROR, NO_CHANGE),
        speaks(
            "stack.flushes-dropped",
            VOLUME,
            &[(
                "queue/nomerges: 0\nqueue/write_cache: write back",
                "queue/nomerges: 0\nqueue/write_cache: write through",
            )],
        ),
        // All of them have no cache.
        silent("stack.flushes-dropped", VOLUME, &[("write back", "write through")]),
        silent("stack.flushes-dropped", VOLUME, NO_CHANGE),
    ]
}

fn place_cases() -> Vec<Case> {
    vec![
        speaks(
            "stack.unaligned",
            VOLUME,
            &[("sdb1/alignment_offset: 0", "sdb1/alignment_offset: 3584")],
        ),
        speaks(
            "stack.unaligned",
            VOLUME,
            &[("alignment_offset: 0\ndm/name", "alignment_offset: -1\ndm/name")],
        ),
        speaks(
            "stack.unaligned",
            VOLUME,
            &[("block/sdb/sdb1/alignment_offset: 0\n", ""), ("sdb1/start: 2048", "sdb1/start: 63")],
        ),
        silent("stack.unaligned", VOLUME, &[("block/sdb/sdb1/alignment_offset: 0\n", "")]),
        silent("stack.unaligned", VOLUME, NO_CHANGE),
        // The first block of the disk is offset, and the partition makes up for it.
        silent(
            "stack.unaligned",
            VOLUME,
            &[
                ("block/sdb/alignment_offset: 0", "block/sdb/alignment_offset: 3584"),
                ("sdb1/start: 2048", "sdb1/start: 2055"),
            ],
        ),
        speaks(
            "stack.unaligned-chunk",
            VOLUME,
            &[
                ("block/sdb/queue/minimum_io_size: 4096", "block/sdb/queue/minimum_io_size: 65536"),
                ("sdb1/start: 2048", "sdb1/start: 2056"),
            ],
        ),
        silent(
            "stack.unaligned-chunk",
            VOLUME,
            &[("block/sdb/queue/minimum_io_size: 4096", "block/sdb/queue/minimum_io_size: 65536")],
        ),
        silent("stack.unaligned-chunk", VOLUME, &[("sdb1/start: 2048", "sdb1/start: 2056")]),
    ]
}

fn window_cases() -> Vec<Case> {
    vec![
        speaks("stack.read-ahead-elsewhere", VOLUME, NO_CHANGE),
        silent(
            "stack.read-ahead-elsewhere",
            VOLUME,
            &[("block/sda/queue/read_ahead_kb: 4096", "block/sda/queue/read_ahead_kb: 128")],
        ),
        // The kernel derives it from max_sectors_kb, and from the optimal size.
        silent(
            "stack.read-ahead-elsewhere",
            VOLUME,
            &[("block/sda/queue/read_ahead_kb: 4096", "block/sda/queue/read_ahead_kb: 2560")],
        ),
        silent("stack.read-ahead-elsewhere", DATABASE, NO_CHANGE),
        Case {
            request_bytes: Some(8 << 20),
            ..speaks("stack.window-below-request", VOLUME, NO_CHANGE)
        },
        Case {
            request_bytes: Some(512 << 10),
            ..silent("stack.window-below-request", VOLUME, NO_CHANGE)
        },
        silent("stack.window-below-request", VOLUME, NO_CHANGE),
        speaks("stack.share-window", SHARE, NO_CHANGE),
        silent(
            "stack.share-window",
            SHARE,
            &[("0:50/read_ahead_kb: 128", "0:50/read_ahead_kb: 1024")],
        ),
        silent("stack.share-window", IMAGE, NO_CHANGE),
        speaks("stack.large-window", DATABASE, NO_CHANGE),
        silent("stack.large-window", IMAGE, NO_CHANGE),
        // It is large where it has no effect.
        silent(
            "stack.large-window",
            DATABASE,
            &[(
                "luks-db\nqueue/scheduler: none\nqueue/read_ahead_kb: 65536",
                "luks-db\nqueue/scheduler: none\nqueue/read_ahead_kb: 128",
            )],
        ),
    ]
}

/// A VxFS in the place of the pool, and the answer of vxtunefs.
const VXFS: Edits = &[
    ("0:51 / /tank rw,xattr - zfs tank/home rw", "252:0 / /vx rw - vxfs /dev/rbd0 rw"),
    (
        "answers/zpool list -vHPL tank: tank",
        "answers/vxtunefs !vx: read_pref_io = 65536\\nread_nstream = 4\nanswers/zpool: tank",
    ),
];
const VXFS_LARGE: Edits = &[VXFS[0], VXFS[1], ("read_nstream = 4", "read_nstream = 16")];
const VXFS_SILENT: Edits = &[VXFS[0]];
const VX: (&str, (&str, &str)) = ("nvme", ("252:0", "/vx/file"));

fn vxfs_cases() -> Vec<Case> {
    vec![
        speaks("stack.vxfs-window", VX, VXFS),
        silent("stack.vxfs-window", VX, VXFS_LARGE),
        Case { request_bytes: Some(2 << 20), ..speaks("stack.vxfs-window", VX, VXFS_LARGE) },
        // Without vxtunefs nothing is known, and the read-ahead of a device is not reported either.
        silent("stack.vxfs-window", VX, VXFS_SILENT),
        Case { request_bytes: Some(8 << 20), ..silent("stack.window-below-request", VX, VXFS) },
        Case {
            request_bytes: Some(8 << 20),
            ..silent("stack.window-below-request", VX, VXFS_SILENT)
        },
        Case { request_bytes: Some(64 << 20), ..speaks("stack.window-below-request", IMAGE, VXFS) },
    ]
}

fn queue_cases() -> Vec<Case> {
    vec![
        speaks("stack.nvme-scheduler", PAIR, NO_CHANGE),
        silent(
            "stack.nvme-scheduler",
            PAIR,
            &[("none [mq-deadline] kyber", "[none] mq-deadline kyber")],
        ),
        silent("stack.nvme-scheduler", VOLUME, NO_CHANGE),
        speaks(
            "stack.fewer-requests",
            VOLUME,
            &[("sda/queue/nr_requests: 256", "sda/queue/nr_requests: 128")],
        ),
        silent("stack.fewer-requests", VOLUME, NO_CHANGE),
        // Two hardware queues hold twice as many.
        silent(
            "stack.fewer-requests",
            VOLUME,
            &[
                ("sda/queue/nr_requests: 256", "sda/queue/nr_requests: 128"),
                ("block/sda/mq/0/", "block/sda/mq/0/\nblock/sda/mq/1/"),
            ],
        ),
        speaks("stack.cached-twice", LOOP, NO_CHANGE),
        silent("stack.cached-twice", LOOP, &[("loop/dio: 0", "loop/dio: 1")]),
        // A file in memory is not cached a second time.
        silent("stack.cached-twice", MIRROR, NO_CHANGE),
    ]
}

fn cases() -> Vec<Case> {
    [
        state_cases(),
        path_cases(),
        array_cases(),
        place_cases(),
        window_cases(),
        vxfs_cases(),
        queue_cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn each_rule_speaks_where_it_must_and_nowhere_else() {
    for case in cases() {
        let found = findings(&case.stack(), case.request_bytes);
        let found: Vec<&str> = found.iter().map(|finding| &*finding.rule).collect();
        let (rule, edits) = (case.rule, case.edits);
        assert_eq!(found.contains(&rule), case.speaks, "{rule} in {found:?} with {edits:?}");
    }
}

#[test]
fn no_rule_is_without_a_case() {
    let cases = cases();
    let of = |speaks: bool| -> BTreeSet<&str> {
        cases.iter().filter(|case| case.speaks == speaks).map(|case| case.rule).collect()
    };
    for rule in STACK.rules {
        let has_both = of(true).contains(rule.id) && of(false).contains(rule.id);
        assert!(has_both || rule.id == "stack.not-readable", "{}", rule.id);
    }
}

/// On an array with parity, a partition must start at a whole stripe.
#[test]
fn stripes_of_an_array_with_parity() {
    let found = |start: &str| {
        let text = testkit::samples::machine("lab-multipath-md")
            .replace("md/level: raid1", "md/level: raid5")
            .replace("md100/queue/minimum_io_size: 512", "md100/queue/minimum_io_size: 65536")
            .replace("md100/queue/optimal_io_size: 0", "md100/queue/optimal_io_size: 262144");
        let own = "sys/devices/virtual/block/md100/md100p1";
        let part = format!(
            "{text}sys/dev/block/259:0 -> /{own}\n{own}/partition: 1\n{own}/start: {start}\n"
        );
        let folder = folder();
        testkit::samples::unpack_machine(&part, folder.path()).unwrap();
        let path = PathBuf::from("/dev/md100p1");
        let place = StackTarget { number: "259:0".to_owned(), path, is_device: true };
        let stack = Stack::of(&Machine::recorded(folder.path()).unwrap(), &place);
        findings(&stack, None).iter().any(|it| it.rule == "stack.unaligned-chunk")
    };
    assert!(found("128") && !found("512"));
}

/// Files that only root may read are reported and nothing fails. Root can read all files, so the
/// test adds one by hand.
#[test]
fn files_that_may_not_be_read() {
    let mut stack = case("", true, LOOP, NO_CHANGE).stack();
    let told = |stack: &Stack| {
        let all = findings(stack, None);
        all.into_iter().find(|it| it.rule == "stack.not-readable").map(|it| it.what)
    };
    assert_eq!(told(&stack), None);
    stack.not_readable.push(PathBuf::from("/sys/block/loop0/queue/scheduler"));
    let expected = "1 file could not be read, the first is /sys/block/loop0/queue/scheduler";
    assert_eq!(told(&stack).as_deref(), Some(expected));
}

#[test]
fn sentences() {
    let case = case("", true, DATABASE, &[]);
    let sentences: Vec<String> =
        findings(&case.stack(), None).iter().map(|finding| finding.sentence()).collect();
    let expected = [
        "dm-0: 1 of 2 paths down: sdc (failed, transport-offline): one path is left; if it fails, \
         the disk is unreachable",
        "read-ahead of dm-2 is very large (64 MiB): it is the kernel's default, twice the optimal \
         request of 32 MiB that the storage reports; when reads of a database look sequential, \
         the kernel fetches up to that much unneeded data, which costs time and memory",
    ];
    assert_eq!(sentences, expected);
}
