//! Runs plans against real servers and emits events.
