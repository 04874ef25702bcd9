//! OpenSSL's names of the objects in certificates: attributes of names, and algorithms.

/// An object with its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    /// The short one.
    pub(super) short: &'static str,
    /// The long one.
    pub(super) long: &'static str,
}

impl Object {
    /// One that has no names.
    pub(super) const UNKNOWN: Self = Self {
        short: "",
        long: "",
    };
}

/// The names of the object of this number.
pub(super) fn object(number: &str) -> Option<Object> {
    let at = OBJECTS.binary_search_by_key(&number, |row| row.0).ok()?;
    let (_, short, long) = OBJECTS[at];
    Some(Object { short, long })
}

/// Sorted by number, as text.
#[rustfmt::skip] // An object to a line.
const OBJECTS: &[(&str, &str, &str)] = &[
    ("0.9.2342.19200300.100.1.1", "UID", "userId"),
    ("0.9.2342.19200300.100.1.25", "DC", "domainComponent"),
    ("0.9.2342.19200300.100.1.3", "mail", "rfc822Mailbox"),
    ("0.9.2342.19200300.100.1.44", "uid", "uniqueIdentifier"),
    ("1.2.156.10197.1.501", "SM2-SM3", "SM2-with-SM3"),
    ("1.2.643.100.1", "OGRN", "OGRN"),
    ("1.2.643.100.3", "SNILS", "SNILS"),
    ("1.2.643.3.131.1.1", "INN", "INN"),
    ("1.2.840.10040.4.1", "DSA", "dsaEncryption"),
    ("1.2.840.10040.4.3", "DSA-SHA1", "dsaWithSHA1"),
    ("1.2.840.10045.2.1", "id-ecPublicKey", "id-ecPublicKey"),
    ("1.2.840.10045.4.1", "ecdsa-with-SHA1", "ecdsa-with-SHA1"),
    ("1.2.840.10045.4.3.1", "ecdsa-with-SHA224", "ecdsa-with-SHA224"),
    ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256", "ecdsa-with-SHA256"),
    ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384", "ecdsa-with-SHA384"),
    ("1.2.840.10045.4.3.4", "ecdsa-with-SHA512", "ecdsa-with-SHA512"),
    ("1.2.840.113549.1.1.1", "rsaEncryption", "rsaEncryption"),
    ("1.2.840.113549.1.1.10", "RSASSA-PSS", "rsassaPss"),
    ("1.2.840.113549.1.1.11", "RSA-SHA256", "sha256WithRSAEncryption"),
    ("1.2.840.113549.1.1.12", "RSA-SHA384", "sha384WithRSAEncryption"),
    ("1.2.840.113549.1.1.13", "RSA-SHA512", "sha512WithRSAEncryption"),
    ("1.2.840.113549.1.1.14", "RSA-SHA224", "sha224WithRSAEncryption"),
    ("1.2.840.113549.1.1.4", "RSA-MD5", "md5WithRSAEncryption"),
    ("1.2.840.113549.1.1.5", "RSA-SHA1", "sha1WithRSAEncryption"),
    ("1.2.840.113549.1.9.1", "emailAddress", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName", "unstructuredName"),
    ("1.2.840.113549.1.9.7", "challengePassword", "challengePassword"),
    ("1.2.840.113549.1.9.8", "unstructuredAddress", "unstructuredAddress"),
    ("1.3.101.110", "X25519", "X25519"),
    ("1.3.101.111", "X448", "X448"),
    ("1.3.101.112", "ED25519", "ED25519"),
    ("1.3.101.113", "ED448", "ED448"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL", "jurisdictionLocalityName"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST", "jurisdictionStateOrProvinceName"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC", "jurisdictionCountryName"),
    ("2.16.840.1.101.3.4.3.1", "dsa_with_SHA224", "dsa_with_SHA224"),
    ("2.16.840.1.101.3.4.3.2", "dsa_with_SHA256", "dsa_with_SHA256"),
    ("2.5.4.10", "O", "organizationName"),
    ("2.5.4.100", "dnsName", "dnsName"),
    ("2.5.4.11", "OU", "organizationalUnitName"),
    ("2.5.4.12", "title", "title"),
    ("2.5.4.13", "description", "description"),
    ("2.5.4.14", "searchGuide", "searchGuide"),
    ("2.5.4.15", "businessCategory", "businessCategory"),
    ("2.5.4.16", "postalAddress", "postalAddress"),
    ("2.5.4.17", "postalCode", "postalCode"),
    ("2.5.4.18", "postOfficeBox", "postOfficeBox"),
    ("2.5.4.19", "physicalDeliveryOfficeName", "physicalDeliveryOfficeName"),
    ("2.5.4.20", "telephoneNumber", "telephoneNumber"),
    ("2.5.4.21", "telexNumber", "telexNumber"),
    ("2.5.4.22", "teletexTerminalIdentifier", "teletexTerminalIdentifier"),
    ("2.5.4.23", "facsimileTelephoneNumber", "facsimileTelephoneNumber"),
    ("2.5.4.24", "x121Address", "x121Address"),
    ("2.5.4.25", "internationaliSDNNumber", "internationaliSDNNumber"),
    ("2.5.4.26", "registeredAddress", "registeredAddress"),
    ("2.5.4.27", "destinationIndicator", "destinationIndicator"),
    ("2.5.4.28", "preferredDeliveryMethod", "preferredDeliveryMethod"),
    ("2.5.4.29", "presentationAddress", "presentationAddress"),
    ("2.5.4.3", "CN", "commonName"),
    ("2.5.4.30", "supportedApplicationContext", "supportedApplicationContext"),
    ("2.5.4.31", "member", "member"),
    ("2.5.4.32", "owner", "owner"),
    ("2.5.4.33", "roleOccupant", "roleOccupant"),
    ("2.5.4.34", "seeAlso", "seeAlso"),
    ("2.5.4.4", "SN", "surname"),
    ("2.5.4.41", "name", "name"),
    ("2.5.4.42", "GN", "givenName"),
    ("2.5.4.43", "initials", "initials"),
    ("2.5.4.44", "generationQualifier", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier", "dnQualifier"),
    ("2.5.4.49", "distinguishedName", "distinguishedName"),
    ("2.5.4.5", "serialNumber", "serialNumber"),
    ("2.5.4.51", "houseIdentifier", "houseIdentifier"),
    ("2.5.4.54", "dmdName", "dmdName"),
    ("2.5.4.6", "C", "countryName"),
    ("2.5.4.65", "pseudonym", "pseudonym"),
    ("2.5.4.7", "L", "localityName"),
    ("2.5.4.72", "role", "role"),
    ("2.5.4.8", "ST", "stateOrProvinceName"),
    ("2.5.4.9", "street", "streetAddress"),
    ("2.5.4.97", "organizationIdentifier", "organizationIdentifier"),
    ("2.5.4.98", "c3", "countryCode3c"),
    ("2.5.4.99", "n3", "countryCode3n"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found() {
        assert!(OBJECTS.is_sorted());
        assert_eq!(object("2.5.4.3").map(|object| object.short), Some("CN"));
        assert!(object("2.5.4").is_none());
    }
}
