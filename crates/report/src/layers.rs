//! A stack of storage as a tree of lines: each layer below the layers above it, with its facts.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

use crate::findings::list;
use crate::next;
use crate::table::Style;
use base::escape::escape;
use base::format::{binary_size, counted, duration, size};
use service::probe::ProbedLayers;
use storage::stack::{Layer, LayerKind, Owner, Stack};

/// Maximum width of a line, unless a single word is longer.
const WIDTH: usize = 80;
/// Minimum width for text, however deep the layer is.
const WIDTH_MIN: usize = 30;

/// The characters that draw a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeLines {
    /// Unicode box-drawing characters.
    Drawn,
    /// ASCII.
    Plain,
}

impl TreeLines {
    /// The characters that the terminal can show, by its locale.
    pub fn of_locale() -> TreeLines {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .find(|value| !value.is_empty())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if set.contains("utf-8") || set.contains("utf8") {
            TreeLines::Drawn
        } else {
            TreeLines::Plain
        }
    }

    /// Before a layer and below it, with and without later siblings.
    fn letters(self) -> [&'static str; 4] {
        match self {
            TreeLines::Drawn => ["├─ ", "│  ", "└─ ", "   "],
            TreeLines::Plain => ["|- ", "|  ", "`- ", "   "],
        }
    }
}

/// The whole text.
pub fn tree(layers: &ProbedLayers, lines: TreeLines, style: Style) -> String {
    let ProbedLayers { path, stack, findings } = layers;
    let mut drawing = Drawing { stack, lines, drawn: BTreeSet::new(), text: String::new() };
    drawing.text.push_str(&format!("{}\n", escape(path.as_os_str().as_bytes())));
    let tops: Vec<&Layer> = stack.layers.iter().filter(|layer| layer.above.is_empty()).collect();
    // In a circle, the first layer is the top.
    let tops = if tops.is_empty() { stack.layers.iter().take(1).collect() } else { tops };
    for (index, layer) in tops.iter().enumerate() {
        drawing.draw(layer, "", index + 1 == tops.len());
    }
    let mut text = drawing.text;
    if stack.layers.is_empty() {
        text.push_str("no information about the storage below\n");
    }
    for sentence in rotating(stack) {
        text.push('\n');
        text.push_str(&wrapped(&[sentence], 0).join("\n"));
        text.push('\n');
    }
    if stack.is_cut {
        text.push_str("more layers below are left out\n");
    }
    if !findings.is_empty() {
        text.push_str("\nwhat stands out:\n");
    } else if !stack.layers.is_empty() && !stack.is_cut {
        text.push_str("\nnothing stands out\n");
    }
    text + &list(findings, style) + "\n" + &next::diagnose(path)
}

struct Drawing<'a> {
    stack: &'a Stack,
    lines: TreeLines,
    drawn: BTreeSet<&'a str>,
    text: String,
}

impl<'a> Drawing<'a> {
    fn draw(&mut self, layer: &'a Layer, before: &str, is_last: bool) {
        let [branch, beside, last, nothing] = self.lines.letters();
        let (own, rest) = if is_last { (last, nothing) } else { (branch, beside) };
        let is_known = !self.drawn.insert(&layer.name);
        let below: Vec<&Layer> = if is_known {
            Vec::new()
        } else {
            layer.below.iter().filter_map(|name| self.stack.layer(name)).collect()
        };
        let under = if below.is_empty() { nothing } else { beside };
        let mut rows = Vec::new();
        if is_known {
            rows.push(vec![format!("{}: see above", layer.name)]);
        } else {
            rows.push(head(layer));
            rows.extend(details(layer));
        }
        let mut first = format!("{before}{own}");
        let behind = format!("{before}{rest}{under}");
        for row in rows {
            for line in wrapped(&row, behind.chars().count()) {
                let line = format!("{first}{}", escape(line.as_bytes()));
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                first.clone_from(&behind);
            }
        }
        let before = format!("{before}{rest}");
        for (index, lower) in below.iter().enumerate() {
            self.draw(lower, &before, index + 1 == below.len());
        }
    }
}

/// Items with commas between them, wrapped so that `before` columns stay free on the left.
fn wrapped(items: &[String], before: usize) -> Vec<String> {
    let width = WIDTH.saturating_sub(before).max(WIDTH_MIN);
    let mut lines: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let comma = if index + 1 < items.len() { "," } else { "" };
        for word in format!("{item}{comma}").split(' ') {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines
}

/// The first line of a layer: its name and kind.
fn head(layer: &Layer) -> Vec<String> {
    let fact = |name: &str| layer.fact(name).unwrap_or_default();
    let what = match layer.kind {
        LayerKind::FileSystem => fact("type").to_owned(),
        LayerKind::ZfsPool => format!("ZFS pool {}", fact("state")),
        LayerKind::Partition => "partition".to_owned(),
        LayerKind::Lvm => format!("logical volume {} of {}", fact("volume"), fact("volume_group")),
        LayerKind::Crypt => {
            format!("encrypted, {} (dm-crypt) {}", fact("encryption"), fact("mapped_name"))
        }
        LayerKind::Multipath => format!("several paths (dm-multipath) {}", fact("mapped_name")),
        LayerKind::DeviceMapper => format!("device mapper {}", fact("mapped_name")),
        LayerKind::Md => format!("array (md), {} of {} disks", fact("level"), fact("disks")),
        LayerKind::Bcache => format!("with a cache (bcache), {}", fact("cache_mode")),
        LayerKind::Loop => format!("loop device over {}", fact("backing_file")),
        LayerKind::Iscsi => "disk over iSCSI".to_owned(),
        LayerKind::FibreChannel => "disk over Fibre Channel".to_owned(),
        LayerKind::Sas => "SAS disk".to_owned(),
        LayerKind::Ata => "SATA disk".to_owned(),
        LayerKind::Usb => "USB disk".to_owned(),
        LayerKind::Scsi => "SCSI disk".to_owned(),
        LayerKind::Nvme => "NVMe namespace".to_owned(),
        LayerKind::NvmePath => "NVMe path".to_owned(),
        LayerKind::Virtio => "disk of the host (virtio)".to_owned(),
        LayerKind::Rbd => format!("Ceph image, {}/{}", fact("pool"), fact("image")),
        LayerKind::Nbd => "disk over the network (NBD)".to_owned(),
        LayerKind::Zram => format!("memory, compressed (zram) {}", fact("algorithm")),
        LayerKind::Disk => "disk".to_owned(),
    };
    let mut items = vec![format!("{}: {}", layer.name, what.trim())];
    items.extend(layer.size_bytes.filter(|bytes| *bytes > 0).map(size));
    if layer.kind == LayerKind::FileSystem {
        items.extend(fact("options").split(',').map(str::to_owned));
    }
    let start: Option<u64> = layer.fact("start_bytes").and_then(|start| start.parse().ok());
    items.extend(start.map(|start| format!("begins at {}", binary_size(start))));
    items
}

/// Facts of a layer to show, each with its words.
const TOLD: &[(&str, &str)] = &[
    ("model", ""),
    ("firmware", "firmware "),
    ("serial", "serial number "),
    ("adapter", "adapter "),
    ("transport", "over "),
    ("address", "at "),
    ("target", "target "),
    ("portal", "portal "),
    ("session", "session "),
    ("target_port", "target port "),
    ("own_port", "own port "),
    ("port_state", ""),
    ("speed", ""),
    ("version", "version "),
    ("protocol", "protocol "),
    ("rsize", "rsize "),
    ("wsize", "wsize "),
    ("nconnect", "connections "),
    ("read_pref_io", "read_pref_io "),
    ("read_nstream", "read_nstream "),
    ("data", "data "),
    ("metadata", "metadata "),
    ("chunk_bytes", "chunk bytes "),
    ("work", ""),
    ("policy", "policy "),
];

fn details(layer: &Layer) -> Vec<Vec<String>> {
    let mut told = Vec::new();
    if layer.kind == LayerKind::FileSystem && layer.below.is_empty() {
        let source = layer.fact("source").filter(|source| source.contains(['/', ':']));
        told.extend(source.map(|source| format!("of {source}")));
    }
    let shown = TOLD.iter().filter_map(|(fact, word)| {
        let value = layer.fact(fact).filter(|value| !["0", "none", "idle"].contains(value))?;
        // For SCSI, the vendor comes before the model.
        let vendor = layer.fact("vendor").filter(|_| *fact == "model").unwrap_or_default();
        Some(format!("{word}{vendor} {value}").trim().replace("  ", " "))
    });
    told.extend(shown);
    if layer.kind == LayerKind::Loop {
        let direct = layer.fact("direct_io") == Some("1");
        told.push(if direct { "direct I/O" } else { "through the page cache" }.to_owned());
    }
    let members: Vec<String> =
        layer.members.iter().map(|member| format!("{} ({})", member.name, member.state)).collect();
    let names: Vec<String> = ["wwn", "uuid", "partition_uuid"]
        .iter()
        .filter_map(|name| Some(format!("{} {}", name.replace('_', " "), layer.names.get(*name)?)))
        .collect();
    let rows = vec![told, led("parts: ", members), names, health(layer), settings(layer)];
    let mut rows: Vec<Vec<String>> = rows.into_iter().filter(|row| !row.is_empty()).collect();
    rows.extend(owners(layer).into_iter().map(|owner| vec![owner]));
    rows
}

/// The items with a word before the first one.
fn led(word: &str, mut items: Vec<String>) -> Vec<String> {
    if let Some(first) = items.first_mut() {
        first.insert_str(0, word);
    }
    items
}

fn health(layer: &Layer) -> Vec<String> {
    let Some(health) = &layer.health else { return Vec::new() };
    let mut items = Vec::new();
    items.extend(health.passed.map(|good| if good { "good" } else { "failing" }.to_owned()));
    items.extend(health.temperature_celsius.map(|degrees| format!("{degrees} degrees Celsius")));
    items.extend(health.power_on_hours.map(|hours| counted(hours, "hour on", "hours on")));
    items.extend(health.used_percent.map(|percent| format!("{percent} % used")));
    led("health: ", items)
}

/// Settings that have an effect, then a read-ahead that has none.
fn settings(layer: &Layer) -> Vec<String> {
    let acting = |name: &str| {
        let setting = layer.settings.get(name).filter(|setting| setting.acts)?;
        Some(setting.value.clone())
    };
    let number = |name: &str| acting(name)?.parse::<u64>().ok();
    let mut items = Vec::new();
    items.extend(number("read_ahead_kb").map(|kib| format!("read-ahead {kib} KiB")));
    items.extend(acting("scheduler").map(|name| format!("scheduler {name}")));
    items.extend(number("nr_requests").map(|count| counted(count, "request", "requests")));
    items.extend(number("queue_depth").map(|depth| format!("device takes {depth}")));
    items.extend(number("max_sectors_kb").map(|kib| format!("up to {kib} KiB each")));
    items.extend(number("nomerges").filter(|it| *it > 0).map(|it| format!("nomerges {it}")));
    items.extend(acting("write_cache"));
    let wait = number("wbt_lat_usec").filter(|wait| *wait > 0);
    items.extend(wait.map(|us| {
        let wait = duration(us as f64 / 1e6);
        format!("writes slowed where a read takes over {wait}")
    }));
    let discard = number("discard_max_bytes").filter(|bytes| *bytes > 0);
    items.extend(discard.map(|bytes| format!("discard up to {}", size(bytes))));
    let optimal = number("optimal_io_size").filter(|bytes| *bytes > 0);
    items.extend(optimal.map(|bytes| format!("optimal {}", binary_size(bytes))));
    items.extend(number("rotational").filter(|it| *it == 1).map(|_| "rotational".to_owned()));
    items.extend(number("iostats").filter(|it| *it == 0).map(|_| "not counted".to_owned()));
    let idle = layer.settings.get("read_ahead_kb").filter(|setting| !setting.acts);
    items.extend(idle.map(|setting| format!("(read-ahead {} KiB has no effect)", setting.value)));
    items
}

/// What the mark of a rotating disk means for a backup. The kernel asks real drives; of all others
/// it is a default, or what the host says.
fn rotating(stack: &Stack) -> Vec<String> {
    let is_marked = |layer: &Layer| {
        layer.settings.get("rotational").is_some_and(|setting| setting.value == "1")
    };
    // What lies on a marked layer has its mark from there. Each comes before those that it lies on.
    let (mut marked, mut inheriting) = (Vec::new(), BTreeSet::new());
    for layer in stack.layers.iter().rev() {
        let inherits = layer.below.iter().any(|name| inheriting.contains(name));
        if is_marked(layer) && (!inherits || layer.kind == LayerKind::Loop) {
            marked.push(layer);
        }
        if is_marked(layer) || inherits {
            inheriting.insert(&layer.name);
        }
    }
    marked.reverse();
    let is_drive =
        |layer: &&Layer| matches!(layer.kind, LayerKind::Ata | LayerKind::Sas | LayerKind::Usb);
    let (drives, others): (Vec<&Layer>, Vec<&Layer>) = marked.into_iter().partition(is_drive);
    let names = |layers: &[&Layer]| {
        let names: Vec<&str> = layers.iter().map(|layer| &*layer.name).collect();
        escape(names.join(", ").as_bytes())
    };
    let then = "On a disk with heads `takeup backup` reads files in the order in which they lie \
                there; it reads a few files first to find out.";
    let mut sentences = Vec::new();
    if !drives.is_empty() {
        sentences.push(format!("disks that rotate, as they say: {}. {then}", names(&drives)));
    }
    if !others.is_empty() {
        sentences.push(format!(
            "marked as rotating, which is no proof, since it is not a drive of this machine: {}. \
             {then}",
            names(&others)
        ));
    }
    sentences
}

/// What sets each setting.
fn owners(layer: &Layer) -> Vec<String> {
    let words = |name: &str, owner: &Owner| {
        let sure = if owner.is_sure { "is set" } else { "may be set" };
        let value = owner.value.as_ref().map(|it| format!(" to {it}")).unwrap_or_default();
        let place = owner.place.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
        format!("{name} {sure}{value} by {}{place}", owner.by)
    };
    let all = layer.settings.iter();
    all.flat_map(|(name, setting)| setting.owners.iter().map(|it| words(name, it))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Machine;
    use storage::stack::StackTarget;

    fn stack(machine: &str, number: &str, path: &str) -> Stack {
        let folder = tempfile::tempdir().unwrap();
        testkit::samples::unpack_machine(&testkit::samples::machine(machine), folder.path())
            .unwrap();
        let (number, is_device) = (number.to_owned(), path.starts_with("/dev/"));
        let place = StackTarget { number, path: path.into(), is_device };
        Stack::of(&Machine::recorded(folder.path()).unwrap(), &place)
    }

    fn drawn(machine: &str, number: &str, path: &str) -> String {
        let stack = stack(machine, number, path);
        let findings = storage::findings::findings(&stack, None);
        let layers = ProbedLayers { path: path.into(), stack, findings };
        let text = tree(&layers, TreeLines::Drawn, Style::PLAIN);
        let layers = text.split("\nwhat stands out").next().unwrap_or_default();
        for line in layers.lines() {
            let has_long_word = line.split_whitespace().any(|word| word.len() > WIDTH_MIN);
            assert!(line.chars().count() <= WIDTH || has_long_word, "{line}");
        }
        text
    }

    /// Only real drives are asked by the kernel whether they rotate.
    #[test]
    fn what_a_mark_of_rotation_is_worth() {
        let sentence = |machine: &str, number: &str, path: &str| {
            let text = drawn(machine, number, path).replace('\n', " ");
            text.rsplit_once("`takeup backup` reads files").map(|(before, _)| before.to_owned())
        };
        let drives = sentence("sas-disks", "253:1", "/srv/my data/file").unwrap();
        assert!(drives.contains("disks that rotate, as they say: sda, sdb."), "{drives}");
        assert!(!drives.contains("no proof"), "{drives}");
        assert_eq!(sentence("nvme", "0:33", "/data/file"), None);
    }

    #[test]
    fn trees() {
        let volume = drawn("sas-disks", "253:1", "/srv/my data/file");
        insta::assert_snapshot!("a_volume_over_two_disks", volume);
        insta::assert_snapshot!("two_ways_to_one_disk", drawn("san", "253:2", "/var/lib/db/base"));
        insta::assert_snapshot!("two_namespaces", drawn("nvme", "0:33", "/data/file"));
        insta::assert_snapshot!("a_share", drawn("nvme", "0:50", "/share/file"));
        insta::assert_snapshot!("a_pool", drawn("nvme", "0:51", "/tank/file"));
        insta::assert_snapshot!("an_array", drawn("lab-multipath-md", "9:100", "/dev/md100"));
    }

    #[test]
    fn letters_of_every_terminal_and_nothing_that_steers_one() {
        let mut stack = stack("loop-on-virtio", "7:0", "/mnt/disk/file");
        stack.layers[1].facts.insert("backing_file".into(), "/srv/\u{1b}[2J".to_owned());
        let layers = ProbedLayers { path: "/mnt/\u{1b}[2J".into(), stack, findings: Vec::new() };
        let text = tree(&layers, TreeLines::Plain, Style::PLAIN);
        assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("`- /mnt/disk: ext4"), "{text}");
    }

    #[test]
    fn nothing_stands_out_only_where_all_was_seen() {
        let mut stack = stack("nvme", "0:33", "/data/file");
        let text = |stack: &Stack| {
            let (stack, findings) = (stack.clone(), Vec::new());
            let layers = ProbedLayers { path: "/data/file".into(), stack, findings };
            tree(&layers, TreeLines::Plain, Style::PLAIN)
        };
        assert!(
            text(&stack).contains("\n\nnothing stands out\n\nnext: takeup diagnose /data/file  (")
        );
        stack.is_cut = true;
        assert!(!text(&stack).contains("stands out"), "{}", text(&stack));
        (stack.is_cut, stack.layers) = (false, Vec::new());
        assert!(!text(&stack).contains("stands out"), "{}", text(&stack));
    }

    #[test]
    fn what_is_met_again_is_drawn_once() {
        let stack = stack("lab-multipath-md", "254:1", "/dev/dm-1");
        let layers = ProbedLayers { path: "/dev/dm-1".into(), stack, findings: Vec::new() };
        let text = tree(&layers, TreeLines::Plain, Style::PLAIN);
        assert_eq!(text.matches("tmpfs").count(), 1, "{text}");
        assert_eq!(text.matches("/run/lab/tmp: see above").count(), 1, "{text}");
    }
}
