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

/// All of them, in the order of their names.
pub fn all() -> Vec<NamedSchema> {
    let mut all = vec![
        request::<crate::capture::CaptureRequest>("capture"),
        answer::<crate::capture::CaptureAnswer>(),
        request::<crate::explain::ExplainRequest>("explain"),
        answer::<crate::explain::ExplainAnswer>(),
        request::<crate::probe::ProbeRequest>("probe"),
        answer::<crate::probe::ProbeAnswer>(),
        answer::<crate::rules::RulesAnswer>(),
        request::<crate::watch::WatchRequest>("watch"),
        line::<crate::watch::WatchLine>("watch"),
    ];
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

/// A line of a stream is no document of its own: `command` and `schema_version` are not added.
fn line<L: JsonSchema>(command: &str) -> NamedSchema {
    let name = format!("{}.line", command.replace(' ', "-"));
    NamedSchema { name, schema: generator().into_root_schema_for::<L>() }
}

/// An answer has `command` and `schema_version` besides its own fields.
fn answer<A: Answer + JsonSchema>() -> NamedSchema {
    let mut schema = generator().into_root_schema_for::<A>();
    let own = json!({
        "command": { "const": A::COMMAND },
        "schema_version": { "const": VERSION },
    });
    let object = schema.ensure_object();
    object.insert("x-takeup".to_owned(), json!({ "every answer has": own }));
    NamedSchema { name: format!("{}.answer", A::COMMAND.replace(' ', "-")), schema }
}
