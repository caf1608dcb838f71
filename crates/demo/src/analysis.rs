//! The analysis trio: three servers of one tool each, whose answers feed each other.
//! Knows nothing of who passes them on.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{CallToolResult, Tool},
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    session::Session,
    tool::{Arguments, Declaration, Effect, ToolError, ToolResult, input, output, read, text},
};

/// The models that `run_analysis` has.
const MODELS: [&str; 3] = ["gradient_boost", "random_forest", "linear_regression"];

/// `fetch_dataset`: every id has a data set; whether anything is in it is for the analysis to find out.
pub(crate) fn fetch_dataset(name: &str, arguments: Arguments) -> ToolResult {
    let Dataset { dataset_id } = read(name, arguments)?;
    Ok(CallToolResult::structured(json!({
        "id": dataset_id,
        "records": 1000,
        "format": "parquet",
        "location": format!("s3://test-bucket/{dataset_id}"),
    })))
}

/// `run_analysis`, which takes `slow` long.
pub(crate) async fn run_analysis(
    name: &str,
    arguments: Arguments,
    slow: Duration,
    session: &Session,
    context: &RequestContext<RoleServer>,
) -> ToolResult {
    let Analysis { dataset_location: _, model } = read(name, arguments)?;
    if !MODELS.contains(&model.as_str()) {
        return Err(ToolError(format!("Model not found: {model}")));
    }
    tokio::select! {
        () = tokio::time::sleep(slow) => {}
        () = context.ct.cancelled() => return Err("Cancelled".into()),
        () = session.phase().closed() => return Err("Cancelled".into()),
    }
    Ok(CallToolResult::structured(json!({
        "model": model,
        "accuracy": 0.94,
        "predictions": 1000,
        "confidence_intervals": [0.92, 0.96],
    })))
}

/// `generate_report`.
pub(crate) fn generate_report(name: &str, arguments: Arguments) -> ToolResult {
    let Report { analysis_results: Results { accuracy } } = read(name, arguments)?;
    Ok(text(format!("Analysis complete: {:.2}% accuracy", accuracy * 100.0)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dataset {
    dataset_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Analysis {
    #[expect(dead_code, reason = "required and of the right type; the demo has no bucket to look into")]
    dataset_location: String,
    model: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    analysis_results: Results,
}

/// The part of an analysis that a report words. More may come with it.
#[derive(Deserialize)]
struct Results {
    accuracy: f64,
}

pub(crate) fn data_source_tool() -> Tool {
    Declaration {
        name: "fetch_dataset",
        title: "Fetch data set",
        description: "Finds a data set and tells where it is stored.",
        effect: Effect::Reads,
        input: input(
            json!({ "dataset_id": { "type": "string", "description": "The data set, such as customer-segments-2024" } }),
            &["dataset_id"],
        ),
        output: Some(output(
            json!({
                "id": { "type": "string" },
                "records": { "type": "integer", "minimum": 0 },
                "format": { "type": "string" },
                "location": { "type": "string" },
            }),
            &["id", "records", "format", "location"],
        )),
    }
    .into()
}

pub(crate) fn ml_analysis_tool() -> Tool {
    Declaration {
        name: "run_analysis",
        title: "Run analysis",
        description: "Runs a model (gradient_boost, random_forest or linear_regression) over a data set.",
        effect: Effect::Reads,
        input: input(
            json!({
                "dataset_location": { "type": "string", "description": "The location that fetch_dataset answered" },
                "model": { "type": "string", "description": "The model to run, such as gradient_boost" },
            }),
            &["dataset_location", "model"],
        ),
        output: Some(output(
            json!({
                "model": { "type": "string" },
                "accuracy": { "type": "number", "minimum": 0, "maximum": 1 },
                "predictions": { "type": "integer", "minimum": 0 },
                "confidence_intervals": {
                    "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2,
                },
            }),
            &["model", "accuracy", "predictions", "confidence_intervals"],
        )),
    }
    .into()
}

pub(crate) fn report_tool() -> Tool {
    Declaration {
        name: "generate_report",
        title: "Generate report",
        description: "Words the result of an analysis in one sentence.",
        effect: Effect::Reads,
        input: input(
            json!({
                "analysis_results": {
                    "type": "object",
                    "description": "What run_analysis answered",
                    "properties": { "accuracy": { "type": "number" } },
                    "required": ["accuracy"],
                },
            }),
            &["analysis_results"],
        ),
        output: None,
    }
    .into()
}
