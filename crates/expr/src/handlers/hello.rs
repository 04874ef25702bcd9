//! The client's first TLS message, read from raw bytes: RFC 8446 section 4.1.2.

/// The handshake type of the first record, when it is a handshake.
pub(super) fn kind(data: &[u8]) -> Option<u8> {
    let [0x16, 3, _, _, _, kind, ..] = data else {
        return None;
    };
    Some(*kind)
}

/// The parts of a client hello that rules ask for.
pub(super) struct ClientHello<'f> {
    /// As announced in the record and the hello (legacy version).
    pub(super) version: u16,
    extensions: &'f [u8],
}

/// Takes `size` bytes of length and as many bytes as it says off the front.
fn take<'f>(data: &mut &'f [u8], size: usize) -> Option<&'f [u8]> {
    let (length, rest) = data.split_at_checked(size)?;
    let length = length
        .iter()
        .fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
    let (taken, rest) = rest.split_at_checked(length)?;
    *data = rest;
    Some(taken)
}

impl<'f> ClientHello<'f> {
    /// Reads the hello at the start of `data`; `None` when it is something else or incomplete.
    pub(super) fn parse(data: &'f [u8]) -> Option<ClientHello<'f>> {
        let (head, mut rest) = data.split_at_checked(3)?;
        if head[0] != 0x16 || head[1] != 3 {
            return None;
        }
        let mut record = take(&mut rest, 2)?;
        let (kind, rest) = record.split_first()?;
        if *kind != 1 {
            return None;
        }
        record = rest;
        let mut hello = take(&mut record, 3)?;
        // Version and random.
        let (start, rest) = hello.split_at_checked(34)?;
        hello = rest;
        let version = u16::from_be_bytes([start[0], start[1]]);
        take(&mut hello, 1)?; // session
        take(&mut hello, 2)?; // cipher suites
        take(&mut hello, 1)?; // compressions
        let extensions = if hello.is_empty() {
            hello
        } else {
            take(&mut hello, 2)?
        };
        Some(ClientHello {
            version,
            extensions,
        })
    }

    /// The contents of the extension of that number.
    pub(super) fn extension(&self, number: u16) -> Option<&'f [u8]> {
        let mut rest = self.extensions;
        loop {
            let (head, after) = rest.split_at_checked(2)?;
            rest = after;
            let contents = take(&mut rest, 2)?;
            if u16::from_be_bytes([head[0], head[1]]) == number {
                return Some(contents);
            }
        }
    }

    /// The host name of the server name extension: RFC 6066 section 3.
    pub(super) fn server_name(&self) -> Option<&'f [u8]> {
        let mut contents = self.extension(0)?;
        let mut list = take(&mut contents, 2)?;
        let (kind, rest) = list.split_first()?;
        list = rest;
        if *kind != 0 {
            return None;
        }
        take(&mut list, 2).filter(|name| !name.is_empty())
    }

    /// The protocols offered by ALPN (RFC 7301), separated by commas.
    pub(super) fn append_alpn(&self, out: &mut Vec<u8>) -> Option<()> {
        let mut contents = self.extension(16)?;
        let mut list = take(&mut contents, 2)?;
        while !list.is_empty() {
            let name = take(&mut list, 1)?;
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(name);
        }
        Some(())
    }
}
