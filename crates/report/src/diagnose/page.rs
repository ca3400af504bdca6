//! A diagnosis as a page: the limit, what to type, the chain as a picture, and its numbers.

use base::finding::Finding;
use base::format::{counted, duration, rate, size};
use service::diagnose::{DiagnoseAnswer, DiagnosedStep};

use super::{figure_of, headline, range, station_cells};
use crate::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable};

/// The page.
pub fn page(answer: &DiagnoseAnswer) -> Page {
    Page {
        title: headline(answer),
        subtitle: answer.line.clone().unwrap_or_else(|| "takeup backup".to_owned()),
        facts: facts(answer),
        sentences: answer.findings.iter().map(|it| conclusion(it, &answer.steps)).collect(),
        sections: vec![PageSection {
            title: "Stations of the chain".to_owned(),
            text: "The figure shows how fast the whole source would go if only this part took \
                   time, as it is and at best: the slowest one decides. The last place is all of \
                   them together, as they are and with all changes. The table has the rate of \
                   large and of small files themselves, with their share of the bytes."
                .to_owned(),
            figures: vec![figure_of(answer)],
            tables: vec![(stations(answer), Folding::Open), (steps(answer), Folding::Open)],
            ..PageSection::default()
        }],
    }
}

fn facts(answer: &DiagnoseAnswer) -> Vec<(String, String)> {
    let source = &answer.source;
    let files = |number: u64| counted(number, "file", "files");
    let mut facts = vec![
        ("source", source.path.clone()),
        ("large files", format!("{}, {}", files(source.large_files), size(source.large_bytes))),
        ("below 1 MiB", format!("{}, {}", files(source.small_files), size(source.small_bytes))),
        ("target", answer.target.clone()),
        ("trials", format!("read {} in {}", size(source.read_bytes), duration(answer.seconds))),
    ];
    if let Some(bytes) = source.read_ahead_bytes {
        facts.insert(3, ("read-ahead", base::format::binary_size(bytes)));
    }
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn conclusion(finding: &Finding, steps: &[DiagnosedStep]) -> Conclusion {
    let parts = finding.parts();
    let is_command =
        |part: &String| finding.command.as_ref().is_some_and(|it| part.starts_with(it.as_str()));
    let text: Vec<String> = parts.into_iter().filter(|part| !is_command(part)).collect();
    let step = steps.iter().find(|step| step.command == finding.command);
    let undo = step.and_then(|step| step.undo.clone()).unwrap_or_default();
    let typed = finding.command.as_ref().map(|line| {
        let program = line.split(' ').next().unwrap_or_default().to_owned();
        [program, line.clone(), undo]
    });
    Conclusion {
        text: text.join(". "),
        verdict: Some(format!("{:?}", finding.certainty).to_lowercase()),
        typed: typed.into_iter().collect(),
        ..Conclusion::default()
    }
}

fn stations(answer: &DiagnoseAnswer) -> PageTable {
    let columns = [
        ("station", Cells::Words),
        ("gives", Cells::Numbers),
        ("could give", Cells::Numbers),
        ("known", Cells::Words),
    ];
    PageTable {
        caption: "What each station gives".to_owned(),
        columns: columns.map(|(name, cells)| (name.to_owned(), cells)).into(),
        rows: answer.stations.iter().map(station_cells).collect(),
    }
}

fn steps(answer: &DiagnoseAnswer) -> PageTable {
    let columns = [
        ("change", Cells::Words),
        ("all of it then", Cells::Numbers),
        ("times", Cells::Numbers),
        ("", Cells::Words),
    ];
    let row = |step: &DiagnosedStep| {
        let gain = step.gain;
        vec![
            step.command.clone().unwrap_or_else(|| step.rule.clone()),
            range(step.bytes_per_second),
            format!("{:.2}", gain.value),
            format!("{:.2} to {:.2}", gain.low, gain.high),
        ]
    };
    let now = vec![
        "as it is".to_owned(),
        rate(answer.bytes_per_second.value),
        String::new(),
        String::new(),
    ];
    PageTable {
        caption: "Changes, each on top of those before it".to_owned(),
        columns: columns.map(|(name, cells)| (name.to_owned(), cells)).into(),
        rows: [now].into_iter().chain(answer.steps.iter().map(row)).collect(),
    }
}
