//! Runs one command in one guest: from a new folder to the exit code.
//!
//! Everything of a run is in a temporary folder. Guests share no port or path, so several can run
//! side by side. The command's output comes through a virtio port that QEMU connects to its
//! standard output, its exit code through a folder that the guest can write. The guest has a time
//! limit, and ends with this program however it ends (`setpriv --pdeathsig`).

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};

use super::initramfs;
use super::packages::Packages;

/// The guest's processor: emulated or hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Accelerator {
    /// Software: works everywhere
    Tcg,
    /// Hardware: three times as fast where it works
    Kvm,
}

/// How to make a guest.
pub struct Guest<'packages> {
    /// Kernel, modules and programs.
    pub packages: &'packages Packages,
    /// Its memory; half of it can hold files.
    pub memory_mib: u64,
    /// Emulated or hardware processor.
    pub accelerator: Accelerator,
    /// Time limit.
    pub limit: Duration,
}

/// What runs in the guest, as root.
pub struct Job {
    /// A shell script.
    pub command: String,
    /// Its working folder, an absolute path of the host.
    pub folder: PathBuf,
    /// Variables in addition to the guest's own.
    pub environment: Vec<(String, String)>,
}

/// The end of a guest.
pub struct Outcome {
    /// The command's exit code.
    pub exit_code: u8,
    /// From the start of QEMU until the tape was ready.
    pub up_after: Duration,
    /// From the start of QEMU to its end.
    pub done_after: Duration,
}

impl Guest<'_> {
    /// Boots, runs the job, passes its output to `output` as it comes, and powers off.
    ///
    /// # Errors
    /// When QEMU cannot be started, the guest does not come up, or its time is over; the message
    /// has the last lines of its console.
    pub fn run(&self, job: &Job, output: &mut dyn FnMut(&[u8])) -> anyhow::Result<Outcome> {
        let run = RunFolder::create()?;
        let initramfs = initramfs::build(self.packages, run.folder.path())?;
        run.write_exchange(job)?;
        let start = Instant::now();
        let started_at = SystemTime::now();
        let mut child = self.command(&run, &initramfs).spawn().context(
            "start qemu-system-x86_64 through setpriv (scripts/install-packages brings them)",
        )?;
        let input = child.stdin.take();
        let ended = self.follow(&mut child, start, output);
        if ended.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().context("wait for QEMU")?;
        drop(input);
        ended.with_context(|| run.console())?;
        let done_after = start.elapsed();
        let up_after =
            run.up_at().and_then(|at| at.duration_since(started_at).ok()).unwrap_or(done_after);
        let exit_code = run.exit_code(status)?;
        Ok(Outcome { exit_code, up_after, done_after })
    }

    fn command(&self, run: &RunFolder, initramfs: &Path) -> Command {
        // Nested virtual machines cannot set the processor's capabilities register.
        let (accelerator, processor) = match self.accelerator {
            Accelerator::Tcg => ("tcg,thread=multi", EMULATED_PROCESSOR),
            Accelerator::Kvm => ("kvm", "max,-arch-capabilities"),
        };
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-machine", "pc,vmport=off,usb=off", "-smp", "2", "-cpu", processor])
            .args(["-accel", accelerator])
            .args(["-m", &self.memory_mib.to_string()])
            .arg("-kernel")
            .arg(&self.packages.kernel)
            .arg("-initrd")
            .arg(initramfs)
            .args(["-append", KERNEL_ARGUMENTS])
            .args(["-serial", &format!("file:{}", run.folder.path().join("console").display())])
            .args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"])
            .args(["-chardev", "stdio,id=output,signal=off"])
            .args(["-device", "virtserialport,chardev=output"])
            .args(share("host", Path::new("/"), ",readonly=on,multidevs=remap"))
            .args(share("packages", &self.packages.root, ",readonly=on"))
            .args(share("exchange", &run.folder.path().join("exchange"), ""))
            // The end of standard input would close the guest's port.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(
                fs::File::create(run.folder.path().join("qemu")).map_or(Stdio::null(), Stdio::from),
            );
        command
    }

    /// Passes output on until the guest closes its end or the time is over.
    fn follow(
        &self,
        child: &mut Child,
        start: Instant,
        output: &mut dyn FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        let mut pipe = child.stdout.take().context("no pipe from QEMU")?;
        // At most a few pieces of 64 KiB wait here; then the guest waits.
        let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(16);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count) = pipe.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        loop {
            let left = self.limit.saturating_sub(start.elapsed());
            match receiver.recv_timeout(left) {
                Ok(bytes) => output(&bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    bail!("the guest did not end within {} s", self.limit.as_secs());
                }
            }
        }
    }
}

/// An emulated processor without what makes it slow: where `rep movsb` is said to be fast (erms,
/// fsrm), kernel and libc copy with it, and QEMU copies a byte at a time: `dd` from /dev/zero takes
/// six times, from tmpfs to tmpfs twice as long. A fifth level of page tables (la57) and the checks
/// of each access (smap, smep, pku) cost copies another third.
const EMULATED_PROCESSOR: &str = "max,-erms,-fsrm,-la57,-smap,-smep,-pku";

/// Kernel messages go to the console only when they are errors: every line costs emulated time.
/// Programs lie at the same addresses in each process (norandmaps): QEMU keeps what it translated
/// by address, and would else translate a program anew at each start: three quarters of its time.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 loglevel=4 panic=-1 mitigations=off \
    random.trust_cpu=on no_timer_check tsc=reliable nokaslr norandmaps";

/// The folder of one run, removed when it is dropped. Its name is unpredictable and only this user
/// can write to it, since the guest runs its content as root.
struct RunFolder {
    folder: tempfile::TempDir,
}

impl RunFolder {
    fn create() -> anyhow::Result<RunFolder> {
        let named = tempfile::Builder::new().prefix("takeup-lab-").tempdir();
        let folder = named.context("create a folder for the guest")?;
        let exchange = folder.path().join("exchange");
        fs::create_dir(&exchange).with_context(|| format!("create {}", exchange.display()))?;
        Ok(RunFolder { folder })
    }

    fn write_exchange(&self, job: &Job) -> anyhow::Result<()> {
        let exchange = self.folder.path().join("exchange");
        let own = std::env::current_exe().context("own path")?;
        let mut environment = format!("export LAB_XTASK={}\n", quoted(&own.display().to_string()));
        for (name, value) in &job.environment {
            environment.push_str(&format!("export {name}={}\n", quoted(value)));
        }
        let folder = job.folder.to_str().context("the working folder's path is no text")?;
        for (name, content) in [
            ("start", include_str!("guest/start")),
            ("cartridge", include_str!("guest/cartridge")),
            ("command", &job.command),
            ("environment", &environment),
            ("folder", folder),
        ] {
            fs::write(exchange.join(name), content).with_context(|| format!("write {name}"))?;
        }
        Ok(())
    }

    /// When `start` reported that the tape is ready, by the host's clock.
    fn up_at(&self) -> Option<SystemTime> {
        fs::metadata(self.folder.path().join("exchange/up")).ok()?.modified().ok()
    }

    fn exit_code(&self, qemu: std::process::ExitStatus) -> anyhow::Result<u8> {
        let exchange = self.folder.path().join("exchange");
        if let Ok(problem) = fs::read_to_string(exchange.join("problem")) {
            bail!("{}\n{}", problem.trim(), self.console());
        }
        let text = fs::read_to_string(exchange.join("status")).unwrap_or_default();
        text.trim()
            .parse()
            .with_context(|| format!("the guest left no exit code ({qemu})\n{}", self.console()))
    }

    /// The last lines that QEMU and the guest's kernel wrote.
    fn console(&self) -> String {
        let tail = |name: &str| {
            let bytes = fs::read(self.folder.path().join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lines: Vec<_> = text.lines().map(str::trim_end).collect();
            lines[lines.len().saturating_sub(20)..].join("\n")
        };
        format!("console:\n{}\n{}", tail("qemu"), tail("console"))
    }
}

/// Arguments that share a folder with the guest over 9p; QEMU needs commas in a path doubled.
fn share(tag: &str, path: &Path, options: &str) -> [String; 2] {
    let path = path.display().to_string().replace(',', ",,");
    [
        "-virtfs".to_owned(),
        format!("local,path={path},mount_tag={tag},security_model=none{options}"),
    ]
}

/// A word quoted for the shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
