//! Messages in people's own words: small templates in the manner of Jinja. They see harmless texts only, reach nothing outside of
//! themselves, and are bounded in steps and in bytes. Knows neither files nor services.

use super::message::cut;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde_json::Value as Json;
use std::io::{self, Write};

/// Instructions of one template.
const FUEL: u64 = 20_000;
/// Bytes of what comes out of it, and of each value on the way.
const LONGEST: usize = 8 * 1024;
/// Bytes of a template.
const LONGEST_SOURCE: usize = 4 * 1024;
/// Whatever binds a name could double what it holds, again and again.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
const FILTERS: &str = "upper, lower, trim, truncate, join and length";

/// What templates may name, each with what it is. Texts that are not known are empty.
pub const VARIABLES: [(&str, &str); 17] = [
    ("headline", "the title that the message has without a template"),
    ("kind", "`trigger`, `update`, `reminder`, `escalation`, `acknowledge` or `resolve`"),
    ("severity", "`notify`, `page` or `security`"),
    ("class", "the class of the incident, such as `availability`"),
    ("incident", "the id of the incident"),
    ("target", "the target, or the subject of a storm or a group"),
    ("targets", "the targets of a storm or a group, as a list"),
    ("title", "the title of the incident"),
    ("message", "what the probe found"),
    ("layer", "what failed: `dns`, `connect`, `tls`, `handshake`, `list` …"),
    ("reason", "the code of the diagnostic"),
    ("hint", "what to do about it"),
    ("since", "when it began"),
    ("lasted", "for how long it has gone on, or went on, such as `3 min 5 s`"),
    ("acknowledged_by", "who acknowledged it"),
    ("url", "the page of the incident"),
    ("transcript_url", "the page of the transcript"),
];

/// Of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates {
    pub title: Option<String>,
    pub text: Option<String>,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    /// Of the template, from 1 on; where it is known.
    pub(crate) line: Option<usize>,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

/// Looks through a template without anything to tell: its grammar, its names, and whether it can be made of these examples.
pub(crate) fn check(source: &str, examples: &[Json]) -> Result<(), TemplateError> {
    let mistake = |line, what: String, hint: &str| Err(TemplateError { line, what, hint: Some(hint.to_owned()) });
    if source.len() > LONGEST_SOURCE {
        return mistake(None, format!("the template is too long: {} bytes", source.len()), "use up to 4096 bytes");
    }
    for (line, kind, inside) in tags(source) {
        if kind == '%' {
            let word = inside.trim_start_matches(['-', '+']).split_whitespace().next().unwrap_or_default();
            if !STATEMENTS.contains(&word) {
                return mistake(Some(line), format!("unknown template statement `{word}`"), "use `if` and `for`");
            }
        }
        let inside = inside.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']);
        if let Some(operator) = inside.chars().find(|character| "~*+".contains(*character)) {
            let what = format!("unknown template operator `{operator}`");
            return mistake(Some(line), what, "write values one after the other: `{{ target }} {{ class }}`");
        }
    }
    let environment = environment();
    let template = environment.template_from_named_str("template", source).map_err(told)?;
    let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    unknown.sort();
    if let Some(name) = unknown.into_iter().find(|name| !VARIABLES.iter().any(|(known, _)| known == name)) {
        let names = || VARIABLES.iter().map(|(known, _)| *known);
        let hint = match mcproof_analysis::did_you_mean(&name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("variables are {}", mcproof_analysis::listed(names())),
        };
        let line = source.lines().position(|line| line.contains(&name)).map(|line| line + 1);
        return mistake(line, format!("unknown variable `{name}`"), &hint);
    }
    for example in examples {
        render(source, example)?;
    }
    Ok(())
}

/// What comes out of a template.
pub(crate) fn render(source: &str, values: &Json) -> Result<String, TemplateError> {
    let environment = environment();
    let template = environment.template_from_named_str("template", source).map_err(told)?;
    let mut page = Page(Vec::new());
    template.render_captured_to(given(values), &mut page).map_err(told)?;
    Ok(String::from_utf8_lossy(&page.0).trim().to_owned())
}

/// Texts, and lists of texts.
fn given(values: &Json) -> Value {
    let value = |value: &Json| match value {
        Json::Array(items) => Value::from(items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()),
        other => Value::from(other.as_str().unwrap_or_default()),
    };
    Value::from_pairs(values.as_object().into_iter().flatten().map(|(name, one)| (name.clone(), value(one))))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.add_filter("upper", |text: String| text.to_uppercase());
    environment.add_filter("lower", |text: String| text.to_lowercase());
    environment.add_filter("trim", |text: String| text.trim().to_owned());
    environment.add_filter("truncate", |text: String, most: usize| cut(&text, most.max(1)));
    environment
        .add_filter("length", |value: Value| value.len().ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "this has no length")));
    environment.add_filter("join", join);
    environment
}

fn join(items: Vec<String>, separator: Option<String>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let size: usize = items.iter().map(|item| item.len() + separator.len()).sum();
    if size > LONGEST {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("the text is longer than {LONGEST} bytes")));
    }
    Ok(items.join(&separator))
}

/// What stands between `{{` and `}}`, and between `{%` and `%}`, with its line.
fn tags(source: &str) -> impl Iterator<Item = (usize, char, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let begin = at + source[at..].find('{')?;
            let kind = source[begin + 1..].chars().next()?;
            let end = match kind {
                '{' => "}}",
                '%' => "%}",
                _ => {
                    at = begin + 1;
                    continue;
                }
            };
            let rest = &source[begin + 2..];
            let length = rest.find(end).unwrap_or(rest.len());
            at = (begin + 2 + length + end.len()).min(source.len());
            return Some((source[..begin].matches('\n').count() + 1, kind, &rest[..length]));
        }
    })
}

fn told(error: Error) -> TemplateError {
    let what = match error.kind() {
        ErrorKind::OutOfFuel => "the template takes too many steps".to_owned(),
        ErrorKind::WriteFailure => format!("the text is longer than {LONGEST} bytes"),
        _ => error.detail().map_or_else(|| error.kind().to_string(), str::to_owned),
    };
    let hint = (error.kind() == ErrorKind::UnknownFilter).then(|| format!("filters are {FILTERS}"));
    TemplateError { line: error.line(), what, hint }
}

/// Takes no more than it may.
struct Page(Vec<u8>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values() -> Json {
        let mut values: serde_json::Map<String, Json> = VARIABLES.iter().map(|(name, _)| ((*name).to_owned(), Json::from("x"))).collect();
        values.insert("target".into(), "shop".into());
        values.insert("hint".into(), "".into());
        values.insert("targets".into(), json!(["a", "b"]));
        values.into()
    }

    #[test]
    fn a_template_says_what_it_is_given() {
        for (source, expected) in [
            ("{{ target|upper }} is down", "SHOP is down"),
            ("{% if hint %}{{ hint }}{% else %}none{% endif %}", "none"),
            ("{{ hint or 'nothing' }}", "nothing"),
            ("{% for one in targets %}{{ loop.index }}. {{ one }}\n{% endfor %}", "1. a\n2. b"),
            ("{{ targets|join(', ') }} ({{ targets|length }})", "a, b (2)"),
            ("{{ target|truncate(3) }}", "sh…"),
            ("{%- if kind == 'x' -%} yes {%- endif -%}", "yes"),
            ("{# * ~ #}a + b", "a + b"),
        ] {
            assert_eq!(check(source, &[values()]), Ok(()), "{source}");
            assert_eq!(render(source, &values()).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (source, line, what) in [
            ("{{ targt }}", Some(1), "unknown variable `targt`"),
            ("a\n{{ target", Some(2), "unexpected end of input, expected end of variable block"),
            ("a\n\n{% set x = 1 %}", Some(3), "unknown template statement `set`"),
            ("{% include 'x' %}", Some(1), "unknown template statement `include`"),
            ("{{ target ~ target }}", Some(1), "unknown template operator `~`"),
            ("{{ 'a' * 1000000000 }}", Some(1), "unknown template operator `*`"),
            ("{{ target|frob }}", Some(1), "filter frob is unknown"),
            ("{{ range(5) }}", Some(1), "unknown variable `range`"),
            ("{{ target.name.first }}", Some(1), "undefined value"),
        ] {
            let found = check(source, &[values()]).unwrap_err();
            assert_eq!((found.line, found.what.as_str()), (line, what), "{source}");
        }
        assert_eq!(check("{{ targt }}", &[]).unwrap_err().hint.unwrap(), "did you mean `target`?");
    }

    #[test]
    fn no_template_takes_more_than_its_share() {
        let loops =
            |count: usize, inside: &str| format!("{}{inside}{}", "{% for a in targets %}".repeat(count), "{% endfor %}".repeat(count));
        // Each loop makes the text five times as long.
        let growing =
            (0..30).fold("{% for x in [target] %}".to_owned(), |before, _| format!("{before}{{% for x in [[x, x, x]|join(x)] %}}"));
        for (bomb, what) in [
            ("a".repeat(LONGEST_SOURCE + 1), "the template is too long: 4097 bytes"),
            (loops(40, ""), "the template takes too many steps"),
            (loops(16, ""), "the template takes too many steps"),
            (loops(6, &"{{ targets }}".repeat(20)), "the text is longer than 8192 bytes"),
            (format!("{growing}{{{{ x }}}}{}", "{% endfor %}".repeat(31)), "the text is longer than 8192 bytes"),
        ] {
            assert_eq!(check(&bomb, &[values()]).unwrap_err().what, what, "{bomb:.60}");
        }
    }
}
