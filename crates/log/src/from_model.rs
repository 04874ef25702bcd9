//! Converts the model's `log` lines to log targets.

use std::fmt;
use std::sync::Arc;

use ballast_model as model;

use crate::spec::{Endpoint, LineSampling, TargetSpec};
use crate::{Facility, Format, Level};

/// Why a `log` line cannot be used as a target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogTargetError {
    /// A backend in `mode log`.
    UnsupportedBackend(String),
    /// A facility number above 23.
    Facility(u8),
    /// An address that datagrams cannot be sent to.
    UnsupportedAddress(String),
    /// A host name that must be resolved first.
    Unresolved(String),
}

impl fmt::Display for LogTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedBackend(name) => {
                write!(f, "logs cannot be sent to backend '{name}' yet")
            }
            Self::Facility(number) => write!(f, "there is no facility {number}"),
            Self::UnsupportedAddress(address) => write!(f, "logs cannot be sent to '{address}'"),
            Self::Unresolved(host) => write!(f, "'{host}' is not resolved"),
        }
    }
}

impl std::error::Error for LogTargetError {}

impl TryFrom<&model::LogTarget> for TargetSpec {
    type Error = LogTargetError;

    fn try_from(target: &model::LogTarget) -> Result<Self, LogTargetError> {
        let number = target.facility.0;
        Ok(Self {
            endpoint: endpoint(&target.endpoint)?,
            format: target.format.map(format),
            line_bytes_max: target.line_bytes_max,
            sample: target.sample.as_ref().map(|sample| LineSampling {
                ranges: sample.ranges.clone(),
                size: sample.size,
            }),
            profile: target.profile.as_ref().map(Arc::clone),
            facility: Facility::new(number).ok_or(LogTargetError::Facility(number))?,
            level_max: Level::ALL[target.level_max as usize],
            level_min: target
                .level_min
                .map_or(Level::Emerg, |level| Level::ALL[level as usize]),
        })
    }
}

fn format(name: model::LogFormatName) -> Format {
    match name {
        model::LogFormatName::Local => Format::Local,
        model::LogFormatName::Rfc3164 => Format::Rfc3164,
        model::LogFormatName::Rfc5424 => Format::Rfc5424,
        model::LogFormatName::Priority => Format::Priority,
        model::LogFormatName::Short => Format::Short,
        model::LogFormatName::Timed => Format::Timed,
        model::LogFormatName::Iso => Format::Iso,
        model::LogFormatName::Raw => Format::Raw,
    }
}

fn endpoint(endpoint: &model::LogEndpoint) -> Result<Endpoint, LogTargetError> {
    match endpoint {
        model::LogEndpoint::Udp(model::Address::Inet(address)) => {
            Ok(Endpoint::Udp(*address).with_default_port())
        }
        model::LogEndpoint::Udp(model::Address::Name { host, .. }) => {
            Err(LogTargetError::Unresolved(host.clone()))
        }
        model::LogEndpoint::Udp(other) => {
            Err(LogTargetError::UnsupportedAddress(other.to_string()))
        }
        model::LogEndpoint::Unix(path) => Ok(Endpoint::Unix(model::path_of_text(path))),
        model::LogEndpoint::Fd(number) => Ok(Endpoint::Fd(*number)),
        model::LogEndpoint::Ring(name) => Ok(Endpoint::Ring(name.clone())),
        model::LogEndpoint::Backend(name) => Err(LogTargetError::UnsupportedBackend(name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_understood() {
        let line = model::LogTarget {
            endpoint: model::LogEndpoint::Udp(model::Address::Inet("127.0.0.1:0".parse().unwrap())),
            line_bytes_max: 2000,
            format: Some(model::LogFormatName::Rfc5424),
            sample: None,
            profile: None,
            facility: model::Facility(16),
            level_max: model::Level::Notice,
            level_min: Some(model::Level::Err),
        };
        let spec = TargetSpec::try_from(&line).unwrap();
        let expected = TargetSpec {
            format: Some(Format::Rfc5424),
            line_bytes_max: 2000,
            level_max: Level::Notice,
            level_min: Level::Err,
            ..TargetSpec::new(
                Endpoint::Udp("127.0.0.1:514".parse().unwrap()),
                "local0".parse().unwrap(),
            )
        };
        assert_eq!(spec, expected);
        let backend = model::LogTarget {
            endpoint: model::LogEndpoint::Backend("b".to_owned()),
            ..line
        };
        assert_eq!(
            TargetSpec::try_from(&backend),
            Err(LogTargetError::UnsupportedBackend("b".to_owned()))
        );
    }
}
