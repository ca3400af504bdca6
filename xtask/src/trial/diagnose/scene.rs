//! A backup line with its disk, its files and its drive.

use std::fmt;

use testkit::samples::Random;

/// What a change acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActsOn {
    ReadAhead,
    AtOnce,
    /// The source costs nothing: nobody can make that so.
    Source,
    Compressor,
    /// No compressor: another result.
    NoCompressor,
    Pace,
    Blocks,
    Turns,
    /// The target costs nothing.
    Target,
}

impl ActsOn {
    /// Whether a user can make the change and has the same result.
    pub fn is_remedy(self) -> bool {
        !matches!(self, ActsOn::Source | ActsOn::NoCompressor | ActsOn::Target)
    }
}

/// A change, and the line with it.
pub struct Change {
    pub name: &'static str,
    pub acts_on: ActsOn,
    pub line: String,
    /// Read-ahead to set for it, in KiB.
    pub read_ahead_kib: Option<u64>,
    /// Whether the files are read into memory first.
    pub from_memory: bool,
}

/// Files of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tree {
    Large { files: u64, megabytes: u64 },
    Small { files: u64, kilobytes: u64 },
    Mixed { files: u64, kilobytes: u64, megabytes: u64 },
}

impl Tree {
    /// So much of it that one of ten runs takes some seconds.
    fn bounded(self, scene: &Scene) -> Tree {
        const SECONDS: u64 = 3;
        // Of so many at once, a run of some tenths of a second would be left.
        let for_small = if scene.preset.is_none() && scene.parallel >= 16 { 2 } else { 1 };
        let (files_per_second, disk) = match scene.preset {
            Some("ssd-sata") => (5000, 500),
            Some(_) => (100, 150),
            None => (1_000_000 / (2 * scene.service_us), scene.megabytes_per_second),
        };
        let compressor = match scene.compressor {
            Some("xz -0") => 6,
            Some("gzip -6") => 15,
            Some(_) => 40,
            None => u64::MAX,
        };
        let most_megabytes = (SECONDS * disk.min(compressor).min(60)).max(12);
        let large = |it: u64| it.min(most_megabytes);
        let small = |files: u64, kilobytes: u64| {
            files
                .min(for_small * SECONDS * files_per_second)
                .min(most_megabytes * 1000 / kilobytes)
                .max(150)
        };
        match self {
            Tree::Large { files, megabytes } => Tree::Large { files, megabytes: large(megabytes) },
            Tree::Small { files, kilobytes } => {
                Tree::Small { files: small(files, kilobytes), kilobytes }
            }
            Tree::Mixed { files, kilobytes, megabytes } => Tree::Mixed {
                files: small(files, kilobytes) / 2,
                kilobytes,
                megabytes: large(megabytes) / 2,
            },
        }
    }
}

/// Where the line ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Nothing,
    /// The program's own output, redirected.
    Drive,
    Dd {
        kib: u64,
    },
    Mbuffer {
        kib: u64,
    },
}

/// What else the machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    Nothing,
    /// A program that computes.
    Processor,
    /// A program that reads from the disk of the source without a pause.
    Disk,
}

/// A case.
pub struct Scene {
    /// A kind of disk, in the place of the numbers that follow.
    pub preset: Option<&'static str>,
    pub foreign: Foreign,
    /// `cp` in the place of `tar`.
    pub copies: bool,
    pub service_us: u64,
    pub parallel: u64,
    pub megabytes_per_second: u64,
    pub read_ahead_kib: u64,
    pub tree: Tree,
    /// Whether the files shrink.
    pub is_text: bool,
    pub blocking: Option<u64>,
    pub compressor: Option<&'static str>,
    pub rate_megabytes: Option<u64>,
    pub end: End,
    pub drive: &'static str,
    pub buffer_mib: u64,
}

fn one_of<T: Clone>(random: &mut Random, all: &[T]) -> T {
    all[random.index(all.len())].clone()
}

impl Scene {
    /// Draws a case.
    pub fn random(random: &mut Random) -> Scene {
        let tree = match random.index(3) {
            0 => Tree::Large { files: 1 + random.below(6), megabytes: 80 + random.below(100) },
            1 => Tree::Small { files: 1500 + random.below(3000), kilobytes: 2 + random.below(40) },
            _ => Tree::Mixed {
                files: 500 + random.below(1500),
                kilobytes: 2 + random.below(30),
                megabytes: 60 + random.below(80),
            },
        };
        let end = match random.index(5) {
            0 | 1 => End::Nothing,
            2 => End::Drive,
            3 => End::Dd { kib: one_of(random, &[10, 64, 256, 512, 1024]) },
            _ => End::Mbuffer { kib: one_of(random, &[64, 256, 512]) },
        };
        let compressor = match random.index(5) {
            0 | 1 => None,
            2 => Some("gzip -1"),
            3 => Some(one_of(random, &["zstd -q -3", "zstd -q -9"])),
            _ => Some(one_of(random, &["gzip -6", "xz -0"])),
        };
        let mut scene = Scene {
            preset: None,
            foreign: Foreign::Nothing,
            copies: false,
            service_us: one_of(random, &[200, 500, 1000, 3000, 6000]),
            parallel: one_of(random, &[4, 16, 64]),
            megabytes_per_second: one_of(random, &[40, 80, 150, 300, 600]),
            read_ahead_kib: one_of(random, &[128, 128, 128, 512, 4096]),
            tree,
            is_text: random.index(2) == 0,
            blocking: one_of(random, &[None, None, Some(128), Some(512)]),
            compressor,
            rate_megabytes: (random.index(7) == 0).then(|| one_of(random, &[15, 30, 60])),
            end,
            drive: one_of(random, &["lto4", "lto5", "lto6", "lto7", "lto8", "lto9"]),
            buffer_mib: one_of(random, &[8, 16, 32]),
        };
        if random.index(5) == 0 {
            let presets = ["sata7200", "sas15k", "array:4", "ssd-sata"];
            scene.preset = Some(one_of(random, &presets));
        }
        scene.tree = scene.tree.bounded(&scene);
        scene.foreign = match random.index(10) {
            0 => Foreign::Processor,
            1 => Foreign::Disk,
            _ => Foreign::Nothing,
        };
        let is_plain = scene.compressor.is_none() && scene.rate_megabytes.is_none();
        scene.copies = random.index(2) == 0 && is_plain && !scene.has_drive();
        scene
    }

    /// The line as it is.
    pub fn line(&self) -> String {
        self.line_with(&Parts {
            blocking: self.blocking,
            compressor: self.compressor.map(str::to_owned),
            rate_megabytes: self.rate_megabytes,
            end: self.end.clone(),
            is_buffered: false,
        })
    }

    fn line_with(&self, parts: &Parts) -> String {
        if self.copies {
            return "cp -r tree result/out".to_owned();
        }
        let blocking = parts.blocking.map_or(String::new(), |units| format!("-b {units} "));
        let mut stages = vec![format!("tar {blocking}-cf - tree")];
        stages.extend(parts.compressor.clone());
        stages.extend(parts.rate_megabytes.map(|rate| format!("pv -qL {rate}m")));
        let redirected = match &parts.end {
            End::Nothing => " > result/out",
            End::Drive => " > drive/nst0",
            _ => "",
        };
        match &parts.end {
            _ if parts.is_buffered => stages.push("takeup pipe --block-size 512k".to_owned()),
            End::Dd { kib } => stages.push(format!("dd bs={kib}k iflag=fullblock of=drive/nst0")),
            End::Mbuffer { kib } => {
                stages.push(format!("mbuffer -q -f -m 64M -s {kib}k -o drive/nst0"));
            }
            _ => {}
        }
        let redirected = if parts.is_buffered { " > drive/nst0" } else { redirected };
        stages.join(" | ") + redirected
    }

    fn disk(&self) -> String {
        match self.preset {
            Some(preset) => preset.to_owned(),
            None => format!(
                "{} us, {} at once, {} MB/s",
                self.service_us, self.parallel, self.megabytes_per_second
            ),
        }
    }

    /// Options of the virtual disk.
    pub fn disk_options(&self) -> Vec<String> {
        match self.preset {
            Some(preset) => ["--preset", preset].map(str::to_owned).into(),
            None => [
                ("--service-time", format!("{}us", self.service_us)),
                ("--parallel", self.parallel.to_string()),
                ("--bandwidth", format!("{}MB", self.megabytes_per_second)),
            ]
            .into_iter()
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect(),
        }
    }

    /// Whether it ends in a tape.
    pub fn has_drive(&self) -> bool {
        self.end != End::Nothing
    }

    /// The single changes to it.
    pub fn changes(&self) -> Vec<Change> {
        let own = Parts {
            blocking: self.blocking,
            compressor: self.compressor.map(str::to_owned),
            rate_megabytes: self.rate_megabytes,
            end: self.end.clone(),
            is_buffered: false,
        };
        let change = |name, acts_on, parts: &Parts| Change {
            name,
            acts_on,
            line: self.line_with(parts),
            read_ahead_kib: None,
            from_memory: false,
        };
        let mut changes = vec![
            Change {
                read_ahead_kib: Some(8192),
                ..change("read-ahead 8 MiB", ActsOn::ReadAhead, &own)
            },
            Change { from_memory: true, ..change("source in memory", ActsOn::Source, &own) },
        ];
        if let Some(compressor) = self.compressor {
            let parallel = match compressor.split(' ').next() {
                Some("gzip") => compressor.replacen("gzip", "pigz", 1),
                _ => format!("{compressor} -T0"),
            };
            let with = |it: Option<String>| Parts { compressor: it, ..own.clone() };
            changes.push(change("all cores", ActsOn::Compressor, &with(Some(parallel))));
            changes.push(change("no compressor", ActsOn::NoCompressor, &with(None)));
        }
        if self.rate_megabytes.is_some() {
            let parts = Parts { rate_megabytes: None, ..own.clone() };
            changes.push(change("no rate limit", ActsOn::Pace, &parts));
        }
        if self.has_drive() {
            let parts = Parts { end: End::Nothing, ..own.clone() };
            changes.push(change("no drive", ActsOn::Target, &parts));
            let parts = Parts { is_buffered: true, ..own.clone() };
            changes.push(change("a buffer", ActsOn::Turns, &parts));
            let end = match &self.end {
                End::Dd { .. } => End::Dd { kib: 512 },
                End::Mbuffer { .. } => End::Mbuffer { kib: 512 },
                other => other.clone(),
            };
            if self.compressor.is_none() || end != self.end {
                let parts = Parts { end, blocking: Some(1024), ..own.clone() };
                changes.push(change("blocks of 512 KiB", ActsOn::Blocks, &parts));
            }
        }
        if self.rate_megabytes.is_none() {
            let compress = match self.compressor.and_then(|it| it.split(' ').next()) {
                None => Some(""),
                Some("gzip") => Some(" --compress=gzip"),
                Some("zstd") => Some(" --compress=zstd"),
                Some(_) => None,
            };
            let to = if self.has_drive() { "drive/nst0" } else { "result/out" };
            changes.extend(compress.map(|compress| Change {
                line: format!("takeup backup tree --to {to} --overwrite{compress}"),
                ..change("takeup backup", ActsOn::AtOnce, &own)
            }));
        }
        changes
    }
}

#[derive(Clone)]
struct Parts {
    blocking: Option<u64>,
    compressor: Option<String>,
    rate_megabytes: Option<u64>,
    end: End,
    is_buffered: bool,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; disk {}, read-ahead {} KiB; {:?}{}",
            self.line(),
            self.disk(),
            self.read_ahead_kib,
            self.tree,
            if self.is_text { " of text" } else { "" },
        )?;
        match self.foreign {
            Foreign::Nothing => {}
            Foreign::Processor => write!(f, "; beside a program that computes")?,
            Foreign::Disk => write!(f, "; beside a program that reads the disk")?,
        }
        if self.has_drive() {
            write!(f, "; {} with {} MiB", self.drive, self.buffer_mib)?;
        }
        Ok(())
    }
}
