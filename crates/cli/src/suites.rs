//! The flags that name suites, their variables, and the server under test. Knows files, not how suites run.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::json_mistake::json_mistake;
use crate::malformed;
use crate::restriction::RestrictionArgs;
use crate::target::{parse_header, parse_url_template, parse_variable};
use crate::traffic::unknown_rules;
use crate::{output, settings};
use mcproof_client::{Destinations, ListedHost, Tls, given_secrets};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::{Diagnostic, Place, counted};
use mcproof_report::diagnostic;
use mcproof_suite::bounds::{MOST_BYTES, read_file};
use mcproof_suite::judge::has_long_integer;
use mcproof_suite::plan::{Binding, Inherited, Launch, Reach, Server, Suite};
use mcproof_suite::restriction::Restriction;
use mcproof_suite::run::Pick;
use mcproof_suite::{self as suite, Discovered, Environment, Kept, NOT_SEARCHED};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct SuiteArgs {
    /// Suite files, or directories to search for `*.mcproof.yaml` and `mcproof.yaml`, whether git ignores them or not; FILE::NAME or FILE:LINE selects one test
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Run only on these transports; separate with commas, or repeat
    #[arg(long, value_name = "stdio|http|sse", value_delimiter = ',', value_parser = parse_transport)]
    pub(crate) transport: Vec<Transport>,
    /// Set a suite variable: NAME=TEXT or NAME:=JSON; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// Use this profile of the suites, such as `staging`
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Test the server at this URL instead of the suite's; with a command, `${port}` is a free port
    #[arg(long, value_name = "URL", value_parser = parse_url_template, help_heading = "Target")]
    url: Option<String>,
    /// Send this HTTP header to --url; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", help_heading = "Target")]
    headers: Vec<String>,
    /// Set an environment variable for the command after `--`, in addition to `env` of the suite's server; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", help_heading = "Target")]
    env: Vec<String>,
    /// Start the command after `--` in this directory, not in `cwd` of the suite's server
    #[arg(long, value_name = "DIR", help_heading = "Target")]
    cwd: Option<PathBuf>,
    /// Command that starts the server to test instead of the suite's, with its `env` and `cwd`
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    command: Vec<String>,
    #[command(flatten)]
    restriction: RestrictionArgs,
}

/// Suites that are read, and the tests of them that were named.
pub(crate) struct Loaded {
    pub(crate) suites: Vec<Arc<Suite>>,
    pub(crate) picks: Picks,
}

/// By the names of the files as in the plan.
type Picks = BTreeMap<String, Vec<Pick>>;

struct Found {
    files: Vec<PathBuf>,
    picks: Picks,
    /// Suites in folders that are not searched.
    left_out: Vec<PathBuf>,
    unreadable: Vec<PathBuf>,
}

fn parse_transport(text: &str) -> Result<Transport, String> {
    match text.parse() {
        Ok(kind @ (Transport::Stdio | Transport::Http | Transport::Sse)) => Ok(kind),
        _ => Err("expected stdio, http or sse".into()),
    }
}

/// Suites that were read.
pub(crate) enum Read {
    Flawless(Loaded),
    InvalidSuites(InvalidSuites),
}

/// Suites of which none is run, because some have mistakes.
pub(crate) struct InvalidSuites {
    mistakes: Vec<Diagnostic>,
    /// How many have any.
    suites: usize,
    of: usize,
}

impl Read {
    /// The suites to run; errors are printed on stderr instead.
    pub(crate) fn or_tell(self) -> Option<Loaded> {
        let InvalidSuites { mistakes, suites, of } = match self {
            Self::Flawless(loaded) => return Some(loaded),
            Self::InvalidSuites(mistaken) => mistaken,
        };
        output::talk(&diagnostic::render_all(&mistakes, &settings::style()));
        let count = counted(mistakes.len(), "error");
        output::talk(&match suites == of {
            true => format!("\n{count}; no tests were run\n"),
            false => {
                format!("\n{count} in {suites} of {}; no tests were run. To run the other suites, name only them\n", counted(of, "suite"))
            }
        });
        None
    }
}

impl SuiteArgs {
    /// Reads all suites. Tells their mistakes on stderr; then there is nothing to give.
    ///
    /// `server` takes the place of their own ones; `tls` is what their own adds to.
    pub(crate) fn load(&self, server: Option<Server>, tls: &Tls) -> Result<Option<Loaded>, Failure> {
        self.read(server, tls).map(Read::or_tell)
    }

    /// The same, without telling mistakes.
    pub(crate) fn read(&self, server: Option<Server>, tls: &Tls) -> Result<Read, Failure> {
        let Found { files, picks, left_out, unreadable } = self.discover()?;
        for folder in unreadable {
            output::talk(&format!("warning: `{}` may not be read, and is not searched for suites\n", folder.display()));
        }
        if let Some(told) = told_of(&left_out) {
            output::talk(&format!("warning: {told}; name it to run it: folders that are not searched are {NOT_SEARCHED}\n"));
        }
        let environment = Environment {
            variables: settings::variables(),
            overrides: self.overrides()?,
            profile: self.profile.clone(),
            server,
            kept: if self.cwd.is_some() { Kept::Variables } else { Kept::VariablesAndFolder },
            tls: tls.clone(),
            restriction: self.restriction()?,
        };
        let of = files.len();
        let (mut suites, mut mistakes) = (Vec::new(), Vec::new());
        let mut unused: Vec<&String> = environment.overrides.keys().collect();
        for file in files {
            let suite = read(&file, &environment).and_then(|text| {
                unused.retain(|name| !text.contains(name.as_str()));
                let suite = suite::load(&file.display().to_string(), &text, folder_of(&file), &environment)?;
                let unknown = unknown_rules(&suite);
                if unknown.is_empty() { Ok(suite) } else { Err(unknown) }
            });
            match suite {
                Ok(suite) => suites.push(Arc::new(suite)),
                Err(found) => mistakes.extend(found),
            }
        }
        // Most likely it is misspelled, and the default is used.
        for name in unused.into_iter().filter(|_| mistakes.is_empty()) {
            output::talk(&format!("warning: no suite has the variable `{name}` of --var\n"));
        }
        Ok(match of - suites.len() {
            0 => Read::Flawless(Loaded { suites, picks }),
            mistaken => Read::InvalidSuites(InvalidSuites { mistakes, suites: mistaken, of }),
        })
    }

    /// What the suites may touch, if not everything.
    fn restriction(&self) -> Result<Option<Arc<Restriction>>, Failure> {
        let folders = self.typed_paths();
        let typed = self.url.as_ref().and_then(|url| ListedHost::of(&url::Url::parse(url).ok()?));
        self.restriction.restriction(&folders, typed)
    }

    /// With --restricted, no link in a checkout may lead a file that is written out of it.
    ///
    /// # Errors
    /// One does.
    pub(crate) fn permit_outputs<'a>(&self, outputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
        self.restriction.permit_outputs(&self.typed_paths(), outputs)
    }

    fn typed_paths(&self) -> Vec<PathBuf> {
        self.paths.iter().map(|path| name_of_test(path).0).filter(|path| path.exists()).collect()
    }

    /// Where connections may go.
    pub(crate) fn destinations(&self) -> Result<Destinations, Failure> {
        Ok(self.restriction()?.map_or(Destinations::Any, |restriction| Destinations::Listed(restriction.hosts.clone())))
    }

    /// The suite files, sorted, and the tests that were picked from them.
    fn discover(&self) -> Result<Found, Failure> {
        let named = self.paths.iter().map(|path| name_of_test(path));
        let (picked, whole): (Vec<_>, Vec<_>) = named.partition(|(_, pick)| pick.is_some());
        let find = |paths: Vec<PathBuf>| suite::discover(&paths).map_err(|diagnostic| Failure::new(Exit::BadInput, diagnostic));
        let Discovered { suites: whole, mut left_out, empty, unreadable } = find(whole.into_iter().map(|(path, _)| path).collect())?;
        let mut picks = Picks::new();
        // A file may be spelled in several ways: one of them names it.
        let mut known: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let mut files = BTreeSet::new();
        for path in whole {
            files.insert(known.entry(identity(&path)).or_insert(path).clone());
        }
        let whole = files.clone();
        for (path, pick) in picked {
            let file = known.entry(identity(&path)).or_insert(path).clone();
            // A file that is named as a whole, too, is meant as a whole.
            if !whole.contains(&file) {
                picks.entry(file.display().to_string()).or_default().extend(pick);
            }
            files.insert(file);
        }
        // Also beside others that have some: a suite that was renamed or moved would not be missed.
        if !empty.is_empty() || files.is_empty() {
            let paths: Vec<String> = empty.iter().map(|path| path.display().to_string()).collect();
            let message = format!("no suites found in {}", paths.join(", "));
            left_out.retain(|path| empty.iter().any(|folder| path.starts_with(folder)));
            let hint = match told_of(&left_out) {
                Some(told) => format!("{told}; name it: folders that are not searched are {NOT_SEARCHED}"),
                None => "suite files are named `*.mcproof.yaml` or `mcproof.yaml` (or `.yml`)".to_owned(),
            };
            let diagnostic = Diagnostic::error("no-suite", message).hint(hint);
            return Err(Failure::new(Exit::NothingSelected, diagnostic));
        }
        left_out.retain(|path| !known.contains_key(&identity(path)));
        Ok(Found { files: files.into_iter().collect(), picks, left_out, unreadable })
    }

    /// The suite files that were named, or found.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        self.discover().map(|found| found.files)
    }

    /// The folders that were named, and those of the suites that were; none of them within another.
    pub(crate) fn folders(&self) -> Result<Vec<PathBuf>, Failure> {
        let Found { files, .. } = self.discover()?;
        let named = self.paths.iter().filter(|path| path.is_dir()).cloned();
        let all: BTreeSet<PathBuf> = files.iter().map(|file| folder_of(file).to_owned()).chain(named).collect();
        let is_within = |folder: &Path| all.iter().any(|other| other != folder && folder.starts_with(other));
        Ok(all.iter().filter(|folder| !is_within(folder)).cloned().collect())
    }

    fn overrides(&self) -> Result<Map<String, Value>, Failure> {
        let wrong = |text: &str, why: &str| Failure::bad_input("bad-variable", format!("--var {}: {why}", malformed::shown(text)));
        let mut map = Map::new();
        for text in &self.variables {
            let (name, value) = text.split_once('=').ok_or_else(|| wrong(text, "expected NAME=TEXT or NAME:=JSON"))?;
            let (name, value) = match name.strip_suffix(':') {
                Some(_) if has_long_integer(value) => return Err(wrong(text, "an integer does not fit 64 bits")),
                Some(name) => {
                    let read = serde_json::from_str(value);
                    (name, read.map_err(|error| wrong(text, &format!("not valid JSON: {}", json_mistake(value, &error))))?)
                }
                None => (name, Value::from(value)),
            };
            map.insert(name.to_owned(), value);
        }
        Ok(map)
    }

    /// What flags give to the server of the command line. What a template fills in is known by the name of its place.
    pub(crate) fn given_secrets(&self) -> Vec<String> {
        let pairs = |texts: &[String], separator: char| -> Vec<(String, String)> {
            let literal = texts.iter().filter(|text| !text.contains("${"));
            let split = literal.filter_map(|text| text.split_once(separator));
            split.map(|(name, value)| (name.trim().to_owned(), value.trim_start().to_owned())).collect()
        };
        given_secrets(&pairs(&self.env, '='), &pairs(&self.headers, ':'))
    }

    /// The server of the command line, if it names one.
    pub(crate) fn server(&self) -> Result<Option<Server>, Failure> {
        let Self { url, headers, env, cwd, command, .. } = self;
        if url.is_none() && command.is_empty() {
            return match (headers.is_empty(), env.is_empty() && cwd.is_none()) {
                (false, _) => {
                    let failure = Failure::bad_input("bad-flag", "--header requires --url");
                    Err(failure.hint("for the server of a suite, write `headers:` beside its `url`"))
                }
                (_, false) => Err(Failure::bad_input("bad-flag", "-e and --cwd require a command after `--`")),
                _ => Ok(None),
            };
        }
        let text = url.iter().chain(command).cloned().collect::<Vec<_>>().join(" ");
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX).max(1);
        let place = Place { file: "command line".into(), line: 1, column: 1, length, text };
        let pair = |flag: &str, text: &str, read: fn(&str) -> Result<(String, String), String>| {
            read(text).map_err(|why| Failure::bad_input("bad-flag", format!("{flag} {}: {why}", malformed::shown(text))))
        };
        let launch = (!command.is_empty())
            .then(|| {
                let env = env.iter().map(|text| pair("-e", text, parse_variable)).collect::<Result<_, Failure>>()?;
                // A folder that was asked for is another thing than the one that happens to be here: hosts keep the former only.
                let asked = cwd.as_ref().and_then(|folder| folder.to_str()).filter(|folder| !folder.contains("${")).map(str::to_owned);
                let folder = if asked.is_some() { None } else { cwd.clone() }.unwrap_or_else(settings::current_folder);
                let inherited = self.restriction()?.map_or(Inherited::All, |restriction| restriction.inherited());
                Ok::<_, Failure>(Launch { command: command.clone(), env, folder, cwd: asked, inherited })
            })
            .transpose()?;
        let transport = match (url, self.transport.as_slice()) {
            (None, _) => Transport::Stdio,
            (Some(_), [Transport::Sse]) => Transport::Sse,
            (Some(_), _) => Transport::Http,
        };
        let headers = headers.iter().map(|text| pair("--header", text, parse_header)).collect::<Result<_, Failure>>()?;
        let binding =
            Binding { transport, place: place.clone(), launch, url: url.clone(), headers, port_from: None, reach: Reach::default() };
        let (era, protocol_version) = (EraChoice::Auto, None);
        Ok(Some(Server { name: "server".into(), place, bindings: vec![binding], era, protocol_version }))
    }
}

fn read(file: &Path, environment: &Environment) -> Result<String, Vec<Diagnostic>> {
    let named = file.display().to_string();
    let problem = |code: &str, message: String| vec![Diagnostic::error(code, message)];
    if let Some(restriction) = &environment.restriction {
        restriction.path(file, &named).map_err(|refused| vec![refused])?;
    }
    let bytes = read_file(file, MOST_BYTES).map_err(|reason| problem("cannot-read", format!("`{named}` {reason}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        vec![Diagnostic::error("not-text", format!("`{named}` is not UTF-8 text, from line {line}")).hint("save it as UTF-8")]
    })
}

/// What is said of suites that are left out.
fn told_of(left_out: &[PathBuf]) -> Option<String> {
    let first = left_out.first()?.display();
    Some(match left_out.len() - 1 {
        0 => format!("the suite `{first}` is left out"),
        others => format!("the suite `{first}` and {} are left out", counted(others, "other")),
    })
}

/// The same for all spellings of a path.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Parts FILE::NAME and FILE:LINE, unless there is a file that is really called so.
fn name_of_test(path: &Path) -> (PathBuf, Option<Pick>) {
    let whole = || (path.to_owned(), None);
    let Some(text) = path.to_str().filter(|_| !path.exists()) else { return whole() };
    if let Some((file, name)) = text.split_once("::").filter(|(file, _)| Path::new(file).is_file()) {
        return (file.into(), Some(Pick::Name(name.to_owned())));
    }
    let line = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    match line.filter(|(file, _)| Path::new(file).is_file()) {
        Some((file, line)) => (file.into(), Some(Pick::Line(line))),
        None => whole(),
    }
}
