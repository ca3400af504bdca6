//! Double buffering with dd: `tar | gzip` to a tape of 1999, with no dd, one and two between.
//!
//! The account has the times, but not the bytes that gzip wrote. The source here is what the model
//! of that run assumes (`crates/model/tests/published/double_buffer.rs`, compared with the four
//! times): two kinds of files in turn, for which gzip writes 338 and 893 kB a second. A virtual
//! disk for each kind gives these rates to GNU tar, without a processor as slow as theirs. All
//! rates are `PACE` times the published ones, and all times as many times shorter.

use serde_json::Value;

use super::answer::{Account, Asked};
use super::judged::Judged;
use super::published::Published;
use super::scene::Scene;

/// The account.
pub fn account() -> Account {
    Account::new(
        "double-buffer",
        "Double buffering with dd",
        "D. Spinellis ran `tar | gzip` to a tape drive of 1999, directly, through one `dd \
         obs=512k` and through two, and to `/dev/null`;\none run each. Here the source is two \
         virtual disks in turn, at the rates that gzip is assumed to have had for two kinds of \
         files.\nThe drive is a virtual one of 510 kB/s with a buffer of 512 KiB and stops of 2.3 \
         s. All of it runs faster by a factor; the table\nhas the seconds in their time.",
    )
}

/// Bytes of gzip's output for 16 MiB of files of each kind, and its rates in bytes per second.
const KINDS: [(u64, f64); 2] = [(3_072_000, 338_000.0), (8_105_984, 893_000.0)];
/// Pairs of files in the whole run: 780 MB.
const PAIRS: f64 = 23.25;

/// How much faster, and how many pairs.
#[derive(Clone, Copy)]
struct Scale {
    pace: f64,
    pairs: usize,
}

impl Scale {
    /// Seconds of a run here, converted to the published scale.
    fn theirs(self, seconds: f64) -> f64 {
        seconds * self.pace * PAIRS / self.pairs as f64
    }
}

/// Replays the account.
pub fn ask(scene: &Scene, account: &mut Account) -> anyhow::Result<()> {
    let published = Published::open("double-buffer")?;
    judged_as_a_table(scene, account, &published)?;
    pipelines(scene, account, &published)?;
    wishes(scene, account);
    Ok(())
}

fn judged_as_a_table(
    scene: &Scene,
    account: &mut Account,
    published: &Published,
) -> anyhow::Result<()> {
    let cut = published.number("conclusions.tape_overhead_cut_percent")?;
    let they = format!("two dd cut what the tape costs by {cut} %, the whole by 10 %");
    account.ask(scene, "What do their times say?", they, |asked| {
        scene.run(
            "takeup bench import published/double-buffer.csv --bytes 1GB \\\n      \
             --present 'pipeline=tar | gzip > tape' --output published-pipelines.ndjson",
        )?;
        let judged = scene.judged("takeup report published-pipelines.ndjson")?;
        let seconds = |name: &str| judged.rate(&[("pipeline", name)]).map(|rate| 1e9 / rate);
        let direct = seconds("tar | gzip > tape")?;
        let two = seconds("tar | gzip | dd | dd > tape")?;
        let bound = seconds("tar | gzip > null")?;
        let ours = 100.0 * (direct - two) / (direct - bound);
        let once = judged.told("experiment.one-run-each").join("; ");
        asked.says(format!(
            "two dd cut the time above the bound of {bound:.0} s by {ours:.0} %, the whole by \
             {:.0} %; the report: \"{once}\"",
            100.0 * (direct - two) / direct
        ));
        asked.holds("two dd are faster than none", two < direct);
        asked.holds("the report says that it is one run each", !once.is_empty());
        asked.near(ours, cut);
        Ok(())
    });
    Ok(())
}

/// The pipelines and their names.
const NULL: &str = "null";
const DIRECT: &str = "direct";
const ONE: &str = "one_dd";
const TWO: &str = "two_dd";

fn commands() -> String {
    // Blocks of 16 KiB, as gzip writes.
    let source = "sh gzip-output";
    let lines = [
        (DIRECT, format!("{source} >drive/nst0")),
        (ONE, format!("{source} | dd obs=512k >drive/nst0")),
        (TWO, format!("{source} | dd obs=512k | dd obs=512k >drive/nst0")),
        (NULL, format!("{source} | cat >/dev/null")),
        ("takeup", format!("{source} | takeup pipe --block-size 512k --overwrite --to drive/nst0")),
        ("mbuffer", format!("{source} | mbuffer -q -s 512k -m 16M -f -o drive/nst0")),
    ];
    let typed = lines.map(|(name, line)| format!("--command '{name}={line}' \\\n      "));
    typed.concat()
}

fn pipelines(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let scale = scene.length.pick(Scale { pace: 25.0, pairs: 8 }, Scale { pace: 25.0, pairs: 23 });
    let repeats = scene.length.pick(1, 2);
    let rate = |kind: usize| (KINDS[kind].1 * scale.pace) as u64;
    let disk = |name: &str, kind: usize| {
        let bytes = KINDS[kind].0;
        scene.run(&format!("head -c {bytes} /dev/urandom >{name}-backing"))?;
        scene.mount(&format!(
            "takeup sim disk {name} --service-time 1us --bandwidth {} --backing {name}-backing",
            rate(kind)
        ))
    };
    let (slow, fast) = (disk("slow", 0)?, disk("fast", 1)?);
    // A second pass reads all of it again; a link would not be read.
    scene.run("echo 'exec tar --hard-dereference -b 32 -cf - -T turns' >gzip-output")?;
    scene.run(&format!(
        "for turn in $(seq {}); do echo slow/disk; echo fast/disk; done >turns",
        scale.pairs
    ))?;
    let stop_ms = 2320.0 / scale.pace;
    let drive = scene.mount(&format!(
        "takeup sim tape drive --drive lto1 --compression off \\\n      \
         --set speeds_bytes_per_second={:.0} --set buffer_bytes=512k \\\n      \
         --set back_hitch_ns={stop_ms:.1}ms --set synchronise_ns={stop_ms:.1}ms --set wraps=1 \
         \\\n      \
         --set host_bytes_per_second={:.0} --set command_overhead_ns=20us --set wind_ns=1s \
         \\\n      --set settle_ns=10ms",
        510_000.0 * scale.pace,
        5_000_000.0 * scale.pace
    ))?;
    let line = format!(
        "takeup bench run --watch drive/nst0 --before 'mt-st -f drive/nst0 rewind' \\\n      {}\
         --repeats {repeats} --repeats-max {repeats} --budget 30m --output pipelines.ndjson",
        commands()
    );
    let theirs = Theirs::of(published)?;
    let they = format!(
        "directly {:.0} s, through one dd {:.0} s, through two {:.0} s; to null {:.0} s",
        theirs.direct, theirs.one, theirs.two, theirs.null
    );
    let mut done = None;
    let question = "Is one dd between worse than none, and are two better?";
    account.ask(scene, question, they, |asked| {
        let judged = &*done.insert(scene.judged(&line)?);
        let ours = Ours::of(judged, scale)?;
        ours.beside(asked, judged, &theirs)?;
        asked.holds("one dd is slower than none", ours.one > ours.direct);
        asked.holds("two are faster than none", ours.two < ours.direct);
        asked.holds("the run without a tape is the fastest", ours.null < ours.two);
        let pairs = [(ours.null, theirs.null), (ours.direct, theirs.direct)];
        let rest = [(ours.one, theirs.one), (ours.two, theirs.two)];
        pairs.iter().chain(&rest).for_each(|(ours, theirs)| asked.near(*ours, *theirs));
        Ok(())
    });
    explained(scene, account, done.as_ref(), scale)?;
    drop((drive, fast, slow));
    let judged = done.ok_or_else(|| anyhow::anyhow!("the pipelines were not run"))?;
    what_they_tell(scene, account, &judged, scale, published)
}

/// Whether one look at the pipeline without a buffer predicts the one with it.
fn explained(
    scene: &Scene,
    account: &mut Account,
    judged: Option<&Judged>,
    scale: Scale,
) -> anyhow::Result<()> {
    let they = "two dd were tried, by the textbook's advice for file systems";
    let question = "What would a buffer bring, before it is tried?";
    let judged = judged.ok_or_else(|| anyhow::anyhow!("the pipelines were not run"))?;
    account.ask(scene, question, they, |asked| {
        scene.run("mt-st -f drive/nst0 rewind")?;
        let seen = scene.document("takeup explain 'sh gzip-output >drive/nst0'")?;
        let seconds = |value: &serde_json::Value| value["seconds"].as_f64();
        let (Some(foretold), Some(direct)) = (seconds(&seen["predicted"]), seconds(&seen)) else {
            anyhow::bail!("explain forecasts nothing: {seen}");
        };
        let measured = judged.seconds(&[("command", "takeup")])?;
        asked.says(format!(
            "`takeup explain` of the pipeline without a buffer forecasts {:.0} s to become {:.0} s \
             with `takeup pipe`, which took {:.0} s.",
            scale.theirs(direct),
            scale.theirs(foretold),
            scale.theirs(measured)
        ));
        // One short run each, on a machine that may do other work.
        let (within, share) = scene
            .length
            .pick(("the forecast is within 15 %", 0.15), ("the forecast is within 10 %", 0.10));
        asked.holds(within, (foretold / measured - 1.0).abs() <= share);
        asked.is_open();
        Ok(())
    });
    Ok(())
}

/// Seconds of the published runs.
struct Theirs {
    null: f64,
    direct: f64,
    one: f64,
    two: f64,
}

impl Theirs {
    fn of(published: &Published) -> anyhow::Result<Theirs> {
        let seconds = |run: usize| published.number(&format!("runs.{run}.elapsed_s"));
        Ok(Theirs { null: seconds(0)?, direct: seconds(1)?, one: seconds(2)?, two: seconds(3)? })
    }

    fn cut(&self) -> f64 {
        100.0 * (self.direct - self.two) / (self.direct - self.null)
    }
}

/// The measured seconds, at the published scale.
struct Ours(Theirs);

impl std::ops::Deref for Ours {
    type Target = Theirs;

    fn deref(&self) -> &Theirs {
        &self.0
    }
}

impl Ours {
    fn of(judged: &Judged, scale: Scale) -> anyhow::Result<Ours> {
        let seconds = |name: &str| -> anyhow::Result<f64> {
            Ok(scale.theirs(judged.seconds(&[("command", name)])?))
        };
        Ok(Ours(Theirs {
            null: seconds(NULL)?,
            direct: seconds(DIRECT)?,
            one: seconds(ONE)?,
            two: seconds(TWO)?,
        }))
    }

    fn beside(&self, asked: &mut Asked, judged: &Judged, theirs: &Theirs) -> anyhow::Result<()> {
        let row = |what: &str, name: &str, theirs: f64, ours: f64| {
            let stops = judged.measure(&[("command", name)], "drive_back_hitches");
            let stops = stops.map_or_else(|_| "-".to_owned(), |stops| format!("{stops:.0}"));
            vec![what.to_owned(), format!("{theirs:.0}"), format!("{ours:.0}"), stops]
        };
        let rows = [
            row("to null", NULL, theirs.null, self.null),
            row("to tape", DIRECT, theirs.direct, self.direct),
            row("one dd", ONE, theirs.one, self.one),
            row("two dd", TWO, theirs.two, self.two),
        ];
        asked.table(&["pipeline", "they, s", "we, s of theirs", "stops in a run"], &rows);
        Ok(())
    }
}

fn what_they_tell(
    scene: &Scene,
    account: &mut Account,
    judged: &Judged,
    scale: Scale,
    published: &Published,
) -> anyhow::Result<()> {
    let (ours, theirs) = (Ours::of(judged, scale)?, Theirs::of(published)?);
    let they = format!("{:.0} %", published.number("conclusions.tape_overhead_cut_percent")?);
    account.ask(scene, "How much of the tape's time do two dd save?", they, |asked| {
        asked.says(format!("{:.0} %.", ours.cut()));
        asked.holds("they save some of it, and not all", ours.cut() > 0.0 && ours.cut() < 100.0);
        asked.near(ours.cut(), theirs.cut());
        Ok(())
    });
    let they = "today's buffers did not exist";
    account.ask(scene, "What replaces the two dd today?", they, |asked| {
        let seconds = |name: &str| -> anyhow::Result<f64> {
            Ok(scale.theirs(judged.seconds(&[("command", name)])?))
        };
        let (takeup, mbuffer) = (seconds("takeup")?, seconds("mbuffer")?);
        asked.says(format!(
            "`takeup pipe` {takeup:.0} s, mbuffer {mbuffer:.0} s, two dd {:.0} s.",
            ours.two
        ));
        asked.holds("takeup pipe is no slower than two dd", takeup < ours.two * 1.03);
        asked.is_open();
        Ok(())
    });
    Ok(())
}

/// The author's requirements for a backup process.
fn wishes(scene: &Scene, account: &mut Account) {
    let they = "wanted of a backup: its size, a comparison of the files after it, a log of the \
                results";
    account.ask(scene, "Does a backup report what it did, and can you check it?", they, |asked| {
        scene.run("mkdir set; head -c 8M /dev/urandom | split -b 64k - set/file-")?;
        let backup = scene.document("takeup backup set --to set.tar")?;
        let check = || -> anyhow::Result<(u64, u64)> {
            let verify = scene.document("takeup verify set.tar --against .")?;
            let total = |what: &str| verify[what]["total"].as_u64().unwrap_or(0);
            Ok((verify["checked"]["compared"].as_u64().unwrap_or(0), total("changed")))
        };
        let before = check()?;
        scene.run("echo changed >set/file-aa")?;
        let after = check()?;
        let files = backup["files"].as_u64().unwrap_or(0);
        let bytes = backup["source_bytes"].as_u64().unwrap_or(0);
        asked.says(format!(
            "with `--json` the run's document counts {files} files and {bytes} bytes; `verify \
             --against` compares {} members with what is there. It finds {} that changed, and {} \
             after one was changed.",
            before.0, before.1, after.1
        ));
        asked.holds("size and number are those of the files", (files, bytes) == (128, 8 << 20));
        asked.holds("nothing differs at first", before.0 > files && before.1 == 0);
        asked.holds("it finds a file that was changed later", after.1 == 1);
        Ok(())
    });
    account.ask(
        scene,
        "Full and incremental backups, and a quota?",
        "wanted of a backup",
        |asked| full_and_incremental(scene, asked),
    );
    account.cannot_ask(
        "Sources without stable inode numbers (SMB)?",
        "wanted of a backup",
        "no such file system is here. The test `sets::moved` has one, whose numbers are others on \
         each mount: no file is read again",
    );
}

fn full_and_incremental(scene: &Scene, asked: &mut Asked) -> anyhow::Result<()> {
    scene.run(
        "printf '[jobs.files]\\nsources = [\"%s/set\"]\\nto = \"%s/sets/\"\\n\
         quota.set = \"1M\"\\n' $PWD $PWD >takeup.toml",
    )?;
    let job = || scene.document("XDG_STATE_HOME=$PWD/state takeup run files --config takeup.toml");
    let full = job()?;
    scene.run("sleep 1; echo more >set/new")?;
    let next = job()?;
    scene.run("takeup restore sets/ --set 1 --into first; takeup restore sets/ --into second")?;
    let added = scene.run("diff -r first second | wc -l")?;
    let level = |document: &Value| document["backup"]["set"]["level"].as_u64();
    let bytes = |document: &Value| document["backup"]["archive_bytes"].as_u64().unwrap_or(0);
    asked.says(format!(
        "a job has them: a full set of {} bytes, told to exceed its quota of 1 MiB, and one of {} \
         bytes with what was new. Both days come back; they differ by the one file.",
        bytes(&full),
        bytes(&next)
    ));
    asked.holds(
        "a full set and then an incremental",
        (level(&full), level(&next)) == (Some(0), Some(1)),
    );
    let warned = |document: &Value| document["warnings"].to_string().contains("quota");
    asked.holds("only the first exceeds its quota", warned(&full) && !warned(&next));
    asked.holds("the days differ by one file", added.trim() == "1");
    Ok(())
}
