//! A number or a text, and what an aggregator may do with it.
//!
//! Source: management manual, section 9.2 "Typed output format".

use std::borrow::Cow;

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue<'a> {
    /// The metric says nothing here: an empty column, no line.
    Empty,
    /// May have a fraction (`show info float`).
    Float(f64),
    /// Signed, 32 bits.
    S32(i32),
    /// Text.
    Str(Cow<'a, str>),
    /// Unsigned, 32 bits.
    U32(u32),
    /// Unsigned, 64 bits.
    U64(u64),
}

impl<'a> MetricValue<'a> {
    /// A text that is there already.
    pub const fn text(text: &'a str) -> Self {
        Self::Str(Cow::Borrowed(text))
    }

    /// A computed text; no value when it is empty.
    pub fn computed_text(text: String) -> Self {
        if text.is_empty() {
            Self::Empty
        } else {
            Self::Str(Cow::Owned(text))
        }
    }

    /// A number, or nothing when it is zero and zero means "not configured".
    pub const fn unless_zero(number: u32) -> Self {
        if number == 0 {
            Self::Empty
        } else {
            Self::U32(number)
        }
    }

    /// The name of its type in typed output and JSON; none for an empty one.
    pub const fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Empty => None,
            Self::Float(_) => Some("flt"),
            Self::S32(_) => Some("s32"),
            Self::Str(_) => Some("str"),
            Self::U32(_) => Some("u32"),
            Self::U64(_) => Some("u64"),
        }
    }
}

macro_rules! letters {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $letter:literal $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Its letter in typed output.
            pub const fn letter(self) -> char {
                match self { $(Self::$variant => $letter,)* }
            }

            /// Its word in JSON.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

letters! {
    /// Where a value comes from.
    Origin {
        /// The configuration.
        Config = 'C' "Config",
        /// An identifier.
        Key = 'K' "Key",
        /// Measured.
        Metric = 'M' "Metric",
        /// The program itself.
        Product = 'P' "Product",
        /// A state, which cannot be added to another.
        Status = 'S' "Status",
    }
}

letters! {
    /// What kind of value it is, which decides how several are put together.
    Nature {
        /// Time since something happened.
        Age = 'A' "Age",
        /// An average.
        Average = 'a' "Avg",
        /// Counts up for ever.
        Counter = 'C' "Counter",
        /// How long something lasted.
        Duration = 'D' "Duration",
        /// A number at this moment.
        Gauge = 'G' "Gauge",
        /// What may not be passed.
        Limit = 'L' "Limit",
        /// The highest ever.
        Max = 'M' "Max",
        /// A name.
        Name = 'N' "Name",
        /// Free text.
        Output = 'O' "Output",
        /// Events per second.
        Rate = 'R' "Rate",
    }
}

letters! {
    /// How far a value reaches.
    Scope {
        /// This process.
        Process = 'P' "Process",
        /// All processes of this configuration.
        Service = 'S' "Service",
    }
}

/// The three letters of typed output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tags {
    /// Where it comes from.
    pub origin: Origin,
    /// What kind it is.
    pub nature: Nature,
    /// How far it reaches.
    pub scope: Scope,
}

impl Tags {
    const fn new(origin: Origin, nature: Nature, scope: Scope) -> Self {
        Self {
            origin,
            nature,
            scope,
        }
    }
}

macro_rules! tags {
    ($($name:ident = $origin:ident $nature:ident $scope:ident;)*) => {
        $(pub(crate) const $name: Tags =
            Tags::new(Origin::$origin, Nature::$nature, Scope::$scope);)*
    };
}

tags! {
    CGS = Config Gauge Service;
    CLP = Config Limit Process;
    CNS = Config Name Service;
    COS = Config Output Service;
    KGP = Key Gauge Process;
    KGS = Key Gauge Service;
    KNS = Key Name Service;
    MAP = Metric Age Process;
    MAVG = Metric Average Process;
    MCP = Metric Counter Process;
    MDP = Metric Duration Process;
    MGP = Metric Gauge Process;
    MMP = Metric Max Process;
    MOP = Metric Output Process;
    MRP = Metric Rate Process;
    POS = Product Output Service;
    SGP = Status Gauge Process;
}
