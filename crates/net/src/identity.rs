//! Users and groups, and changing to one of them for good.

use std::ffi::{CStr, CString};
use std::io;

use crate::SystemCallError;

/// Maximum size of a passwd or group record, in bytes.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// A user of this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SystemUser {
    /// Login name.
    pub name: String,
    /// Its number (uid).
    pub uid: u32,
    /// The number of its primary group.
    pub gid: u32,
}

/// A group of this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SystemGroup {
    /// Its name.
    pub name: String,
    /// Its number.
    pub gid: u32,
}

/// Looks up a user by name (`user`); `None` if there is none.
#[expect(unsafe_code, reason = "getpwnam_r fills a structure and a buffer")]
pub fn user_by_name(name: &str) -> Result<Option<SystemUser>, SystemCallError> {
    let c_name = c_string("getpwnam", name)?;
    with_growing_buffer("getpwnam", name, |buffer| {
        // SAFETY: passwd holds integers and pointers that may be null.
        let mut record: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are to our live values; the length is the
        // buffer's own.
        let answer = unsafe {
            libc::getpwnam_r(
                c_name.as_ptr(),
                &raw mut record,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut found,
            )
        };
        let user = (answer == 0 && !found.is_null()).then(|| SystemUser {
            // SAFETY: on success pw_name is a C string inside `buffer`.
            name: unsafe { owned(record.pw_name) },
            uid: record.pw_uid,
            gid: record.pw_gid,
        });
        (answer, user)
    })
}

/// Looks up a group by name (`group`); `None` if there is none.
#[expect(unsafe_code, reason = "getgrnam_r fills a structure and a buffer")]
pub fn group_by_name(name: &str) -> Result<Option<SystemGroup>, SystemCallError> {
    let c_name = c_string("getgrnam", name)?;
    with_growing_buffer("getgrnam", name, |buffer| {
        // SAFETY: group holds integers and pointers that may be null.
        let mut record: libc::group = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: as in `user_by_name`.
        let answer = unsafe {
            libc::getgrnam_r(
                c_name.as_ptr(),
                &raw mut record,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut found,
            )
        };
        let group = (answer == 0 && !found.is_null()).then(|| SystemGroup {
            // SAFETY: on success gr_name is a C string inside `buffer`.
            name: unsafe { owned(record.gr_name) },
            gid: record.gr_gid,
        });
        (answer, group)
    })
}

/// True if this process acts as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Becomes `gid` and `uid` for good, in all threads, in the order that works:
/// supplementary groups (those of `user_name` if given, else none), group,
/// user. `None` keeps what is.
///
/// # Errors
/// The call that was refused; what came before it stays changed, so the caller
/// must not go on.
#[expect(unsafe_code, reason = "process-wide credentials go through libc")]
pub fn become_user(
    uid: Option<u32>,
    gid: Option<u32>,
    user_name: Option<&str>,
) -> Result<(), SystemCallError> {
    let check = |call, object: &dyn std::fmt::Display, answer: libc::c_int| {
        if answer == 0 {
            Ok(())
        } else {
            Err(SystemCallError::new(
                call,
                object,
                io::Error::last_os_error(),
            ))
        }
    };
    if let Some(gid) = gid {
        if is_root() {
            match user_name {
                Some(name) => {
                    let c_name = c_string("initgroups", name)?;
                    // SAFETY: reads a C string that lives past the call.
                    let answer = unsafe { libc::initgroups(c_name.as_ptr(), gid) };
                    check("initgroups", &name, answer)?;
                }
                None => {
                    // SAFETY: a count of zero reads no memory.
                    let answer = unsafe { libc::setgroups(0, std::ptr::null()) };
                    check("setgroups", &"", answer)?;
                }
            }
        }
        // SAFETY: takes a number only; glibc applies it to all threads.
        check("setgid", &gid, unsafe { libc::setgid(gid) })?;
    }
    if let Some(uid) = uid {
        // SAFETY: as above.
        check("setuid", &uid, unsafe { libc::setuid(uid) })?;
    }
    Ok(())
}

fn c_string(call: &'static str, name: &str) -> Result<CString, SystemCallError> {
    CString::new(name)
        .map_err(|_| SystemCallError::new(call, name.escape_debug(), rustix::io::Errno::INVAL))
}

/// Calls `ask` with increasing buffer sizes until the record fits.
fn with_growing_buffer<T>(
    call: &'static str,
    name: &str,
    mut ask: impl FnMut(&mut [u8]) -> (libc::c_int, Option<T>),
) -> Result<Option<T>, SystemCallError> {
    let mut buffer = vec![0_u8; 1024];
    loop {
        match ask(&mut buffer) {
            (0 | libc::ENOENT, found) => return Ok(found),
            (libc::ERANGE, _) if buffer.len() < RECORD_BYTES_MAX => {
                buffer.resize(buffer.len() * 4, 0);
            }
            (libc::EINTR, _) => {}
            (code, _) => {
                return Err(SystemCallError::new(
                    call,
                    name,
                    io::Error::from_raw_os_error(code),
                ));
            }
        }
    }
}

/// # Safety
/// `text` is a C string that stays unchanged during the call.
#[expect(unsafe_code, reason = "a C string becomes ours")]
unsafe fn owned(text: *const libc::c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_names() {
        let root = user_by_name("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid, root.name.as_str()), (0, 0, "root"));
        assert_eq!(group_by_name("root").unwrap().unwrap().gid, 0);
        assert_eq!(user_by_name("no-such-user-here").unwrap(), None);
        assert_eq!(group_by_name("no-such-group-here").unwrap(), None);
        assert!(user_by_name("a\0b").is_err());
    }
}
