//! Passes bytes between a real client and a server unchanged, and lets an observer see them.
