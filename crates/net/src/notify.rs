//! Reporting our state to the supervisor that started us (systemd's sd_notify).

use std::io::IoSlice;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::{Address, Datagram, SystemCallError};

/// Sends `state` (such as `READY=1\nSTATUS=Ready.`) to the socket named by NOTIFY_SOCKET, a path or
/// `@` and an abstract name. `Ok(false)` if there is no supervisor.
pub fn notify_supervisor(state: &str) -> Result<bool, SystemCallError> {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(false);
    };
    send_state(socket.as_bytes(), state)
}

fn send_state(socket: &[u8], state: &str) -> Result<bool, SystemCallError> {
    let address = match socket.split_first() {
        None => return Ok(false),
        Some((b'@', name)) => Address::Abstract {
            name: name.into(),
            padded: false,
        },
        Some(_) => Address::Unix(PathBuf::from(std::ffi::OsStr::from_bytes(socket))),
    };
    let datagram = Datagram::new(address, None)?;
    datagram
        .send(&[IoSlice::new(state.as_bytes())])
        .map_err(|e| SystemCallError::new("sendmsg", datagram.target(), e))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    #[test]
    fn paths_and_abstract_names_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("ballast-notify-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let abstract_name = format!("@{name}");
        let targets = [
            (by_path, path.as_os_str().as_bytes()),
            (by_name, abstract_name.as_bytes()),
        ];
        for (socket, target) in targets {
            assert!(send_state(target, "READY=1").unwrap());
            let mut bytes = [0; 32];
            let n = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..n], b"READY=1");
        }
        assert!(!send_state(b"", "READY=1").unwrap());
        assert!(send_state(b"/no-such/socket", "READY=1").is_err());
    }
}
