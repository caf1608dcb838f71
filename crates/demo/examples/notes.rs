//! The server of the tutorial `docs/tutorial/rust.md`, which shows this file.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ServiceExt, schemars, tool, tool_router};
use serde::Deserialize;
use std::sync::Mutex;

#[derive(Default)]
struct Notes {
    notes: Mutex<Vec<String>>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct NewNote {
    text: String,
}

#[tool_router(server_handler)]
impl Notes {
    #[tool(description = "Stores a note.")]
    fn add_note(&self, Parameters(note): Parameters<NewNote>) -> Result<String, String> {
        if note.text.is_empty() {
            return Err("the note is empty".to_owned());
        }
        let mut notes = self.notes.lock().expect("no tool panics");
        notes.push(note.text);
        Ok(format!("Note {} is stored.", notes.len()))
    }

    #[tool(description = "Lists all notes.", annotations(read_only_hint = true))]
    fn list_notes(&self) -> String {
        self.notes.lock().expect("no tool panics").join("\n")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Notes::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}
