//! Tags that the file names wherever targets are chosen by them: one that no target has chooses nobody, which is mostly a slip of the
//! keyboard. No mistake: targets that are added through the API have tags as well.

use super::TargetSpec;
use crate::store::silences::fits;
use mcproof_analysis::did_you_mean;
use mcproof_record::Diagnostic;
use mcproof_suite::document::Node;
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Tags of the targets of the file.
pub(super) struct KnownTags(BTreeSet<String>);

impl KnownTags {
    pub(super) fn of(targets: &BTreeMap<String, TargetSpec>) -> Self {
        Self(targets.values().flat_map(|target| target.tags.iter().cloned()).collect())
    }

    /// Warns of a tag that no target has; `prefix` is what stands before tags there.
    pub(super) fn check(&self, reader: &mut Reader<'_>, tag: &str, prefix: &str, span: Span) {
        if !self.0.contains(tag) {
            self.warn(reader, format!("no target of this file has the tag `{tag}`"), tag, prefix, span);
        }
    }

    pub(super) fn check_all(&self, reader: &mut Reader<'_>, tags: &[(String, Node)]) {
        for (tag, node) in tags {
            self.check(reader, tag, "", node.span);
        }
    }

    /// The same for patterns with `*` and `?`.
    pub(super) fn check_patterns(&self, reader: &mut Reader<'_>, patterns: &[(String, Node)]) {
        for (pattern, node) in patterns.iter().filter(|(pattern, _)| !self.0.iter().any(|tag| fits(pattern, tag))) {
            self.warn(reader, format!("no target of this file has a tag that matches `{pattern}`"), pattern, "", node.span);
        }
    }

    fn warn(&self, reader: &mut Reader<'_>, message: String, tag: &str, prefix: &str, span: Span) {
        let hint = match did_you_mean(tag, self.0.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{prefix}{near}`?"),
            None => "only targets that are added through the API could have it".to_owned(),
        };
        reader.report(Diagnostic::warning("unknown-tag", message).hint(hint), span);
    }
}
