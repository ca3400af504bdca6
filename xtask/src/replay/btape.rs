//! Bacula's `btape speed` on an LTO-4 drive: data, framing, length, block size, compression.
//!
//! The published drive reached 50 MB/s where its maker gives 120. The simulated drive has the same
//! rate: this is the only published number that it gets. The other results must follow.

use super::answer::{Account, Asked};
use super::judged::Judged;
use super::mb_s;
use super::published::Published;
use super::scene::Scene;

/// The account.
pub fn account() -> Account {
    Account::new(
        "btape",
        "btape speed on an LTO-4",
        "They wrote zeros and random data, raw and in Bacula's blocks, files of 1, 2 and 4 GB, \
         three times each, with the drive's\ncompression on and off, and show charts without a \
         table. Here the drive is a virtual LTO-4 that takes 50 MB/s, as theirs did\n(120 by its \
         maker), and 240 MB/s from the host; buffer, stops and files are a fraction of the real \
         ones (`--scale`).",
    )
}

/// Off, on, and the block size that the short form runs.
const OFF: (&str, &str) = ("drive_compression", "off");
const ON: (&str, &str) = ("drive_compression", "on");
const ZEROS: (&str, &str) = ("data", "zeros");
const RANDOM: (&str, &str) = ("data", "random");

/// Replays the account.
pub fn ask(scene: &Scene, account: &mut Account) -> anyhow::Result<()> {
    let published = Published::open("lto4-btape")?;
    design(scene, account, &published);
    let drive = scene.mount(
        "takeup sim tape drive --drive lto4 --set speeds_bytes_per_second=50MB \\\n      \
         --set buffer_bytes=2M --set back_hitch_ns=50ms --set synchronise_ns=20ms \\\n      \
         --set wind_ns=1s --set settle_ns=10ms",
    )?;
    let (blocks, scale) = scene.length.pick(("256k", "0.008"), ("64k,256k,1M,2M", "0.02"));
    let line = format!(
        "takeup bench tape drive/nst0 --preset btape --scale {scale} \\\n      \
         --block-size {blocks} --drive-compression off,on \\\n      \
         --repeats 3 --repeats-max 3 --budget 30m --output btape.ndjson"
    );
    let mut judged = None;
    let times = ["zeros_with_compression_over_without.0", "zeros_with_compression_over_without.1"]
        .map(|place| published.number(&format!("conclusions.{place}")));
    let [least, most] = times;
    let (least, most) = (least?, most?);
    account.ask(
        scene,
        "What does the drive's compression bring with zeros?",
        format!("{least} to {most} times the rate"),
        |asked| {
            let done = &*judged.insert(scene.judged(&line)?);
            table(asked, done)?;
            let gain = done.rate(&[ZEROS, ON])? / done.rate(&[ZEROS, OFF])?;
            asked.says(format!(
                "{gain:.1} times the rate; the report says that zeros measure the host's way to \
                 the drive and not the tape."
            ));
            asked.holds("zeros are at least twice as fast with it", gain > 2.0);
            let told = !done.told("experiment.zeros").is_empty();
            asked.holds("the report says what zeros measure", told);
            asked.near(gain, (least * most).sqrt());
            Ok(())
        },
    );
    drop(drive);
    let judged = judged.ok_or_else(|| anyhow::anyhow!("the design of btape was not run"))?;
    about_random(scene, account, &judged, &published);
    about_conditions(scene, account, &judged);
    account.cannot_ask(
        "How fast is an LTO-3 medium in the LTO-4 drive?",
        "nearly as fast as an LTO-4 medium, with one dip at 256 KiB and 1 GB",
        "what an older medium does in a newer drive depends on the media; a virtual drive would \
         show only the speed that it is set to",
    );
    Ok(())
}

fn design(scene: &Scene, account: &mut Account, published: &Published) {
    let they = "36 values for each block size";
    account.ask(scene, "What is their design?", they, |asked| {
        let plan = scene.run(
            "takeup bench tape drive/nst0 --preset btape --block-size 64k,128k,256k,512k,1M,2M \
             \\\n      --print-plan",
        )?;
        let plan: toml::Table = plan.parse()?;
        let stop = plan.get("stop").and_then(|stop| stop.get("repeats_min"));
        let repeats = stop.and_then(toml::Value::as_integer).unwrap_or(0);
        let factors = plan.get("factor").and_then(toml::Value::as_array);
        let factors = factors.map_or(&[][..], Vec::as_slice);
        let is_other = |one: &&toml::Value| one["name"].as_str() != Some("block_bytes");
        let levels = |one: &toml::Value| one["levels"].as_array().map_or(0, Vec::len) as i64;
        let cells: i64 = factors.iter().filter(is_other).map(levels).product();
        let values = (cells * repeats) as f64;
        asked.says(format!("{values} values for each block size, as a preset."));
        let theirs = published.number("design.values_per_block_size")?;
        asked.holds("the number is theirs", values == theirs);
        asked.near(values, theirs);
        Ok(())
    });
}

/// Rates by data and compression, over framings and lengths.
fn table(asked: &mut Asked, judged: &Judged) -> anyhow::Result<()> {
    let row = |name: &str, data| -> anyhow::Result<Vec<String>> {
        let rate = |switch| judged.rate(&[data, switch]).map(mb_s);
        Ok(vec![name.to_owned(), rate(OFF)?, rate(ON)?])
    };
    let rows = [row("zeros", ZEROS)?, row("random", RANDOM)?];
    asked.table(&["data", "compression off, MB/s", "on, MB/s"], &rows);
    Ok(())
}

fn about_random(scene: &Scene, account: &mut Account, judged: &Judged, published: &Published) {
    let they = "no difference";
    account.ask(scene, "What does compression cost with random data?", they, |asked| {
        let ratio = judged.rate(&[RANDOM, ON])? / judged.rate(&[RANDOM, OFF])?;
        asked.says(format!("on runs at {ratio:.3} times the rate of off."));
        asked.holds("the two lie within a tenth", (0.9..1.1).contains(&ratio));
        asked.near(ratio, 1.0);
        Ok(())
    });
    let they = "only slightly above";
    account.ask(scene, "Are zeros faster than random data without it?", they, |asked| {
        let ratio = judged.rate(&[ZEROS, OFF])? / judged.rate(&[RANDOM, OFF])?;
        asked.says(format!("zeros run at {ratio:.3} times the rate of random data."));
        asked.holds("the two lie within a tenth", (0.9..1.1).contains(&ratio));
        asked.near(ratio, 1.0);
        Ok(())
    });
    let they = "a natural rate of 50 MB/s";
    account.ask(scene, "What does the drive take?", they, |asked| {
        let longest = longest(judged)?;
        let name = "without_filemark_bytes_per_second";
        let rate = judged.measure(&[RANDOM, OFF, ("file_bytes", &longest)], name)?;
        asked.says(format!(
            "{} MB/s with random data, without the filemark; the virtual drive was set to this \
             rate, and the experiment finds it again.",
            mb_s(rate)
        ));
        let theirs = published.number("conclusions.natural_rate_mb_s")? * 1e6;
        let is_as_set = (rate / theirs - 1.0).abs() < 0.15;
        asked.holds("it is the rate that the drive was set to", is_as_set);
        asked.near(rate, theirs);
        Ok(())
    });
    let they = "leave it on";
    account.ask(scene, "So should compression be on?", they, |asked| {
        let told = judged.told("experiment.drive-compression").join("; ");
        let of_zeros = judged.told("experiment.setting").join("; ");
        asked.says(if told.is_empty() {
            "nothing is said against it, and nothing is set because of zeros.".to_owned()
        } else {
            format!("\"{told}\"")
        });
        let gain = judged.rate(&[ZEROS, ON])? / judged.rate(&[ZEROS, OFF])?;
        let cost = judged.rate(&[RANDOM, ON])? / judged.rate(&[RANDOM, OFF])?;
        let is_free = gain > 1.5 && cost > 0.9;
        asked.holds("on is faster where data compress, no slower where they do not", is_free);
        asked.holds("zeros are no reason to set it", !of_zeros.contains("zeros"));
        Ok(())
    });
}

fn longest(judged: &Judged) -> anyhow::Result<String> {
    let lengths = judged.levels("file_bytes")?;
    let longest = lengths.iter().filter_map(|text| text.parse::<u64>().ok()).max();
    longest.map(|bytes| bytes.to_string()).ok_or_else(|| anyhow::anyhow!("no length"))
}

fn about_conditions(scene: &Scene, account: &mut Account, judged: &Judged) {
    let they = "a chart for each; no figures";
    account.ask(scene, "What do Bacula's blocks cost?", they, |asked| {
        let rate = |framing| judged.rate(&[RANDOM, OFF, ("framing", framing)]);
        let ratio = rate("bacula")? / rate("raw")?;
        asked.says(format!(
            "random data in Bacula's blocks run at {ratio:.3} times the rate of raw blocks."
        ));
        asked.holds("both framings were written", ratio > 0.0);
        asked.is_open();
        Ok(())
    });
    account.ask(scene, "How does the length of a file change the rate?", they, |asked| {
        let mut lengths = judged.levels("file_bytes")?;
        lengths.sort_by_key(|text| text.parse::<u64>().unwrap_or(0));
        let rates: Vec<f64> = lengths
            .iter()
            .map(|length| judged.rate(&[RANDOM, OFF, ("file_bytes", length)]))
            .collect::<anyhow::Result<_>>()?;
        let text: Vec<String> = rates.iter().map(|rate| mb_s(*rate)).collect();
        let told = judged.told("experiment.file-length").join("; ");
        asked.says(format!("{} MB/s from the shortest to the longest. {told}", text.join(", ")));
        let longer_is_faster = rates.first() < rates.last();
        asked.holds("the fixed time of a file counts less in a longer one", longer_is_faster);
        asked.is_open();
        Ok(())
    });
}
