//! Two sides of the page whose contracts are compared: servers, each perhaps in an era, a revision or over a transport of its own, recorded
//! sessions, and files. Knows no contracts; a [`crate::spec::Connector`] compares them.

use crate::connection::Status;
use crate::hub::{Hub, HubFailure};
use crate::spec::{ServerSpec, check_choices};
use mcproof_record::{Contract, ContractDiff, Transcript};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub enum ComparedSide {
    /// A server, which is visited as it is described.
    Server(Box<ServerSpec>),
    /// A session that was recorded earlier, by its name.
    Recorded(String, Transcript),
    /// A lock, a trace or a check, as the user names it.
    File(String),
}

/// What came of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub diff: ContractDiff,
    /// By kind of client.
    pub old: BTreeMap<String, Offered>,
    pub new: BTreeMap<String, Offered>,
}

/// A contract in short.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offered {
    server: Option<Value>,
    protocol_versions: Vec<String>,
    capabilities: Map<String, Value>,
    has_instructions: bool,
    /// How many there are, of what was listed.
    tools: Option<usize>,
    prompts: Option<usize>,
    resources: Option<usize>,
    templates: Option<usize>,
}

impl From<&Contract> for Offered {
    fn from(contract: &Contract) -> Self {
        let count = |items: &Option<Vec<Value>>| items.as_ref().map(Vec::len);
        Self {
            server: contract.server.clone(),
            protocol_versions: contract.protocol_versions.clone(),
            capabilities: contract.capabilities.clone(),
            has_instructions: contract.instructions.is_some(),
            tools: count(&contract.tools),
            prompts: count(&contract.prompts),
            resources: count(&contract.resources),
            templates: count(&contract.resource_templates),
        }
    }
}

/// The two sides, as the page names them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comparison {
    old: Side,
    new: Side,
}

/// A connection or a file. What else is said goes before what the connection says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Side {
    connection: Option<u64>,
    file: Option<String>,
    era: Option<String>,
    revision: Option<String>,
    transport: Option<String>,
}

/// Why nothing is compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComparisonFailure {
    #[error(transparent)]
    Hub(#[from] HubFailure),
    #[error("{0}")]
    Side(String),
    #[error("internal error in mcproof")]
    Internal,
}

impl Side {
    fn found(self, hub: &Hub) -> Result<ComparedSide, ComparisonFailure> {
        let Self { connection, file, era, revision, transport } = self;
        match (connection, file) {
            (Some(id), None) => {
                let mut state = hub.state();
                let connection = state.connection(id).ok_or(HubFailure::NoConnection)?;
                if matches!(connection.status, Status::Recorded) {
                    let frames = connection.sessions.last().ok_or(HubFailure::NoSession)?.frames.clone();
                    return Ok(ComparedSide::Recorded(connection.spec.title(), frames.transcript()));
                }
                let mut spec = connection.spec.clone();
                // A revision belongs to one era, whatever the connection says.
                spec.era = era.or_else(|| revision.as_ref().map(|_| "auto".to_owned())).or(spec.era);
                spec.revision = revision.or(spec.revision);
                spec.transport = transport.or(spec.transport);
                check_choices(&spec).map_err(ComparisonFailure::Side)?;
                Ok(ComparedSide::Server(Box::new(spec)))
            }
            (None, Some(file)) => Ok(ComparedSide::File(file)),
            _ => Err(ComparisonFailure::Side("a side is a connection or a file".to_owned())),
        }
    }
}

/// Compares, on a thread of its own. What is wrong with a side is a diagnostic, as in the doctor.
pub(crate) async fn compare(hub: Arc<Hub>, comparison: Comparison) -> Result<Value, ComparisonFailure> {
    let (old, new) = (comparison.old.found(&hub)?, comparison.new.found(&hub)?);
    let compared = tokio::task::spawn_blocking(move || hub.connector.compare(&old, &new)).await;
    Ok(match compared.map_err(|_| ComparisonFailure::Internal)? {
        Ok(compared) => json!({ "compared": compared }),
        Err(diagnostic) => json!({ "diagnostic": diagnostic }),
    })
}
