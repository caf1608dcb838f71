//! Job objects: a process that is assigned to one takes all that it starts with it, whatever parent or session that has, and the system
//! ends all of them when the last handle to the job is closed.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle, RawHandle};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_BASIC_PROCESS_ID_LIST,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};

/// Dropping it ends all of its processes.
#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

/// What happens to the processes of a job when its last handle is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnClose {
    Kill,
    Spare,
}

impl Job {
    /// # Errors
    /// The system refuses one.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: without a name and attributes there is nothing that has to outlive the call.
        let handle = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just made and belongs to nothing else. It is not inherited by children.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        job.on_close(OnClose::Kill)?;
        Ok(job)
    }

    pub(super) fn on_close(&self, then: OnClose) -> io::Result<()> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = if then == OnClose::Kill { JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE } else { 0 };
        let size = u32::try_from(size_of_val(&limits)).expect("it is small");
        // SAFETY: the structure is the one of this class, and is only read.
        checked(unsafe {
            SetInformationJobObject(self.0.as_raw_handle(), JobObjectExtendedLimitInformation, (&raw const limits).cast(), size)
        })
    }

    pub(super) fn assign(&self, process: RawHandle) -> io::Result<()> {
        // SAFETY: both handles are open as long as their owners are borrowed.
        checked(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process) })
    }

    /// Ends all of its processes. They have this exit code.
    pub(super) fn terminate(&self, code: u32) -> io::Result<()> {
        // SAFETY: the handle is ours.
        checked(unsafe { TerminateJobObject(self.0.as_raw_handle(), code) })
    }

    /// The ids of its processes; not all of them if there are very many.
    pub(super) fn processes(&self) -> Vec<i32> {
        const MOST: usize = 1024;
        // The list has room for one id; those after it follow in memory.
        let mut room = vec![0_usize; size_of::<JOBOBJECT_BASIC_PROCESS_ID_LIST>() / size_of::<usize>() + MOST];
        let size = u32::try_from(room.len() * size_of::<usize>()).expect("it is small");
        // SAFETY: the system writes no more than the given size. That it has more to tell is an error that leaves the list filled.
        unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicProcessIdList,
                room.as_mut_ptr().cast(),
                size,
                std::ptr::null_mut(),
            );
        }
        // SAFETY: zeroed or filled, the memory is large enough and aligned for the head of the list.
        let head = unsafe { &*room.as_ptr().cast::<JOBOBJECT_BASIC_PROCESS_ID_LIST>() };
        let count = (head.NumberOfProcessIdsInList as usize).min(MOST);
        let first = std::mem::offset_of!(JOBOBJECT_BASIC_PROCESS_ID_LIST, ProcessIdList) / size_of::<usize>();
        room[first..first + count].iter().filter_map(|pid| i32::try_from(*pid).ok()).collect()
    }
}

fn checked(outcome: i32) -> io::Result<()> {
    if outcome == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
