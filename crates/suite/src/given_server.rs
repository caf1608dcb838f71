//! A server of the command line in place of the suite's own: what it keeps of that.

use super::document::{Kind, Node};
use super::format::{Fault, Shape};
use super::plan::{Launch, Server};
use super::reader::Reader;
use super::server::{PORT, read_texts};
use super::test::TMP;
use mcproof_protocol::Transport;
use std::path::Path;

/// What the command of a server from outside has of the server that a suite declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// It is another server.
    #[default]
    Nothing,
    /// `env`, except what it sets itself.
    Variables,
    /// `cwd`, too.
    VariablesAndFolder,
}

/// The server from outside, whose command is started as the suite starts its own, which `own` describes. `None` if that has mistakes, which
/// are reported.
pub(crate) fn in_place_of(reader: &mut Reader<'_>, own: Option<&Node>, given: &Server) -> Option<Server> {
    let mut given = given.clone();
    if reader.environment.kept == Kept::Nothing {
        return Some(given);
    }
    for binding in &mut given.bindings {
        if let (Some(launch), Some(own)) = (&mut binding.launch, own.and_then(|own| started_over(own, binding.transport))) {
            keep(reader, own, binding.transport, launch).ok()?;
        }
    }
    Some(given)
}

/// How the suite starts its server for this transport, or else for another one.
fn started_over(own: &Node, transport: Transport) -> Option<&Node> {
    let all = [transport, Transport::Stdio, Transport::Http, Transport::Sse];
    all.iter().find_map(|transport| own.get(transport.as_str()).filter(|binding| binding.get("command").is_some()))
}

fn keep(reader: &mut Reader<'_>, own: &Node, transport: Transport, launch: &mut Launch) -> Result<(), Fault> {
    reader.open = vec![TMP.to_owned(), "port".to_owned()];
    let kept = variables(reader, own, launch).and_then(|variables| Ok((variables, folder(reader, own, launch)?)));
    reader.open.clear();
    let (mut variables, folder) = kept?;
    // Over stdio there is no port.
    variables.retain(|(_, value)| transport != Transport::Stdio || !value.contains(PORT));
    launch.env.splice(0..0, variables);
    if let Some(cwd) = folder {
        // What the command names is where it was typed.
        for word in &mut launch.command {
            let file = Path::new(word.as_str());
            if file.is_relative() && file.components().count() > 1 && launch.folder.join(file).exists() {
                *word = launch.folder.join(file).display().to_string();
            }
        }
        launch.folder = reader.folder.to_owned();
        launch.cwd = Some(cwd);
    }
    Ok(())
}

fn variables(reader: &mut Reader<'_>, own: &Node, launch: &Launch) -> Result<Vec<(String, String)>, Fault> {
    let Some(node) = own.get("env") else { return Ok(Vec::new()) };
    let mut node = node.clone();
    if let Kind::Map(entries) = &mut node.kind {
        // What is set anew need not be known.
        entries.retain(|entry| !launch.env.iter().any(|(name, _)| *name == entry.key.text));
    }
    let read = read_texts(reader, &node);
    let kept = reported(reader, &node, Shape::Texts, read)?;
    for (name, _) in &kept {
        reader.permit(node.span, |restriction| restriction.variable(name))?;
    }
    Ok(kept)
}

fn folder(reader: &mut Reader<'_>, own: &Node, launch: &Launch) -> Result<Option<String>, Fault> {
    let Some(node) = own.get("cwd").filter(|_| reader.environment.kept == Kept::VariablesAndFolder && launch.cwd.is_none()) else {
        return Ok(None);
    };
    let read = reader.template_text(node);
    let cwd = reported(reader, node, Shape::Text, read)?;
    let folder = reader.folder;
    reader.permit(node.span, |restriction| restriction.template_path(folder, &cwd))?;
    Ok(Some(cwd))
}

/// Reports a value of another shape.
fn reported<T>(reader: &mut Reader<'_>, node: &Node, shape: Shape, read: Result<T, Fault>) -> Result<T, Fault> {
    if matches!(read, Err(Fault::Shape)) {
        reader.wrong_type(&shape.expected(), node);
    }
    read
}
