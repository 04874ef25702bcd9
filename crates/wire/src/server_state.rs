//! State files: the output of `show servers state`, read at the next start.
//!
//! The first line is the version of the format, 1; then one row per server, with columns separated
//! by spaces; lines that begin with `#` are comments.
//!
//! Source: management guide, "show servers state"; which files and rows are refused, and the
//! messages, as observed with HAProxy 2.6.

use std::fmt;
use std::net::IpAddr;

/// The columns of version 1, in order.
const COLUMNS: [&str; 25] = [
    "be_id",
    "be_name",
    "srv_id",
    "srv_name",
    "srv_addr",
    "srv_op_state",
    "srv_admin_state",
    "srv_uweight",
    "srv_iweight",
    "srv_time_since_last_change",
    "srv_check_status",
    "srv_check_result",
    "srv_check_health",
    "srv_check_state",
    "srv_agent_state",
    "bk_f_forced_id",
    "srv_f_forced_id",
    "srv_fqdn",
    "srv_port",
    "srvrecord",
    "srv_use_ssl",
    "srv_check_port",
    "srv_check_addr",
    "srv_agent_addr",
    "srv_agent_port",
];

/// Files whose rows end after `srvrecord` were written by older versions.
const COLUMN_COUNT_MIN: usize = 20;

/// Why a file is not a state file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StateFormatError {
    /// It does not begin with a known version.
    Version,
    /// A row has too few columns, or is not text. Lines are counted from the one after the version.
    Row {
        /// Which line.
        line: usize,
    },
}

/// A row whose columns are split but not parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerStateRow<'a> {
    columns: [&'a str; COLUMNS.len()],
}

/// The parsed values of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerStateValues {
    /// `be_id`; 0 when it is not a number.
    pub backend_id: u32,
    /// `srv_addr`.
    pub address: Option<IpAddr>,
    /// `srv_op_state`, 0 to 3.
    pub operational: u8,
    /// `srv_admin_state`, bits below 0x80.
    pub admin: u8,
    /// `srv_uweight`, 0 to 256.
    pub weight_user: u16,
    /// `srv_iweight`: the configured weight, 0 to 256.
    pub weight_initial: u16,
    /// `srv_time_since_last_change`, in seconds.
    pub since_change_s: u64,
    /// `srv_check_status`.
    pub check_status: u8,
    /// `srv_check_result`, 0 to 4.
    pub check_result: u8,
    /// `srv_check_health`.
    pub check_health: u32,
    /// `srv_check_state`.
    pub check_state: u8,
    /// `srv_agent_state`.
    pub agent_state: u8,
    /// `srv_port`; `None` for 0.
    pub port: Option<u16>,
    /// `srv_check_port`; `None` for 0.
    pub check_port: Option<u16>,
    /// `srv_check_addr`.
    pub check_address: Option<IpAddr>,
    /// `srv_agent_addr`.
    pub agent_address: Option<IpAddr>,
    /// `srv_agent_port`; `None` for 0.
    pub agent_port: Option<u16>,
}

/// The invalid values of a row. Its `Display` is HAProxy's list of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InvalidValues<'a> {
    values: Vec<(&'static str, &'a str)>,
}

/// The rows of a file.
///
/// # Errors
/// [`StateFormatError::Version`]. Each row may also be [`StateFormatError::Row`]; then the whole
/// file must be ignored.
pub fn rows(file: &[u8]) -> Result<ServerStateRows<'_>, StateFormatError> {
    let is_end: fn(&u8) -> bool = |byte| *byte == b'\n';
    let mut lines = file.split(is_end);
    let version = lines.next().unwrap_or_default();
    if version.trim_ascii() != b"1" {
        return Err(StateFormatError::Version);
    }
    Ok(ServerStateRows { lines, line: 0 })
}

/// See [`rows`].
#[derive(Clone, Debug)]
pub struct ServerStateRows<'a> {
    lines: std::slice::Split<'a, u8, fn(&u8) -> bool>,
    line: usize,
}

impl<'a> Iterator for ServerStateRows<'a> {
    type Item = Result<ServerStateRow<'a>, StateFormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.next()?.trim_ascii();
            self.line += 1;
            if !line.is_empty() && line[0] != b'#' {
                let row = ServerStateRow::read(line);
                return Some(row.ok_or(StateFormatError::Row { line: self.line }));
            }
        }
    }
}

impl<'a> ServerStateRow<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let mut columns = ["-"; COLUMNS.len()];
        let mut count = 0;
        let words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        for (column, word) in columns.iter_mut().zip(words) {
            *column = word;
            count += 1;
        }
        (count >= COLUMN_COUNT_MIN).then_some(Self { columns })
    }

    /// `be_name`.
    #[must_use]
    pub fn backend(&self) -> &'a str {
        self.columns[1]
    }

    /// `srv_name`.
    #[must_use]
    pub fn server(&self) -> &'a str {
        self.columns[3]
    }

    /// Parses the values. An invalid address counts as none: it is `-` for servers without one.
    ///
    /// # Errors
    /// All values that do not fit their columns.
    pub fn values(&self) -> Result<ServerStateValues, InvalidValues<'a>> {
        let mut invalid = InvalidValues::default();
        let mut number = |index: usize, max: u64| {
            let text = self.columns[index];
            // Columns that older versions do not write count as 0.
            let value = if text == "-" {
                Some(0)
            } else {
                text.parse().ok()
            };
            value.filter(|value| *value <= max).unwrap_or_else(|| {
                invalid.values.push((COLUMNS[index], text));
                0
            })
        };
        let mut byte =
            |index, max| u8::try_from(number(index, max)).expect("the bound fits 8 bits");
        let (operational, admin) = (byte(5, 3), byte(6, 0x7f));
        let weights = [7, 8].map(|index| number(index, 256));
        let since_change_s = number(9, u64::MAX);
        let mut byte =
            |index, max| u8::try_from(number(index, max)).expect("the bound fits 8 bits");
        let (check_status, check_result) = (byte(10, 0xff), byte(11, 4));
        let check_health = number(12, u64::from(u32::MAX));
        let mut byte =
            |index, max| u8::try_from(number(index, max)).expect("the bound fits 8 bits");
        let (check_state, agent_state) = (byte(13, 0x1f), byte(14, 0x1f));
        let ports = [18, 21, 24].map(|index| number(index, u64::from(u16::MAX)));
        if !invalid.values.is_empty() {
            return Err(invalid);
        }
        let weight = |value: u64| u16::try_from(value).expect("the bound fits 16 bits");
        let port = |value: u64| u16::try_from(value).ok().filter(|port| *port > 0);
        let address = |index: usize| self.columns[index].parse().ok();
        Ok(ServerStateValues {
            backend_id: self.columns[0].parse().unwrap_or(0),
            address: address(4),
            operational,
            admin,
            weight_user: weight(weights[0]),
            weight_initial: weight(weights[1]),
            since_change_s,
            check_status,
            check_result,
            check_health: u32::try_from(check_health).unwrap_or(u32::MAX),
            check_state,
            agent_state,
            port: port(ports[0]),
            check_port: port(ports[1]),
            check_address: address(22),
            agent_address: address(23),
            agent_port: port(ports[2]),
        })
    }
}

impl fmt::Display for InvalidValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (column, value)) in self.values.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}invalid {column} value '{value}'")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str =
        "2 fe 1 s1 127.0.0.9 0 8 5 10 600 7 2 3 6 22 0 0 - 19081 - 0 99 127.0.0.5 - 0";

    fn all(file: &str) -> Result<Vec<ServerStateRow<'_>>, StateFormatError> {
        rows(file.as_bytes())?.collect()
    }

    #[test]
    fn a_row_says_what_its_columns_say() {
        let file = format!("1\n# be_id be_name\n\n {ROW} and more\n");
        let found = all(&file).unwrap();
        assert_eq!((found[0].backend(), found[0].server()), ("fe", "s1"));
        let saved = found[0].values().unwrap();
        assert_eq!(saved.backend_id, 2);
        assert_eq!(saved.address, Some(IpAddr::from([127, 0, 0, 9])));
        assert_eq!((saved.operational, saved.admin), (0, 8));
        assert_eq!((saved.weight_user, saved.weight_initial), (5, 10));
        assert_eq!(saved.since_change_s, 600);
        assert_eq!((saved.check_status, saved.check_result), (7, 2));
        assert_eq!((saved.check_health, saved.check_state), (3, 6));
        assert_eq!((saved.agent_state, saved.port), (22, Some(19081)));
        assert_eq!((saved.check_port, saved.agent_port), (Some(99), None));
        assert_eq!(saved.check_address, Some(IpAddr::from([127, 0, 0, 5])));
        assert_eq!(saved.agent_address, None);
    }

    #[test]
    fn a_file_is_refused_as_haproxy_refuses_it() {
        assert_eq!(all("").unwrap_err(), StateFormatError::Version);
        assert_eq!(all("2\n").unwrap_err(), StateFormatError::Version);
        assert_eq!(all("# be_id\n").unwrap_err(), StateFormatError::Version);
        assert_eq!(all("1\n").unwrap(), []);
        let short = ROW.split(' ').take(19).collect::<Vec<_>>().join(" ");
        let file = format!("1\n# be_id\n{ROW}\n{short}\n{ROW}\n");
        assert_eq!(all(&file).unwrap_err(), StateFormatError::Row { line: 3 });
        let file = format!("1\n{short} -\n");
        assert_eq!(all(&file).unwrap()[0].values().unwrap().check_port, None);
        let bytes = [b"1\n".as_slice(), &[0xff; 50], b"\n"].concat();
        let found: Result<Vec<_>, _> = rows(&bytes).unwrap().collect();
        assert_eq!(found.unwrap_err(), StateFormatError::Row { line: 1 });
    }

    #[test]
    fn values_that_are_none_are_listed() {
        let file = "1\n1 b2 2 b 127.0.0.1 x 1 500 10 600 99 0 0 0 0 0 0 - 81000 - 0 0 - - 0\n";
        let invalid = all(file).unwrap()[0].values().unwrap_err();
        assert_eq!(
            invalid.to_string(),
            "invalid srv_op_state value 'x', invalid srv_uweight value '500', \
             invalid srv_port value '81000'"
        );
    }
}
