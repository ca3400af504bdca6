//! The rounds of alternating works, as an experiment of `experiment`: its blocks, its random
//! orders, its file of records.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use experiment::plan::{Plan, Stop};
use experiment::record::{Experiment, Factor, Level, Role, RunFile, RunRecord};
use experiment::run::{Executor, Observer, Parts, Progress, header, run, unix_seconds};
use flow::cancel::Cancel;
use statistics::geometric_mean;

use crate::campaign::{Campaign, Cell, LeftOut, input_of};
use crate::pipeline::PipelineOutput;
use crate::record::{self, CONTENDER, Run, WORK};

/// A week: the limit of a campaign is the time of each run.
const BUDGET_SECONDS: f64 = 7.0 * 86_400.0;

/// An experiment whose cells are contenders.
pub struct Rounds<'a> {
    campaign: &'a Campaign,
    plan: Plan,
    file: RunFile,
    experiment: Experiment,
}

/// The plan of an experiment: works and contenders. The number of rounds is not set yet.
pub fn plan(kind: &str, works: &[&str], contenders: &[&str], bytes: u64) -> Plan {
    // All factors are loads: no advice to set a contender makes sense.
    let factor = |name: &str, levels: &[&str]| Factor {
        name: name.to_owned(),
        levels: levels.iter().map(|level| Level::Text((*level).to_owned())).collect(),
        role: Role::Load,
        // What a user would use without the product.
        present: levels.contains(&"tar").then(|| Level::Text("tar".to_owned())),
    };
    Plan {
        kind: kind.to_owned(),
        title: works.join(", "),
        paths: works.iter().map(|work| (*work).to_owned()).collect(),
        length_bytes: bytes.max(1),
        seed: unix_seconds(),
        stop: Stop { budget_seconds: BUDGET_SECONDS, ..Stop::default() },
        random_reads: 0,
        run_seconds: 0.0,
        commands: None,
        factors: vec![factor(WORK, works), factor(CONTENDER, contenders)],
    }
}

impl<'a> Rounds<'a> {
    /// Begins the experiment's file, with the contenders that are left out as its first records.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(
        campaign: &'a Campaign,
        works: &[&str],
        cells: &[Cell],
        (kind, rounds): (&str, u32),
        left_out: &[LeftOut],
    ) -> anyhow::Result<Rounds<'a>> {
        let mut contenders: Vec<&str> = Vec::new();
        for cell in cells {
            if !contenders.contains(&&*cell.contender.name) {
                contenders.push(&cell.contender.name);
            }
        }
        let bytes = cells.iter().map(|cell| input_of(cell).1).max().unwrap_or(0);
        let mut plan = plan(kind, works, &contenders, bytes);
        set_rounds(&mut plan, rounds);
        let name = match works {
            [work] => (*work).to_owned(),
            // scale-files-10k and the like.
            _ => works
                .first()
                .and_then(|work| work.rsplit_once('-'))
                .map_or("works", |it| it.0)
                .to_owned(),
        };
        let name = if kind == record::KIND { name } else { format!("{name}-search") };
        let path = free_path(&campaign.out, &name)?;
        let header = header(&plan);
        let mut file = RunFile::create(&path, &header)?;
        let mut experiment = Experiment { header, runs: Vec::new(), torn_bytes: 0 };
        for one in left_out {
            let run = RunRecord {
                cell: record::cell(one.work, one.contender.as_deref().unwrap_or_default()),
                environment: campaign.environment.clone(),
                error: Some(one.reason.clone()),
                ..RunRecord::default()
            };
            file.push(&run)?;
            experiment.runs.push(run);
        }
        Ok(Rounds { campaign, plan, file, experiment })
    }

    /// Runs the cells until each has this many rounds.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub fn run(
        &mut self,
        cells: &[Cell],
        rounds: u32,
        output: PipelineOutput,
    ) -> anyhow::Result<()> {
        set_rounds(&mut self.plan, rounds);
        let begun = Instant::now();
        let parts = Parts {
            executor: &mut Runs { campaign: self.campaign, cells, output },
            file: &mut self.file,
            observer: &Said { rounds },
            clock: &|| begun.elapsed().as_secs_f64(),
            cancel: &Cancel::new(),
        };
        run(&self.plan, &mut self.experiment, parts)?;
        Ok(())
    }

    /// The time of a cell; `None` when it never ran.
    pub fn typical_seconds(&self, cell: &Cell) -> Option<f64> {
        let name = record::cell(cell.work.name, &cell.contender.name);
        let own = self.experiment.runs.iter().filter(|run| run.cell == name && run.error.is_none());
        geometric_mean(&own.map(|run| run.seconds).collect::<Vec<_>>())
    }
}

/// Each cell runs this often, whatever the intervals.
fn set_rounds(plan: &mut Plan, rounds: u32) {
    plan.stop.repeats_min = u64::from(rounds);
    plan.stop.repeats_max = u64::from(rounds);
}

/// A file that does not exist yet: a work may run twice a day.
fn free_path(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let named = |number: u32| match number {
        1 => folder.join(format!("{name}.ndjson")),
        _ => folder.join(format!("{name}-{number}.ndjson")),
    };
    let free = (1..1000).map(named).find(|path| !path.exists());
    free.with_context(|| format!("{}: a thousand files of {name}", folder.display()))
}

/// Runs cells by their names.
struct Runs<'a> {
    campaign: &'a Campaign,
    cells: &'a [Cell],
    output: PipelineOutput,
}

impl Runs<'_> {
    fn find(&self, cell: &experiment::record::Cell) -> Option<&Cell> {
        let is = |own: &&Cell| record::cell(own.work.name, &own.contender.name) == *cell;
        self.cells.iter().find(is)
    }
}

/// Why a contender has no number.
#[derive(Debug, thiserror::Error)]
enum RunError {
    /// From an earlier campaign.
    #[error("no such contender")]
    Unknown,
    /// It failed, or its result was wrong.
    #[error("{told}")]
    Failed {
        /// The causes, in words without paths.
        told: String,
    },
}

impl Executor for Runs<'_> {
    type Error = RunError;

    fn applies(&self, cell: &experiment::record::Cell) -> bool {
        self.find(cell).is_some()
    }

    fn execute(
        &mut self,
        cell: &experiment::record::Cell,
        _cancel: &Cancel,
    ) -> Result<RunRecord, RunError> {
        let own = self.find(cell).ok_or(RunError::Unknown)?;
        let measured = self.campaign.measure(own, self.output);
        let told = |error| self.campaign.without_paths(&format!("{error:#}"));
        measured.map_err(|error| RunError::Failed { told: told(error) })
    }
}

/// A line for each run.
struct Said {
    rounds: u32,
}

impl Observer for Said {
    fn begins(&self, _: &Progress<'_>) {}

    fn ended(&self, progress: &Progress<'_>, run: &RunRecord) {
        let [work, contender] = [WORK, CONTENDER].map(|factor| record::word(&run.cell, factor));
        let round = format!("{}/{}", progress.block, self.rounds);
        let result = match (&run.error, Run::of(run)) {
            (Some(error), _) => format!("failed: {error}"),
            (None, Ok(Some(Run { tape: Some(tape), .. }))) => format!(
                "{:9.3} s  drive {:.2} s, {} back-hitches (model {:.2} s, {})",
                run.seconds,
                tape.streaming_seconds,
                tape.back_hitches,
                tape.model_seconds,
                tape.model_back_hitches
            ),
            _ => format!("{:9.3} s", run.seconds),
        };
        eprintln!("{work:18} {contender:32} {round:8} {result}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_campaign_of_a_day_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["pipe.ndjson", "pipe-2.ndjson", "pipe-3.ndjson"];
        for name in names {
            let path = free_path(folder.path(), "pipe").unwrap();
            assert_eq!(path, folder.path().join(name));
            std::fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn the_file_says_how_many_rounds_were_meant() {
        let folder = tempfile::tempdir().unwrap();
        let campaign = Campaign {
            folder: folder.path().to_owned(),
            takeup: PathBuf::from("takeup"),
            before: None,
            size: crate::contenders::Size::Quick,
            rounds: 7,
            only_contenders: Vec::new(),
            environment: std::collections::BTreeMap::new(),
            out: folder.path().to_owned(),
        };
        let reason = "not installed".to_owned();
        let left_out = [LeftOut { work: "pipe", contender: None, reason }];
        let meant = (record::KIND, campaign.rounds);
        drop(Rounds::create(&campaign, &["pipe"], &[], meant, &left_out).unwrap());
        let found = experiment::record::load(&folder.path().join("pipe.ndjson")).unwrap();
        assert_eq!(found.header.plan["stop"]["repeats_max"], 7);
        assert_eq!(found.runs[0].error.as_deref(), Some("not installed"));
    }
}
