//! What is asked of the files, users and names of a machine, and the answers of the one this process runs on.

use std::net::ToSocketAddrs;
use std::path::Path;

use ballast_expr::path_of_text;
use ballast_reconcile::MachineAnswers;

/// What is asked of the files, users and names of this machine. Each has answers of one form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Question {
    /// 1 and the content of a file, or 0 and the error. A regular file of at most so many bytes, so
    /// that reading neither blocks nor goes on without end; `None`: any file (at a start it may be a
    /// pipe).
    Content { bytes_max: Option<usize> },
    /// 1: it is a directory.
    IsDirectory,
    /// 1 and the names of the files in a directory, each with a zero behind it, or 0 and the error.
    FilesIn,
    /// As [`Self::FilesIn`]; nothing where it is no directory.
    DirectoryFiles,
    /// 1: there is such a file.
    Exists,
    /// 1 and the addresses of a name, or 0 and the error.
    Addresses,
    /// 1: there is such a user.
    HasUser,
    /// 1: there is such a group.
    HasGroup,
    /// 1: there is such a network interface.
    HasInterface,
}

impl Question {
    /// Its letter, as in [`MachineAnswers`] and in what a file helper is asked.
    pub(crate) fn kind(self) -> u8 {
        match self {
            Self::Content { .. } => MachineAnswers::CONTENT,
            Self::IsDirectory => b'd',
            Self::FilesIn => b'l',
            Self::DirectoryFiles => b'L',
            Self::Exists => b'e',
            Self::Addresses => b'n',
            Self::HasUser => b'u',
            Self::HasGroup => b'g',
            Self::HasInterface => b'i',
        }
    }

    /// What a file helper is asked: the letter, the limit of the content, and what it is about.
    pub(crate) fn to_bytes(self, about: &str) -> Vec<u8> {
        let bytes_max = match self {
            Self::Content { bytes_max } => bytes_max.unwrap_or(usize::MAX),
            _ => 0,
        };
        let bytes_max = (bytes_max as u64).to_le_bytes();
        [&[self.kind()], &bytes_max[..], about.as_bytes()].concat()
    }

    /// The question, and what it is about; `None` where it is not understood.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<(Self, &str)> {
        let (&kind, rest) = bytes.split_first()?;
        let (bytes_max, about) = rest.split_first_chunk::<8>()?;
        let bytes_max = usize::try_from(u64::from_le_bytes(*bytes_max)).ok();
        let mut all = [
            Self::Content { bytes_max },
            Self::IsDirectory,
            Self::FilesIn,
            Self::DirectoryFiles,
            Self::Exists,
            Self::Addresses,
            Self::HasUser,
            Self::HasGroup,
            Self::HasInterface,
        ]
        .into_iter();
        let question = all.find(|one| one.kind() == kind)?;
        Some((question, std::str::from_utf8(about).ok()?))
    }

    /// Whether it is about a path.
    pub(crate) fn is_about_path(self) -> bool {
        !matches!(
            self,
            Self::Addresses | Self::HasUser | Self::HasGroup | Self::HasInterface
        )
    }

    /// The answer of the system this process runs on.
    pub(crate) fn answer(self, about: &str) -> Vec<u8> {
        let yes = |is: bool| vec![u8::from(is)];
        let path = path_of_text(about);
        match self {
            Self::Content { bytes_max: None } => told(std::fs::read(path)),
            Self::Content {
                bytes_max: Some(bytes_max),
            } => told(ballast_net::read_file(&path, bytes_max)),
            Self::IsDirectory => yes(path.is_dir()),
            Self::FilesIn => told(names_in(&path)),
            Self::DirectoryFiles if !path.is_dir() => Vec::new(),
            Self::DirectoryFiles => told(names_in(&path)),
            Self::Exists => yes(path.exists()),
            Self::Addresses => told(addresses_of(about).map(String::into_bytes)),
            Self::HasUser => yes(matches!(ballast_net::user_by_name(about), Ok(Some(_)))),
            Self::HasGroup => yes(matches!(ballast_net::group_by_name(about), Ok(Some(_)))),
            Self::HasInterface => {
                let there = Path::new("/sys/class/net").join(about).exists();
                yes(there && !about.contains('/'))
            }
        }
    }

    /// The answer that tells of an error, where its form can.
    pub(crate) fn failure(self, error: &str) -> Vec<u8> {
        match self {
            Self::Content { .. } | Self::FilesIn | Self::DirectoryFiles | Self::Addresses => {
                [&[0], error.as_bytes()].concat()
            }
            _ => vec![0],
        }
    }
}

/// The answer that may be an error.
pub(crate) fn told(answer: std::io::Result<Vec<u8>>) -> Vec<u8> {
    // Contents are large: they are read with room for the byte before them.
    let with_room = answer.and_then(|mut answer| {
        answer.try_reserve(1)?;
        Ok(answer)
    });
    match with_room {
        Ok(mut answer) => {
            answer.insert(0, 1);
            answer
        }
        Err(error) => [&[0], error_text(&error).as_bytes()].concat(),
    }
}

/// The names of the files in a directory, each with a zero behind it.
fn names_in(directory: &Path) -> std::io::Result<Vec<u8>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // A link to a file is a file (certbot's `live`). One to nothing is none that can be read, which
        // whoever reads it says: a site whose file is gone must not vanish without a word.
        if entry
            .path()
            .metadata()
            .map_or(true, |known| known.is_file())
        {
            names.extend_from_slice(entry.file_name().as_encoded_bytes());
            names.push(0);
        }
    }
    Ok(names)
}

/// The addresses of a name, each once, in the resolver's order, a blank between them.
fn addresses_of(host: &str) -> std::io::Result<String> {
    let found = (host, 0).to_socket_addrs()?;
    let mut addresses: Vec<String> = Vec::new();
    for address in found {
        let ip = address.ip().to_string();
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    Ok(addresses.join(" "))
}

/// The error of the system, without the number that Rust adds.
pub(crate) fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
