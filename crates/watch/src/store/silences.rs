//! Silences: of targets with some name or tag nobody is told for some time, because somebody said so, and why.

use super::{Store, StoreFailure, ids};
use crate::moment::Moment;
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

/// Characters of a pattern, or of a reason.
const LONGEST: usize = 500;
const MOST_PATTERNS: usize = 50;

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
