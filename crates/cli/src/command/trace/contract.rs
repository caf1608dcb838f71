//! `mcproof trace export FILE --lock`.

use super::{open, told, unreadable};
use crate::command::lock::described;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::shown_contract::{self, NoContract};
use crate::{output, whole_file};
use mcproof_contract::{ChangedList, write};
use mcproof_protocol::methods;
use mcproof_record::Contract;
use mcproof_trace::CallStream;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) fn run(file: &Path, to: Option<&Path>, server: Option<&str>) -> Result<Exit, Failure> {
    let mut stream = CallStream::new(open(file)?);
    let lock = shown_contract::of_stream(&mut stream, server).map_err(|error| unreadable(file, &error))?;
    told(stream.ending()).into_iter().for_each(output::talk);
    let (mut lock, changed) = lock.map_err(|reason| {
        let hint = match reason {
            NoContract::TooLittle(_) => "record one with `mcproof tools TARGET --trace FILE`",
            NoContract::SeveralServers(_) | NoContract::OtherServers(..) => "name one of them with --server",
        };
        Failure::bad_input("no-contract", format!("the trace shows no contract: it {reason}")).hint(hint)
    })?;
    // The lock is of what was returned; what was not is told here.
    let mut failed = BTreeMap::new();
    for (key, contract) in &mut lock.contracts {
        let partial = contract.partial.get_or_insert_default();
        failed.insert(key.clone(), std::mem::take(&mut partial.failed));
    }
    let text = write(&lock);
    match to {
        Some(path) => whole_file::write(path, &text).map_err(|error| Failure::cannot_write(path, &error))?,
        None => output::plain(&text)?,
    }
    for (key, contract) in &lock.contracts {
        output::talk(&described(key, contract));
        let failed = failed.remove(key).unwrap_or_default();
        if !failed.is_empty() {
            output::talk(&format!("{key}: not in the lock, because the server did not return it: {}\n", failed.join(", ")));
        }
        let missing = not_listed(contract, &failed);
        if !missing.is_empty() {
            output::talk(&format!("{key}: not in the lock, because no client listed them: {}\n", missing.join(", ")));
        }
    }
    for ChangedList { client, list, is_outdated } in &changed {
        let what = if *list == "resourceTemplates" { "resource templates" } else { *list };
        output::talk(&match is_outdated {
            true => format!(
                "{client}: the server announced that its {what} changed, and nobody listed them again; the lock has the last list\n"
            ),
            false => format!("{client}: the {what} changed during the session; the lock has what was listed last\n"),
        });
    }
    Ok(Exit::Passed)
}

/// What the server declares, and nobody asked for. `failed`: the methods of lists that were requested in vain.
fn not_listed(contract: &Contract, failed: &[String]) -> Vec<&'static str> {
    let lists = [
        ("tools", methods::TOOLS_LIST, "tools", &contract.tools),
        ("prompts", methods::PROMPTS_LIST, "prompts", &contract.prompts),
        ("resources", methods::RESOURCES_LIST, "resources", &contract.resources),
        ("resources", methods::RESOURCES_TEMPLATES_LIST, "resource templates", &contract.resource_templates),
    ];
    let is_missing = |(capability, method, _, list): &(&str, &str, &str, &Option<Vec<serde_json::Value>>)| {
        let is_declared = contract.capabilities.get(*capability).is_some_and(serde_json::Value::is_object);
        list.is_none() && is_declared && !failed.iter().any(|failed| failed == method)
    };
    lists.into_iter().filter(is_missing).map(|(_, _, name, _)| name).collect()
}
