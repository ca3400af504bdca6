//! Block sizes with tar and dd to LTO-5 and LTO-7.
//!
//! A write to a virtual drive goes through FUSE and takes about 100 us more than one to a device,
//! which is more than the published drives took for a whole command. So these drives run slower:
//! every rate is a quarter or an eighth of the real one, every time is four or eight times as long,
//! and the time of FUSE is part of the time of a command. Rates are reported at the drive's own
//! pace. Buffers and stops are scaled with the data, which were gigabytes and are megabytes here.

use super::answer::{Account, Asked};
use super::judged::Judged;
use super::published::Published;
use super::scene::Scene;
use super::{kib, mb_s};

/// How many times slower than the published LTO-5 this one is.
const LTO5_PACE: f64 = 4.0;
/// The same for the LTO-7.
const LTO7_PACE: f64 = 8.0;
/// Places of the series in the published table.
const TAR_LTO5: usize = 0;
const TAR_LTO7: usize = 1;
const IMAGE: usize = 2;
const DATABASE: usize = 3;
/// Rates of the published sources, 978 and 1218 MB/s (docs/design/models.md), at these paces.
const IMAGE_RATE_LTO5: &str = "245MB";
const IMAGE_RATE_LTO7: &str = "122MB";
const DATABASE_RATE: &str = "152MB";
/// Times of a stop, the end of a file and a rewind, scaled to megabytes of data.
const SCALED: &str = "--set buffer_bytes=4M --set back_hitch_ns=20ms --set synchronise_ns=20ms \
                      \\\n      --set wind_ns=1s --set settle_ns=10ms";

/// The account.
pub fn account() -> Account {
    Account::new(
        "block-size",
        "Block size on LTO-5 and LTO-7",
        "They ran `tar -b` and `dd bs=` to an LTO-5 and an LTO-7 drive, one run each, seconds as \
         `time` and `dd` print them.\nHere the drives are virtual, at a quarter and an eighth of \
         their pace (rates divided, times multiplied by it), so that\nthe way through FUSE takes \
         no more than a command of theirs does. Figures are in the drive's own pace. The source \
         is a\nvirtual disk as fast as theirs: one thread reads a block and then writes it, so \
         both count.",
    )
}

/// Replays the account.
pub fn ask(scene: &Scene, account: &mut Account) -> anyhow::Result<()> {
    let published = Published::open("tape-block-size")?;
    judged_as_a_table(scene, account);
    limits(scene, account, &published);
    let megabytes = scene.length.pick(64, 192);
    scene.run(&format!("head -c {megabytes}M /dev/urandom >image"))?;
    tar(scene, account, &published, TAR_LTO5)?;
    tar(scene, account, &published, TAR_LTO7)?;
    image(scene, account, &published)?;
    database(scene, account, &published)?;
    below_the_lowest_speed(scene, account, &published);
    planned(scene, account, &published);
    scene.prepare("rm -f image")?;
    Ok(())
}

fn judged_as_a_table(scene: &Scene, account: &mut Account) {
    let they = "64 KiB is enough for data that do not compress; for the database each larger block \
                was faster still, up to 1 MiB";
    account.ask(scene, "What does their table say, judged as if it were runs?", they, |asked| {
        scene.run(
            "takeup bench import published/tape-block-size.csv --load device --load tool \\\n      \
             --load data --output published.ndjson",
        )?;
        let judged = scene.judged("takeup report published.ndjson")?;
        let dd = [("device", "LTO-7"), ("tool", "dd")];
        let of = |data| [dd[0], dd[1], ("data", data)];
        let image = judged.knee("block_bytes", &of("an image that does not compress"))?;
        let database = judged.knee("block_bytes", &of("a database that compresses 5.5:1"))?;
        asked.says(format!(
            "for the image {} is as good as the best, for the database {}. Each of their \
             combinations ran once; the report says so, and recommends no setting.",
            kib(image.parse()?),
            kib(database.parse()?)
        ));
        asked.holds("64 KiB is enough for the image", image == "65536");
        asked.holds("1 MiB is the best for the database", database == "1048576");
        let once = !judged.told("experiment.one-run-each").is_empty();
        asked.holds("the report says that every row is one run", once);
        asked.near(image.parse()?, 65536.0);
        Ok(())
    });
}

fn limits(scene: &Scene, account: &mut Account, published: &Published) {
    let they =
        "`mt`'s and the driver's limits: LTO-5 1 B to 16,777,215 B, LTO-7 1 B to 8,388,608 B";
    account.ask(scene, "Which blocks does the drive take?", they, |asked| {
        let drive = scene.mount("takeup sim tape drive --drive lto7 --time none")?;
        let document = scene.document("takeup probe drive/nst0")?;
        drop(drive);
        let largest = document["blocks"]["drive_bytes_max"].as_f64().unwrap_or(0.0);
        asked.says(format!("LTO-7: {largest:.0} B at most."));
        let theirs = published.number("device.1.block_limits.max_bytes")?;
        asked.holds("the largest block of the LTO-7 is as they found it", largest == theirs);
        asked.near(largest, theirs);
        Ok(())
    });
}

/// A virtual LTO-5 or LTO-7 and a source, both at a slower pace.
struct Setup {
    drive: String,
    source: String,
    pace: f64,
}

impl Setup {
    fn lto5() -> Setup {
        let drive = "takeup sim tape drive --drive lto5 --compression off \\\n      \
                     --set speeds_bytes_per_second=10MB,15MB,20MB,25MB,30MB,35MB \\\n      \
                     --set host_bytes_per_second=70MB --set command_overhead_ns=680us";
        Setup { drive: drive.to_owned(), source: source(IMAGE_RATE_LTO5), pace: LTO5_PACE }
    }

    /// With a ratio of compression or `off`, and a source of this rate.
    fn lto7(compression: &str, source_rate: &str) -> Setup {
        let drive = format!(
            "takeup sim tape drive --drive lto7 --compression {compression} \\\n      \
             --set speeds_bytes_per_second=12700kB,19MB,25500kB,32MB,38250kB \\\n      \
             --set host_bytes_per_second=94MB --set command_overhead_ns=360us"
        );
        Setup { drive, source: source(source_rate), pace: LTO7_PACE }
    }

    /// Runs `line` with the drive and the source.
    fn judged(&self, scene: &Scene, line: &str) -> anyhow::Result<Judged> {
        let _source = scene.mount(&self.source)?;
        let _drive = scene.mount(&format!("{} \\\n      {SCALED}", self.drive))?;
        scene.judged(line)
    }
}

fn source(rate: &str) -> String {
    format!("takeup sim disk source --service-time 1us --bandwidth {rate} --backing image")
}

/// One experiment: a command with `{block}` in it.
fn experiment(scene: &Scene, blocks: &str, command: &str, options: &str) -> String {
    let repeats = scene.length.pick(1, 3);
    format!(
        "takeup bench run --bytes-of source/disk --vary block={blocks} \\\n      \
         --watch drive/nst0 --before 'mt-st -f drive/nst0 rewind' \\\n      \
         --command '{command}' \\\n      \
         --repeats {repeats} --repeats-max {repeats} {options}"
    )
}

fn tar(
    scene: &Scene,
    account: &mut Account,
    published: &Published,
    series: usize,
) -> anyhow::Result<()> {
    let (name, setup, place) = match series {
        TAR_LTO5 => ("LTO-5", Setup::lto5(), "conclusions.speedup_tar_lto5"),
        _ => ("LTO-7", Setup::lto7("off", IMAGE_RATE_LTO7), "conclusions.speedup_tar_lto7"),
    };
    let theirs = published.number(place)?;
    let rates = Theirs::of(published, series)?;
    let they = format!(
        "{} MB/s with 10 KiB, which is tar's default, {} MB/s with 64 KiB: {theirs} times as fast",
        mb_s(rates.rate(10240.0)?),
        mb_s(rates.rate(65536.0)?)
    );
    let question = format!("What does tar -b bring on the {name}?");
    account.ask(scene, &question, they, |asked| {
        let command = "tar=tar -b {block/512} -cf drive/nst0 source/disk";
        let output = format!("--output tar-{}.ndjson", name.to_lowercase());
        let judged = setup.judged(scene, &experiment(scene, "10k,64k", command, &output))?;
        let small = judged.rate(&[("block_bytes", "10240")])? * setup.pace;
        let large = judged.rate(&[("block_bytes", "65536")])? * setup.pace;
        let gain = large / small;
        asked.says(format!("{} and {} MB/s: {gain:.2} times as fast.", mb_s(small), mb_s(large)));
        asked.holds("64 KiB is at least half as fast again as 10 KiB", gain > 1.5);
        asked.near(gain, theirs);
        Ok(())
    });
    Ok(())
}

/// The published rates of one series.
struct Theirs(Vec<(f64, f64)>);

impl Theirs {
    fn of(published: &Published, series: usize) -> anyhow::Result<Theirs> {
        let number = |place: &str| published.number(&format!("series.{series}.{place}"));
        let bytes = number("bytes").or_else(|_| number("bytes_approx"))?;
        let row = |row: usize| -> anyhow::Result<(f64, f64)> {
            let seconds = number(&format!("rows.{row}.seconds"))?;
            Ok((number(&format!("rows.{row}.block_bytes"))?, bytes / seconds))
        };
        let count = published.count(&format!("series.{series}.rows"));
        Ok(Theirs((0..count).map(row).collect::<anyhow::Result<_>>()?))
    }

    fn rate(&self, block: f64) -> anyhow::Result<f64> {
        let found = self.0.iter().find(|(bytes, _)| *bytes == block);
        found.map(|(_, rate)| *rate).ok_or_else(|| anyhow::anyhow!("no row of {block} B"))
    }
}

/// The measured rates beside the published ones, row by row; a stopped run has a bound.
fn beside(asked: &mut Asked, judged: &Judged, theirs: &Theirs, pace: f64) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (block, rate) in &theirs.0 {
        let level = format!("{block:.0}");
        let levels = [("block_bytes", level.as_str())];
        let ours = match judged.rate(&levels) {
            Ok(ours) => mb_s(ours * pace),
            Err(_) => match judged.bound(&levels) {
                Ok(bound) => format!("below {}, stopped", mb_s(bound * pace)),
                Err(_) => "(long form only)".to_owned(),
            },
        };
        rows.push(vec![kib(*block), mb_s(*rate), ours]);
    }
    asked.table(&["block", "they, MB/s", "we, MB/s"], &rows);
    Ok(())
}

fn image(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let theirs = Theirs::of(published, IMAGE)?;
    let setup = Setup::lto7("off", IMAGE_RATE_LTO7);
    let mut ours = Vec::new();
    let they = "the rate rises up to 64 KiB, where the tape is the limit; larger blocks bring \
                nothing";
    account.ask(scene, "Where is the knee for data that do not compress?", they, |asked| {
        let command = "dd=dd if=source/disk of=drive/nst0 bs={block}";
        let limit = scene.length.pick("8s", "40s");
        let options = format!("--run-limit {limit} --output image.ndjson");
        let line = experiment(scene, "512,16k,32k,64k,128k", command, &options);
        let judged = setup.judged(scene, &line)?;
        beside(asked, &judged, &theirs, setup.pace)?;
        let rate = |block: &str| judged.rate(&[("block_bytes", block)]);
        let (k16, k64, k128) = (rate("16384")?, rate("65536")?, rate("131072")?);
        let smallest = judged.bound(&[("block_bytes", "512")]).or_else(|_| rate("512"))?;
        asked.holds("512 B are slower than 64 KiB", smallest < k64);
        asked.holds("16 KiB are slower than 64 KiB", k16 < k64 * 0.9);
        let gains_less = k128 / k64 < k64 / k16;
        asked.holds("blocks above 64 KiB gain less than those up to there", gains_less);
        let bounds = !judged.told("experiment.bound").is_empty();
        asked.holds("a run that was stopped is reported as a bound", bounds || rate("512").is_ok());
        asked.near(k64 * setup.pace, theirs.rate(65536.0)?);
        asked.near(k128 * setup.pace, theirs.rate(131_072.0)?);
        ours = vec![(65536, k64 * setup.pace), (131_072, k128 * setup.pace)];
        Ok(())
    });
    against_the_published_table(scene, account, &ours);
    Ok(())
}

/// "Your LTO-7 against the published one".
fn against_the_published_table(scene: &Scene, account: &mut Account, ours: &[(u64, f64)]) {
    let they = "287 and 288 MB/s with 64 and 128 KiB";
    account.ask(scene, "How does this LTO-7 compare with theirs?", they, |asked| {
        let data = "an image that does not compress";
        let bytes = 10_619_977_728.0;
        let row = |(block, rate): &(u64, f64)| {
            format!("LTO-7,dd,{data},{block},{bytes:.0},{:.2}\n", bytes / rate)
        };
        let rows: String = ours.iter().map(row).collect();
        scene.run(&format!(
            "cat >ours.csv <<END\ndevice,tool,data,block_bytes,bytes,seconds\n{rows}END"
        ))?;
        scene.run(
            "takeup bench import ours.csv --load device --load tool --load data \\\n      \
             --output ours.ndjson",
        )?;
        let document = scene.document("takeup compare ours.ndjson published.ndjson")?;
        let pairs = document["comparison"]["pairs"].as_array().map_or(0, Vec::len);
        let ratios: Vec<f64> = (0..pairs)
            .filter_map(|pair| document["comparison"]["pairs"][pair]["ratio"].as_f64())
            .collect();
        let text: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        asked.says(format!(
            "theirs divided by ours: {}; one run each gives no verdict.",
            text.join(", ")
        ));
        asked.holds("both block sizes are in both tables", ratios.len() == ours.len());
        let settled = (0..pairs)
            .any(|pair| document["comparison"]["pairs"][pair]["verdict"] != "not_settled");
        asked.holds("nothing is called settled from single runs", !settled);
        ratios.iter().for_each(|ratio| asked.near(*ratio, 1.0));
        Ok(())
    });
}

fn database(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let theirs = Theirs::of(published, DATABASE)?;
    let setup = Setup::lto7("2.5", DATABASE_RATE);
    let they = "with the drive's compression the tape is not the limit, and the rate still rises \
                at 1 MiB";
    account.ask(scene, "What do larger blocks bring for data that compress?", they, |asked| {
        let command = "dd=dd if=source/disk of=drive/nst0 bs={block}";
        let blocks = scene.length.pick("16k,64k,1M", "16k,32k,64k,128k,256k,512k,1M");
        let judged =
            setup.judged(scene, &experiment(scene, blocks, command, "--output database.ndjson"))?;
        beside(asked, &judged, &theirs, setup.pace)?;
        let rate = |block: &str| judged.rate(&[("block_bytes", block)]);
        let (k16, k64, m1) = (rate("16384")?, rate("65536")?, rate("1048576")?);
        let knee = published.number("conclusions.compressible_still_rising_at_bytes")?;
        asked.holds("64 KiB are faster than 16 KiB", k64 > k16 * 1.2);
        asked.holds(format!("{} is faster than 64 KiB", kib(knee)), m1 > k64 * 1.1);
        let native = 38.25e6;
        asked.holds("1 MiB is faster than the tape alone", m1 > native);
        asked.near(m1 / k64, theirs.rate(1_048_576.0)? / theirs.rate(65536.0)?);
        asked.near(m1 * setup.pace, theirs.rate(1_048_576.0)?);
        Ok(())
    });
    let they = "one thread reads, then writes, so the times of source and tape add up; what a \
                second thread would bring was not tried";
    account.ask(scene, "What if reading and writing did not take turns?", they, |asked| {
        let repeats = scene.length.pick(1, 3);
        let line = format!(
            "takeup bench run --bytes-of source/disk \\\n      \
             --before 'mt-st -f drive/nst0 rewind' \\\n      \
             --command 'dd=dd if=source/disk of=drive/nst0 bs=64k' \\\n      \
             --command 'takeup=takeup pipe --overwrite --from source/disk --block-size 64k --to \
             drive/nst0' \\\n      \
             --repeats {repeats} --repeats-max {repeats} --output turns.ndjson"
        );
        let judged = setup.judged(scene, &line)?;
        let dd = judged.rate(&[("command", "dd")])? * setup.pace;
        let pipe = judged.rate(&[("command", "takeup")])? * setup.pace;
        asked.says(format!(
            "dd in turns {} MB/s, `takeup pipe`, which reads while it writes, {} MB/s with the \
             same blocks.",
            mb_s(dd),
            mb_s(pipe)
        ));
        asked.holds("reading while writing is faster", pipe > dd);
        Ok(())
    });
    Ok(())
}

fn below_the_lowest_speed(scene: &Scene, account: &mut Account, published: &Published) {
    let they = "16 KiB came at 68.6 MB/s only: the host rate falls below the drive's lowest speed, \
                and it stops and starts";
    account.ask(scene, "Why is 16 KiB so slow on the LTO-7?", they, |asked| {
        let rate = published.number("series.2.rows.1.printed_mb_s")? * 1e6;
        let size = published.number("series.2.bytes")?;
        let document = scene.document(&format!(
            "takeup plan --drive lto7 --source-rate {rate:.0} --size {size:.0} --compression none \
             \\\n      --block-size 16k --refill never"
        ))?;
        let plan = &document["plan"];
        let lowest = plan["lowest_bytes_per_second"].as_f64().unwrap_or(0.0);
        let stops = plan["back_hitches"].as_u64().unwrap_or(0);
        let judged = scene.judged("takeup report published.ndjson")?;
        let out_of_line = judged.told("experiment.off-the-curve").join("; ");
        asked.says(format!(
            "the drive stops below {} MB/s, so at {} MB/s it stops {stops} times; the report \
             on their table names the row as out of line. The stops alone do not explain the row: \
             see [design/models.md](design/models.md#what-to-think-of-it).",
            mb_s(lowest),
            mb_s(rate)
        ));
        asked.holds("that rate is below the drive's lowest speed", rate < lowest);
        asked.holds("the drive stops", stops > 0);
        asked.holds("the report names the row", out_of_line.contains("16 KiB"));
        Ok(())
    });
}

fn planned(scene: &Scene, account: &mut Account, published: &Published) {
    let they = "43.7 and 142 MB/s on the LTO-5";
    account.ask(scene, "Could that have been known before a tape was written?", they, |asked| {
        let plan = |block: &str| {
            scene.document(&format!(
                "takeup plan --drive lto5 --source-rate 978MB --size 44GB --compression none \
                 --cores 2 \\\n      --block-size {block} --set command_overhead_ns=186us"
            ))
        };
        let (small, large) = (plan("10k")?, plan("64k")?);
        let seconds = |plan: &serde_json::Value| plan["plan"]["seconds"].as_f64().unwrap_or(0.0);
        let gain = seconds(&small) / seconds(&large);
        let ways = small["alternatives"].as_array().map_or(&[][..], Vec::as_slice);
        let names: Vec<&str> = ways.iter().filter_map(|way| way["name"].as_str()).collect();
        asked.says(format!(
            "with 186 us for a command, which follows from their first row, the plans take {:.0} s \
             and {:.0} s: {gain:.2} times as fast. The plan for 10 KiB has larger blocks among \
             its alternatives.",
            seconds(&small),
            seconds(&large)
        ));
        asked.holds("the plan for 64 KiB is faster", gain > 1.5);
        let is_larger = names.iter().any(|name| name.contains("64 KiB"));
        asked.holds("a larger block is among the alternatives", is_larger);
        asked.near(gain, published.number("conclusions.speedup_tar_lto5")?);
        Ok(())
    });
}
