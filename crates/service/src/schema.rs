//! The schemas of requests and answers, as `docs/schema/` holds them.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::json;

use crate::{Answer, VERSION};

/// A schema and the name of its file.
#[derive(Debug)]
pub struct NamedSchema {
    /// Without `.json`, for example `probe.answer`.
    pub name: String,
    /// JSON Schema, draft 2020-12.
    pub schema: Schema,
}

/// Of what other programs do and print, and of this machine.
fn programs() -> [NamedSchema; 13] {
    [
        request::<crate::capture::CaptureRequest>("capture"),
        answer::<crate::capture::CaptureAnswer>(),
        request::<crate::explain::ExplainRequest>("explain"),
        answer::<crate::explain::ExplainAnswer>(),
        request::<crate::diagnose::DiagnoseRequest>("diagnose"),
        answer::<crate::diagnose::DiagnoseAnswer>(),
        request::<crate::diagnose::given::DiagnoseGivenRequest>("diagnose given"),
        answer::<crate::diagnose::given::DiagnoseGivenAnswer>(),
        answer::<crate::diagnose::host::DiagnoseHostAnswer>(),
        request::<crate::doctor::DoctorRequest>("doctor"),
        answer::<crate::doctor::DoctorAnswer>(),
        answer::<crate::many::ManyBenchAnswer>(),
        answer::<crate::many::ManySetAnswer>(),
    ]
}

/// Those of the catalogue.
fn catalog() -> [NamedSchema; 16] {
    [
        request::<crate::catalog::CatalogLoadRequest>("catalog add"),
        answer::<crate::catalog::CatalogLoadAnswer>(),
        request::<crate::catalog::CatalogFindRequest>("catalog find"),
        answer::<crate::catalog::CatalogFindAnswer>(),
        request::<crate::catalog::CatalogSetsRequest>("catalog sets"),
        answer::<crate::catalog::CatalogSetsAnswer>(),
        request::<crate::catalog::CatalogDuRequest>("catalog du"),
        answer::<crate::catalog::CatalogDuAnswer>(),
        request::<crate::catalog::CatalogLsRequest>("catalog ls"),
        answer::<crate::catalog::CatalogLsAnswer>(),
        request::<crate::catalog::CatalogWhyRequest>("catalog why"),
        answer::<crate::catalog::CatalogWhyAnswer>(),
        request::<crate::catalog::CatalogDiffRequest>("catalog diff"),
        answer::<crate::catalog::CatalogDiffAnswer>(),
        request::<crate::retention::ForgetRequest>("catalog forget"),
        answer::<crate::retention::ForgetAnswer>(),
    ]
}

/// Those of jobs, and of folders of sets.
fn jobs() -> [NamedSchema; 16] {
    [
        request::<crate::jobs::JobRequest>("run"),
        answer::<crate::jobs::JobAnswer>(),
        request::<crate::jobs::TrialRequest>("run trial"),
        answer::<crate::jobs::TrialDone>(),
        request::<crate::jobs::JobsHistoryRequest>("catalog jobs"),
        answer::<crate::jobs::JobsHistoryAnswer>(),
        request::<crate::jobs::StatusRequest>("status"),
        answer::<crate::jobs::StatusAnswer>(),
        request::<crate::jobs::CheckConfigRequest>("check-config"),
        answer::<crate::jobs::CheckConfigAnswer>(),
        request::<crate::jobs::UnitsRequest>("units"),
        answer::<crate::jobs::UnitsAnswer>(),
        request::<crate::verify_sets::VerifySetsRequest>("verify sets"),
        answer::<crate::verify_sets::VerifySetsAnswer>(),
        request::<crate::folder_sets::FolderSetsRequest>("list folder"),
        answer::<crate::folder_sets::FolderSetsAnswer>(),
    ]
}

/// All of them, in the order of their names.
pub fn all() -> Vec<NamedSchema> {
    let mut all = vec![
        request::<crate::plan::PlanRequest>("plan"),
        answer::<crate::plan::PlanAnswer>(),
        request::<crate::backup::BackupRequest>("backup"),
        answer::<crate::backup::BackupAnswer>(),
        answer::<crate::dry_run::DryRunAnswer>(),
        answer::<crate::restore::RestorePlanAnswer>(),
        answer::<crate::verify::VerifyPlanAnswer>(),
        answer::<crate::media::MediaAnswer>(),
        request::<crate::restore::RestoreRequest>("restore"),
        answer::<crate::restore::RestoreAnswer>(),
        request::<crate::list::ListRequest>("list"),
        line::<crate::list::MemberLine>("list.member"),
        line::<crate::list::ListSummary>("list.summary"),
        request::<crate::list::SetsRequest>("list.sets"),
        answer::<crate::list::SetsAnswer>(),
        request::<crate::verify::VerifyRequest>("verify"),
        answer::<crate::verify::VerifyAnswer>(),
        request::<crate::pipe::PipeRequest>("pipe"),
        answer::<crate::pipe::PipeAnswer>(),
        request::<crate::probe::ProbeRequest>("probe"),
        answer::<crate::probe::ProbeAnswer>(),
        answer::<crate::rules::RulesAnswer>(),
        request::<crate::tune::read_ahead::TuneReadAheadRequest>("tune readahead"),
        answer::<crate::tune::read_ahead_advice::TuneReadAheadAnswer>(),
        request::<crate::tune::queue::TuneQueueRequest>("tune queue"),
        answer::<crate::tune::queue_advice::TuneQueueAnswer>(),
        request::<crate::tune::set::TuneSetRequest>("tune set"),
        answer::<crate::tune::set::TuneSetAnswer>(),
        answer::<crate::tune::show::TuneShowAnswer>(),
        answer::<crate::tune::confirm::TuneConfirmAnswer>(),
        request::<crate::tune::revert::TuneRevertRequest>("tune revert"),
        answer::<crate::tune::revert::TuneRevertAnswer>(),
        request::<crate::tune::persist::TunePersistRequest>("tune persist"),
        answer::<crate::tune::persist::TunePersistAnswer>(),
        request::<crate::sim::tape::SimTapeRequest>("sim tape"),
        request::<crate::sim::disk::SimDiskRequest>("sim disk"),
        answer::<crate::sim::disk::SimDiskAnswer>(),
        request::<crate::sim::SimStatusRequest>("sim status"),
        answer::<crate::sim::SimStatusAnswer>(),
        request::<crate::sim::SimLoadRequest>("sim load"),
        request::<crate::sim::SimEjectRequest>("sim eject"),
        request::<crate::watch::WatchRequest>("watch"),
        line::<crate::watch::WatchLine>("watch.line"),
        request::<crate::bench::read::BenchReadRequest>("bench read"),
        request::<crate::bench::disk::BenchDiskRequest>("bench disk"),
        request::<crate::bench::tape::BenchTapeRequest>("bench tape"),
        request::<crate::bench::run::BenchRunRequest>("bench run"),
        answer::<crate::bench::ExperimentAnswer>(),
        request::<crate::bench::import::BenchImportRequest>("bench import"),
        answer::<crate::bench::import::BenchImportAnswer>(),
        request::<crate::bench::power::BenchPowerRequest>("bench power"),
        answer::<crate::bench::power::BenchPowerAnswer>(),
        answer::<crate::bench::PutBackAnswer>(),
        request::<crate::compare::CompareRequest>("compare"),
        answer::<crate::compare::CompareAnswer>(),
        request::<crate::report::ReportRequest>("report"),
        answer::<crate::report::ReportAnswer>(),
        line::<crate::bench::ExperimentLine>("report.line"),
    ];
    all.extend(catalog());
    all.extend(programs());
    all.extend(jobs());
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

fn request<R: JsonSchema>(command: &str) -> NamedSchema {
    let name = format!("{}.request", command.replace(' ', "-"));
    NamedSchema { name, schema: generator().into_root_schema_for::<R>() }
}

/// A line of a stream is not a document: `command` and `schema_version` are not added.
fn line<L: JsonSchema>(name: &str) -> NamedSchema {
    NamedSchema { name: name.to_owned(), schema: generator().into_root_schema_for::<L>() }
}

/// An answer has `command` and `schema_version` besides its own fields. An answer of several
/// commands has a field `command` of its own.
fn answer<A: Answer + JsonSchema>() -> NamedSchema {
    let mut schema = generator().into_root_schema_for::<A>();
    let object = schema.ensure_object();
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.entry("command").or_insert_with(|| json!({ "const": A::COMMAND }));
        properties.insert("schema_version".to_owned(), json!({ "const": VERSION }));
    }
    let required = object.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in ["command", "schema_version"] {
            if !required.iter().any(|known| known == name) {
                required.push(json!(name));
            }
        }
    }
    NamedSchema { name: format!("{}.answer", A::COMMAND.replace(' ', "-")), schema }
}
