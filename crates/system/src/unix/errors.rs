//! What the numbers of errors mean.

use nix::errno::Errno;

/// This machine has run out of something.
pub fn is_exhausted(number: i32) -> bool {
    use Errno::{EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC};
    [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN, ENOSPC].contains(&Errno::from_raw(number))
}

/// This machine has no way to an address.
pub fn has_no_route(number: i32) -> bool {
    [Errno::ENETUNREACH, Errno::EHOSTUNREACH, Errno::ENETDOWN].contains(&Errno::from_raw(number))
}
