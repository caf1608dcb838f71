//! What the monitor says of itself, a line each: for people, or as JSON for whoever collects logs. Knows no events.

use crate::{output, settings};
use mcproof_report::escape;
use mcproof_watch::moment::Moment;
use serde_json::{Map, Value};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Form {
    /// `what` is a stable word, `fields` are its details.
    pub(super) fn say(self, level: Level, what: &str, fields: &[(&str, &str)]) {
        output::talk(&self.line(Moment::from(settings::now()), level, what, fields));
    }

    fn line(self, now: Moment, level: Level, what: &str, fields: &[(&str, &str)]) -> String {
        match self {
            Self::Json => {
                let mut line = Map::new();
                for (name, value) in [("time", now.to_string().as_str()), ("level", level.word()), ("event", what)] {
                    line.insert(name.to_owned(), value.into());
                }
                line.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
                format!("{}\n", Value::Object(line))
            }
            Self::Text => {
                let mut line = format!("{now} {:7} {what}", level.word());
                for (name, value) in fields {
                    let spaced = if value.contains(' ') { format!("{:?}", escape(value)) } else { escape(value).into_owned() };
                    write!(line, " {name}={spaced}").expect("a String takes all text");
                }
                line.push('\n');
                line
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_for_people_or_for_programs() {
        let fields = [("channel", "chat"), ("why", "status 500: \u{1b}[31m\n")];
        let check = |form: Form, expected: &str| assert_eq!(form.line(Moment(0), Level::Warning, "not-sent", &fields), expected);
        check(Form::Text, "1970-01-01T00:00:00Z warning not-sent channel=chat why=\"status 500: \\\\u{1b}[31m\\\\n\"\n");
        check(
            Form::Json,
            "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warning\",\"event\":\"not-sent\",\"channel\":\"chat\",\"why\":\"status 500: \\u001b[31m\\n\"}\n",
        );
    }
}
