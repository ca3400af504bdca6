//! A capture as one page of HTML: calls above, devices below.

use crate::captures::{COLUMNS, cells, class_name, gaps};
use crate::figure::Figure;
use crate::figure::spans::Spans;
use crate::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable};
use crate::table::Align;
use base::finding::Finding;
use base::format::{count, counted, duration, percent};
use capture::profile::FileProfile;
use capture::words::{findings, is_place};
use service::capture::Together;
use watch::history::{DeviceHistory, Frame, History};

use super::{NO_DEVICE, calls, looks};
use crate::glyphs::Glyphs;
use crate::history::ordered;
use crate::history::page::{CONCLUSIONS_MAX, DRAWN_MAX, conclusions, lanes, overview, section};
use crate::stages;

/// Maximum number of devices below the calls, the busiest ones.
const BELOW_MAX: usize = 4;
/// Number of figures for each: throughput, requests, await and queue.
const FIGURES_BELOW: usize = 4;
/// Maximum number of rows of a table.
const ROWS_MAX: usize = 1000;

/// The page of a capture; `name` is that of its file.
pub fn page(together: &Together<'_>, name: &str) -> Page {
    let profile = &together.captured.profile;
    let heading = &together.captured.heading;
    let calls = findings(profile);
    let runs = &together.runs;
    let mut sentences: Vec<Conclusion> = runs.iter().filter_map(stages::conclusion).collect();
    sentences.extend(calls.iter().map(conclusion));
    let mut facts = vec![
        ("record".to_owned(), name.to_owned()),
        ("captured".to_owned(), heading.subject.clone()),
        ("time".to_owned(), together.summary()),
        (
            "events".to_owned(),
            format!("{}, {} lost", count(heading.events), count(profile.lost_events)),
        ),
    ];
    facts.extend(runs.iter().map(stages::fact));
    if let Some(how) = &heading.failed {
        facts.push(("the command".to_owned(), format!("ended with {how}")));
    }
    if heading.is_stopped {
        facts.push(("the capture".to_owned(), "was stopped".to_owned()));
    }
    if together.captured.is_cut {
        facts.push(("the record".to_owned(), "is incomplete; its end is missing".to_owned()));
    }
    let mut sections: Vec<PageSection> = runs.iter().map(stages::section).collect();
    let frame = &together.devices_frame;
    match &together.devices {
        Some(history) if !history.devices.is_empty() => {
            let devices = ordered(history, Glyphs::Unicode);
            // The user asked for these devices, so even little activity gets a figure.
            let all = devices.iter().map(|(_, device)| *device);
            let shown: Vec<&DeviceHistory> = all.filter(|it| is_drawn(it)).collect();
            let said = shown.iter().flat_map(|device| conclusions(frame, device));
            sentences.extend(said.take(CONCLUSIONS_MAX));
            let mut own: Vec<PageSection> =
                shown.iter().take(DRAWN_MAX).map(|it| section(frame, history, it)).collect();
            sections.push(side_by_side(together, history, &shown, &mut own));
            sections.extend(file_sections(together));
            sections.push(overview(&devices, shown.len()));
            sections.extend(own);
        }
        _ => {
            sections.push(alone(together));
            sections.extend(file_sections(together));
        }
    }
    Page {
        title: "takeup report".to_owned(),
        subtitle: "what a program did to its files, and what that means".to_owned(),
        facts,
        sentences,
        sections,
    }
}

fn is_drawn(device: &DeviceHistory) -> bool {
    !device.samples.is_empty() || !device.spells.is_empty() || !device.gone_seconds.is_empty()
}

fn conclusion(finding: &Finding) -> Conclusion {
    let action = finding.action.as_ref().map(|it| format!("; what to do: {it}"));
    let text = format!("{}{}", finding.sentence(), action.unwrap_or_default());
    Conclusion { subject: "calls".to_owned(), text, ..Conclusion::default() }
}

/// Remarks about the figures over time.
fn about_points(together: &Together<'_>) -> String {
    let profile = &together.captured.profile;
    let interval = profile.timeline.interval_seconds;
    let seconds = interval * calls::joined(&profile.timeline, profile.seconds) as f64;
    let mut text = format!(
        "Calls are drawn by the purpose of files; a point is the mean of {}, and shorter peaks are \
         higher. Times are UTC.",
        duration(seconds)
    );
    let mut untold: Vec<&str> = Vec::new();
    for file in profile.files.iter().filter(|it| is_place(it)) {
        let is_untold = (file.reads > 0 && file.read_bytes.is_none())
            || (file.writes > 0 && file.written_bytes.is_none());
        if is_untold && !untold.contains(&class_name(file.class)) {
            untold.push(class_name(file.class));
        }
    }
    if !untold.is_empty() {
        let classes = untold.join(", ");
        text.push_str(&format!(
            " Not all bytes are known of {classes}: there is more than is drawn."
        ));
    }
    text
}

/// Calls without devices.
fn alone(together: &Together<'_>) -> PageSection {
    let mut text = about_points(together);
    if together.captured.beside.is_some() {
        text.push_str(&format!(" {}.", first_upper(NO_DEVICE)));
    }
    PageSection {
        title: "Calls".to_owned(),
        text,
        spans: vec![calls::used(together)],
        figures: calls::over_time(together),
        ..PageSection::default()
    }
}

fn first_upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |it| it.to_uppercase().chain(letters).collect())
}

/// Calls above, devices below, on one time axis. Figures of a device that are drawn here are not
/// repeated in its own section.
fn side_by_side(
    together: &Together<'_>,
    history: &History,
    shown: &[&DeviceHistory],
    own: &mut [PageSection],
) -> PageSection {
    let frame = &together.devices_frame;
    let mut figures = calls::over_time(together);
    for section in own.iter_mut().take(BELOW_MAX) {
        let rest = section.figures.split_off(section.figures.len().min(FIGURES_BELOW));
        figures.append(&mut section.figures);
        section.figures = rest;
        section.spans.clear();
    }
    let text = format!(
        "All figures have the same time axis. {} {}.",
        about_points(together),
        looks(history)
    );
    PageSection {
        title: "Calls and devices, side by side".to_owned(),
        text,
        spans: vec![calls::used(together), said(frame, shown)],
        figures,
        ..PageSection::default()
    }
}

/// The findings about these devices over time.
fn said(frame: &Frame, shown: &[&DeviceHistory]) -> Spans {
    let of =
        |device: &&DeviceHistory| lanes(frame, device, |rule| format!("{}: {rule}", device.name));
    Spans {
        title: "devices: findings over time".to_owned(),
        x_name: "time (UTC)".to_owned(),
        began: frame.began_unix_seconds,
        seconds: frame.seconds,
        lanes: shown.iter().take(BELOW_MAX).flat_map(of).collect(),
    }
}

/// The files as a table, and the figures of each.
fn file_sections(together: &Together<'_>) -> Vec<PageSection> {
    let all = &together.captured.profile.files;
    let places: Vec<&FileProfile> = all.iter().filter(|it| is_place(it)).collect();
    let mut text = counted(places.len() as u64, "file", "files");
    let others = (all.len() - places.len()) as u64;
    if others > 0 {
        let what = counted(others, "descriptor", "descriptors");
        text.push_str(&format!(", and {what} without a file: pipes, sockets, terminals"));
    }
    text.push('.');
    for gap in gaps(&places).lines() {
        text.push_str(&format!(" {gap}."));
    }
    let figures: Vec<Figure> = calls::by_file(together);
    if !figures.is_empty() {
        text.push_str(" The figures show the files with the most calls.");
    }
    let cell = |align: &Align| if *align == Align::Right { Cells::Numbers } else { Cells::Words };
    let columns = COLUMNS.iter().map(|(head, align)| ((*head).to_owned(), cell(align)));
    let table = PageTable {
        caption: "How each file was used, those with the most bytes first".to_owned(),
        columns: columns.collect(),
        rows: places.iter().take(ROWS_MAX).map(|it| cells(it)).collect(),
    };
    let tables = vec![(table, Folding::Open), (times(&places), Folding::Folded)];
    let title = "Files".to_owned();
    vec![PageSection { title, text, figures, tables, ..PageSection::default() }]
}

/// Columns that do not fit the first table.
fn times(files: &[&FileProfile]) -> PageTable {
    let heads = [
        "rate",
        "time of one",
        "pause before one",
        "time of a sync",
        "syncs",
        "where it was before",
        "burstiness",
        "threads",
        "errors",
    ];
    let mut columns = vec![("file".to_owned(), Cells::Words)];
    columns.extend(heads.map(|head| (head.to_owned(), Cells::Numbers)));
    let row = |file: &&FileProfile| {
        let or_unknown = |it: Option<String>| it.unwrap_or_else(|| "?".to_owned());
        let time =
            |seconds: Option<f64>| or_unknown(seconds.map(|it| format!("{:.3} ms", it * 1e3)));
        let of_syncs = if file.sync.calls > 0 { time(file.sync.seconds) } else { "-".to_owned() };
        vec![
            or_unknown(file.path.clone()),
            format!("{:.1} /s", file.operations_per_second),
            time(file.latency_seconds),
            time(file.think_seconds),
            of_syncs,
            count(file.sync.calls),
            or_unknown(file.reuse_share.map(percent)),
            or_unknown(file.burstiness.map(|it| format!("{it:.1}"))),
            file.threads.to_string(),
            count(file.errors),
        ]
    };
    PageTable {
        caption: "Times, repeats and bursts; times are medians".to_owned(),
        columns,
        rows: files.iter().take(ROWS_MAX).map(row).collect(),
    }
}
