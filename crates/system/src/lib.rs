//! What differs between operating systems, behind one interface: processes that end as a whole, signals, pipes, files of one user, where
//! things are. Knows no servers and no messages.
//!
//! The folders `unix` and `windows` have the same modules with the same names in them, as have `linux` (which tells everything about its
//! processes in `/proc`) and `elsewhere` (what other systems tell). No other crate asks which system it runs on.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod folders;
#[cfg(target_os = "linux")]
mod linux;
mod process_tree;
mod signal;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(target_os = "linux"))]
use elsewhere as tables;
#[cfg(target_os = "linux")]
use linux as tables;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use process_tree::{OtherListener, Program, ResourceUsage};
pub use signal::{EndRequest, ProcessSignal, UnknownSignal};
pub use system::guardian::{Group, Guardian, Spawned};
pub use tables::family::{Descendant, descendants};
pub use tables::listening::{listening_addresses, listens_at, other_listener};
pub use tables::process_memory::read_memory;
pub use tables::programs::programs;
pub use tables::resource_usage::{COUNTS_RESOURCES, processor_wait, resource_usage};

/// Commands: where programs are, and how they are started.
pub mod commands {
    pub use crate::system::commands::{find, interruptible, is_executable, own_group, resolve};
}

/// Reasons of the system, by their numbers.
pub mod errors {
    pub use crate::system::errors::{has_no_route, is_exhausted};
}

/// Files and folders of one user, or of everybody.
pub mod files {
    pub use crate::folders::{make_folder_of, without_dots};
    pub use crate::system::files::{
        identity, is_open_to_others, link, make_public, private_file, private_folder, public_permissions, shared_permissions,
    };
}

/// What the machine and the surroundings of this process are called, and where things are on it.
pub mod machine {
    pub use crate::system::machine::{
        HOME_VARIABLE, HOST_FOLDER, HOST_VARIABLES, PAGE_OPENER, Parent, STATE_VARIABLES, config_folder, host_name, host_path,
        is_basic_variable, lock_folder_name, state_folder,
    };
}

/// The memory of this process.
pub mod memory {
    pub use crate::system::memory::give_back_large_pieces;
}

/// Streams of this process and of its children.
pub mod pipes {
    pub use crate::system::pipes::{
        AsyncInput, AsyncOutput, HostPipes, PipeGauge, PipedInput, async_pipes, errors_of, file_of_reader, file_of_writer, input_of,
        is_abandoned, is_pipe, output_of, read_piece, stdin_is_gone, stdout_is_abandoned, take_host_pipes, write_at_once, write_piece,
    };
}

/// Signals that this process receives, and those of others.
pub mod signals {
    pub use crate::system::signals::{
        EndRequests, ForwardedSignals, ReloadRequests, block_termination, end_like, interrupt, name_of, of_exit,
    };
}
