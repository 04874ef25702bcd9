//! Network namespaces (`namespace` on `bind` and `server`, Linux).

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::SystemCallError;

/// A named network namespace, held open so that it works after chroot.
#[derive(Debug)]
pub struct Namespace {
    name: Box<str>,
    file: File,
}

impl Namespace {
    /// Opens a namespace by its `ip netns` name.
    pub fn open(name: &str) -> Result<Self, SystemCallError> {
        let path = Path::new("/var/run/netns").join(name);
        if name.contains('/') || name.starts_with('.') {
            return Err(SystemCallError::new(
                "namespace",
                name,
                rustix::io::Errno::INVAL,
            ));
        }
        let file =
            File::open(&path).map_err(|e| SystemCallError::new("open", path.display(), e))?;
        Ok(Self {
            name: name.into(),
            file,
        })
    }

    /// The name it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `make` inside the namespace, or directly if there is none.
    ///
    /// A separate thread enters the namespace and ends: no other work of this process can be left
    /// in the wrong namespace, whatever fails.
    pub(crate) fn run<T: Send>(
        namespace: Option<&Self>,
        make: impl FnOnce() -> Result<T, SystemCallError> + Send,
    ) -> Result<T, SystemCallError> {
        let Some(namespace) = namespace else {
            return make();
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("namespace".into());
            let handle = thread
                .spawn_scoped(scope, || {
                    let network = Some(LinkNameSpaceType::Network);
                    move_into_link_name_space(namespace.file.as_fd(), network)
                        .map_err(|e| SystemCallError::new("setns", &namespace.name, e))?;
                    make()
                })
                .map_err(|e| SystemCallError::new("clone", &namespace.name, e))?;
            handle.join().unwrap_or_else(|_| {
                Err(SystemCallError::new(
                    "setns",
                    &namespace.name,
                    rustix::io::Errno::CANCELED,
                ))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn an_unknown_namespace_is_named() {
        let error = Namespace::open("no-such-space").unwrap_err();
        assert_eq!(error.kind(), ErrorClass::NotFound);
        assert!(error.to_string().contains("/var/run/netns/no-such-space"));
        assert!(Namespace::open("../self").is_err());
    }

    #[test]
    fn work_runs_in_a_namespace_and_leaves_ours_alone() {
        let here = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let Ok(file) = File::open("/proc/self/ns/net") else {
            eprintln!("SKIPPED: no namespaces here");
            return;
        };
        let own = Namespace {
            name: "own".into(),
            file,
        };
        match Namespace::run(Some(&own), || {
            Ok(std::fs::read_link("/proc/thread-self/ns/net"))
        }) {
            Ok(link) => assert_eq!(link.unwrap(), here),
            Err(e) => assert_eq!(e.kind(), ErrorClass::Denied, "{e}"),
        }
        assert_eq!(
            std::fs::read_link("/proc/thread-self/ns/net").unwrap(),
            here
        );
    }
}
