//! Read-ahead of a backup's single stream, from a disk whose requests take 5.5 ms.

use super::answer::{Account, Asked};
use super::judged::Judged;
use super::mb_s;
use super::published::Published;
use super::scene::Scene;

/// The account.
pub fn account() -> Account {
    Account::new(
        "read-ahead",
        "Read-ahead of a backup's single stream",
        "A backup read one file of 50.51 GB from VxFS on an array, under three settings, one run \
         each. Here the source is a\nvirtual disk whose requests take 5.5 ms at any place, 64 of \
         them at once, at 344 MB/s together (their best rate), with\nthe kernel's own read-ahead \
         on the loop device over it. Their default, one window of 64 KiB on several paths, has \
         no\ncounterpart: 512 KiB stands for it.",
    )
}

const NONE: &[(&str, &str)] = &[];
/// The kernel's default, the window that stands for the published one, and the largest published
/// one: 64 times 256 KiB.
const SMALLEST: &str = "131072";
const DEFAULT: &str = "524288";
const LARGEST: &str = "16777216";

/// Replays the account.
pub fn ask(scene: &Scene, account: &mut Account) -> anyhow::Result<()> {
    let published = Published::open("read-ahead")?;
    let disk = scene.mount(
        "takeup sim disk slow --service-time 5.5ms --parallel 64 --bandwidth 344MB \\\n      \
         --backing slow-backing --size 2G --loop",
    )?;
    requests_a_second(scene, account, &published);
    one_at_a_time(scene, account, &published);
    the_table(scene, account, &published)?;
    drop(disk);
    scene.prepare("rm -f slow-backing")?;
    printed_rates(scene, account);
    Ok(())
}

fn requests_a_second(scene: &Scene, account: &mut Account, published: &Published) {
    let they = "a service time of 5.5 ms allows 182 requests a second, whatever is behind it";
    account.ask(scene, "How many requests does a single stream get?", they, |asked| {
        let judged = scene.judged(
            "takeup bench disk $LOOP --load randread --engines psync --block-size 8k --depth 1 \
             \\\n      --runtime 2s --repeats 2 --repeats-max 2 --output requests.ndjson",
        )?;
        let requests = judged.measure(NONE, "fio_iops")?;
        let theirs = published.number("iops_single_stream")?;
        asked.says(format!("{requests:.0} requests a second."));
        asked.holds("it is no more than the service time allows", requests < theirs * 1.05);
        asked.near(requests, theirs);
        Ok(())
    });
}

fn one_at_a_time(scene: &Scene, account: &mut Account, published: &Published) {
    let they = "182 requests of 256 KiB are 46 MB/s";
    account.ask(scene, "How fast are requests of 256 KiB, one at a time?", they, |asked| {
        let length = scene.length.pick("64M", "256M");
        let judged = scene.judged(&format!(
            "takeup bench read slow/disk --cache direct --block-size 256k --length {length} \
             \\\n      --repeats 2 --repeats-max 2 --output one-at-a-time.ndjson"
        ))?;
        let rate = judged.rate(NONE)?;
        let theirs = published.number("example_mb_s")? * 1e6;
        asked.says(format!("{} MB/s.", mb_s(rate)));
        asked.holds("it is no more than the service time allows", rate < theirs * 1.1);
        asked.near(rate, theirs);
        Ok(())
    });
}

fn the_table(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let size = published.number("size_gb")? * 1e9;
    let seconds = |row: usize| published.number(&format!("rows.{row}.run_time_s"));
    let theirs = [size / seconds(0)?, size / seconds(1)?, size / seconds(2)?];
    let they = format!(
        "none {} MB/s (direct I/O), default {}, very large {}, by size and time",
        mb_s(theirs[0]),
        mb_s(theirs[1]),
        mb_s(theirs[2])
    );
    let (length, repeats) = scene.length.pick(("192M", 3), ("256M", 5));
    let line = format!(
        "takeup bench read $LOOP --engines sync --cache buffered --block-size 256k \\\n      \
         --read-ahead 128k,512k,4M,16M --length {length} --random-reads 8 \\\n      \
         --repeats {repeats} --repeats-max {repeats} --output windows.ndjson"
    );
    let direct = format!(
        "takeup bench read $LOOP --engines sync --cache direct --block-size 256k \\\n      \
         --length {length} --repeats {repeats} --repeats-max {repeats} --output direct.ndjson"
    );
    let mut windows = None;
    account.ask(scene, "What does a larger read-ahead bring?", they, |asked| {
        let none = scene.judged(&direct)?.rate(NONE)?;
        let judged = &*windows.insert(scene.judged(&line)?);
        let rate = |window: &str| judged.rate(&[("read_ahead_bytes", window)]);
        let ours = [none, rate(DEFAULT)?, rate(LARGEST)?];
        let names = ["none (direct I/O)", "default (here 512 KiB)", "very large (16 MiB)"];
        let row =
            |index: usize| vec![names[index].to_owned(), mb_s(theirs[index]), mb_s(ours[index])];
        asked.table(&["read-ahead", "they, MB/s", "we, MB/s"], &[row(0), row(1), row(2)]);
        asked.holds("the default is faster than none", ours[1] > ours[0] * 1.5);
        asked.holds("the very large one is faster than the default", ours[2] > ours[1] * 1.05);
        ours.iter().zip(theirs).for_each(|(ours, theirs)| asked.near(*ours, theirs));
        Ok(())
    });
    let judged = windows.ok_or_else(|| anyhow::anyhow!("the read-aheads were not run"))?;
    what_the_windows_tell(scene, account, &judged);
    Ok(())
}

fn what_the_windows_tell(scene: &Scene, account: &mut Account, judged: &Judged) {
    let they = "a request larger than the window waits for a synchronous read";
    account.ask(scene, "How does a window that is too small show?", they, |asked| {
        let rate = |window| judged.rate(&[("read_ahead_bytes", window)]);
        let (small, enough) = (rate(SMALLEST)?, rate(DEFAULT)?);
        asked.says(format!(
            "requests of 256 KiB run at {} MB/s with a window of 128 KiB, and at {} MB/s with one \
             that holds them.",
            mb_s(small),
            mb_s(enough)
        ));
        told_if_any(asked, judged, "experiment.read-ahead-too-small");
        asked.holds("a window that holds the request is faster", enough > small * 1.2);
        Ok(())
    });
    let they = "it floods few spindles, reads what no program asked for and evicts useful pages";
    account.ask(scene, "How does a window that is too large show?", they, |asked| {
        let of = |window, name| judged.measure(&[("read_ahead_bytes", window)], name);
        let moved = |window| of(window, "device_bytes_per_byte");
        let latency = |window| of(window, "random_read_p50_ns");
        asked.says(format!(
            "with 16 MiB the device moves {:.2} bytes for each requested byte, and a random read \
             beside it takes {:.1} ms; with 128 KiB {:.2} bytes and {:.1} ms.",
            moved(LARGEST)?,
            latency(LARGEST)? / 1e6,
            moved(SMALLEST)?,
            latency(SMALLEST)? / 1e6
        ));
        told_if_any(asked, judged, "experiment.read-ahead-too-large");
        let rate = |window| judged.rate(&[("read_ahead_bytes", window)]);
        let nothing_won = rate(LARGEST)? < rate("4194304")? * 1.15;
        asked.holds("the largest window brings no more than a smaller one", nothing_won);
        let random = |window| of(window, "random_read_device_bytes");
        let more_moved = moved(LARGEST)? > moved(SMALLEST)?;
        let vain = more_moved || random(LARGEST)? > random(SMALLEST)? * 1.15;
        asked.holds("more is read than was asked for", vain);
        Ok(())
    });
    let they = "requests on several paths arrive out of order, and the array does not recognise \
                the sequence";
    let question = "What if array and host both read ahead?";
    account.ask(scene, question, they, |asked| {
        let is_told = told_if_any(asked, judged, "experiment.read-ahead-conflict");
        asked.holds("the report says what it would look like", is_told);
        asked.is_not_here("no array that reads ahead by itself");
        Ok(())
    });
}

/// Reports whether a rule has spoken, with its sentence.
fn told_if_any(asked: &mut Asked, judged: &Judged, rule: &str) -> bool {
    let text = judged.told(rule).join("; ");
    if !text.is_empty() {
        asked.says(format!("\"{text}\""));
    }
    !text.is_empty()
}

fn printed_rates(scene: &Scene, account: &mut Account) {
    let they = "72.0, 163 and 223 MB/s are printed in their table";
    account.ask(scene, "Are the rates in their table right?", they, |asked| {
        scene.run(
            "takeup bench import published/read-ahead.csv --present setting=default \\\n      \
             --output published-read-ahead.ndjson",
        )?;
        let judged = scene.judged("takeup report published-read-ahead.ndjson")?;
        let told = judged.told("experiment.printed-rate");
        asked.says(format!("\"{}\"", told.join("; ")));
        let names = |name: &str| told.iter().any(|text| text.contains(name));
        let both = names("none (direct I/O): 72.0 MB/s") && names("very large: 223 MB/s");
        let says = "the report says that the first and the last disagree with size divided by time";
        asked.holds(says, both);
        Ok(())
    });
}
