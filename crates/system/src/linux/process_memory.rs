//! What a process holds in memory: what is not read from a file, such as its heap.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::{ControlFlow, Range};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Reads the memory of a process that it can write to and that no file is behind, at most `most` bytes, until `each` breaks. Pieces
/// of one area overlap by `overlap` bytes, so that whatever is no longer than that is in one of them. Nothing is kept.
///
/// # Errors
/// The system does not allow it, or the process has ended.
pub fn read_memory(pid: i32, most: usize, overlap: usize, mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut left = most;
    let mut piece = Vec::with_capacity(PIECE + overlap);
    for area in maps.lines().filter_map(area) {
        piece.clear();
        memory.seek(SeekFrom::Start(area.start))?;
        let mut size = usize::try_from(area.end - area.start).unwrap_or(usize::MAX).min(left);
        left -= size;
        while size > 0 {
            let kept = piece.len().saturating_sub(overlap);
            piece.drain(..kept);
            let wanted = size.min(PIECE) as u64;
            // An area may be gone by now, or hold pages that nobody may read.
            let Ok(read @ 1..) = (&mut memory).take(wanted).read_to_end(&mut piece) else { break };
            size -= read;
            if each(&piece).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Of a line of `maps`: addresses, rights, offset, device and inode stand before the name. Nothing if it is not wanted.
fn area(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_ascii_whitespace();
    let (addresses, rights) = (words.next()?, words.next()?);
    let name = words.nth(3).unwrap_or_default();
    let is_anonymous = name.is_empty() || name == "[heap]" || name.starts_with("[anon");
    let (start, end) = addresses.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    (rights.starts_with("rw") && is_anonymous).then_some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_writable_and_of_no_file_is_read() {
        let check = |line: &str, expected: Option<Range<u64>>| assert_eq!(area(line), expected, "{line}");
        check("55d0-55f0 rw-p 00000000 00:00 0                          [heap]", Some(0x55d0..0x55f0));
        check("7f00-7f10 rw-p 00000000 00:00 0 ", Some(0x7f00..0x7f10));
        check("7f00-7f10 rw-p 00000000 00:00 0  [anon:glibc: malloc]", Some(0x7f00..0x7f10));
        check("7f00-7f10 r--p 00000000 00:00 0 ", None);
        check("7f00-7f10 rw-p 00001000 08:01 42   /usr/lib/libc.so.6", None);
        check("7ffc-7ffd rw-p 00000000 00:00 0  [stack]", None);
        check("nonsense", None);
    }

    #[test]
    fn a_text_on_the_heap_is_found_and_reading_ends_there_or_at_the_bound() {
        // Made here, so that it stands in no constant; large enough that two pieces share it.
        let text: Vec<u8> = (0..3 * PIECE).map(|index| u8::try_from(index % 251).unwrap_or_default()).collect();
        let own = i32::try_from(std::process::id()).unwrap();
        let needle = &text[PIECE - 100..PIECE + 100];
        let mut pieces = 0;
        let mut is_found = false;
        read_memory(own, usize::MAX, needle.len(), |piece| {
            pieces += 1;
            is_found = piece.windows(needle.len()).any(|window| window == needle);
            if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert!(is_found && pieces > 0);
        let mut bytes = 0;
        read_memory(own, PIECE / 2, 0, |piece| {
            bytes += piece.len();
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(bytes <= PIECE / 2, "{bytes}");
        assert!(read_memory(i32::MAX, PIECE, 0, |_| ControlFlow::Break(())).is_err());
    }
}
