//! One pipeline to nowhere, to its target, and through `dd` to it.

use base::finding::{Certainty, Finding, Unit};
use base::format;
use pipeline::line::redirection;

use super::{Conclusions, Run, runs, span};
use crate::piece::Piece;
use crate::rules;

/// Share of the time from which on a pipeline is bound by the processor.
const BUSY: f64 = 0.9;
/// Up to this share it may be one program that keeps one processor busy.
const ONE: f64 = 1.1;

/// A run of a pipeline.
struct Variant<'a> {
    run: Run<'a>,
    /// Its stages but for the buffers.
    body: Vec<String>,
    target: String,
    /// Stages of `dd` behind it.
    buffers: usize,
    /// Their block size, as it was typed.
    block: String,
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let runs = runs(pieces);
    let variants: Vec<Variant<'_>> = runs.iter().filter_map(variant).collect();
    let mut is_done = vec![false; variants.len()];
    for at in 0..variants.len() {
        if is_done[at] {
            continue;
        }
        let is_same = |it: &usize| {
            let (one, other) = (&variants[at], &variants[*it]);
            one.body == other.body && one.run.command.machine == other.run.command.machine
        };
        let same: Vec<usize> = (at..variants.len()).filter(is_same).collect();
        same.iter().for_each(|it| is_done[*it] = true);
        let group: Vec<&Variant<'_>> = same.iter().map(|it| &variants[*it]).collect();
        of_group(&group, found);
    }
}

fn variant<'a>(run: &Run<'a>) -> Option<Variant<'a>> {
    let mut body = run.command.stages.clone();
    let (mut buffers, mut target, mut block) = (0, None, String::new());
    while let Some(words) = body.last().map(|it| it.split_whitespace().collect::<Vec<_>>()) {
        if words.first() != Some(&"dd") || words.iter().any(|word| word.starts_with("if=")) {
            break;
        }
        let to = words.iter().find_map(|word| word.strip_prefix("of="));
        target = target.or(to.map(str::to_owned));
        let is_block = |word: &&&str| word.starts_with("bs=") || word.starts_with("obs=");
        block = words.iter().find(is_block).map_or(block, |word| format!(" {word}"));
        buffers += 1;
        body.pop();
    }
    let last = body.last()?.clone();
    if target.is_none() {
        let (command, to) = redirection(&last)?;
        target = Some(to.trim_start_matches('>').trim().to_owned());
        *body.last_mut()? = command.to_owned();
    }
    (body.len() > 1).then_some(Variant { run: *run, body, target: target?, buffers, block })
}

fn of_group(group: &[&Variant<'_>], found: &mut Conclusions) {
    let nowhere = group.iter().find(|it| it.target == "/dev/null" && it.buffers == 0);
    if let Some(nowhere) = nowhere {
        of_processor(nowhere, found);
    }
    let target = group.iter().find(|it| it.target != "/dev/null").map(|it| &it.target);
    let Some(target) = target else { return };
    let to_it: Vec<&&Variant<'_>> = group.iter().filter(|it| it.target == *target).collect();
    let Some(direct) = to_it.iter().find(|it| it.buffers == 0) else { return };
    let (first, rest) = (direct.run.seconds, to_it.iter().filter(|it| it.buffers > 0));
    let mut buffered: Vec<&&&Variant<'_>> = rest.collect();
    buffered.sort_by(|a, b| a.run.seconds.total_cmp(&b.run.seconds));
    let lines = span(group.iter().map(|it| it.run.lines));
    let cost = nowhere.map(|it| first - it.run.seconds).filter(|cost| *cost > 0.0);
    for variant in buffered {
        let saved = first - variant.run.seconds;
        let count = match variant.buffers {
            1 => "one".to_owned(),
            2 => "two".to_owned(),
            count => count.to_string(),
        };
        let verb = match (saved > 0.0, variant.buffers) {
            (true, 1) => "saves",
            (true, _) => "save",
            (false, 1) => "costs",
            (false, _) => "cost",
        };
        let name = format!("{count} dd{} in front of it {verb}", variant.block);
        let mut what = format!("{target}: {name} {}", format::duration(saved.abs()));
        let share = cost.map(|cost| saved / cost);
        if let Some(share) = share.filter(|share| *share > 0.0) {
            what += &format!(", {:.0} % of what {target} costs", share * 100.0);
        }
        let takes = |it: &Variant<'_>| format::duration(it.run.seconds);
        let mut why =
            format!("{} in the place of {} straight to it", takes(variant), takes(direct));
        if let Some(nowhere) = nowhere {
            why += &format!("; to /dev/null the same takes {}", takes(nowhere));
        }
        let mut finding = Finding::new(&rules::BUFFERED, Certainty::Measured, what)
            .because(why)
            .with_number("seconds saved", saved, Unit::Seconds);
        if let Some(share) = share {
            finding = finding.with_number("share of what the target costs", share, Unit::Share);
        }
        finding.caveat = Some("one run of each, so how far runs scatter is not known".to_owned());
        if saved > 0.0 {
            finding = finding.with_action(
                "try a buffer of many blocks in their place, `takeup pipe --to` or mbuffer: each \
                 dd holds one block",
            );
        }
        found.add(lines, finding);
    }
}

/// A pipeline that is bound by the processor where it goes.
fn of_processor(nowhere: &Variant<'_>, found: &mut Conclusions) {
    let Some(processor) = nowhere.run.processor_seconds else { return };
    let share = processor / nowhere.run.seconds;
    if share < BUSY {
        return;
    }
    let seconds = [processor, nowhere.run.seconds].map(format::duration).join(" in ");
    let (what, why) = if share <= ONE {
        let what = "to /dev/null, processor time is nearly all of the pipeline's time".to_owned();
        let one = "one of its programs most likely keeps a processor busy";
        (what, format!("{seconds}, of all its programs together: {one}"))
    } else {
        let what = format!("to /dev/null the pipeline keeps {share:.1} processors busy");
        (what, format!("{seconds}, of all its programs together"))
    };
    let mut finding = Finding::new(&rules::PROCESSOR, Certainty::Inferred, what)
        .because(why)
        .with_number("processors in use", share, Unit::Ratio);
    finding.caveat = Some("how many processors there are is not in the text".to_owned());
    found.add(nowhere.run.lines, finding);
}
