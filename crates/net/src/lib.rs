//! Sockets, options, descriptors, processes: the only crate with unsafe code.
//!
//! Everything here is a thin, safe wrapper of the kernel: one function per operation, with an
//! [`SystemCallError`] that names the call, its object and the system's error. No policy, no waiting, no
//! executor: the caller decides when to try again. All sockets made here are non-blocking and
//! close-on-exec.
//!
//! `unsafe` occurs only in small commented functions marked `#[expect(unsafe_code)]`; every other
//! crate forbids it.

mod address;
mod clock;
mod connect;
mod cpu;
mod crypt;
mod datagram;
mod epoll;
mod error;
mod file;
mod foreign;
mod identity;
pub mod inherit;
mod io;
mod limits;
mod listen;
mod listen_options;
mod memory;
mod namespace;
mod notify;
mod option;
mod passing;
mod process;
mod reserve;
mod sealed;
mod signal;
mod socket;
mod splice;
mod tuning;
mod unix;

pub use address::{Address, original_destination};
pub use clock::{LocalTime, coarse_ms, local_time, monotonic_us};
pub use connect::{ConnectOptions, ConnectProgress, LocalAddress, connect, connect_outcome};
pub use cpu::{CpuSet, cpu_count, pin_thread};
pub use crypt::{can_hash_passwords, equal_in_constant_time, password_matches};
pub use datagram::Datagram;
pub use epoll::Epoll;
pub use error::{ErrorClass, SystemCallError};
pub use file::{
    FileChange, change_files, open_without_links, read_file, read_file_without_links, replace_file,
    replace_files,
};
pub use foreign::{
    ForeignListener, is_stopped, listening_sockets_of, may_signal, process_lives, process_tree,
    sockets_of, unix_peer,
};
pub use identity::{SystemGroup, SystemUser, become_user, group_by_name, is_root, user_by_name};
pub use io::{
    accept, peek, receive, receive_vectored, send, send_more, send_vectored, shutdown_both,
    shutdown_read, shutdown_write,
};
pub use limits::{Resource, ResourceLimit, limit, raise_core_limit, raise_open_files, set_limit};
pub use listen::{ListeningSocket, listen, listen_unpublished};
pub use listen_options::ListenOptions;
pub use memory::{MemoryUse, give_back_large_memory, save_address_space, trim_memory};
pub use namespace::Namespace;
pub use notify::notify_supervisor;
pub use option::{
    KeepAlive, PacketOptions, TcpInfo, drop_silently_on_close, set_congestion, set_keepalive,
    set_linger_zero, set_mark, set_no_delay, set_non_blocking, set_quick_ack, set_receive_buffer,
    set_send_buffer, set_tos, set_user_timeout, socket_error, tcp_info,
};
pub use passing::{
    FDS_PER_MESSAGE_MAX, PassedSocket, SocketPool, message_line, offer_sockets, receive_with_fds,
    send_with_fds, set_inheritable, set_timeouts, withdraw_sockets,
};
pub use process::{
    ChildEnd, ForkResult, ProcessEnd, becomes_readable, change_root, change_working_directory,
    child_end, detach_session, end_by, fork, kill, kill_outright, null_device, parent_process_id,
    process_exists, process_id, raise, redirect_standard_to, remove_pid_file, set_dumpable,
    set_process_name, thread_count, write_pid_file,
};
pub use reserve::{
    MEMORY_RESERVE_BYTES, ReservingAllocator, give_back_free_memory, has_memory, is_memory_short,
    keep_memory_reserve, memory_refusals, note_memory_is_back, note_memory_is_short,
    system_refusals, try_zeroed,
};
pub use sealed::{foreign_fd, is_sealed, read_memory_file, sealed_file, sealed_file_of};
pub use signal::{Signal, SignalSource, ignore_broken_pipe};
pub use socket::{listen_again, socket_number, stop_listening};
pub use splice::{Pipe, PipeCounts, PipePool};
pub use tuning::{Tuning, retune};
pub use unix::{UnixPermissions, UnpublishedSocket};
