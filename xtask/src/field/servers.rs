//! Reads `field/servers.json` and says of each server which version is installed and which SDK it is made with.

use serde_json::Value;
use std::fs;
use std::path::Path;

/// One server of the field.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) package: String,
    pub(super) from: String,
    pub(super) version: String,
    /// With its version, where it can be seen.
    pub(super) sdk: String,
    /// By transport.
    pub(super) starts: Vec<(String, Start)>,
}

/// How it is started over one transport.
pub(super) struct Start {
    pub(super) command: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
}

/// What servers in JavaScript are made with, the newest first.
const SDKS: [&str; 4] = ["fastmcp", "tmcp", "@modelcontextprotocol/server", "@modelcontextprotocol/sdk"];

pub(super) fn read(root: &Path) -> Result<Vec<Place>, String> {
    let file = root.join("field/servers.json");
    let target = root.join("target/field");
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let all: Value = serde_json::from_str(&text.replace("${field}", &target.display().to_string()))
        .map_err(|error| format!("{} is not valid JSON: {error}", file.display()))?;
    let all = all.as_object().ok_or("field/servers.json is not an object")?;
    all.iter().map(|(name, entry)| place(&target, name, entry)).collect()
}

fn place(target: &Path, name: &str, entry: &Value) -> Result<Place, String> {
    let text = |key: &str| entry[key].as_str().map(str::to_owned).ok_or_else(|| format!("{name} of field/servers.json has no `{key}`"));
    let (package, from, folder) = (text("package")?, text("from")?, target.join(text("folder")?));
    let (version, found) = match from.as_str() {
        "npm" => of_npm(&folder, &package),
        _ => of_pypi(&folder, &package),
    };
    let starts = ["stdio", "http", "sse"].into_iter().filter(|transport| entry[transport].is_object());
    Ok(Place {
        name: name.to_owned(),
        version,
        sdk: entry["sdk"].as_str().map_or(found, str::to_owned),
        starts: starts.map(|transport| (transport.to_owned(), start(&entry[transport]))).collect(),
        package,
        from,
    })
}

fn start(entry: &Value) -> Start {
    let pairs = |key: &str| {
        let all = entry[key].as_object().into_iter().flatten();
        all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    Start {
        command: entry["command"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        url: entry["url"].as_str().map(str::to_owned),
        env: pairs("env"),
        headers: pairs("headers"),
    }
}

/// The version of the package, and of the SDK that it finds: its own one, or the one beside it.
fn of_npm(folder: &Path, package: &str) -> (String, String) {
    let modules = folder.join("node_modules");
    let manifest = |path: &Path| -> Option<Value> { serde_json::from_str(&fs::read_to_string(path.join("package.json")).ok()?).ok() };
    let own = manifest(&modules.join(package)).unwrap_or_default();
    let version = own["version"].as_str().unwrap_or_default().to_owned();
    for sdk in SDKS {
        if own["dependencies"][sdk].is_string() {
            let nested = manifest(&modules.join(package).join("node_modules").join(sdk));
            let found = nested.or_else(|| manifest(&modules.join(sdk))).unwrap_or_default();
            return (version, format!("{sdk} {}", found["version"].as_str().unwrap_or_default()));
        }
        if let Some(range) = own["devDependencies"][sdk].as_str() {
            return (version, format!("{sdk} {range}, bundled"));
        }
    }
    (version, "not told".into())
}

fn of_pypi(folder: &Path, package: &str) -> (String, String) {
    let Some(site) = fs::read_dir(folder.join("lib")).ok().and_then(|mut all| all.next()?.ok()) else { return Default::default() };
    let installed: Vec<String> = fs::read_dir(site.path().join("site-packages"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let version = |name: &str| {
        let start = format!("{}-", name.to_lowercase().replace(['-', '.'], "_"));
        let mut found = installed.iter().map(|entry| entry.to_lowercase());
        found.find_map(|entry| Some(entry.strip_prefix(&start)?.strip_suffix(".dist-info")?.to_owned()))
    };
    let metadata = |name: &str, version: &str| {
        let folder = format!("{}-{version}.dist-info", name.to_lowercase().replace(['-', '.'], "_"));
        fs::read_to_string(site.path().join("site-packages").join(folder).join("METADATA")).unwrap_or_default().to_lowercase()
    };
    let own = version(package).unwrap_or_default();
    let needs = metadata(package, &own);
    let sdk = if package == "fastmcp" || needs.contains("requires-dist: fastmcp") { "fastmcp" } else { "mcp" };
    let sdk = version(sdk).map_or_else(|| "not told".to_owned(), |version| format!("{sdk} {version}"));
    (own, sdk)
}
