//! The catalogue of data types (`store`).

/// How a data type is kept and read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DataKind {
    /// An unsigned number of 32 bits. It stays at its maximum when it is reached.
    Number,
    /// An unsigned number of 64 bits.
    LargeNumber,
    /// Events over a period.
    Rate,
    /// A text of the table's dictionary.
    Text,
}

macro_rules! data_types {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $kind:ident;)*) => {
        /// A data type, in the order in which `show table` prints them.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        pub enum DataType {
            $($(#[$doc])* $name,)*
        }

        impl DataType {
            /// All of them.
            pub const ALL: &'static [DataType] = &[$(DataType::$name,)*];

            /// The word of the configuration.
            pub const fn word(self) -> &'static str {
                match self { $(DataType::$name => $word,)* }
            }

            /// How it is kept.
            pub const fn kind(self) -> DataKind {
                match self { $(DataType::$name => DataKind::$kind,)* }
            }
        }
    };
}

data_types! {
    /// The number of the server that a key sticks to.
    ServerId = "server_id", Number;
    /// The first tag.
    Gpt0 = "gpt0", Number;
    /// The first general purpose counter.
    Gpc0 = "gpc0", Number;
    /// How fast the first general purpose counter grows.
    Gpc0Rate = "gpc0_rate", Rate;
    /// Connections.
    ConnCnt = "conn_cnt", Number;
    /// Connections per period.
    ConnRate = "conn_rate", Rate;
    /// Connections that are open.
    ConnCur = "conn_cur", Number;
    /// Sessions.
    SessCnt = "sess_cnt", Number;
    /// Sessions per period.
    SessRate = "sess_rate", Rate;
    /// HTTP requests.
    HttpReqCnt = "http_req_cnt", Number;
    /// HTTP requests per period.
    HttpReqRate = "http_req_rate", Rate;
    /// HTTP errors of clients.
    HttpErrCnt = "http_err_cnt", Number;
    /// HTTP errors of clients per period.
    HttpErrRate = "http_err_rate", Rate;
    /// Bytes from clients.
    BytesInCnt = "bytes_in_cnt", LargeNumber;
    /// Bytes from clients per period.
    BytesInRate = "bytes_in_rate", Rate;
    /// Bytes to clients.
    BytesOutCnt = "bytes_out_cnt", LargeNumber;
    /// Bytes to clients per period.
    BytesOutRate = "bytes_out_rate", Rate;
    /// The second general purpose counter.
    Gpc1 = "gpc1", Number;
    /// How fast the second general purpose counter grows.
    Gpc1Rate = "gpc1_rate", Rate;
    /// The name or address of the server that a key sticks to.
    ServerKey = "server_key", Text;
    /// HTTP failures of servers.
    HttpFailCnt = "http_fail_cnt", Number;
    /// HTTP failures of servers per period.
    HttpFailRate = "http_fail_rate", Rate;
    /// An array of tags.
    Gpt = "gpt", Number;
    /// An array of general purpose counters.
    Gpc = "gpc", Number;
    /// How fast an array of general purpose counters grows.
    GpcRate = "gpc_rate", Rate;
    /// Glitches of the front connection.
    GlitchCnt = "glitch_cnt", Number;
    /// Glitches of the front connection per period.
    GlitchRate = "glitch_rate", Rate;
}

impl DataType {
    /// The most elements that an array has.
    pub const ELEMENTS_MAX: u16 = 100;

    /// The data type of this word.
    pub fn by_word(word: &str) -> Option<DataType> {
        DataType::ALL.iter().copied().find(|one| one.word() == word)
    }

    /// Whether it is an array, with a number of elements as its first argument.
    pub const fn is_array(self) -> bool {
        matches!(self, DataType::Gpt | DataType::Gpc | DataType::GpcRate)
    }

    /// Whether it is a number of bytes that `brates-factor` applies to.
    pub const fn is_bytes_rate(self) -> bool {
        matches!(self, DataType::BytesInRate | DataType::BytesOutRate)
    }

    /// The array that takes the place of this type where the table stores that instead:
    /// `gpc0` is the first element of `gpc`.
    pub const fn element_of(self) -> Option<(DataType, u16)> {
        match self {
            DataType::Gpt0 => Some((DataType::Gpt, 0)),
            DataType::Gpc0 => Some((DataType::Gpc, 0)),
            DataType::Gpc1 => Some((DataType::Gpc, 1)),
            DataType::Gpc0Rate => Some((DataType::GpcRate, 0)),
            DataType::Gpc1Rate => Some((DataType::GpcRate, 1)),
            _ => None,
        }
    }

    /// 32-bit words of one element.
    pub(crate) const fn words(self) -> usize {
        match self.kind() {
            DataKind::Number | DataKind::Text => 1,
            DataKind::LargeNumber => 2,
            DataKind::Rate => 3,
        }
    }
}

/// A data type that a table stores, with its arguments.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StoredType {
    /// The type.
    pub data_type: DataType,
    /// Elements: 1 where the type is no array, else 1 to [`DataType::ELEMENTS_MAX`].
    pub elements: u16,
    /// The period of a rate in milliseconds, not 0; 0 for other types.
    pub period_ms: u32,
}

impl StoredType {
    /// One element without a period.
    pub const fn plain(data_type: DataType) -> StoredType {
        StoredType {
            data_type,
            elements: 1,
            period_ms: 0,
        }
    }

    /// A rate over a period in milliseconds.
    pub const fn rate(data_type: DataType, period_ms: u32) -> StoredType {
        StoredType {
            data_type,
            elements: 1,
            period_ms,
        }
    }
}
