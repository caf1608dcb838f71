//! What a configuration comes to, for people and as JSON. Secrets are not in it.

use mcproof_analysis::oddities::Oddities;
use mcproof_record::duration::typed;
use mcproof_report::escape;
use mcproof_watch::config::{Config, Route, TargetKind, TargetSpec, When};
use mcproof_watch::push::PushSchedule;
use mcproof_watch::state::Thresholds;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

pub(super) fn text(config: &Config) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| writeln!(text, "{label:<12}{}", escape(value)).expect("a String takes all text");
    line("database", &database(config));
    line("region", &config.region);
    match (&config.listen, &config.public_url) {
        (None, None) => line("dashboard", "none"),
        (Some(listen), None) => line("dashboard", &format!("http://{listen}")),
        (None, Some(public)) => line("dashboard", &format!("served elsewhere, as {public}")),
        (Some(listen), Some(public)) => line("dashboard", &format!("http://{listen}, as {public}")),
    }
    for (number, target) in config.targets.values().enumerate() {
        line(if number == 0 { "targets" } else { "" }, &format!("{}: {}", target.name, told(target)));
    }
    for (number, (name, channel)) in config.channels.iter().enumerate() {
        line(if number == 0 { "channels" } else { "" }, &format!("{name}: {}", channel.service()));
    }
    for (number, route) in config.routes.iter().enumerate() {
        line(if number == 0 { "routes" } else { "" }, &way(route));
    }
    for (number, window) in config.maintenance.iter().enumerate() {
        line(if number == 0 { "maintenance" } else { "" }, &format!("{}: {}", window.name, when(&window.when)));
    }
    if let Some(heartbeat) = &config.heartbeat {
        line("heartbeat", &format!("every {}", typed(heartbeat.every)));
    }
    text
}

pub(super) fn json(config: &Config) -> String {
    let targets = config.targets.values().map(|target| {
        let (transport, place) = place(target);
        json!({
            "name": target.name,
            "transport": transport,
            "at": place,
            "every_ms": millis(target.every),
            "timeout_ms": millis(target.timeout),
            "regions": target.regions,
            "tags": target.tags,
            "depends_on": target.depends_on.names,
            "objective": target.objective,
            "keep": target.keep,
            "strict": target.oddities == Oddities::Fail,
            "public": target.public,
            "confirmations_ms": target.thresholds.confirmations.iter().copied().map(millis).collect::<Vec<u64>>(),
            "recoveries": target.thresholds.recoveries,
        })
    });
    let routes = config.routes.iter().map(|route| {
        json!({
            "severities": route.severities,
            "tags": route.tags,
            "hours": route.hours.iter().map(ToString::to_string).collect::<Vec<String>>(),
            "channels": route.channels,
            "remind_every_ms": route.remind_every.map(millis),
            "escalate": route.escalate.iter().map(|step| json!({ "after_ms": millis(step.after), "channels": step.channels })).collect::<Vec<Value>>(),
            "repeat": route.repeat,
            "group_by": route.group_by,
            "group_wait_ms": millis(route.group_wait),
        })
    });
    let document = json!({
        "database": database(config),
        "region": config.region,
        "listen": config.listen,
        "public_url": config.public_url,
        "targets": targets.collect::<Vec<Value>>(),
        "channels": config.channels.iter().map(|(name, channel)| json!({ "name": name, "service": channel.service() })).collect::<Vec<Value>>(),
        "routes": routes.collect::<Vec<Value>>(),
        "maintenance": config.maintenance.iter().map(|window| json!({ "name": window.name, "when": when(&window.when) })).collect::<Vec<Value>>(),
    });
    format!("{document:#}\n")
}

/// Without its password.
fn database(config: &Config) -> String {
    match url::Url::parse(&config.database) {
        Ok(mut url) if url.password().is_some() => {
            let _ = url.set_password(Some("***"));
            url.to_string()
        }
        _ => config.database.clone(),
    }
}

fn told(target: &TargetSpec) -> String {
    let (transport, place) = place(target);
    let mut parts =
        vec![format!("{transport} {place}"), format!("every {}", typed(target.every)), format!("timeout {}", typed(target.timeout))];
    if !target.regions.is_empty() {
        parts.push(format!("from {}", target.regions.join(" and ")));
    }
    if !target.tags.is_empty() {
        parts.push(format!("tagged {}", target.tags.join(", ")));
    }
    if !target.depends_on.names.is_empty() {
        parts.push(format!("depends on {}", target.depends_on.names.iter().cloned().collect::<Vec<_>>().join(", ")));
    }
    let usual = Thresholds::default();
    if target.thresholds.confirmations != usual.confirmations {
        let times: Vec<String> = target.thresholds.confirmations.iter().copied().map(typed).collect();
        parts.push(if times.is_empty() { "down at once".to_owned() } else { format!("down after {}", times.join(", ")) });
    }
    if target.thresholds.recoveries != usual.recoveries {
        let probes = if target.thresholds.recoveries == 1 { "probe" } else { "probes" };
        parts.push(format!("up after {} good {probes}", target.thresholds.recoveries));
    }
    parts.extend(target.objective.map(|objective| format!("objective {objective} %")));
    let flags = [
        (target.keep, "kept running"),
        (target.oddities == Oddities::Fail, "strict"),
        (target.public, "public"),
        (target.lock.is_some(), "locked"),
        (target.suite.is_some(), "with a suite"),
    ];
    parts.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned()));
    parts.join(", ")
}

/// How it is reached, and where. Arguments of a command, and what comes after the path of a URL, may be secrets.
fn place(target: &TargetSpec) -> (String, String) {
    match &target.kind {
        TargetKind::Monitor(url) => ("monitor".to_owned(), address(url)),
        TargetKind::Push { expectation, .. } => {
            let lasts = expectation.lasts.map(|lasts| format!(", takes up to {}", typed(lasts))).unwrap_or_default();
            let rhythm = match &expectation.rhythm {
                PushSchedule::Every(every) => format!("within {}", typed(*every)),
                PushSchedule::Cron { expression, zone } => format!("at {expression} ({zone})"),
            };
            ("push".to_owned(), format!("{rhythm}, grace {}{lasts}", typed(expectation.grace)))
        }
        TargetKind::Server(server) => {
            let Some(binding) = server.bindings.first() else { return (String::new(), String::new()) };
            let command = binding.launch.as_ref().map(|launch| match launch.command.as_slice() {
                [program] => program.clone(),
                [program, ..] => format!("{program} …"),
                [] => String::new(),
            });
            (binding.transport.to_string(), binding.url.as_deref().map(address).or(command).unwrap_or_default())
        }
    }
}

fn address(url: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else { return "…".to_owned() };
    let has_query = parsed.query().is_some();
    // None of them fails for a URL with a host.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    if has_query { format!("{parsed}?…") } else { parsed.to_string() }
}

fn way(route: &Route) -> String {
    let all = |words: Vec<String>, what: &str| if words.is_empty() { what.to_owned() } else { words.join(", ") };
    let severities = all(route.severities.iter().map(ToString::to_string).collect(), "everything");
    let tags = if route.tags.is_empty() { String::new() } else { format!(" of {}", route.tags.join(", ")) };
    let reminded = route.remind_every.map(|every| format!(", again every {}", typed(every))).unwrap_or_default();
    let steps: String =
        route.escalate.iter().map(|step| format!(", after {} {}", typed(step.after), step.channels.join(", then "))).collect();
    let again = if route.repeat > 0 { format!(", {} more", mcproof_record::counted(route.repeat, "time")) } else { String::new() };
    let grouped = if route.group_by.is_empty() { String::new() } else { format!(", grouped by {}", route.group_by.join(", ")) };
    let hours: Vec<String> = route.hours.iter().map(ToString::to_string).collect();
    let at = if hours.is_empty() { String::new() } else { format!(", {}", hours.join(" and ")) };
    format!("{severities}{tags}{at}: {}{grouped}{reminded}{steps}{again}", route.channels.join(", then "))
}

fn when(when: &When) -> String {
    match when {
        When::Once { from, until } => format!("{from} until {until}"),
        When::Cron { expression, zone, lasts } => format!("{expression} ({zone}), for {}", typed(*lasts)),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
