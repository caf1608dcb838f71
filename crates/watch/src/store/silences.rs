//! Silences: of targets with some name or tag nobody is told for some time, because somebody said so, and why.

use super::read::TargetRow;
use super::{Store, StoreFailure, ids};
use crate::config::Window;
use crate::maintenance::{self, UNDER_MAINTENANCE};
use crate::moment::Moment;
use mcproof_analysis::did_you_mean;
use std::collections::{BTreeMap, BTreeSet};
use uuid::NoContext;

/// What somebody wants to hear nothing of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Patterns, of which the name of a target fits one; all if empty.
    pub names: Vec<String>,
    /// Patterns, of which one of its tags fits one; all if empty.
    pub tags: Vec<String>,
    pub author: String,
    pub reason: String,
    pub starts: Moment,
    pub ends: Moment,
}

#[derive(Clone, Debug)]
pub struct SilenceRow {
    pub id: String,
    pub silence: Silence,
}

/// Why a silence is refused, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSilence {
    pub problem: &'static str,
    pub remedy: &'static str,
}

/// What a silence names that no target has, which is mostly a slip of the keyboard. Each is a sentence, or the begin of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    pub problem: String,
    /// With its punctuation: more may follow.
    pub remedy: String,
}

/// Characters of a pattern, or of a reason.
const LONGEST: usize = 500;
const MOST_PATTERNS: usize = 50;
/// Names that are told where none of them is near.
const MOST_NAMED: usize = 10;

/// Of a silence that is about to be made.
pub(crate) fn new_id(now: Moment) -> String {
    ids::new(NoContext, now)
}

impl Silence {
    /// Why nobody should want this, if that is so.
    pub fn flaw(&self) -> Option<InvalidSilence> {
        let flaw = |problem, remedy| Some(InvalidSilence { problem, remedy });
        let patterns = || self.names.iter().chain(&self.tags);
        match () {
            () if patterns().next().is_none() => flaw("the silence matches no targets", "add a pattern for names or tags; `*` matches all"),
            () if patterns().any(|pattern| pattern.is_empty() || pattern.chars().count() > LONGEST)
                || patterns().count() > MOST_PATTERNS =>
            {
                flaw("a pattern is empty, or there are too many", "use up to 50 patterns of up to 500 characters")
            }
            () if self.reason.trim().is_empty() => flaw("the reason is missing", "add the reason for the silence"),
            () if self.reason.chars().count() > LONGEST => flaw("the reason is too long", "use up to 500 characters"),
            () if self.ends <= self.starts => flaw("the end is before the start", "use at least one minute"),
            () => None,
        }
    }

    /// A pattern that fits none of these targets, of which each has a name and tags; or that none of them fits patterns of both kinds. A
    /// pattern of stars only fits whatever comes.
    pub fn unmatched(&self, targets: &[(&str, &[String])]) -> Option<Unmatched> {
        let names: BTreeSet<&str> = targets.iter().map(|(name, _)| *name).collect();
        let tags: BTreeSet<&str> = targets.iter().flat_map(|(_, tags)| tags.iter().map(String::as_str)).collect();
        let fits_one = |pattern: &str, known: &BTreeSet<&str>| known.iter().any(|text| fits(pattern, text));
        for (kind, patterns, known) in [("name", &self.names, &names), ("tag", &self.tags, &tags)] {
            let Some(pattern) = patterns.iter().find(|pattern| !is_any(pattern) && !fits_one(pattern, known)) else { continue };
            let problem = format!("no target has a {kind} that matches `{pattern}`");
            let some: Vec<&str> = known.iter().copied().take(MOST_NAMED).collect();
            let remedy = match did_you_mean(pattern, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if some.is_empty() => format!("No target has a {kind} yet."),
                None => format!("Known: {}{}.", some.join(", "), if known.len() > some.len() { ", …" } else { "" }),
            };
            return Some(Unmatched { problem, remedy });
        }
        let is_one = |patterns: &[String], text: &str| patterns.iter().any(|pattern| fits(pattern, text));
        let is_meant = |(name, tags): &(&str, &[String])| is_one(&self.names, name) && tags.iter().any(|tag| is_one(&self.tags, tag));
        let needs_both = !self.names.is_empty() && !self.tags.is_empty() && !targets.is_empty();
        (needs_both && !targets.iter().any(is_meant)).then(|| Unmatched {
            problem: "no target has both a name and a tag that match".to_owned(),
            remedy: "Check which tags the targets have, or omit the patterns of one kind.".to_owned(),
        })
    }
}

/// Whether a pattern fits every text.
fn is_any(pattern: &str) -> bool {
    pattern.chars().all(|character| character == '*')
}

/// Whether a text fits a pattern: `*` stands for any characters, `?` for one. Takes time that grows with the product of their lengths.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut of) = (0, 0);
    // Where the last star stands, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[at] => {
                at += 1;
                of += 1;
            }
            _ => match &mut star {
                Some((place, reach)) => {
                    *reach += 1;
                    at = *reach;
                    of = *place + 1;
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|rest| *rest == '*')
}

impl Store {
    /// Returns its id.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn silence(&self, silence: &Silence, now: Moment) -> Result<String, StoreFailure> {
        let id = new_id(now);
        self.silence_as(&id, silence).await?;
        Ok(id)
    }

    /// Under an id that was made before: twice, it is one silence.
    pub(crate) async fn silence_as(&self, id: &str, silence: &Silence) -> Result<(), StoreFailure> {
        let list = |names: &[String]| serde_json::Value::from(names.to_vec()).to_string();
        let query = "INSERT INTO silence (id, names, tags, author, reason, starts, ends) VALUES ($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT DO NOTHING";
        sqlx::query(query)
            .bind(id)
            .bind(list(&silence.names))
            .bind(list(&silence.tags))
            .bind(silence.author.as_str())
            .bind(silence.reason.as_str())
            .bind(silence.starts.0)
            .bind(silence.ends.0)
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    /// Ends a silence now. False if there is none.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn end_silence(&self, id: &str, now: Moment) -> Result<bool, StoreFailure> {
        let query = "UPDATE silence SET ends = $1 WHERE id = $2 AND ends > $1";
        Ok(sqlx::query(query).bind(now.0).bind(id).execute(&self.writer).await?.rows_affected() > 0)
    }

    /// Those that are not over, the first to end first.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn silences(&self, now: Moment) -> Result<Vec<SilenceRow>, StoreFailure> {
        type Columns = (String, String, String, String, String, i64, i64);
        let query = "SELECT id, names, tags, author, reason, starts, ends FROM silence WHERE ends > $1 ORDER BY ends, id LIMIT 1000";
        let rows: Vec<Columns> = sqlx::query_as(query).bind(now.0).fetch_all(&self.pool).await?;
        let list = |json: &str| serde_json::from_str(json).unwrap_or_default();
        let row = |(id, names, tags, author, reason, starts, ends): Columns| {
            let (starts, ends) = (Moment(starts), Moment(ends));
            SilenceRow { id, silence: Silence { names: list(&names), tags: list(&tags), author, reason, starts, ends } }
        };
        Ok(rows.into_iter().map(row).collect())
    }
}

impl Store {
    /// Of which targets nobody is told now, and how long: `muted until …`, `silenced until …`, `under maintenance until …`, the one that
    /// lasts longest. `windows`: of the configuration.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn quiet(&self, windows: &[Window], now: Moment) -> Result<BTreeMap<String, String>, StoreFailure> {
        let planned = maintenance::announced(&mut *self.pool.acquire().await?, now).await?;
        let why = |target: &TargetRow| {
            let muted = (target.muted_until > now).then_some((target.muted_until, "muted"));
            let planned = planned.iter().filter(|planned| planned.means(&target.name, &target.tags));
            let window = maintenance::planned_until(windows, &target.name, &target.tags, now).map(|until| (until, UNDER_MAINTENANCE));
            let (until, how) = planned.map(|planned| (planned.ends, planned.word())).chain(muted).chain(window).max()?;
            Some((target.name.clone(), format!("{how} until {until}")))
        };
        Ok(self.targets().await?.iter().filter_map(why).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_all_of_a_text() {
        for (pattern, text, expected) in [
            ("shop", "shop", true),
            ("shop", "shops", false),
            ("shop*", "shop-eu", true),
            ("*-eu", "shop-eu", true),
            ("s*p-?u", "shop-eu", true),
            ("?hop", "hop", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybzcd", false),
            ("m?n*", "münchen", true),
            ("[a]", "a", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        // Nobody waits for a pattern.
        assert!(!fits(&"*a".repeat(250), &"a".repeat(100).replace("aa", "ab")));
    }

    #[test]
    fn a_pattern_that_no_target_fits_is_told_with_what_may_have_been_meant() {
        let paid = vec!["paid".to_owned()];
        let targets: [(&str, &[String]); 2] = [("shop", paid.as_slice()), ("desk", &[])];
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        for (names, tags, expected) in [
            (&["shop"][..], &[][..], None),
            (&["sh*"], &["p?id"], None),
            (&["*"], &[], None),
            (&["shpo"], &[], Some("no target has a name that matches `shpo`: did you mean `shop`?")),
            (&["shop", "shpo"], &[], Some("no target has a name that matches `shpo`: did you mean `shop`?")),
            (&["SHOP"], &["paid"], Some("no target has a name that matches `SHOP`: did you mean `shop`?")),
            (&["zebra-*"], &[], Some("no target has a name that matches `zebra-*`: Known: desk, shop.")),
            (&[], &["piad"], Some("no target has a tag that matches `piad`: did you mean `paid`?")),
            (
                &["desk"],
                &["paid"],
                Some(
                    "no target has both a name and a tag that match: Check which tags the targets have, or omit the patterns of one kind.",
                ),
            ),
        ] {
            let (author, reason) = (String::new(), String::new());
            let silence = Silence { names: words(names), tags: words(tags), author, reason, starts: Moment(1), ends: Moment(2) };
            let told = silence.unmatched(&targets).map(|unmatched| format!("{}: {}", unmatched.problem, unmatched.remedy));
            assert_eq!(told.as_deref(), expected, "{names:?} {tags:?}");
        }
    }

    #[test]
    fn a_silence_says_of_whom_and_why() {
        let good = Silence {
            names: vec!["shop*".into()],
            tags: Vec::new(),
            author: "ann".into(),
            reason: "moving".into(),
            starts: Moment(1),
            ends: Moment(2),
        };
        assert_eq!(good.flaw(), None);
        for (bad, problem) in [
            (Silence { names: Vec::new(), ..good.clone() }, "the silence matches no targets"),
            (Silence { reason: " ".into(), ..good.clone() }, "the reason is missing"),
            (Silence { ends: Moment(1), ..good.clone() }, "the end is before the start"),
            (Silence { tags: vec![String::new()], ..good.clone() }, "a pattern is empty, or there are too many"),
        ] {
            assert_eq!(bad.flaw().unwrap().problem, problem);
        }
    }
}
