//! What the guardian is told, as bytes on its pipe. Both ends are the same program, so that the bytes need no version.
//! Neither way allocates.

pub(super) const SIZE: usize = 16;

/// Processes are named by the pipe on their stdin until their id is known. Each leads a group of that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// One is about to be started.
    Expected { stdin: u64 },
    /// It was started.
    Arrived { stdin: u64, group: i32 },
    /// It could not be started.
    Missing { stdin: u64 },
    /// The group is no more; its id may be somebody else's from now on.
    Ended { group: i32 },
    /// This process has ended all of its servers, and needs no guardian any more.
    Finished,
}

impl Record {
    pub(super) fn to_bytes(self) -> [u8; SIZE] {
        let (kind, group, stdin) = match self {
            Self::Expected { stdin } => (EXPECTED, 0, stdin),
            Self::Arrived { stdin, group } => (ARRIVED, group, stdin),
            Self::Missing { stdin } => (MISSING, 0, stdin),
            Self::Ended { group } => (ENDED, group, 0),
            Self::Finished => (FINISHED, 0, 0),
        };
        let mut bytes = [0; SIZE];
        bytes[..4].copy_from_slice(&u32::to_ne_bytes(kind));
        bytes[4..8].copy_from_slice(&i32::to_ne_bytes(group));
        bytes[8..].copy_from_slice(&u64::to_ne_bytes(stdin));
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; SIZE]) -> Self {
        let [k0, k1, k2, k3, g0, g1, g2, g3, stdin @ ..] = bytes;
        let (group, stdin) = (i32::from_ne_bytes([g0, g1, g2, g3]), u64::from_ne_bytes(stdin));
        match u32::from_ne_bytes([k0, k1, k2, k3]) {
            EXPECTED => Self::Expected { stdin },
            ARRIVED => Self::Arrived { stdin, group },
            MISSING => Self::Missing { stdin },
            FINISHED => Self::Finished,
            _ => Self::Ended { group },
        }
    }
}

const EXPECTED: u32 = 0;
const ARRIVED: u32 = 1;
const MISSING: u32 = 2;
const ENDED: u32 = 3;
const FINISHED: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let stdin = u64::MAX - 1;
        let records = [
            Record::Expected { stdin },
            Record::Arrived { stdin, group: 7 },
            Record::Missing { stdin },
            Record::Ended { group: 7 },
            Record::Finished,
        ];
        assert_eq!(records.map(|record| Record::from_bytes(record.to_bytes())), records);
    }
}
