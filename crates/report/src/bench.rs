//! What the subcommands of `takeup bench` print, for people.

use base::format::{counted, duration};
use base::rounding::Rounding;
use experiment::judgement::quoted;
use experiment::power::Noise;
use experiment::record::{Cell, Role, shown_cell};
use service::bench::import::BenchImportAnswer;
use service::bench::power::{BenchPowerAnswer, RepeatsAnswer};
use service::bench::{ExperimentDone, PutBackAnswer};

use crate::experiments;
use crate::next::next;
use crate::table::Style;

/// The end of an experiment: its table, its conclusions, and what did not run.
pub fn ended(done: &ExperimentDone, style: Style) -> String {
    let ExperimentDone { experiment, judgement, ended, .. } = done;
    let judged = experiments::text(experiment, judgement, style);
    let runs = counted(experiment.runs.len() as u64, "run", "runs");
    let path = quoted(&done.path.to_string_lossy());
    let next =
        next(&format!("takeup report {path} -o FILE.html"), "all of it as a page with charts");
    let path = done.path.display();
    format!("{judged}{}{}; {runs} in {path}\n{next}", not_run(done), ended.words())
}

/// A line for each of the first combinations that did not run, and one for the rest.
fn not_run(done: &ExperimentDone) -> String {
    const NAMED: usize = 10;
    let factors = &done.experiment.header.factors;
    let line = |cell: &Cell| format!("not run  {}\n", shown_cell(cell, factors));
    let mut text: String = done.not_run.iter().take(NAMED).map(line).collect();
    if let Some(more) = done.not_run.len().checked_sub(NAMED).filter(|&more| more > 0) {
        text.push_str(&format!("not run  and {more} more\n"));
    }
    text
}

/// How many settings were restored.
pub fn put_back(answer: PutBackAnswer) -> String {
    match answer.settings {
        0 => "nothing to put back\n".to_owned(),
        count => format!("{} put back\n", counted(count, "setting", "settings")),
    }
}

/// What a table became.
pub fn imported(answer: &BenchImportAnswer) -> String {
    let mut text = format!(
        "{} of {} in {}\n",
        counted(answer.runs, "run", "runs"),
        counted(answer.combinations, "combination", "combinations"),
        answer.file
    );
    for factor in &answer.factors {
        let role = match factor.role {
            Role::Load => "load",
            Role::Setting => "setting",
        };
        let levels: Vec<String> =
            factor.levels.iter().map(|level| level.shown(&factor.name)).collect();
        text.push_str(&format!("{role:<8} {}: {}\n", factor.title(), levels.join(", ")));
    }
    text
}

/// How many repeats a difference of this percentage needs.
pub fn power(answer: &BenchPowerAnswer, percent: f64) -> String {
    let Noise { scatter, degrees, run_seconds } = answer.noise;
    let digits = Rounding::digits(2);
    // The relative error of a scatter with few degrees of freedom: a quarter with 8 of them.
    let known = Rounding::digits(1).percent((1.0 / (2.0 * degrees.max(0.5))).sqrt());
    let mut text = format!(
        "from {}: runs of one combination scatter by {} within a repeat (known to about {known} \
         of that), and a run takes {}, preparation included\n",
        answer.records.join(", "),
        digits.percent(scatter),
        duration(run_seconds),
    );
    let among = answer.combinations;
    let seconds = |repeats: u64| duration(repeats as f64 * among as f64 * run_seconds);
    text.push_str(&match answer.repeats {
        Some(repeats) => format!(
            "to find a difference of {percent} % among {among} combinations: {repeats} repeats, \
             {}\n",
            seconds(repeats)
        ),
        None => format!(
            "to find a difference of {percent} % among {among} combinations: more repeats than \
             are practical; longer runs scatter less\n"
        ),
    });
    for told in &answer.with {
        if let Some(seen) = told.seen {
            text.push_str(&format!(
                "{:>4} repeats, {}: differences of {} and more\n",
                told.repeats,
                duration(told.seconds),
                digits.percent(seen),
            ));
        }
    }
    text.push_str(&match answer.repeats_for_the_same {
        Some(repeats) => format!(
            "to show that two are the same within 2 %: {repeats} repeats, {}\n",
            seconds(repeats)
        ),
        None => {
            "to show that two are the same within 2 %: more repeats than are practical\n".to_owned()
        }
    });
    text.push_str(&answer.plan.as_ref().map_or_else(String::new, of_the_plan));
    text + "a difference of that size is found in four of five experiments\n"
}

fn of_the_plan(told: &RepeatsAnswer) -> String {
    let repeats = counted(told.repeats, "repeat", "repeats");
    match told.seen {
        Some(seen) => format!(
            "the plan has time for {repeats}: differences of {} and more\n",
            Rounding::digits(2).percent(seen)
        ),
        None => format!(
            "the plan has time for {repeats}, too few to find any difference; use fewer \
             combinations, shorter runs or a longer --budget\n"
        ),
    }
}
