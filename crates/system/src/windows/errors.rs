//! What the numbers of errors mean.

use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY,
    ERROR_TOO_MANY_OPEN_FILES,
};

/// Of Winsock: too many sockets, no buffer space.
const SOCKETS: [u32; 2] = [10_024, 10_055];
/// Of Winsock: network down, network unreachable, host unreachable.
const NO_ROUTE: [u32; 3] = [10_050, 10_051, 10_065];

/// This machine has run out of something.
pub fn is_exhausted(number: i32) -> bool {
    let known = [
        ERROR_COMMITMENT_LIMIT,
        ERROR_DISK_FULL,
        ERROR_HANDLE_DISK_FULL,
        ERROR_NO_SYSTEM_RESOURCES,
        ERROR_NOT_ENOUGH_MEMORY,
        ERROR_OUTOFMEMORY,
        ERROR_TOO_MANY_OPEN_FILES,
    ];
    let number = number.cast_unsigned();
    known.contains(&number) || SOCKETS.contains(&number)
}

/// This machine has no way to an address.
pub fn has_no_route(number: i32) -> bool {
    NO_ROUTE.contains(&number.cast_unsigned())
}
