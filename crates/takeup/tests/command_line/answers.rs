//! What `--json` prints is an answer of `service`: read as its type and written again, it is the
//! same document, so that the schemas in `docs/schema/` describe it.

use serde::de::DeserializeOwned;
use serde_json::Value;
use service::Answer;

use crate::{document, small_tree};

/// Reads a document as an answer and writes it again.
pub fn check<A: Answer + DeserializeOwned>(printed: &Value) -> A {
    let answer: A = serde_json::from_value(printed.clone())
        .unwrap_or_else(|error| panic!("no answer of {}: {error}: {printed:#}", A::COMMAND));
    assert_eq!(&service::document(&answer), printed);
    answer
}

#[test]
fn rules() {
    let directory = small_tree();
    let answer: service::rules::RulesAnswer =
        check(&document(directory.path(), &["rules", "--json"]));
    assert_eq!(answer, service::rules::rules());
}

#[test]
fn explanation_of_a_pipeline() {
    let directory = small_tree();
    let arguments = ["explain", "--shell", "/bin/sh", "true | sleep 0.5", "--baseline", "--json"];
    let answer: service::explain::ExplainAnswer = check(&document(directory.path(), &arguments));
    assert_eq!(answer.run.pipeline.as_deref(), Some("true | sleep 0.5"), "{answer:?}");
    assert!(answer.baseline.is_some() && answer.tried.is_none(), "{answer:?}");
}

#[test]
fn probe_of_a_path() {
    let directory = small_tree();
    let printed = document(directory.path(), &["probe", "tree", "--json"]);
    let answer: service::probe::ProbeAnswer = check(&printed);
    assert!(matches!(answer, service::probe::ProbeAnswer::Layers(_)), "{answer:?}");
}
