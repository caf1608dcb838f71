//! The types that the tables of shapes are made of: what a value may be, and in which revisions. Knows no
//! message and no value.

use mcproof_protocol::Revision::{self, V2024_11_05, V2026_07_28};

/// What a value may be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Any,
    Text,
    /// Text that is an absolute URI (RFC 3986).
    Uri,
    /// Text that is a date with a time (ISO 8601).
    Timestamp,
    /// Text that is base64 (RFC 4648, section 4). That it is text belongs to the shape; its alphabet has a separate rule.
    Base64,
    Flag,
    Number,
    /// A number from 0 to 1.
    Fraction,
    Integer,
    /// An integer of 0 or more.
    Count,
    IntegerOrNull,
    /// What identifies a request, or its progress: text or an integer.
    Id,
    Exactly(&'static str),
    OneOf(&'static [&'static str]),
    Object(&'static Shape),
    /// `_meta`: an object whose keys follow their own syntax.
    Meta(&'static Shape),
    Map(&'static Kind),
    List(&'static Kind),
    /// A list of at most this many items.
    ListOfAtMost(usize, &'static Kind),
    /// One of them, or a list of them.
    OneOrList(&'static Kind),
    Tagged(&'static Tags),
    Choice(&'static [Variant]),
}

/// An object of which some members are known. Others are always allowed.
pub(super) struct Shape {
    /// The noun for an object of this shape in messages, if it has a `name` to identify it.
    pub(super) noun: Option<&'static str>,
    pub(super) members: &'static [Member],
}

#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) presence: Presence,
    pub(super) span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

/// An object whose shape depends on one of its members.
pub(super) struct Tags {
    pub(super) by: &'static str,
    /// The tag of an object without one; `None` where there has to be one.
    pub(super) otherwise: Option<&'static str>,
    pub(super) variants: &'static [Member],
}

/// One of several shapes without a tag: the object has to fit any of them.
pub(super) struct Variant {
    /// The place (RFC 6901) of a member that only this variant has, so that flaws can be reported for this variant.
    pub(super) mark: &'static str,
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// The first and the last revision that define something, both included.
#[derive(Clone, Copy)]
pub(super) struct Span {
    first: Revision,
    last: Revision,
}

impl Span {
    const ALL: Self = Self { first: V2024_11_05, last: V2026_07_28 };

    pub(super) fn has(self, revision: Revision) -> bool {
        self.first <= revision && revision <= self.last
    }
}

/// A required member.
pub(super) const fn must(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, presence: Presence::Required, span: Span::ALL }
}

/// An optional member.
pub(super) const fn may(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, presence: Presence::Optional, span: Span::ALL }
}

pub(super) const fn shape(members: &'static [Member]) -> Shape {
    Shape { noun: None, members }
}

/// A shape whose objects have a `name`.
pub(super) const fn named(noun: &'static str, members: &'static [Member]) -> Shape {
    Shape { noun: Some(noun), members }
}

pub(super) const fn variant(mark: &'static str, kind: Kind) -> Variant {
    Variant { mark, kind, span: Span::ALL }
}

impl Member {
    pub(super) const fn since(self, first: Revision) -> Self {
        Self { span: Span { first, ..self.span }, ..self }
    }

    pub(super) const fn until(self, last: Revision) -> Self {
        Self { span: Span { last, ..self.span }, ..self }
    }

    pub(super) const fn only(self, revision: Revision) -> Self {
        Self { span: Span { first: revision, last: revision }, ..self }
    }
}

impl Variant {
    pub(super) const fn since(self, first: Revision) -> Self {
        Self { span: Span { first, last: self.span.last }, ..self }
    }
}
