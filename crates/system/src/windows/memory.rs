//! How this process gives memory back.

/// The allocator of this system does so by itself.
pub fn give_back_large_pieces() {}
