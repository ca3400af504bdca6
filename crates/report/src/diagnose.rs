//! Why a backup is slow, for people: the limit, what to type, what it brings, what comes then. And
//! what texts show together: the answer first, then what to send, then what was read.

mod page;

use base::escape::escape_controls;
use base::finding::Finding;
use base::format::{count, counted, duration, percent, rate, size};
use service::diagnose::given::{DiagnoseGivenAnswer, LineOfText, ShownByText};
use service::diagnose::host::DiagnoseHostAnswer;
use service::diagnose::{DiagnoseAnswer, DiagnosedStation, RangeAnswer, TriedStep};

use crate::figure::{self, Axis, Figure, FigureGroup, Marks, Value};
use crate::prose::fitted;
use crate::table::{Align, Emphasis, Style, Table};
pub use page::page;

/// Lines that are refused by name.
const REFUSED_SHOWN: usize = 10;

/// How much of a diagnosis is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The limit and the changes.
    Short,
    /// Every station with its numbers, too.
    All,
}

/// The figure of the stations ends at this many times what the whole chain gives.
const TOP: f64 = 6.0;

/// Findings that are shown in the short form.
const FINDINGS_SHOWN: usize = 5;

/// The rule that says of a line that it reads none of its files.
const NOT_READ: &str = "diagnose.not-read";

/// The diagnosis of a chain.
pub fn text(answer: &DiagnoseAnswer, shown: Shown, style: Style) -> String {
    let mut text = String::new();
    let most = if shown == Shown::All { usize::MAX } else { FINDINGS_SHOWN };
    text += &format!("{}\n", escape_controls(&headline(answer)));
    for finding in answer.findings.iter().take(most) {
        text += &lines(finding);
    }
    if answer.findings.is_empty() {
        text += "nothing was found that one change would make faster\n";
    }
    text += &answer.tried.as_ref().map_or(String::new(), tried);
    if shown == Shown::All {
        text += &stations(&answer.stations, style);
        text += &source(answer);
    } else if answer.findings.len() > most {
        let more = counted((answer.findings.len() - most) as u64, "finding", "findings");
        text += &format!("--all shows {more} more, and each station with its numbers\n");
    }
    fitted(&text, style)
}

/// /srv to /dev/nst0: about 46.0 MB/s
fn headline(answer: &DiagnoseAnswer) -> String {
    let from = &answer.source.path;
    let way = match answer.target.as_str() {
        "nowhere" => from.clone(),
        to => format!("{from} to {to}"),
    };
    let now = answer.bytes_per_second.value;
    let bytes = answer.source.large_bytes + answer.source.small_bytes;
    let time = duration(answer.expected_seconds);
    let is_source = |kind: &str| kind == "large-files" || kind == "small-files";
    if !answer.stations.iter().any(|it| is_source(&it.kind)) {
        return format!("{way}: how fast it is read is not known");
    }
    let unknown = |it: &&DiagnosedStation| it.kind == "program" && it.bytes_per_second.is_none();
    let about = if answer.stations.iter().any(|it| unknown(&it)) { "at most" } else { "about" };
    let of = if answer.source.is_whole { size(bytes) } else { format!("{} or more", size(bytes)) };
    let is_read = answer.findings.first().is_none_or(|it| it.rule != NOT_READ);
    let so = if is_read { "as it is" } else { "if it were read" };
    format!("{way}: {about} {} {so}, {time} for {of}", rate(now))
}

fn lines(finding: &Finding) -> String {
    let [head, rest @ ..] = &finding.parts()[..] else { return String::new() };
    let mut text = format!("- {}\n", escape_controls(head));
    for part in rest {
        let is_command = finding.command.as_ref().is_some_and(|it| part.starts_with(it.as_str()));
        let lead = if is_command { "type: " } else { "" };
        text += &format!("  {lead}{}\n", escape_controls(part));
    }
    text
}

fn tried(tried: &TriedStep) -> String {
    if let Some(why) = &tried.not_tried {
        return format!("tried: nothing, because {}\n", escape_controls(why));
    }
    let [predicted, before, after] =
        [tried.predicted, tried.before, tried.after].map(|it| it.map_or(String::new(), range));
    let so = match tried.is_as_predicted {
        Some(true) => "as predicted",
        Some(false) => "not as predicted",
        None => "not known whether as predicted",
    };
    let (how, now) = match tried.lines {
        Some(_) => (", both without the target", "nothing was written, and nothing is changed"),
        None => ("", "the value from before is in force again"),
    };
    format!(
        "tried: {before} before, {after} with the change{how}; predicted {predicted}: {so}\n{now}\n"
    )
}

/// 270 MB/s (250 to 290)
fn range(range: RangeAnswer) -> String {
    let RangeAnswer { value, low, high } = range;
    format!("{} ({} to {})", rate(value), rate(low), rate(high))
}

fn stations(stations: &[DiagnosedStation], style: Style) -> String {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("station", Align::Left),
        ("gives", right),
        ("could give", right),
        ("known", Align::Left),
    ]);
    for station in stations {
        let cells = station_cells(station).into_iter();
        table.row(cells.map(|cell| escape_controls(&cell)).collect(), Emphasis::None);
    }
    table.render(style)
}

/// Its name, what it gives, what it could give, and how that is known. Large and small files have
/// the rate at which they are read themselves.
fn station_cells(station: &DiagnosedStation) -> Vec<String> {
    let share = station.share_of_bytes;
    let of = |range: Option<RangeAnswer>| {
        range.map_or("-".to_owned(), |it| {
            let [value, low, high] = [it.value, it.low, it.high].map(|rate| rate * share);
            if low == high { rate(value) } else { self::range(RangeAnswer { value, low, high }) }
        })
    };
    let name = match percent(share).as_str() {
        "100 %" => station.name.clone(),
        share => format!("{}, {share} of the bytes", station.name),
    };
    vec![
        name,
        of(station.bytes_per_second),
        of(station.most_bytes_per_second),
        format!("{:?}", station.certainty).to_lowercase(),
    ]
}

fn source(answer: &DiagnoseAnswer) -> String {
    let source = &answer.source;
    let files = |number: u64| counted(number, "file", "files");
    format!(
        "read {} in {}; {} of 1 MiB or more with {}, {} below with {}\n",
        size(source.read_bytes),
        duration(answer.seconds),
        files(source.large_files),
        size(source.large_bytes),
        files(source.small_files),
        size(source.small_bytes),
    )
}

/// The chain as a picture: what each station gives, what it could give, and the whole chain as it
/// is and with each change.
pub fn chart(answer: &DiagnoseAnswer) -> String {
    figure::document(&[figure_of(answer)])
}

fn figure_of(answer: &DiagnoseAnswer) -> Figure {
    let chain: Vec<&DiagnosedStation> =
        answer.stations.iter().filter(|it| it.bytes_per_second.is_some()).collect();
    let last = answer.steps.last().map_or(answer.bytes_per_second, |it| it.bytes_per_second);
    let top = TOP * last.value.max(answer.bytes_per_second.value);
    let word = |it: &&DiagnosedStation| match it.bytes_per_second {
        Some(now) if now.value > top => format!("{} (more)", it.name),
        _ => it.name.clone(),
    };
    let mut words: Vec<String> = chain.iter().map(word).collect();
    words.push("all of it".to_owned());
    let values = |of: &dyn Fn(&DiagnosedStation) -> Option<RangeAnswer>, whole: RangeAnswer| {
        let ranges = chain.iter().map(|station| of(station)).chain([Some(whole)]);
        let placed = ranges.enumerate().filter_map(|(at, range)| Some((at, range?)));
        placed.map(|(at, range)| value(at, &words[at], range, top)).collect::<Vec<Value>>()
    };
    let group = |name: &str, values: Vec<Value>| FigureGroup {
        name: name.to_owned(),
        values,
        curve: Vec::new(),
        marks: Marks::Each,
    };
    let groups = vec![
        group("as it is", values(&|it| it.bytes_per_second, answer.bytes_per_second)),
        group("could give", values(&|it| it.most_bytes_per_second, last)),
    ];
    Figure {
        title: "What each station gives".to_owned(),
        x_name: "station".to_owned(),
        y_name: "MB/s of the source".to_owned(),
        axis: Axis::Words(words.clone()),
        y_least: 0.0,
        places: Vec::new(),
        groups,
    }
}

/// A rate above `top` is drawn there: beside it the others could not be told apart.
fn value(at: usize, name: &str, range: RangeAnswer, top: f64) -> Value {
    let [y, low, high] = [range.value, range.low, range.high].map(|it| it.min(top) / 1e6);
    Value {
        x: at as f64,
        y,
        range: (low < high).then_some((low, high)),
        label: format!("{name}: {}", self::range(range)),
    }
}

/// What stands out on a machine.
pub fn host(answer: &DiagnoseHostAnswer, style: Style) -> String {
    let mut text = String::new();
    for it in &answer.stands_out {
        let path = escape_controls(&it.path.to_string_lossy());
        text += &lines(&it.finding).replacen("- ", &format!("- {path}: "), 1);
    }
    if answer.stands_out.is_empty() {
        text += "nothing stands out\n";
    }
    for it in &answer.not_looked_at {
        let path = it.path.to_string_lossy();
        text +=
            &format!("not looked at: {}: {}\n", escape_controls(&path), escape_controls(&it.why));
    }
    let paths: Vec<String> = answer.looked_at.iter().map(|it| it.display().to_string()).collect();
    text += &format!("looked at: {}\n", escape_controls(&paths.join(", ")));
    text += "next: takeup diagnose SOURCE TARGET tries one of them\n";
    fitted(&text, style)
}

/// What texts show together.
pub fn given(answer: &DiagnoseGivenAnswer, style: Style) -> String {
    let mut text = String::new();
    for shown in &answer.shown {
        let [head, rest @ ..] = &shown.finding.parts()[..] else { continue };
        text += &format!("- {} ({})\n", escape_controls(head), place(shown));
        rest.iter().for_each(|part| text += &format!("  {}\n", escape_controls(part)));
    }
    if answer.shown.is_empty() {
        text += "what was read shows no limit by itself\n";
    }
    for missing in &answer.missing {
        let (what, send) = (escape_controls(&missing.what), escape_controls(&missing.send));
        text += &format!("not known: {what}; send: {send}\n");
    }
    let kinds = answer.read.iter().map(|it| format!("{} ({})", it.kind, count(it.count)));
    let kinds: Vec<String> = kinds.collect();
    let passed = counted(answer.passed_lines, "other line", "other lines");
    text += &format!("read: {}; {passed}\n", kinds.join(", "));
    for refused in answer.refused.iter().take(REFUSED_SHOWN) {
        let LineOfText { file, line } = &refused.at;
        let why = escape_controls(&refused.why);
        text += &format!("not read: {}:{line}: {why}\n", escape_controls(file));
    }
    if let Some(more) = answer.refused.len().checked_sub(REFUSED_SHOWN).filter(|more| *more > 0) {
        text += &format!("not read: {} more\n", counted(more as u64, "line", "lines"));
    }
    fitted(&text, style)
}

/// `mail.txt:12-18`
fn place(shown: &ShownByText) -> String {
    let ShownByText { from, to, .. } = shown;
    let file = escape_controls(&from.file);
    if from.file != to.file {
        return format!("{file}:{} to {}:{}", from.line, escape_controls(&to.file), to.line);
    }
    if from.line == to.line {
        format!("{file}:{}", from.line)
    } else {
        format!("{file}:{}-{}", from.line, to.line)
    }
}
