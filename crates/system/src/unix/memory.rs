//! How this process gives memory back.

/// Pieces of memory from this size on go back to the system as soon as they are freed. Ordinary messages are smaller, and cost no call
/// of the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 1 << 20;

/// From here on large pieces of memory go back to the system as soon as they are freed. By itself the GNU allocator takes more and more of
/// them for ordinary ones, and keeps the holes that are left of them.
pub fn give_back_large_pieces() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number of the allocator, which checks it.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE);
    }
}
