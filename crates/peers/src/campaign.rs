//! The steps of a campaign: data, search for the best settings of the floor and fio, one check of
//! every contender, then an experiment in which each contender runs once per round, in random
//! order.
//!
//! Alternating makes ratios trustworthy on a machine whose speed drifts: the runs of one round are
//! close in time. A contender that is missing or fails is named, recorded and left out; the others
//! go on. `contenders.rs` has what is run, `pipeline.rs` how one run is measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use experiment::record::RunRecord;

use crate::contenders::{
    self, BACKUP_TO_FILE, COUNT, Cache, Clock, Contender, Size, TAR_TO_FILE, Work, WorkGroup,
    WorkKind,
};
use crate::data::{self, DataSet, Recipe};
use crate::environment;
use crate::pipeline::{self, Outcome, PipelineOutput};
use crate::record::{self, Run};
use crate::rounds::Rounds;
use crate::tape::{CampaignDrives, DriveRateReport, TapeRun};

/// How many settings of the floor or of fio are tried again after the first time.
const SEARCH_FINALISTS: usize = 3;

/// Folder for works that restore into memory: a tmpfs wherever there is systemd or a container.
const MEMORY: &str = "/dev/shm/takeup-peers";

/// Everything that stays the same during a campaign.
pub struct Campaign {
    /// Folder on a real disk for data and scratch files.
    pub folder: PathBuf,
    /// The product's binary.
    pub takeup: PathBuf,
    /// Another binary of the product.
    pub before: Option<PathBuf>,
    /// Scale of the data.
    pub size: Size,
    /// Number of timed rounds.
    pub rounds: u32,
    /// Names of the contenders that take part; all when empty.
    pub only_contenders: Vec<String>,
    /// The machine.
    pub environment: BTreeMap<String, String>,
    /// Folder for the records.
    pub out: PathBuf,
}

/// A contender at a work, with its data.
#[derive(Clone)]
pub struct Cell {
    pub work: Work,
    data: Option<DataSet>,
    pub contender: Contender,
    /// The size of its output, if it was counted.
    output_bytes: Option<u64>,
}

/// A work, a contender or both that are left out, with the reason.
pub struct LeftOut {
    pub work: &'static str,
    /// The contender; `None` for all.
    pub contender: Option<String>,
    /// The reason, in one line.
    pub reason: String,
}

impl Campaign {
    /// Runs alternating works. Data of scale works are removed after.
    ///
    /// # Errors
    /// When data cannot be made or a record cannot be written; a failing contender is not an error.
    pub fn run(&self, works: &[Work]) -> anyhow::Result<()> {
        fs::create_dir_all(self.scratch()).context("create the scratch folder")?;
        let result = self.run_rounds(works);
        self.place().remove_cartridges();
        for work in works {
            if let (WorkGroup::Scale(_), Some((name, _))) = (work.group, work.data) {
                data::remove(&self.data_folder(), name)?;
            }
        }
        let _ = fs::remove_dir_all(self.scratch());
        let _ = fs::remove_dir_all(MEMORY);
        result
    }

    fn run_rounds(&self, works: &[Work]) -> anyhow::Result<()> {
        let mut left_out = Vec::new();
        let mut cells = Vec::new();
        for work in works {
            match self.prepare_work(work, &mut left_out)? {
                Ok(more) => cells.extend(more),
                Err(reason) => self.leave_out(&mut left_out, work, None, &reason),
            }
        }
        let mut checked = Vec::new();
        for mut cell in cells {
            // Tape runs are long and check themselves what the drive received.
            if cell.work.job.is_tape() {
                checked.push(cell);
                continue;
            }
            match self.check(&cell) {
                Ok(output_bytes) => {
                    cell.output_bytes = output_bytes;
                    checked.push(cell);
                }
                Err(error) => {
                    let name = Some(&*cell.contender.name);
                    self.leave_out(&mut left_out, &cell.work, name, &format!("{error:#}"));
                }
            }
        }
        let names: Vec<&str> = works.iter().map(|work| work.name).collect();
        let mut rounds =
            Rounds::create(self, &names, &checked, (record::KIND, self.rounds), &left_out)?;
        rounds.run(&checked, self.rounds, PipelineOutput::Discard)
    }

    /// Makes the data and lists the contenders; the inner error is why the work cannot be run.
    fn prepare_work(
        &self,
        work: &Work,
        left_out: &mut Vec<LeftOut>,
    ) -> anyhow::Result<Result<Vec<Cell>, String>> {
        if work.cache == Cache::Cold && !rustix::process::geteuid().is_root() {
            return Ok(Err("dropping the page cache needs root".to_string()));
        }
        let data = match work.data {
            Some((name, recipe)) => {
                eprintln!("{}: data", work.name);
                fs::create_dir_all(self.data_folder())?;
                let data = data::ensure(&self.data_folder(), name, recipe)?;
                let needed_bytes = data.bytes + data.bytes / 4;
                if work.cache == Cache::Warm && environment::available_memory_bytes() < needed_bytes
                {
                    return Ok(Err(format!("needs {} MiB of memory", needed_bytes >> 20)));
                }
                Some(data)
            }
            None => None,
        };
        let cell =
            |contender| Cell { work: *work, data: data.clone(), contender, output_bytes: None };
        let mut cells = Vec::new();
        let mut contenders = contenders::contenders(work);
        if self.before.is_some() {
            contenders.extend(contenders::before(&contenders));
        }
        for contender in contenders {
            if !self.takes_part(&contender.name) {
                continue;
            }
            match self.missing_program(&contender, work)? {
                Some(reason) => self.leave_out(left_out, work, Some(&contender.name), &reason),
                None => cells.push(cell(contender)),
            }
        }
        if work.job.is_restore() {
            self.make_archives(&mut cells)?;
        } else if work.job == WorkKind::Verify {
            self.run_once(work, BACKUP_TO_FILE).context("make the archive to verify")?;
        }
        for (name, candidates) in self.searched(work, data.as_ref())? {
            if self.takes_part(name) {
                cells.extend(self.best(work, candidates.into_iter().map(cell).collect())?);
            }
        }
        Ok(Ok(cells))
    }

    /// The contenders whose best settings are searched, and the candidates.
    fn searched(
        &self,
        work: &Work,
        data: Option<&DataSet>,
    ) -> anyhow::Result<Vec<(&'static str, Vec<Contender>)>> {
        let mut searched = Vec::new();
        match (work.data, work.cache) {
            _ if !work.job.reads() => {}
            (Some((_, Recipe::SmallFiles(_))), _) => {
                self.write_lists(data)?;
                searched.push(("floor", contenders::floor_candidates(self.size)));
            }
            (Some((_, Recipe::OneFile(_))), Cache::Cold) => {
                searched.push(("fio", contenders::fio_candidates(self.size)));
            }
            _ => {}
        }
        if work.job == WorkKind::Read {
            searched.push(("takeup", contenders::bench_candidates(self.size)));
        }
        Ok(searched)
    }

    /// The fastest candidate; `None` if all fail. Each is run once, then the fastest few again, so
    /// that one lucky or unlucky run does not decide.
    fn best(&self, work: &Work, candidates: Vec<Cell>) -> anyhow::Result<Option<Cell>> {
        let meant = (record::SEARCH_KIND, search_passes(self.size));
        let mut rounds = Rounds::create(self, &[work.name], &candidates, meant, &[])?;
        let mut left = candidates;
        for passes in [1, search_passes(self.size)] {
            rounds.run(&left, passes, PipelineOutput::Keep)?;
            let mut seconds: Vec<(f64, Cell)> = Vec::new();
            for cell in left {
                if let Some(typical) = rounds.typical_seconds(&cell) {
                    seconds.push((typical, cell));
                }
            }
            seconds.sort_by(|a, b| a.0.total_cmp(&b.0));
            seconds.truncate(SEARCH_FINALISTS);
            left = seconds.into_iter().map(|(_, cell)| cell).collect();
        }
        Ok(left.into_iter().next())
    }

    /// Runs a cell once, counts its output, and refuses impossible results.
    fn check(&self, cell: &Cell) -> anyhow::Result<Option<u64>> {
        let mut counted = cell.clone();
        let job = cell.work.job;
        let is_stream =
            cell.contender.clock == Clock::Wall && !job.is_restore() && job != WorkKind::Verify;
        if is_stream {
            if job != WorkKind::ArchiveToNull {
                counted.contender.stages.pop();
            }
            counted.contender.stages.push(contenders::owned(COUNT));
        }
        let output = if is_stream { PipelineOutput::Keep } else { PipelineOutput::Discard };
        let (outcome, _) = self.execute(&counted, output)?;
        let (input_files, input_bytes) = input_of(cell);
        if job.is_restore() {
            let (files, bytes) = data::measure(&self.restored(job))?;
            if (files, bytes) != (input_files, input_bytes) {
                bail!("restored {files} files, {bytes} bytes; the tree has {input_files}");
            }
        }
        let (work, name) = (cell.work.name, &cell.contender.name);
        eprintln!("{work:18} {name:32} check    {:9.3} s", outcome.seconds);
        if !is_stream {
            return Ok(None);
        }
        let output_bytes = outcome.printed.trim().parse().context("count")?;
        let least_bytes = match job {
            WorkKind::Archive
            | WorkKind::ArchiveToNull
            | WorkKind::ArchiveScale
            | WorkKind::Pipe(_) => input_bytes,
            // A fifth is packed already, so no correct compressor gets below a tenth.
            WorkKind::ArchiveZstd | WorkKind::ArchiveGzip => input_bytes / 10,
            WorkKind::Restore | WorkKind::RestoreToMemory | WorkKind::Verify | WorkKind::Read => 0,
            WorkKind::Tape(_) | WorkKind::SlowTape(_) | WorkKind::DriveRate(_) => 0,
        };
        if output_bytes < least_bytes {
            bail!("{output_bytes} bytes came out, at least {least_bytes} must");
        }
        Ok(Some(output_bytes))
    }

    /// Prepares the page cache for the work and runs the pipeline.
    fn execute(
        &self,
        cell: &Cell,
        output: PipelineOutput,
    ) -> anyhow::Result<(Outcome, Option<TapeRun>)> {
        let mut values = self.values(&cell.work);
        let folder = self.data_folder();
        fs::create_dir_all(&folder).context("create the data folder")?;
        let argvs = |values: &BTreeMap<_, _>| -> Vec<_> {
            cell.contender.stages.iter().map(|argv| contenders::fill(argv, values)).collect()
        };
        if cell.work.job.is_restore() {
            self.empty_into(cell.work.job)?;
            data::warm(&self.archive())?;
            if cell.contender.name == "takeup-own" {
                data::warm(&self.own_archive())?;
            }
        } else if let Some(data) = &cell.data {
            match cell.work.cache {
                Cache::Cold => drop_caches(&argvs(&values))?,
                // A contender may have dropped cached pages, so the cache is filled before each
                // run.
                Cache::Warm => data::warm(&data.path)?,
            }
        }
        let clock = cell.contender.clock;
        let run = |stages: &[Vec<String>], output| {
            pipeline::run(stages, clock, output, &folder, &self.scratch())
        };
        let Some(setup) = cell.contender.drive else {
            return Ok((run(&argvs(&values), output)?, None));
        };
        let data_bytes = cell.data.as_ref().map_or(0, |data| data.bytes);
        let drive = self.place().mount(&self.takeup, setup, data_bytes)?;
        values.insert("process", drive.process().to_string());
        let is_rate = matches!(cell.work.job, WorkKind::DriveRate(_));
        let output = if is_rate { PipelineOutput::Keep } else { output };
        let outcome = run(&argvs(&values), output)?;
        let mut tape = drive.seen()?;
        if is_rate {
            let report = serde_json::from_str::<DriveRateReport>(&outcome.printed);
            tape.rate = Some(report.context("the report of drive-rate")?);
        }
        let (_, least_bytes) = input_of(cell);
        if tape.host_bytes < least_bytes {
            bail!("the drive got {} bytes, at least {least_bytes} must come", tape.host_bytes);
        }
        Ok((outcome, Some(tape)))
    }

    /// Runs a cell; returns the record for `experiment`.
    pub fn measure(&self, cell: &Cell, output: PipelineOutput) -> anyhow::Result<RunRecord> {
        let (outcome, tape) = self.execute(cell, output)?;
        let (input_files, input_bytes) = input_of(cell);
        let run = Run {
            work: cell.work.name.to_string(),
            contender: cell.contender.name.clone(),
            seconds: outcome.seconds,
            uses: outcome.stages,
            input_files,
            input_bytes,
            output_bytes: cell.output_bytes,
            other_cpu_seconds: outcome.other_cpu_seconds,
            steal_seconds: outcome.steal_seconds,
            tape,
            ..Run::default()
        };
        let mut record = run.to_record()?;
        record.environment.extend(self.environment.clone());
        let commands: Vec<String> =
            cell.contender.stages.iter().map(|argv| argv.join(" ")).collect();
        let cache = match cell.work.cache {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
        };
        record.environment.insert("command".to_owned(), commands.join(" | "));
        record.environment.insert("page cache".to_owned(), cache.to_owned());
        Ok(record)
    }

    /// Why a contender cannot run here, if it cannot.
    fn missing_program(
        &self,
        contender: &Contender,
        work: &Work,
    ) -> anyhow::Result<Option<String>> {
        let values = self.values(work);
        for argv in &contender.stages {
            let argv = contenders::fill(argv, &values);
            let is_takeup = Path::new(&argv[0]) == self.takeup;
            let there = environment::find_program(&argv[0]).is_some();
            if is_takeup && (!there || !knows_command(&argv)) {
                return Ok(Some(format!("the binary does not know `{}` yet", argv[1])));
            }
            if !there {
                return Ok(Some(format!("{} is not installed", argv[0])));
            }
        }
        Ok(None)
    }

    fn make_archives(&self, cells: &mut Vec<Cell>) -> anyhow::Result<()> {
        let Some(work) = cells.first().map(|cell| cell.work) else { return Ok(()) };
        self.run_once(&work, TAR_TO_FILE).context("make the archive to restore")?;
        if cells.iter().any(|cell| cell.contender.name == "takeup-own")
            && let Err(error) = self.run_once(&work, BACKUP_TO_FILE)
        {
            eprintln!("{}: takeup-own: no archive: {error:#}", work.name);
            cells.retain(|cell| cell.contender.name != "takeup-own");
        }
        Ok(())
    }

    /// Runs a program that prepares a work; an archive of the product is made again each time.
    fn run_once(&self, work: &Work, argv: &[&str]) -> anyhow::Result<Outcome> {
        if argv == BACKUP_TO_FILE {
            let _ = fs::remove_file(self.own_archive());
        }
        let argv = contenders::fill(&contenders::owned(argv), &self.values(work));
        let folder = self.data_folder();
        pipeline::run(&[argv], Clock::Wall, PipelineOutput::Discard, &folder, &self.scratch())
    }

    fn write_lists(&self, data: Option<&DataSet>) -> anyhow::Result<()> {
        let data = data.context("no data to list")?;
        let mut paths = Vec::new();
        let folder = self.data_folder();
        data::for_each_file(&data.path, &mut |path, _| {
            let relative = path.strip_prefix(&folder).unwrap_or(path);
            paths.push(relative.to_string_lossy().into_owned());
        })?;
        fs::write(self.scratch().join("directory-order"), paths.join("\n"))?;
        paths.sort();
        fs::write(self.scratch().join("path-order"), paths.join("\n"))?;
        Ok(())
    }

    fn values(&self, work: &Work) -> BTreeMap<&'static str, String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let own = std::env::current_exe().unwrap_or_default();
        let data = work.data.map_or_else(String::new, |(name, _)| name.to_string());
        let (bytes, seconds) = match work.job {
            WorkKind::Pipe(bytes) | WorkKind::SlowTape(bytes) => (bytes, 0),
            WorkKind::DriveRate(seconds) => (0, seconds),
            _ => (0, 0),
        };
        let length = match work.data {
            Some((_, Recipe::OneFile(bytes))) => bytes,
            _ => 0,
        };
        BTreeMap::from([
            ("takeup", text(self.takeup.clone())),
            ("before", self.before.clone().map_or_else(String::new, text)),
            ("xtask", text(own)),
            (
                "read",
                if work.job == WorkKind::Verify { text(self.own_archive()) } else { data.clone() },
            ),
            ("data", data),
            ("length", length.to_string()),
            ("bench_output", text(self.scratch().join(pipeline::BENCH_RUNS))),
            ("bytes", bytes.to_string()),
            ("archive", text(self.archive())),
            ("own_archive", text(self.own_archive())),
            ("into", text(self.restored(work.job))),
            ("path_order", text(self.scratch().join("path-order"))),
            ("directory_order", text(self.scratch().join("directory-order"))),
            ("tape", text(self.place().tape())),
            ("drive", text(self.place().folder().to_path_buf())),
            ("seconds", seconds.to_string()),
        ])
    }

    fn leave_out(
        &self,
        left_out: &mut Vec<LeftOut>,
        work: &Work,
        contender: Option<&str>,
        reason: &str,
    ) {
        eprintln!("{:18} {:32} not run: {reason}", work.name, contender.unwrap_or("all"));
        let (work, contender) = (work.name, contender.map(str::to_owned));
        left_out.push(LeftOut { work, contender, reason: self.without_paths(reason) });
    }

    /// Messages of programs may quote paths, which records must not contain.
    pub fn without_paths(&self, text: &str) -> String {
        let folder = self.folder.to_string_lossy().into_owned();
        let takeup = self.takeup.to_string_lossy().into_owned();
        let before = self.before.as_ref().map(|path| path.to_string_lossy().into_owned());
        let text = before.map_or_else(|| text.to_owned(), |path| text.replace(&path, "{before}"));
        text.replace(&takeup, "{takeup}").replace(&folder, "{work}")
    }

    fn takes_part(&self, contender: &str) -> bool {
        self.only_contenders.is_empty() || self.only_contenders.iter().any(|name| name == contender)
    }

    fn empty_into(&self, job: WorkKind) -> anyhow::Result<()> {
        let into = self.restored(job);
        if into.exists() && job == WorkKind::RestoreToMemory {
            fs::remove_dir_all(&into).context("remove what was restored before")?;
        } else if into.exists() {
            // Moved aside and only removed at the end: ext4 skips inodes that were freed in the
            // last minutes, one by one, which would make every later restore many times slower
            // (`recently_deleted` in fs/ext4/ialloc.c).
            let aside = (0..).map(|number| self.scratch().join(format!("restored-{number}")));
            let aside = aside.into_iter().find(|path| !path.exists());
            let aside = aside.context("find a name for what was restored before")?;
            fs::rename(&into, aside).context("move aside what was restored before")?;
        }
        fs::create_dir_all(&into).context("create the folder to restore into")?;
        rustix::fs::sync();
        Ok(())
    }

    fn place(&self) -> CampaignDrives {
        CampaignDrives::new(&self.scratch())
    }

    fn data_folder(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn scratch(&self) -> PathBuf {
        self.folder.join("scratch")
    }

    fn archive(&self) -> PathBuf {
        self.scratch().join("peer.tar")
    }

    fn own_archive(&self) -> PathBuf {
        self.scratch().join("own.tar")
    }

    fn restored(&self, job: WorkKind) -> PathBuf {
        match job {
            WorkKind::RestoreToMemory => PathBuf::from(MEMORY),
            _ => self.scratch().join("restored"),
        }
    }
}

/// Files and bytes of the input.
pub fn input_of(cell: &Cell) -> (u64, u64) {
    match (&cell.data, cell.work.job) {
        (Some(data), _) => (data.files, data.bytes),
        (None, WorkKind::Pipe(bytes) | WorkKind::SlowTape(bytes)) => (0, bytes),
        (None, _) => (0, 0),
    }
}

/// How often settings of the floor and of fio are tried.
fn search_passes(size: Size) -> u32 {
    match size {
        Size::Full => 3,
        Size::Quick => 1,
    }
}

/// Empties the page cache (Documentation/admin-guide/sysctl/vm.rst: clean pages, dentries and
/// inodes only, hence the sync), then loads the programs again, which are not part of the data.
fn drop_caches(stages: &[Vec<String>]) -> anyhow::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").context("drop the page cache")?;
    for argv in stages {
        let _ = Command::new(&argv[0])
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
    Ok(())
}

/// Whether the product prints help for the command of `argv`; an unfinished command does not.
fn knows_command(argv: &[String]) -> bool {
    let Some((program, rest)) = argv.split_first() else { return false };
    let output = Command::new(program).args(rest.first()).arg("--help").output();
    output.is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}
