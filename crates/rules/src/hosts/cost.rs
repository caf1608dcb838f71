//! What the list of tools costs in every conversation. An estimate: each model counts in its own way, and some do not tell how.

use crate::flaws::name_of;
use mcproof_analysis::ConversationView;
use mcproof_record::{Conversation, Opened};
use serde_json::{Value, json};

/// English and JSON of tool lists have between three and five characters a token with the usual tokenizers.
const CHARACTERS_PER_TOKEN: usize = 4;

/// What a model reads of a list of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub tools: usize,
    /// Of name, description and input schema, as JSON without spaces.
    pub characters: usize,
    /// The tool that costs most, and its characters.
    pub dearest: Option<(String, usize)>,
}

impl Cost {
    /// An estimate: characters divided by four.
    pub fn tokens(&self) -> usize {
        self.characters.div_ceil(CHARACTERS_PER_TOKEN)
    }

    /// The same of the dearest tool.
    pub fn dearest_tokens(&self) -> usize {
        self.dearest.as_ref().map_or(0, |(_, characters)| characters.div_ceil(CHARACTERS_PER_TOKEN))
    }
}

/// The cost of the longest list that the server gave in any conversation.
pub fn cost(takes: &[Conversation]) -> Option<Cost> {
    let opened = takes.iter().filter(|take| take.opened == Opened::Yes);
    opened.map(|take| of(&ConversationView::new(take))).filter(|cost| cost.tools > 0).max_by_key(|cost| cost.characters)
}

fn of(conversation: &ConversationView<'_>) -> Cost {
    let sizes: Vec<(String, usize)> =
        conversation.tools().into_iter().map(|(tool, _)| (name_of(tool).to_owned(), read_by_models(tool))).collect();
    Cost {
        tools: sizes.len(),
        characters: sizes.iter().map(|(_, size)| size).sum(),
        dearest: sizes.into_iter().max_by_key(|(_, size)| *size),
    }
}

/// Hosts hand on name, description and input schema; titles, annotations and output schemas are theirs.
fn read_by_models(tool: &Value) -> usize {
    let part = |key: &str| tool.get(key).cloned().unwrap_or_default();
    json!({ "name": part("name"), "description": part("description"), "input_schema": part("inputSchema") }).to_string().chars().count()
}
