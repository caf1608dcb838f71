//! The contract of a probed server: its hash, and whether it matches a lock. Knows locks, not their files.

use super::ProbePlan;
use crate::{CaptureFailure, Extent, Profile, Side, ToolsSeen, Visitor, complete, diff};
use mcproof_analysis::diagnosis::{self, Scene};
use mcproof_client::{Answers, ConnectOptions, Session, Target};
use mcproof_protocol::{Era, EraChoice, Transport};
use mcproof_record::{
    ChangeLevel, Contract, ContractChange, ContractLock, Diagnostic, ProbeReport, ProbeVerdict, ProbedContract, Severity,
};
use std::collections::BTreeMap;

/// The contract in a lock for one client profile.
#[derive(Clone, Debug)]
pub struct Promise {
    /// The lock, as a person would name it.
    lock: String,
    key: String,
    visitor: Visitor,
    contract: Contract,
}

impl Promise {
    /// Of all that a lock holds, what can be seen in one conversation over this transport and in this era: rather of the modern
    /// era, of the fullest client, and without an identity.
    pub fn choose(name: &str, lock: &ContractLock, target: &Target, era: EraChoice) -> Option<Self> {
        let is_sse = matches!(target, Target::Http { kind: Some(Transport::Sse), .. });
        let is_reached = |visitor: &Visitor| match visitor.era {
            Era::Modern => era != EraChoice::Legacy && !is_sse,
            Era::Legacy => era != EraChoice::Modern,
        };
        let known = lock.contracts.iter().filter_map(|(key, contract)| Some((Visitor::of_key(key).ok()?, key, contract)));
        let ((visitor, _), key, contract) = known
            .filter(|((visitor, _), ..)| is_reached(visitor))
            .min_by_key(|((visitor, identity), ..)| (identity.is_some(), visitor.era == Era::Legacy, visitor.profile))?;
        Some(Self { lock: name.to_owned(), key: key.clone(), visitor, contract: contract.clone() })
    }

    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    pub(super) fn options(&self, options: &ConnectOptions) -> ConnectOptions {
        self.visitor.options(options)
    }

    /// Looks at everything that the server offers, and blames what is not as promised.
    pub(super) async fn compare(
        &self,
        session: &Session,
        plan: &ProbePlan,
        seen: Option<ToolsSeen>,
        report: &mut ProbeReport,
    ) -> Option<Contract> {
        // A legacy server tells its revisions one handshake at a time; one handshake is all that there is.
        let versions = match self.visitor.era {
            Era::Legacy => self.contract.protocol_versions.as_slice(),
            Era::Modern => &[],
        };
        let captured = whole(session, plan, versions, seen, report).await?;
        let hashes = captured.hashes.clone();
        let (old, new) =
            (BTreeMap::from([(self.key.clone(), self.contract.clone())]), BTreeMap::from([(self.key.clone(), captured.clone())]));
        let old = Side { name: &self.lock, contracts: &old, extent: Extent::Whole };
        let mut found = diff(old, Side { name: &plan.name, contracts: &new, extent: Extent::Whole });
        // A new version of the server is no change of what it promises.
        found.changes.retain(|change| !(change.subject == "the server" && change.pointer == "/version"));
        if let Some(first) = found.changes.first() {
            let severity = if found.reaches(ChangeLevel::Breaking) { Severity::Error } else { Severity::Warning };
            let diagnostic = Diagnostic { severity, ..told(&self.lock, first, found.changes.len()) };
            report.blame(diagnostic, ProbeVerdict::Unhealthy);
        }
        report.contract = Some(ProbedContract {
            tools: hashes.tools,
            locked: Some(self.contract.hashes.tools.clone()),
            key: self.key.clone(),
            changes: found.changes,
        });
        Some(captured)
    }
}

/// Everything that the server offers; what cannot be had is blamed.
pub(super) async fn whole(
    session: &Session,
    plan: &ProbePlan,
    versions: &[String],
    seen: Option<ToolsSeen>,
    report: &mut ProbeReport,
) -> Option<Contract> {
    let diagnostic = match complete(session, versions, plan.timeout, seen).await {
        Ok(captured) => return Some(captured.contract),
        Err(CaptureFailure::List { method, failure }) => {
            let scene = Scene::of(session, session.tap(), plan.audience).await;
            diagnosis::of_list_failure(&failure, method, &scene)
        }
        Err(failure) => Diagnostic::error("lists-change", failure.to_string()),
    };
    report.blame(diagnostic, ProbeVerdict::Unhealthy);
    None
}

fn told(lock: &str, first: &ContractChange, count: usize) -> Diagnostic {
    let level = match first.level {
        ChangeLevel::Breaking => "breaking",
        ChangeLevel::Compatible => "compatible",
        ChangeLevel::Cosmetic => "cosmetic",
    };
    let more = match count {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let message = format!("the contract differs from {lock}: {}: {} ({level}){more}", first.subject, first.reason);
    Diagnostic::error("contract-changed", message)
        .hint("`mcproof lock --verify` shows all changes; if they are intended, run `mcproof lock` again")
}

/// What is known without a lock.
pub(super) fn found(session: &Session, plan: &ProbePlan, tools: String) -> ProbedContract {
    let declares = !plan.options.client.capabilities.is_empty() || plan.options.answers != Answers::default();
    let profile = if declares { Profile::Own } else { Profile::Minimal };
    let visitor = Visitor { era: session.handshake().era, profile };
    ProbedContract { tools, locked: None, key: visitor.key(None), changes: Vec::new() }
}
