//! What samples ask of a ClientHello once the handshake is over (manual 3.2,
//! `tune.ssl.capture-buffer-size`; 7.3.4, `ssl_fc_cipherlist_bin` and its siblings).

/// The lists of a ClientHello, in network order and without their lengths.
#[derive(Clone, Copy, Debug, Default)]
pub struct HelloLists<'a> {
    /// The version in its head.
    pub version: u16,
    /// The cipher suites.
    pub ciphers: &'a [u8],
    /// The numbers of the extensions.
    pub extensions: &'a [u8],
    /// `supported_groups`.
    pub groups: &'a [u8],
    /// `ec_point_formats`.
    pub point_formats: &'a [u8],
    /// `supported_versions`.
    pub versions: &'a [u8],
    /// `signature_algorithms`.
    pub signature_schemes: &'a [u8],
}

/// The lists on bytes of their own, as many as the limit allows. The cipher suites are kept whole,
/// for their hash.
#[derive(Clone, Debug)]
pub struct HelloCapture {
    version: u16,
    bytes: Box<[u8]>,
    /// How many bytes of the cipher suites are within the limit.
    ciphers_kept: usize,
    /// Where the lists end: [`HelloLists`]'s, in its order.
    ends: [usize; 6],
}

impl HelloCapture {
    /// Keeps at most `bytes_max` bytes of the lists: the first ones first.
    #[must_use]
    pub fn new(lists: &HelloLists<'_>, bytes_max: usize) -> Self {
        let mut bytes = lists.ciphers.to_vec();
        let ciphers_kept = lists.ciphers.len().min(bytes_max);
        let mut room = bytes_max - ciphers_kept;
        let mut ends = [bytes.len(); 6];
        let rest = [
            lists.extensions,
            lists.groups,
            lists.point_formats,
            lists.versions,
            lists.signature_schemes,
        ];
        for (end, list) in ends[1..].iter_mut().zip(rest) {
            let kept = list.len().min(room);
            bytes.extend_from_slice(&list[..kept]);
            room -= kept;
            *end = bytes.len();
        }
        Self {
            version: lists.version,
            bytes: bytes.into(),
            ciphers_kept,
            ends,
        }
    }

    /// What was kept.
    #[must_use]
    pub fn lists(&self) -> HelloLists<'_> {
        let list = |number: usize| &self.bytes[self.ends[number - 1]..self.ends[number]];
        HelloLists {
            version: self.version,
            ciphers: &self.bytes[..self.ciphers_kept],
            extensions: list(1),
            groups: list(2),
            point_formats: list(3),
            versions: list(4),
            signature_schemes: list(5),
        }
    }

    /// The cipher suites, whatever the limit.
    #[must_use]
    pub fn all_ciphers(&self) -> &[u8] {
        &self.bytes[..self.ends[0]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As HAProxy 3.2 cuts them.
    #[test]
    fn lists_are_cut_one_after_the_other() {
        let lists = HelloLists {
            version: 0x0303,
            ciphers: &[0x13, 1, 0x13, 2],
            extensions: &[0, 0, 0, 10],
            groups: &[0, 29],
            point_formats: &[0],
            versions: &[3, 4, 3, 3],
            signature_schemes: &[4, 3],
        };
        let whole = HelloCapture::new(&lists, 17);
        assert_eq!(whole.lists().ciphers, lists.ciphers);
        assert_eq!(whole.lists().extensions, lists.extensions);
        assert_eq!(whole.lists().groups, lists.groups);
        assert_eq!(whole.lists().point_formats, lists.point_formats);
        assert_eq!(whole.lists().versions, lists.versions);
        assert_eq!(whole.lists().signature_schemes, lists.signature_schemes);
        let cut = HelloCapture::new(&lists, 13);
        assert_eq!(cut.lists().versions, [3, 4]);
        assert_eq!(cut.lists().signature_schemes, []);
        let least = HelloCapture::new(&lists, 1);
        assert_eq!(least.lists().ciphers, [0x13]);
        assert_eq!(least.lists().extensions, []);
        assert_eq!(least.all_ciphers(), lists.ciphers);
    }
}
