//! What a run says to its observer, and its requests and answers as JSON.

use super::*;

use flow::cancel::Cancel;
use serde::de::DeserializeOwned;

use crate::Answer;
use crate::backup::{BackupRequest, backup};
use crate::change::NoChanger;
use crate::list::{ListEnd, ListRequest, MemberLine, MemberSink, list};
use crate::pipe::{PipeRequest, pipe};
use crate::restore::{RestoreRequest, restore};
use crate::verify::{VerifyRequest, verify};

fn warning(object: &str) -> Notice {
    let (object, text) = (object.as_bytes().to_vec(), "permission denied".to_owned());
    Notice { level: Level::Warning(Harm::Unread), object, text }
}

#[test]
fn warnings_are_counted_and_the_first_are_kept() {
    let mut monitor = RunMonitor::new(&Silent);
    for number in 0..WARNINGS_MAX + 5 {
        monitor.notice(warning(&format!("a/{number}")));
    }
    monitor.notice(Notice { level: Level::Note, object: Vec::new(), text: "x".to_owned() });
    let summary = monitor.summarise(RunReport::default(), |_| {});
    assert_eq!((summary.warnings.len(), summary.warnings_total), (WARNINGS_MAX, 1005));
    let expected = "INCOMPLETE: 1 005 files could not be read (a/0 and others)";
    assert_eq!(summary.verdict.text, expected);
}

#[test]
fn warnings_that_are_kept_have_a_limit_in_bytes() {
    let mut kept = KeptWarnings::default();
    for _ in 0..8 {
        kept.keep("a".repeat(WARNING_BYTES_MAX / 4), String::new());
    }
    assert_eq!(kept.warnings.len(), 4);
}

#[test]
fn permissions_are_nine_bits() {
    let mode = |mode| TargetSettings { mode: Some(mode), ..TargetSettings::default() }.mode();
    assert_eq!(mode(0o640).unwrap(), FileMode::Exactly(0o640));
    assert!(mode(0o4755).is_err());
}

/// A request of JSON, as another program writes it.
fn request<R: DeserializeOwned>(fields: serde_json::Value) -> R {
    serde_json::from_value(fields).unwrap()
}

/// An answer that is read again is the same document.
fn check<A: Answer + DeserializeOwned>(answer: &A) {
    let document = crate::document(answer);
    let again: A = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(crate::document(&again), document);
    assert_eq!(document["command"], A::COMMAND);
}

#[derive(Default)]
struct Lines(Vec<String>);

impl MemberSink for Lines {
    fn member(&mut self, listed: &runs::list::Listed<'_>) -> std::io::Result<()> {
        self.0.push(MemberLine::from(listed).to_line());
        Ok(())
    }
}

/// All runs, from requests with nothing but what they need, by a program without a terminal.
#[test]
fn runs_without_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("tree")).unwrap();
    std::fs::write(at("tree/a"), "content of a\n").unwrap();
    std::os::unix::fs::symlink("a", at("tree/link")).unwrap();
    let (cancel, nobody) = (Cancel::new(), NoChanger::shared);

    let asked: BackupRequest = request(serde_json::json!({
        "sources": [at("tree")], "to": at("x.tar.zst"), "record": at("record"),
    }));
    let done = backup(&asked, &Silent, &cancel, nobody()).unwrap();
    check(&done.answer());
    assert_eq!((done.summary.run.files, done.summary.run.compression.as_str()), (1, "zstd:3"));
    let record = runs::run_record::RunRecord::read(&at("record")).unwrap();
    let kept: RunSummary = serde_json::from_value(record.summary).unwrap();
    assert_eq!(kept.to_document(), done.summary.to_document());

    let from = at("x.tar.zst");
    let asked: ListRequest = request(serde_json::json!({ "from": from }));
    let mut lines = Lines::default();
    let end = list(&asked, &Silent, &cancel, nobody(), &mut lines).unwrap();
    let ListEnd::Whole(done) = end else { panic!("{end:?}") };
    assert_eq!((lines.0.len(), done.answer().summary.run.members), (3, 3));
    for line in &lines.0 {
        let sorted: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(*line, format!("{sorted}\n"));
        assert_eq!(serde_json::from_str::<MemberLine>(line).unwrap().to_line(), *line);
    }

    let asked: RestoreRequest =
        request(serde_json::json!({ "from": from, "into": at("new"), "strip_components": 100 }));
    assert!(restore(&asked, &Silent, &cancel, nobody()).is_err(), "nothing is left of the paths");
    let asked = RestoreRequest { strip_components: 0, ..asked };
    let done = restore(&asked, &Silent, &cancel, nobody()).unwrap();
    check(&done.answer());
    assert!(done.answer().checksums.is_some_and(|it| it.damaged_blocks == 0));

    std::fs::write(at("tree/a"), "other, and longer content\n").unwrap();
    std::fs::remove_file(at("tree/link")).unwrap();
    std::fs::write(at("tree/new"), "").unwrap();
    let against = folder.path().ancestors().last();
    let asked: VerifyRequest = request(serde_json::json!({ "from": from, "against": against }));
    let done = verify(&asked, &Silent, &cancel, nobody()).unwrap();
    let answer = done.answer();
    check(&answer);
    let totals = [answer.changed.total, answer.missing.total, answer.extra.total];
    assert!(answer.sound && totals.iter().all(|total| *total > 0), "{answer:?}");

    let asked: PipeRequest = request(serde_json::json!({ "from": from, "to": at("copy") }));
    check(&pipe(&asked, &Silent, &cancel).unwrap().answer());
}

#[test]
fn a_refused_request_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("x.tar");
    let asked: BackupRequest = request(serde_json::json!({
        "sources": [folder.path()], "to": to, "record": to,
    }));
    let refused = backup(&asked, &Silent, &Cancel::new(), NoChanger::shared()).unwrap_err();
    assert!(refused.message().starts_with("--record and the target have the same name"));
    let asked = BackupRequest { compress: Some("zstd:99".to_owned()), ..asked };
    assert!(backup(&asked, &Silent, &Cancel::new(), NoChanger::shared()).is_err());
}
