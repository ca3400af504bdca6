//! A forged read-ahead journal that another user placed where an experiment might look for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The owner of the target files, and the attacker.
const VICTIM: u32 = 65533;
const ATTACKER: u32 = 65534;

/// Runs a command as a user who has no login session.
fn as_user(user: u32, home: &Path, temporary: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.args(["--clear-groups", "--"]).args(arguments).current_dir(home);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", temporary).env("HOME", home).output().unwrap()
}

struct Scene {
    folder: tempfile::TempDir,
    program: String,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("takeup");
        // Another process copies it: a child of another test would hold the copy open for writing.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_takeup")).arg(&program).status();
        assert!(copied.unwrap().success());
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        mode(folder.path(), 0o755);
        let scene = Scene { program: program.display().to_string(), folder };
        for name in ["home", "tmp"] {
            fs::create_dir(scene.folder.path().join(name)).unwrap();
        }
        mode(&scene.temporary(), 0o1777);
        std::os::unix::fs::chown(scene.home(), Some(VICTIM), Some(VICTIM)).unwrap();
        let precious = scene.home().join("precious");
        fs::write(&precious, "precious").unwrap();
        fs::write(scene.home().join("data"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::chown(&precious, Some(VICTIM), Some(VICTIM)).unwrap();
        scene
    }

    fn home(&self) -> std::path::PathBuf {
        self.folder.path().join("home")
    }

    fn temporary(&self) -> std::path::PathBuf {
        self.folder.path().join("tmp")
    }

    fn plant(&self, user: u32, folder: &Path) {
        let text = format!(
            "{{\"pid\":4194305,\"process_start\":1,\"settings\":[{{\"kind\":\"read-ahead\",\
             \"path\":\"{}\",\"before\":\"1024\"}}]}}",
            self.home().join("precious").display()
        );
        let script = "umask 022 && mkdir -p \"$1\" && printf %s \"$2\" >\"$1/settings.json\"";
        let folder = folder.display().to_string();
        let arguments = ["sh", "-c", script, "sh", &folder, &text];
        let output = as_user(user, Path::new("/"), &self.temporary(), &arguments);
        assert!(output.status.success(), "{output:?}");
    }

    fn bench(&self) -> Output {
        let one = ["--engines", "psync", "--block-size", "64k", "--cache", "buffered"];
        let experiment = [&one[..], &["--repeats", "1", "--repeats-max", "1", "-q"]].concat();
        let read = [self.program.as_str(), "bench", "read", "data", "--output", "runs.ndjson"];
        let arguments = [&read[..], &experiment].concat();
        as_user(VICTIM, &self.home(), &self.temporary(), &arguments)
    }

    #[track_caller]
    fn is_unharmed(&self, output: &Output) {
        let precious = fs::read_to_string(self.home().join("precious")).unwrap();
        assert_eq!(precious, "precious", "{output:?}");
    }
}

#[test]
fn a_journal_in_a_place_that_is_everybodys_is_not_read() {
    testkit::require!(Root);
    let scene = Scene::new();
    scene.plant(ATTACKER, &scene.temporary().join("takeup"));
    let output = scene.bench();
    scene.is_unharmed(&output);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_journal_that_names_other_files_is_refused_wherever_it_lies() {
    testkit::require!(Root);
    let scene = Scene::new();
    let folder = scene.home().join(".local/state/takeup");
    scene.plant(VICTIM, &folder);
    let output = scene.bench();
    scene.is_unharmed(&output);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("precious is not a read-ahead setting of the kernel"), "{text}");
    assert!(text.contains("hint: look at the file and delete it if you did not make it"), "{text}");
    // The same by another user, in a folder that the user left writable.
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    scene.plant(ATTACKER, &folder);
    let output = scene.bench();
    scene.is_unharmed(&output);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("is not trusted: its folder belongs to user 0"), "{text}");
}
