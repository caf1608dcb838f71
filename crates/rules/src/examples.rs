//! The examples of the rules, from `examples/ID.txt`: a conversation that breaks the rule, and one that keeps it, each below its
//! heading, in the notation of [`mcproof_analysis::example`].

use super::Rule;

/// By id, sorted as files are.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

const BREAKS: &str = "# breaks\n";
const KEEPS: &str = "\n# keeps\n";

/// Two conversations, one frame a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examples {
    pub breaks: &'static str,
    pub keeps: &'static str,
}

impl Rule {
    /// # Panics
    /// If the file is missing or has other headings: the tests judge the examples of every rule.
    pub fn examples(&self) -> Examples {
        let text = FILES.iter().find(|(id, _)| *id == self.id).map(|(_, text)| *text);
        let parts = text.and_then(|text| text.strip_prefix(BREAKS)?.split_once(KEEPS));
        let (breaks, keeps) = parts.unwrap_or_else(|| panic!("`examples/{}.txt` is missing, or has other headings", self.id));
        Examples { breaks: breaks.trim_end(), keeps: keeps.trim_end() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    #[test]
    fn every_file_belongs_to_a_rule() {
        let strays: Vec<&str> = FILES.iter().map(|(id, _)| *id).filter(|id| find(id).is_none()).collect();
        assert_eq!(strays, Vec::<&str>::new());
    }
}
