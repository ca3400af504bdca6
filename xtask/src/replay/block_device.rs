//! fio and `iostat -x` with known loads on one SATA SSD, and how the kernel changes the requests.

use super::answer::Account;
use super::judged::Judged;
use super::mb_s;
use super::published::Published;
use super::scene::{FileSystem, Scene};

/// The account.
pub fn account() -> Account {
    Account::new(
        "block-device",
        "fio and iostat on a SATA SSD",
        "They ran loads of fio, and a copy of small files, on one SATA SSD of 7.68 TB with ext4, \
         as `iostat -x` shows them. Here the\ndisks are virtual, behind a loop device with the \
         scheduler mq-deadline, which such a disk has. One has the preset `ssd-sata`.\nWhere \
         requests must queue up whatever else the machine does, another disk runs at a quarter of \
         that pace, 32 requests at once\nin 3.16 ms each; rates of fio on it are given four times \
         as high. The scheduler of a loop device takes 256 requests where\ntheir disk took 32, so \
         the load that is to be merged has 512 under way.",
    )
}

/// How many times slower than the published disk the first one is.
const PACE: f64 = 4.0;
const ALL: &[(&str, &str)] = &[];

/// Replays the account.
pub fn ask(scene: &Scene, account: &mut Account) -> anyhow::Result<()> {
    let published = Published::open("block-device")?;
    scene.run(
        "takeup bench import published/block-device.csv --load work --output \
         published-device.ndjson",
    )?;
    let slower = scene.mount(
        "takeup sim disk slower --service-time 3.16ms --parallel 32 --bandwidth 137MB \\\n      \
         --backing slower-backing --size 1G --loop",
    )?;
    scene.run("echo mq-deadline >$QUEUE/scheduler")?;
    random(scene, account, &published)?;
    sequential(scene, account, &published)?;
    small_files(scene, account, &published)?;
    drop(slower);
    scene.prepare("rm -rf slower-backing tree")?;
    let disk = scene
        .mount("takeup sim disk ssd --preset ssd-sata --backing ssd-backing --size 2G --loop")?;
    scene.run("echo mq-deadline >$QUEUE/scheduler")?;
    large(scene, account, &published)?;
    applications(scene, account);
    not_measured_there(scene, account);
    drop(disk);
    scene.prepare("rm -f ssd-backing")?;
    account.cannot_ask(
        "Which calls does each engine make?",
        "psync pread64 and pwrite64, libaio io_submit, io_uring io_uring_enter",
        "Takeup traces no program; the engines themselves are levels of `takeup bench disk`",
    );
    account.cannot_ask(
        "Which layer has which scheduler?",
        "mq-deadline for a single SATA disk, none in a virtual machine, for Fibre Channel and for \
         md",
        "those layers and their hardware are not here",
    );
    account.cannot_ask(
        "md, ZFS, Ceph RBD, iSCSI with several targets?",
        "planned, not measured yet",
        "none of them is here; `takeup bench disk` takes any block device",
    );
    Ok(())
}

/// A load of fio on the loop device.
fn load(scene: &Scene, options: &str, output: &str) -> anyhow::Result<Judged> {
    let (seconds, repeats) = scene.length.pick((2, 1), (5, 3));
    scene.judged(&format!(
        "takeup bench disk $LOOP --destructive --engines libaio --length 1G \\\n      \
         {options} --runtime {seconds}s \\\n      \
         --repeats {repeats} --repeats-max {repeats} --output {output}.ndjson"
    ))
}

fn kb(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

fn random(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let of = |name: &str| published.number(&format!("load.0.iostat.{name}"));
    let (reads, writes, size) = (of("r_s")?, of("w_s")?, of("rareq_kb")?);
    let they = format!(
        "{:.0} requests a second, of {size} KiB each as asked, nothing merged, {} under way",
        reads + writes,
        of("aqu_sz")?
    );
    let question = "What becomes of random requests of 8 KiB, 4 jobs x depth 8?";
    account.ask(scene, question, they, |asked| {
        let options = "--load randrw --block-size 8k --jobs 4 --depth 8";
        let judged = load(scene, options, "random")?;
        let of = |name: &str| judged.measure(ALL, name);
        let (requests, request) = (of("fio_iops")? * PACE, of("device_request_bytes")?);
        let merged = of("device_merged_percent")?;
        asked.says(format!(
            "{requests:.0} requests a second, of {} each, {merged:.1} % merged, {:.0} under way.",
            kb(request),
            of("device_depth")?
        ));
        asked.holds("the device gets what the program asked for", (request / 8192.0) < 1.1);
        asked.holds("nothing is merged", merged < 2.0);
        let told = !judged.told("experiment.requests-unchanged").is_empty();
        asked.holds("the report says so", told);
        asked.near(request / 1024.0, size);
        asked.near(requests, reads + writes);
        Ok(())
    });
    Ok(())
}

fn sequential(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let of = |name: &str| published.number(&format!("load.1.iostat.{name}"));
    let they = format!(
        "{} % of the reads are merged and {} % of the writes: fewer, larger requests ({} KiB), \
         more bytes",
        of("r_rqm_percent")?,
        of("w_rqm_percent")?,
        of("rareq_kb")?
    );
    account.ask(scene, "What becomes of sequential requests?", they, |asked| {
        let options = "--load randrw,rw --block-size 8k --jobs 4 --depth 128";
        let judged = load(scene, options, "sequential")?;
        let of = |load: &str, name: &str| judged.measure(&[("load", load)], name);
        let merged = of("rw", "device_merged_percent")?;
        let request = of("rw", "device_request_bytes")?;
        let rate = |load: &str| judged.rate(&[("load", load)]).map(|rate| rate * PACE);
        asked.says(format!(
            "{merged:.0} % merged, requests of {}, {} MB/s; random requests of the same depth \
             {:.0} % and {} MB/s.",
            kb(request),
            mb_s(rate("rw")?),
            of("randrw", "device_merged_percent")?,
            mb_s(rate("randrw")?)
        ));
        asked.holds("sequential requests are merged", merged > 5.0);
        let random = of("randrw", "device_merged_percent")?;
        asked.holds("random requests are not", random < merged / 4.0);
        asked.holds("the device gets larger requests", request > 8192.0 * 1.05);
        asked.holds("the rate is higher", rate("rw")? > rate("randrw")?);
        Ok(())
    });
    Ok(())
}

fn large(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let of = |name: &str| published.number(&format!("load.2.{name}"));
    let (size, sectors) = (of("iostat.rareq_kb")?, published.number("max_sectors_kb")?);
    let they = format!(
        "they are split at max_sectors_kb = {sectors}: the device gets {size} KiB each time"
    );
    let mut done = None;
    account.ask(scene, "What becomes of requests of 8 MiB?", they, |asked| {
        let options = "--load randrw --block-size 8M --jobs 4 --depth 32";
        let judged = &*done.insert(load(scene, options, "large")?);
        let request = judged.measure(ALL, "device_request_bytes")?;
        let told = judged.told("experiment.requests-split").join("; ");
        asked.says(format!("\"{told}\""));
        asked.holds("no request is larger than the limit", request <= sectors * 1024.0 * 1.02);
        asked.holds("the report names the split", !told.is_empty());
        asked.near(request / 1024.0, size);
        Ok(())
    });
    let they = format!(
        "a request takes {:.1} s for the program and {:.0} ms at the device: the queue is in the \
         host",
        of("fio_result.read_clat_ms")? / 1e3,
        of("iostat.r_await_ms")?
    );
    account.ask(scene, "Where do those requests wait?", they, |asked| {
        let judged = done.as_ref().ok_or_else(|| anyhow::anyhow!("they were not run"))?;
        let program = judged.measure(ALL, "fio_clat_mean_ns")? / 1e6;
        let device = judged.measure(ALL, "device_await_ns")? / 1e6;
        asked.says(format!("{program:.0} ms for the program, {device:.0} ms at the device."));
        asked.holds("most of the time passes in the host", program > 2.0 * device);
        let told = !judged.told("experiment.queue-in-the-host").is_empty();
        asked.holds("the report says so", told);
        Ok(())
    });
    Ok(())
}

fn applications(scene: &Scene, account: &mut Account) {
    let they = "PostgreSQL writes 8 KiB and calls fdatasync; fio does the same with psync, one \
                request at a time; no figure";
    let question = "How fast are the commits of a database that waits for each?";
    account.ask(scene, question, they, |asked| {
        let (seconds, repeats) = scene.length.pick((1, 1), (5, 3));
        let judged = scene.judged(&format!(
            "takeup bench disk $LOOP --destructive --engines psync --load randwrite --block-size \
             8k \\\n      --depth 1 --fsync 0,1 --length 1G --runtime {seconds}s \\\n      \
             --repeats {repeats} --repeats-max {repeats} --output commits.ndjson"
        ))?;
        let requests = |every: &str| judged.measure(&[("fsync_every", every)], "fio_iops");
        let (without, with) = (requests("0")?, requests("1")?);
        asked.says(format!(
            "{with:.0} commits a second, {without:.0} writes a second without commits."
        ));
        asked.holds("a commit for each write is slower", with < without);
        asked.is_open();
        Ok(())
    });
}

fn not_measured_there(scene: &Scene, account: &mut Account) {
    let they = "planned, not measured yet";
    account.ask(scene, "How fast is TRIM?", they, |asked| {
        let judged = scene.judged(
            "takeup bench disk $LOOP --destructive --engines psync --load trim,randtrim \
             --block-size 1M \\\n      --depth 1 --length 256M --runtime once --repeats 1 \
             --repeats-max 1 --output trim.ndjson",
        )?;
        let rate = |load: &str| judged.rate(&[("load", load)]);
        let (trim, random) = (rate("trim")?, rate("randtrim")?);
        asked.says(format!("{} MB/s in order, {} MB/s at random.", mb_s(trim), mb_s(random)));
        asked.holds("both have a rate", trim > 0.0 && random > 0.0);
        asked.is_open();
        Ok(())
    });
    account.ask(scene, "Is io_uring faster than libaio?", they, |asked| {
        let (seconds, repeats) = scene.length.pick((1, 2), (5, 3));
        let judged = scene.judged(&format!(
            "takeup bench disk $LOOP --engines libaio,io_uring --load randread --block-size 8k \
             --depth 32 \\\n      --runtime {seconds}s --repeats {repeats} --repeats-max {repeats} \
             --output engines.ndjson"
        ))?;
        let requests = |engine: &str| judged.measure(&[("engine", engine)], "fio_iops");
        let (libaio, ring) = (requests("libaio")?, requests("io_uring")?);
        asked.says(format!("{ring:.0} requests a second by io_uring, {libaio:.0} by libaio."));
        asked.holds("both give a number", libaio > 0.0 && ring > 0.0);
        asked.is_open();
        Ok(())
    });
}

fn small_files(scene: &Scene, account: &mut Account, published: &Published) -> anyhow::Result<()> {
    let of = |load: usize, name: &str| published.number(&format!("load.{load}.iostat.{name}"));
    let (merging, without) = (of(3, "wMB_s")?, of(4, "wMB_s")?);
    let they = format!(
        "with merging requests of {:.0} KiB and {merging:.0} MB/s, with nomerges = 2 of {:.0} KiB \
         and {without:.0} MB/s, {:.0} times as many",
        of(3, "wareq_kb")?,
        of(4, "wareq_kb")?,
        of(4, "w_s")? / of(3, "w_s")?
    );
    let (megabytes, repeats) = scene.length.pick((32, 2), (96, 4));
    scene.run(&format!(
        "mkdir tree; head -c {megabytes}M /dev/urandom | split -a 4 -b 4k - tree/file-"
    ))?;
    let files = FileSystem::ext4(scene, "files")?;
    let question = "What does merging bring to a copy of small files?";
    account.ask(scene, question, they, |asked| {
        let judged = scene.judged(&format!(
            "takeup bench run --bytes-of tree --watch files --vary nomerges=0,2 \\\n      \
             --before 'rm -rf files/copy*; sync -f files; echo {{nomerges}} >$QUEUE/nomerges' \
             \\\n      \
             --command 'copy=cp -r tree files/copy{{nomerges}}; sync -f files' \\\n      \
             --repeats {repeats} --repeats-max {repeats} --output copy.ndjson"
        ))?;
        let of = |level: &str, name: &str| judged.measure(&[("nomerges", level)], name);
        let rate = |level: &str| judged.rate(&[("nomerges", level)]);
        let request = |level: &str| of(level, "device_write_request_bytes");
        let row = |name: &str, level: &str, load: usize| -> anyhow::Result<Vec<String>> {
            let their = |name: &str| published.number(&format!("load.{load}.iostat.{name}"));
            Ok(vec![
                name.to_owned(),
                format!("{:.1} KiB", their("wareq_kb")?),
                mb_s(their("wMB_s")? * 1048576.0),
                kb(request(level)?),
                mb_s(rate(level)?),
            ])
        };
        let head = ["", "they, request", "they, MB/s", "we, request", "we, MB/s"];
        asked.table(&head, &[row("merging", "0", 3)?, row("nomerges = 2", "2", 4)?]);
        asked.holds("with merging requests are far larger", request("0")? > 4.0 * request("2")?);
        asked.holds("without it the copy is slower", rate("2")? < rate("0")?);
        asked.near(request("2")? / 1024.0, 4.0);
        asked.near(rate("0")? / rate("2")?, merging / without);
        Ok(())
    });
    drop(files);
    Ok(())
}
