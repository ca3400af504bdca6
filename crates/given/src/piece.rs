//! What a text can hold. Sizes are bytes, times seconds, rates bytes for each second.

/// Something that was recognised.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// First and last line of it, from 1.
    pub lines: (u32, u32),
    /// How often a mail has quoted it.
    pub quoted: u32,
    /// Lines that are not known stand between it and the piece before.
    pub after_text: bool,
    pub what: What,
}

/// What it is.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A line that was typed.
    Command(Command),
    /// The end of `dd`.
    Copied(Copied),
    /// What `time` printed.
    Timed(Timed),
    /// What `time` of zsh printed of one program of a pipeline.
    ProgramTimed(ProgramTimed),
    /// A line of `time` with processor time, next to that of the elapsed time.
    ProcessorTime(ProcessorTime),
    /// The columns of `iostat -x`, which begin a table.
    Columns,
    /// A row of `iostat -x`.
    Device(Box<DeviceRow>),
    /// A section of a file of jobs.
    Section {
        /// Its values are those of all jobs.
        is_global: bool,
    },
    /// A value of a file of jobs.
    JobValue(Job),
    /// The line of fio that begins the output of a job.
    Job(Job),
    /// How many processes or threads fio starts.
    Processes(u64),
    /// What fio measured in a direction.
    Direction(DirectionRate),
    /// A mean latency of fio, of the direction before it.
    MeanLatency(f64),
    /// A system call.
    Call(Call),
    /// A call that moves data was interrupted by one of another thread.
    Overlapped,
    /// Block limits of a tape drive.
    BlockLimits {
        /// Largest block.
        bytes_max: u64,
    },
    /// A setting of a block device's queue.
    Setting(Setting),
    /// A line of a backup program's summary.
    Summary(SummaryLine),
    /// What a tape drive says of itself.
    TapeStatus(TapeStatus),
    /// A line of `btape speed`.
    TapeTest(TapeTest),
    /// What a program says that it moved: its last line.
    Moved(Moved),
    /// A line of the statistics of rsync or borg.
    Covered(CoveredLine),
    /// A row of `sar -d`.
    DiskReport(DiskReport),
    /// A line of a job report of Bacula or Bareos.
    JobReport(JobReport),
    /// `tar -M` asks for the next tape.
    NextVolume,
    /// A row of `lsblk`.
    Layer(Layer),
    /// Output of one program for other programs, with the pieces that its text has.
    Document { program: Program, pieces: Vec<What> },
    /// Known, and of no use here.
    Passed,
}

impl What {
    /// Its kind in words.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Command(_) => "a command",
            What::Copied(_) => "dd",
            What::Timed(_) | What::ProgramTimed(_) | What::ProcessorTime(_) => "time",
            What::Columns | What::Device(_) => "iostat -x",
            What::Section { .. } | What::JobValue(_) => "a job file of fio",
            What::Job(_) => "a job of fio",
            What::Processes(_) | What::Direction(_) | What::MeanLatency(_) => "fio",
            What::Call(_) | What::Overlapped => "strace",
            What::BlockLimits { .. } => "limits of a tape drive",
            What::Setting(_) => "a setting",
            What::Summary(_) => "a backup's summary",
            What::TapeStatus(_) => "status of a tape drive",
            What::TapeTest(_) => "btape speed",
            What::Moved(moved) => moved.mover.name(),
            What::Covered(CoveredLine::Seconds(_) | CoveredLine::Archive { .. }) => "borg --stats",
            What::Covered(CoveredLine::Files(_)) => "a number of files",
            What::Covered(_) => "rsync --stats",
            What::DiskReport(_) => "sar -d",
            What::JobReport(_) => "a job report",
            What::NextVolume => "tar --multi-volume",
            What::Layer(_) => "lsblk",
            What::Document { program: Program::Iostat, .. } => "iostat -o JSON",
            What::Document { program: Program::Fio, .. } => "fio --output-format",
            What::Passed => "passed over",
        }
    }
}

/// A line that was typed: one pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Without prompt, `time` and the shell that runs it.
    pub line: String,
    /// Empty if it is more than one pipeline.
    pub stages: Vec<String>,
    /// The name of the machine in the prompt; empty where it has none.
    pub machine: String,
}

/// `N bytes copied`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copied {
    pub bytes: u64,
    pub seconds: f64,
}

/// Times of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    pub elapsed: f64,
    /// Processor time in the program, and in the kernel for it.
    pub user: Option<f64>,
    pub system: Option<f64>,
}

/// Seconds of a processor: in the program, or in the kernel for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProcessorTime {
    User(f64),
    System(f64),
}

/// Times of a program, and how it was called.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramTimed {
    pub line: String,
    pub timed: Timed,
}

/// Requests of a device in an interval of `iostat`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceRow {
    pub device: String,
    pub reads: Requests,
    pub writes: Requests,
    /// Mean number in flight and waiting.
    pub in_flight: Option<f64>,
    /// Share of the time in which there was any, in per cent.
    pub busy_percent: f64,
}

impl DeviceRow {
    /// Bytes for each second in both directions.
    pub fn bytes_per_second(&self) -> f64 {
        self.reads.bytes_per_second + self.writes.bytes_per_second
    }

    /// Requests for each second in both directions.
    pub fn requests_per_second(&self) -> f64 {
        self.reads.per_second + self.writes.per_second
    }
}

/// Requests of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requests {
    pub per_second: f64,
    pub bytes_per_second: f64,
    /// Share of those that were made which were merged into another one, in per cent.
    pub merged_percent: f64,
}

impl Requests {
    /// Mean size of a request that the device got.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.per_second > 0.0).then(|| self.bytes_per_second / self.per_second)
    }

    /// Mean size of a request before merging.
    pub fn made_bytes(&self) -> Option<f64> {
        Some(self.mean_bytes()? * (1.0 - self.merged_percent / 100.0))
    }
}

/// What fio is to do; values that were not given are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    pub pattern: Option<String>,
    pub block_bytes: Option<u64>,
    pub engine: Option<String>,
    pub depth: Option<u64>,
    pub jobs: Option<u64>,
    /// Whether it goes around the page cache.
    pub direct: Option<Switch>,
    /// A value is a variable, or one of several.
    pub is_unsure: bool,
}

/// Reads or writes of fio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionRate {
    pub is_read: bool,
    pub per_second: f64,
    pub bytes_per_second: f64,
}

/// A system call that moves data, waits for them, or does neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The process, if it is told.
    pub process: Option<u32>,
    pub name: String,
    /// The file descriptor, if it is the first argument.
    pub file: Option<i64>,
    /// The third argument as a number: what was asked for.
    pub asked: Option<u64>,
    /// What it returned.
    pub result: i64,
}

/// A setting below `/sys/block`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub device: String,
    pub name: String,
    pub value: String,
    /// It was written, not read.
    pub is_set: bool,
    /// As that of a command.
    pub machine: String,
}

/// A line of a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SummaryLine {
    /// As printed, with the factor of its unit in powers of 1000.
    Size {
        bytes: f64,
        /// The same if the unit counts in powers of 1024.
        binary_bytes: f64,
    },
    /// Of something else, so that nobody knows what a rate is of.
    OtherSize,
    Seconds(f64),
    /// A time that may be several.
    OtherTime,
    /// As printed, likewise.
    Rate {
        bytes_per_second: f64,
        /// The same if the unit counts in powers of 1024.
        binary_bytes_per_second: f64,
    },
}

/// A program that prints JSON, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Iostat,
    Fio,
}

/// A line of `mt status`, `tapeinfo` or `sg_logs`.
#[derive(Clone, Debug, PartialEq)]
pub enum TapeStatus {
    /// The first line.
    Drive,
    /// -1 where the driver does not know it.
    Position {
        file: i64,
        block: i64,
    },
    Mode {
        /// 0: each write is a block of its own size.
        block_bytes: u32,
        /// MODE SENSE's code of the medium; 0 without one.
        density: u8,
    },
    /// Errors that the drive recovered from, since the last `mt status`.
    SoftErrors(u64),
    /// `mt_gstat` of the kernel.
    Bits(u32),
    /// As in `Mode`, without the density.
    BlockSize(u32),
    /// As in `Mode`, without the size of a block.
    Density(u8),
    Buffer(Switch),
    Compression(Switch),
    /// Bytes from the host for each byte that was written to the tape.
    WriteRatio(f64),
    /// A flag of TapeAlert that is set.
    Alert(String),
    /// No medium is loaded, or one is loading.
    NotReady,
}

/// Whether a drive or a job does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// The data that `btape speed` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestData {
    Zeros,
    Random,
}

/// How `btape speed` writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The data alone.
    Raw,
    /// In the block format of Bacula.
    Blocks,
}

/// A line of `btape speed`.
#[derive(Clone, Debug, PartialEq)]
pub enum TapeTest {
    /// The device that it writes to.
    Drive(String),
    Data(TestData),
    Begin {
        files: u64,
        /// Rounded to three decimals of the unit that was printed, as all sizes here.
        file_bytes: f64,
        block_bytes: u64,
        framing: Framing,
    },
    File {
        bytes: f64,
        bytes_per_second: f64,
    },
    Total {
        bytes: f64,
        bytes_per_second: f64,
    },
}

/// A program that says at its end what it moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    Tar,
    Pv,
    Restic,
    Rsync,
}

impl Mover {
    /// As its output is called.
    pub fn name(self) -> &'static str {
        match self {
            Mover::Tar => "tar --totals",
            Mover::Pv => "pv",
            Mover::Restic => "restic",
            Mover::Rsync => "rsync",
        }
    }
}

/// What a program moved. Sizes and rates are as printed: rounded, but for the bytes of tar.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    pub mover: Mover,
    /// The name that its line has (`pv -N`); empty without one.
    pub label: String,
    pub bytes: f64,
    pub seconds: Option<f64>,
    pub bytes_per_second: Option<f64>,
}

/// A line of the statistics of a program that stores only what is new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CoveredLine {
    /// `Number of files`; of rsync those that are no folders and links, where it tells them apart.
    Files(u64),
    /// `Total file size` of rsync.
    Bytes(f64),
    /// `Total transferred file size` of rsync: of the files that were new or had changed.
    ChangedBytes(f64),
    /// `Duration` of borg.
    Seconds(f64),
    /// `This archive` of borg: all that it holds, the same compressed, and what of that is stored
    /// for the first time.
    Archive { bytes: f64, compressed_bytes: f64, new_bytes: f64 },
}

/// A device in an interval of `sar -d`, which counts reads and writes together.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskReport {
    pub device: String,
    pub requests_per_second: f64,
    pub read_bytes_per_second: f64,
    pub written_bytes_per_second: f64,
    /// Mean size of a request.
    pub request_bytes: f64,
    /// Mean number in flight and waiting.
    pub in_flight: f64,
    /// Share of the time in which there was any, in per cent.
    pub busy_percent: f64,
    pub interval: Interval,
}

/// The time that a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    One,
    /// All intervals of the report.
    Average,
}

/// Who wrote a job report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Director {
    Bacula,
    Bareos,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    BackedUp,
    Failed,
    Canceled,
    /// It restored, verified or copied.
    Other,
}

/// A line of a job report of Bacula or Bareos.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JobReport {
    /// The line above the report, with the first number of the version.
    Director {
        director: Director,
        version: u32,
    },
    /// The number of the job, which begins a report.
    Job,
    Elapsed(f64),
    /// What the file daemon sent.
    ClientBytes(u64),
    /// What the storage daemon wrote.
    StoredBytes(u64),
    Rate(f64),
    /// The file daemon compresses: the share that this saves.
    Compressed(f64),
    Uncompressed,
    /// The last line.
    Ended(Outcome),
    /// The storage daemon has written a spool to the tape.
    Despooled {
        job: Option<u64>,
        seconds: f64,
        bytes_per_second: f64,
    },
}

/// A device of `lsblk`, and how deep it stands below a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub name: String,
    /// 0: nothing lies below it.
    pub depth: u32,
    /// `disk`, `part`, `lvm`, `crypt`, `raid1`, `rom`, `loop`.
    pub kind: String,
    /// Where it is mounted; empty where it is not, or the column was not printed.
    pub mounted_at: String,
}
