//! What readers of the status page are told: outages of public targets, and notices. The same for the feed and for subscribers.

use crate::moment::Moment;
use crate::store::notices::SHOWN;
use crate::store::{Store, StoreFailure};
use serde::{Deserialize, Serialize};

/// One piece of news; all texts are without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewsItem {
    pub(crate) id: String,
    pub(crate) kind: NewsKind,
    pub(crate) title: String,
    pub(crate) at: Moment,
    pub(crate) text: String,
    /// The names of the affected targets; empty if that is not said.
    pub(crate) targets: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NewsKind {
    OutageBegan,
    OutageEnded,
    Notice,
}

impl NewsItem {
    /// Whether it is for somebody who wants to know of these targets; of all if there are none.
    pub(crate) fn concerns(&self, targets: &[String]) -> bool {
        targets.is_empty() || self.targets.is_empty() || self.targets.iter().any(|target| targets.contains(target))
    }
}

/// All news, the latest first.
pub(crate) async fn news(store: &Store, now: Moment) -> Result<Vec<NewsItem>, StoreFailure> {
    let mut news = Vec::new();
    for outage in store.public_outages(now - SHOWN).await? {
        let name = line(&outage.target);
        let targets = vec![outage.target];
        let down = format!("{name} is down");
        if let Some(resolved) = outage.resolved {
            let text = format!("{name} is up again after {}", crate::web::span(resolved.since(outage.opened)));
            let (id, kind) = (format!("{}-end", outage.id), NewsKind::OutageEnded);
            news.push(NewsItem { id, kind, title: text.clone(), at: resolved, text, targets: targets.clone() });
        }
        news.push(NewsItem { id: outage.id, kind: NewsKind::OutageBegan, title: down.clone(), at: outage.opened, text: down, targets });
    }
    for notice in store.notices(now).await? {
        for (number, update) in notice.updates.iter().enumerate() {
            let lines: Vec<String> = update.text.lines().map(line).collect();
            news.push(NewsItem {
                id: format!("{}-{number}", notice.id),
                kind: NewsKind::Notice,
                title: format!("{} ({})", line(&notice.title), update.progress.word()),
                at: update.at,
                text: lines.join("\n"),
                targets: notice.targets.clone(),
            });
        }
    }
    news.sort_by_key(|item| std::cmp::Reverse(item.at));
    Ok(news)
}

fn line(text: &str) -> String {
    mcproof_report::escape_line(text, text.len())
}
