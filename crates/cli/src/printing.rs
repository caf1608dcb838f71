//! Prints results and failures in the selected format: for people, as JSON, in an envelope, or to a file.
//! Knows flags and formats; `present` renders results for people.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::oddities::StrictArgs;
use crate::output;
use crate::present;
use crate::settings;
use crate::whole_file;
use base64::Engine as _;
use mcproof_analysis::oddities::Oddities;
use mcproof_report::{diagnostic, escape_json};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The flags that control how the result is printed.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the result as JSON [default if stdout is not a terminal]
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Output format: text, or json for {"result": …} on stdout and {"error": …} on stderr, on one line each
    #[arg(long, value_name = "FORMAT", hide_short_help = true)]
    format: Option<Format>,
    /// Print no warnings
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    strict: StrictArgs,
    /// Write the result to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Content of --output: json for the whole result, raw for its text or one decoded image, audio or blob
    #[arg(long, value_name = "FORMAT", requires = "output", hide_short_help = true)]
    output_format: Option<FileFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FileFormat {
    Json,
    Raw,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For a person at a terminal.
    Readable,
    /// The result as it is, with two spaces of indentation.
    Json,
    /// One line with `result` or `error`.
    Envelope,
}

pub(crate) struct Printer {
    pub(crate) form: Form,
    pub(crate) quiet: bool,
    pub(crate) oddities: Oddities,
    file: Option<(PathBuf, FileFormat)>,
}

impl OutputArgs {
    pub(crate) fn printer(&self) -> Printer {
        let form = match (self.json, self.format) {
            (false, Some(Format::Json)) => Form::Envelope,
            (false, _) if output::stdout_is_terminal() => Form::Readable,
            _ => Form::Json,
        };
        let file = self.output.clone().map(|path| (path, self.output_format.unwrap_or(FileFormat::Json)));
        Printer { form, quiet: self.quiet, oddities: self.strict.oddities(), file }
    }

    /// Where the result is written, unless to stdout.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.output.as_deref()
    }
}

impl Printer {
    /// Prints the result of a method.
    pub(crate) fn print(&self, method: &str, result: &Value) -> Result<(), Failure> {
        if let Some((path, format)) = &self.file {
            let bytes = match format {
                FileFormat::Json => format!("{result:#}\n").into_bytes(),
                FileFormat::Raw => raw(result)?,
            };
            return whole_file::write(path, bytes).map_err(|error| Failure::cannot_write(path, &error));
        }
        match self.form {
            Form::Readable => output::show(&present::result(method, result, &settings::style())),
            Form::Json => output::json(&format!("{result:#}\n")),
            Form::Envelope => output::json(&format!("{}\n", json!({ "result": result }))),
        }
    }

    /// Tells of a failure in the form that fits; the exit code is all that is left of it.
    pub(crate) fn settle(&self, outcome: Result<Exit, Failure>) -> Result<Exit, Failure> {
        match outcome {
            Err(failure) if self.form == Form::Envelope => {
                let error = match failure.wire {
                    Some(error) => *error,
                    None => json!({ "code": failure.diagnostic.code, "message": failure.diagnostic.message }),
                };
                output::talk(&format!("{}\n", escape_json(&json!({ "error": error }).to_string())));
                Ok(failure.exit)
            }
            other => other,
        }
    }
}

/// Tells a person of a failure.
pub(crate) fn report(failure: &Failure) {
    output::talk(&diagnostic::render(&failure.diagnostic, &settings::style()));
}

/// The text of a result, or the bytes of its one binary part.
fn raw(result: &Value) -> Result<Vec<u8>, Failure> {
    let failed = |why: &str| {
        Failure::bad_input("no-raw-form", format!("the result {why}, so it cannot be written as raw")).hint("omit --output-format raw")
    };
    let parts = ["content", "contents"].into_iter().find_map(|key| result.get(key)?.as_array()).map_or(&[][..], Vec::as_slice);
    let parts: Vec<&Value> = parts.iter().map(|part| part.get("resource").unwrap_or(part)).collect();
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    if !texts.is_empty() {
        return Ok(texts.join("\n").into_bytes());
    }
    let binaries: Vec<&str> = parts.iter().filter_map(|part| part.get("data").or_else(|| part.get("blob"))?.as_str()).collect();
    match binaries.as_slice() {
        [] => Err(failed("has neither text nor binary content")),
        [binary] => {
            base64::engine::general_purpose::STANDARD.decode(binary).map_err(|_| failed("has binary content that is not valid base64"))
        }
        several => Err(failed(&format!("has {} binary parts and no text", several.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_is_the_text_or_the_one_binary() {
        let check = |result: Value, expected: Result<&str, &str>| {
            let found = raw(&result).map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|failure| failure.diagnostic.message);
            assert_eq!(found, expected.map(str::to_owned).map_err(|why| format!("the result {why}, so it cannot be written as raw")));
        };
        check(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), Ok("a\nb"));
        check(json!({"contents": [{"uri": "x", "blob": "aGk="}]}), Ok("hi"));
        check(json!({"content": [{"type": "image", "data": "aGk="}]}), Ok("hi"));
        check(json!({"content": [{"type": "resource", "resource": {"uri": "x", "text": "t"}}]}), Ok("t"));
        check(json!({"content": []}), Err("has neither text nor binary content"));
        check(json!({"contents": [{"blob": "?"}]}), Err("has binary content that is not valid base64"));
        check(json!({"contents": [{"blob": ""}, {"blob": ""}]}), Err("has 2 binary parts and no text"));
    }
}
