//! `takeup watch`: what block devices do, and what the numbers mean.
//!
//! Readings come from this machine or from a file. In both cases [`watch::intervals`] computes
//! intervals, and [`screen::lines`] and [`document`] print each as soon as it is over.

mod document;
mod whole;

use crate::exit_code::FailureExitCode as _;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use machine::counters::disk;
use storage::layers::Storage;
use storage::stack::{Stack, StackTarget};
use watch::Reading;
use watch::intervals::{Interval, IntervalMaker};
use watch::live::{WatchedDevices, WatchedMachine};
use watch::record::{LeftOut, RecordError, RecordReader, RecordWriter};
use watch::tapes;

use screen::lines::ScreenLines;

use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use crate::terminal::colour;
use base::escape::{Printable, escape, escape_path};
use base::format::counted;
use report::table::Colour;
use service::failure::{Failure, with_causes};

/// Show what block devices do, and say what the numbers mean
///
/// Prints all columns of `iostat -x`, and below each busy device what they mean. Idle devices are
/// hidden. DEVICE is a name (sda), a node (/dev/mapper/home) or a path on a file system; the
/// devices below it are included. Without DEVICE, Takeup watches all disks, including those that
/// appear later.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup watch
  takeup watch sda /srv --interval 5s
  takeup watch sda --interval 5s --count 2 --json | jq -c '.devices[].findings[].sentence'
  takeup watch --record night.ndjson --interval 10s >/dev/null
  takeup watch --from night.ndjson")]
pub struct WatchArgs {
    /// Devices to watch
    #[arg(value_name = "DEVICE")]
    devices: Vec<OsString>,
    /// Time between two readings, from 100ms to a day, such as 500ms, 5s, 1m [default: 1s]
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    interval: Option<Pause>,
    /// End after this many intervals
    #[arg(long, value_name = "N", value_parser = intervals)]
    count: Option<u64>,
    /// Record the readings in a new file
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    record: Option<PathBuf>,
    /// Replay such a file
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Use the whole terminal: the default on a terminal without --count, --plain and --json
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "plain"])]
    screen: bool,
    /// Print lines, even on a terminal
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    plain: bool,
    /// Print one JSON object per interval, each on one line
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Colours, bold and dim: auto is on a terminal, unless NO_COLOR is set or TERM is dumb
    #[arg(long, help_heading = "Output", value_name = "WHEN", default_value = "auto")]
    color: When,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl WatchArgs {
    fn colour(&self) -> Colour {
        match self.color {
            When::Auto => colour(&io::stdout()),
            When::Always => Colour::Ansi,
            When::Never => Colour::Plain,
        }
    }

    /// Whether to use the whole terminal: if there is a user at it, and no fixed end.
    fn wants_screen(&self) -> bool {
        let has_terminal = || io::stdin().is_terminal() && io::stdout().is_terminal();
        let is_dumb =
            || std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let wants_lines = self.plain || self.json || self.count.is_some();
        self.screen || (!wants_lines && has_terminal() && !is_dumb())
    }
}

/// Maximum number of devices that a hint names.
const NAMES_IN_HINT: usize = 12;

/// The time between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pause(Duration);

impl FromStr for Pause {
    type Err = String;

    fn from_str(text: &str) -> Result<Pause, String> {
        let digits = text.bytes().take_while(|it| it.is_ascii_digit() || *it == b'.').count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => f64::NAN,
        };
        let seconds = number.parse::<f64>().map_or(f64::NAN, |number| number * factor);
        if (0.1..=86_400.0).contains(&seconds) {
            Ok(Pause(Duration::from_secs_f64(seconds)))
        } else {
            Err("use a time from 100ms to 24h with ms, s, m or h, such as 5s".to_owned())
        }
    }
}

fn intervals(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("use a number of 1 or more; without --count there is no end".to_owned()),
    }
}

/// Runs the command.
pub fn run(arguments: &WatchArgs) -> ExitCode {
    let failure = match watch(arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    if arguments.json {
        // If this fails, the message on standard error has the same content.
        let line = failure.to_json_line("watch");
        let _ = to_standard_output(line.as_bytes());
    }
    to_standard_error(&failure.to_text());
    failure.exit_code()
}

fn watch(arguments: &WatchArgs) -> Result<(), Failure> {
    if arguments.wants_screen() {
        return whole::show(arguments);
    }
    let mut printer = Printer::new(arguments);
    match &arguments.from {
        Some(path) => replay(path, &arguments.devices, &mut printer),
        None => look(arguments, &mut printer),
    }
}

/// Watches this machine, for the requested number of intervals or without end.
fn look(arguments: &WatchArgs, printer: &mut Printer) -> Result<(), Failure> {
    let mut readings = Readings::begin(arguments)?;
    if io::stdout().is_terminal() && !arguments.json {
        let seconds = readings.interval.as_secs_f64();
        to_standard_error(&format!(
            "takeup: one reading every {seconds} s; idle devices are hidden; Ctrl-C ends\n"
        ));
    }
    loop {
        if printer.show(readings.next()?)? == Next::Ends {
            return Ok(());
        }
    }
}

/// Repeated readings of this machine, recorded if requested.
struct Readings {
    machine: WatchedMachine,
    record: Option<RecordWriter>,
    interval: Duration,
}

impl Readings {
    fn begin(arguments: &WatchArgs) -> Result<Readings, Failure> {
        let machine = WatchedMachine::new(watched(&arguments.devices)?);
        let record = arguments.record.as_deref().map(RecordWriter::create).transpose();
        let record = record.map_err(|error| record_failure(&error))?;
        let interval = arguments.interval.map_or(Duration::from_secs(1), |pause| pause.0);
        Ok(Readings { machine, record, interval })
    }

    /// The next reading: the first one at once, all others at the end of an interval.
    fn next(&mut self) -> Result<Reading, Failure> {
        let reading = self.machine.reading(self.interval);
        let reading = reading.map_err(|error| Failure::new(&error, None))?;
        if let Some(record) = &mut self.record {
            record.write(&reading).map_err(|error| record_failure(&error))?;
        }
        Ok(reading)
    }
}

/// Replays a file from beginning to end.
fn replay(path: &Path, devices: &[OsString], printer: &mut Printer) -> Result<(), Failure> {
    let mut reader = RecordReader::open(path).map_err(|error| record_failure(&error))?;
    let wanted: BTreeSet<String> = devices.iter().map(|it| plain_name(it)).collect();
    let mut seen = BTreeSet::new();
    while let Some(mut reading) = reader.next_reading().map_err(|error| record_failure(&error))? {
        keep(&mut reading, &wanted, &mut seen);
        match printer.show(reading)? {
            Next::Follows => {}
            Next::Ends if printer.left == Some(0) => break,
            Next::Ends => return Ok(()),
        }
    }
    say_left_out(path, reader.left_out(), reader.left_out_count());
    if reader.is_cut() {
        say_cut(path);
    }
    let Some(name) = wanted.difference(&seen).next() else { return Ok(()) };
    let part = if printer.left == Some(0) { " in the requested intervals" } else { "" };
    Err(not_in_record(path, name, part, &seen))
}

/// Keeps only the named devices in a reading, or all if none is named, and remembers all names.
fn keep(reading: &mut Reading, wanted: &BTreeSet<String>, seen: &mut BTreeSet<String>) {
    seen.extend(reading.rows.iter().map(|row| row.name.clone()));
    seen.extend(reading.tapes.keys().cloned());
    if !wanted.is_empty() {
        reading.rows.retain(|row| wanted.contains(&row.name));
        reading.tapes.retain(|name, _| wanted.contains(name));
    }
}

/// Warns about a record that ends in the middle of a line.
pub(super) fn say_cut(path: &Path) {
    let shown = escape_path(path);
    to_standard_error(&format!("takeup: {shown}: the last line is incomplete and was skipped\n"));
}

/// Maximum number of damaged lines to name.
const LEFT_OUT_TOLD: usize = 5;

/// Warns about impossible readings in a record.
pub(super) fn say_left_out(path: &Path, left_out: &[LeftOut], count: u64) {
    let shown = escape_path(path);
    for LeftOut { line, why } in left_out.iter().take(LEFT_OUT_TOLD) {
        let why = escape(why.as_bytes());
        to_standard_error(&format!("takeup: {shown}, line {line}: skipped: {why}\n"));
    }
    let more = count.saturating_sub(LEFT_OUT_TOLD as u64);
    if more > 0 {
        let lines = counted(more, "more line", "more lines");
        to_standard_error(&format!("takeup: {shown}: {lines} skipped\n"));
    }
}

fn not_in_record(path: &Path, name: &str, part: &str, seen: &BTreeSet<String>) -> Failure {
    let shown = path.display();
    let some: Vec<&str> = seen.iter().take(NAMES_IN_HINT).map(String::as_str).collect();
    let more = if seen.len() > some.len() { " and others" } else { "" };
    let hint = format!("name one of {}{more}, or leave out DEVICE to show all", some.join(", "));
    Failure::of(format!("{shown} has no device {name}{part}"), Some(&hint))
}

/// The name of the tape drive of a device node.
pub(super) fn drive_of(path: &str) -> Option<String> {
    let name = plain_name(OsStr::new(path));
    (path.starts_with("/dev/") && tapes::is_drive(&name)).then_some(name)
}

/// The kernel's name for a name or a node; for any node of a tape drive, the name of the drive.
fn plain_name(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let name = text.strip_prefix("/dev/").unwrap_or(&text);
    let drive = name.strip_prefix('n').filter(|name| tapes::is_drive(name));
    drive.unwrap_or(name).to_owned()
}

/// The devices to watch for the named ones; all if none is named.
pub(super) fn watched(devices: &[OsString]) -> Result<WatchedDevices, Failure> {
    if devices.is_empty() {
        return Ok(WatchedDevices::All);
    }
    let rows = disk::rows_now().map_err(|error| Failure::new(&error, None))?;
    let drives = tapes::below(Path::new("/sys"));
    let mut names = BTreeSet::new();
    for device in devices {
        let name = plain_name(device);
        if drives.contains_key(&name) {
            names.insert(name);
            continue;
        }
        match rows.iter().find(|row| row.name == name) {
            // Hidden paths have the number 0:0, and no devices below.
            Some(row) if row.number == (0, 0) => names.extend([name]),
            Some(row) => {
                let number = format!("{}:{}", row.number.0, row.number.1);
                names.extend([name]);
                names.extend(layers(&Storage::of_number(Path::new("/sys"), &number, || None)));
            }
            None => names.extend(below_path(Path::new(device))?),
        }
    }
    Ok(WatchedDevices::Named(names))
}

/// The block devices below a path.
fn below_path(path: &Path) -> Result<Vec<String>, Failure> {
    let shown = path.display();
    let storage = Storage::of(path).map_err(|error| match error.source.kind() {
        io::ErrorKind::NotFound => not_there(path),
        _ => Failure::new(&error, None),
    })?;
    if path.metadata().is_ok_and(|it| it.file_type().is_char_device()) {
        let hint = "the only character devices supported are `st` tape drives";
        return Err(Failure::of(format!("{shown} is not a block device"), Some(hint)));
    }
    let mut names: Vec<String> = layers(&storage).collect();
    // If the device number of a file system leads nowhere, its mount does: for a ZFS pool, or the
    // layers of an overlay.
    if names.is_empty()
        && let Ok(place) = StackTarget::of(path)
    {
        let devices = Stack::devices(&machine::Machine::this(), &place);
        names.extend(devices.iter().map(|name| name.replace('!', "/")));
    }
    if names.is_empty() {
        let message = format!("there is no block device below {shown}");
        let hint = "name a path on a local disk: file systems in memory, over the network or in \
                    user space have no block device";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(names)
}

fn not_there(path: &Path) -> Failure {
    let shown = path.display();
    let devices = "run `ls /sys/class/block` to list the block devices";
    if path == Path::new("") {
        return Failure::of("the name of a device is empty".to_owned(), Some(devices));
    }
    if path.starts_with("/dev") || path.parent() == Some(Path::new("")) {
        return Failure::of(format!("there is no block device {shown}"), Some(devices));
    }
    let hint = "name a device (sda), a node below /dev, or an existing path";
    Failure::of(format!("there is no file or folder {shown}"), Some(hint))
}

/// Names of all layers in the form of the counters.
fn layers(storage: &Storage) -> impl Iterator<Item = String> {
    storage.layers.iter().map(|layer| layer.name.replace('!', "/"))
}

/// Why a record cannot be written or read.
pub(super) fn record_failure(error: &RecordError) -> Failure {
    match error {
        RecordError::File { what: "make", source, path }
            if source.kind() == io::ErrorKind::AlreadyExists =>
        {
            let hint = "choose another name; `takeup watch --from` shows what it holds";
            Failure::of(format!("{} exists already", path.display()), Some(hint))
        }
        RecordError::NoRecord { .. } => {
            let hint = "run `takeup watch --record FILE` to make one";
            Failure::new(error, Some(hint.to_owned()))
        }
        _ => Failure::new(error, None),
    }
}

/// Whether there is more to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Follows,
    Ends,
}

/// Prints intervals as they come.
struct Printer {
    watch: IntervalMaker,
    form: Form,
    left: Option<u64>,
}

enum Form {
    Lines(ScreenLines),
    Json,
}

impl Printer {
    fn new(arguments: &WatchArgs) -> Printer {
        let lines = ScreenLines::new(arguments.colour());
        let form = match (arguments.json, arguments.count) {
            (true, _) => Form::Json,
            (false, None) => Form::Lines(lines),
            (false, Some(_)) => Form::Lines(lines.saying_idle()),
        };
        Printer { watch: IntervalMaker::default(), form, left: arguments.count }
    }

    fn show(&mut self, reading: Reading) -> Result<Next, Failure> {
        let Some(interval) = self.watch.next(reading) else { return Ok(Next::Follows) };
        let text = self.form.of(&interval);
        self.left = self.left.map(|left| left - 1);
        match print(&text)? {
            Next::Follows if self.left != Some(0) => Ok(Next::Follows),
            _ => Ok(Next::Ends),
        }
    }
}

impl Form {
    fn of(&mut self, interval: &Interval) -> String {
        match self {
            Form::Json => document::line(interval),
            // Queried each time, because the window may have been resized.
            Form::Lines(lines) => lines.of(interval, terminal_width()),
        }
    }
}

/// The width of the terminal at standard output; `None` if it is not a terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
    size.ok().map(|size| usize::from(size.ws_col))
}

/// A closed pipe ends the watch, which is not a failure.
fn print(text: &str) -> Result<Next, Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(Printable::of(text.as_bytes()).as_bytes()).and_then(|()| output.flush())
    {
        Ok(()) => Ok(Next::Follows),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Next::Ends),
        Err(error) => {
            let why = with_causes(&error);
            Err(Failure::of(format!("cannot write standard output: {why}"), None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_a_drive_are_the_drive() {
        for (argument, name) in [
            ("/dev/nst0", "st0"),
            ("st12", "st12"),
            ("nst3", "st3"),
            ("nsto", "nsto"),
            ("nst", "nst"),
        ] {
            assert_eq!(plain_name(OsStr::new(argument)), name, "{argument}");
        }
    }

    #[test]
    fn times_between_looks() {
        let seconds = |text: &str| text.parse::<Pause>().ok().map(|pause| pause.0.as_secs_f64());
        for (text, expected) in [("500ms", 0.5), ("5s", 5.0), ("2", 2.0), ("1.5m", 90.0)] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "s", "0", "99ms", "25h", "-1s", "5x", "1e3", "NaN"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
