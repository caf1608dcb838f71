//! What readers of the status page are told: outages of public targets and times in which they flap, and notices. The same for the feed
//! and for subscribers.

use crate::moment::Moment;
use crate::store::notices::SHOWN;
use crate::store::read::PublicOutage;
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
    let outages = store.public_outages(now - SHOWN).await?;
    // What flapped and then stays down is told to be down, and not to be stable again.
    let stays_down = |flapping: &PublicOutage, end: Moment| {
        let is_down = |outage: &PublicOutage| outage.opened <= end && outage.resolved.is_none_or(|resolved| resolved > end);
        flapping.is_flapping && outages.iter().any(|outage| !outage.is_flapping && outage.target == flapping.target && is_down(outage))
    };
    for outage in &outages {
        let name = line(&outage.target);
        let targets = vec![outage.target.clone()];
        let (begins, ends) = if outage.is_flapping { ("unstable", "stable") } else { ("down", "up") };
        let down = format!("{name} is {begins}");
        if let Some(resolved) = outage.resolved.filter(|resolved| !stays_down(outage, *resolved)) {
            let text = format!("{name} is {ends} again after {}", crate::web::span(resolved.since(outage.opened)));
            let (id, kind) = (format!("{}-end", outage.id), NewsKind::OutageEnded);
            news.push(NewsItem { id, kind, title: text.clone(), at: resolved, text, targets: targets.clone() });
        }
        let text = if outage.is_flapping { format!("{down}: it fails and works again in turns") } else { down.clone() };
        let (id, kind) = (outage.id.clone(), NewsKind::OutageBegan);
        news.push(NewsItem { id, kind, title: down, at: outage.opened, text, targets });
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
