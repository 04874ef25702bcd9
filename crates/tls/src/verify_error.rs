// tidy: table, because it is OpenSSL's list of errors.
//! OpenSSL's numbers for what can be wrong with a certificate (X509_STORE_CTX_get_error(3)): the
//! values of `ssl_c_err`, and the words of `ca-ignore-err` and `crt-ignore-err`.

use std::fmt;

/// An error by OpenSSL's number. 0 is no error.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct VerifyError(pub u8);

macro_rules! errors {
    ($($number:literal $name:ident $text:literal)*) => {
        #[allow(missing_docs, reason = "OpenSSL's names, with OpenSSL's texts")]
        impl VerifyError {
            $(pub const $name: Self = Self($number);)*
        }

        const ERRORS: &[(u8, &str, &str)] = &[$(($number, stringify!($name), $text),)*];
    };
}

errors! {
    0 OK "ok"
    1 UNSPECIFIED "unspecified certificate verification error"
    2 UNABLE_TO_GET_ISSUER_CERT "unable to get issuer certificate"
    3 UNABLE_TO_GET_CRL "unable to get certificate CRL"
    4 UNABLE_TO_DECRYPT_CERT_SIGNATURE "unable to decrypt certificate's signature"
    5 UNABLE_TO_DECRYPT_CRL_SIGNATURE "unable to decrypt CRL's signature"
    6 UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY "unable to decode issuer public key"
    7 CERT_SIGNATURE_FAILURE "certificate signature failure"
    8 CRL_SIGNATURE_FAILURE "CRL signature failure"
    9 CERT_NOT_YET_VALID "certificate is not yet valid"
    10 CERT_HAS_EXPIRED "certificate has expired"
    11 CRL_NOT_YET_VALID "CRL is not yet valid"
    12 CRL_HAS_EXPIRED "CRL has expired"
    13 ERROR_IN_CERT_NOT_BEFORE_FIELD "format error in certificate's notBefore field"
    14 ERROR_IN_CERT_NOT_AFTER_FIELD "format error in certificate's notAfter field"
    15 ERROR_IN_CRL_LAST_UPDATE_FIELD "format error in CRL's lastUpdate field"
    16 ERROR_IN_CRL_NEXT_UPDATE_FIELD "format error in CRL's nextUpdate field"
    17 OUT_OF_MEM "out of memory"
    18 DEPTH_ZERO_SELF_SIGNED_CERT "self-signed certificate"
    19 SELF_SIGNED_CERT_IN_CHAIN "self-signed certificate in certificate chain"
    20 UNABLE_TO_GET_ISSUER_CERT_LOCALLY "unable to get local issuer certificate"
    21 UNABLE_TO_VERIFY_LEAF_SIGNATURE "unable to verify the first certificate"
    22 CERT_CHAIN_TOO_LONG "certificate chain too long"
    23 CERT_REVOKED "certificate revoked"
    24 NO_ISSUER_PUBLIC_KEY "issuer certificate doesn't have a public key"
    25 PATH_LENGTH_EXCEEDED "path length constraint exceeded"
    26 INVALID_PURPOSE "unsuitable certificate purpose"
    27 CERT_UNTRUSTED "certificate not trusted"
    28 CERT_REJECTED "certificate rejected"
    29 SUBJECT_ISSUER_MISMATCH "subject issuer mismatch"
    30 AKID_SKID_MISMATCH "authority and subject key identifier mismatch"
    31 AKID_ISSUER_SERIAL_MISMATCH "authority and issuer serial number mismatch"
    32 KEYUSAGE_NO_CERTSIGN "key usage does not include certificate signing"
    33 UNABLE_TO_GET_CRL_ISSUER "unable to get CRL issuer certificate"
    34 UNHANDLED_CRITICAL_EXTENSION "unhandled critical extension"
    35 KEYUSAGE_NO_CRL_SIGN "key usage does not include CRL signing"
    36 UNHANDLED_CRITICAL_CRL_EXTENSION "unhandled critical CRL extension"
    37 INVALID_NON_CA "invalid non-CA certificate (has CA markings)"
    38 PROXY_PATH_LENGTH_EXCEEDED "proxy path length constraint exceeded"
    39 KEYUSAGE_NO_DIGITAL_SIGNATURE "key usage does not include digital signature"
    40 PROXY_CERTIFICATES_NOT_ALLOWED "proxy certificates not allowed, please set the appropriate flag"
    41 INVALID_EXTENSION "invalid or inconsistent certificate extension"
    42 INVALID_POLICY_EXTENSION "invalid or inconsistent certificate policy extension"
    43 NO_EXPLICIT_POLICY "no explicit policy"
    44 DIFFERENT_CRL_SCOPE "different CRL scope"
    45 UNSUPPORTED_EXTENSION_FEATURE "unsupported extension feature"
    46 UNNESTED_RESOURCE "RFC 3779 resource not subset of parent's resources"
    47 PERMITTED_VIOLATION "permitted subtree violation"
    48 EXCLUDED_VIOLATION "excluded subtree violation"
    49 SUBTREE_MINMAX "name constraints minimum and maximum not supported"
    50 APPLICATION_VERIFICATION "application verification failure"
    51 UNSUPPORTED_CONSTRAINT_TYPE "unsupported name constraint type"
    52 UNSUPPORTED_CONSTRAINT_SYNTAX "unsupported or invalid name constraint syntax"
    53 UNSUPPORTED_NAME_SYNTAX "unsupported or invalid name syntax"
    54 CRL_PATH_VALIDATION_ERROR "CRL path validation error"
    55 PATH_LOOP "path loop"
    56 SUITE_B_INVALID_VERSION "Suite B: certificate version invalid"
    57 SUITE_B_INVALID_ALGORITHM "Suite B: invalid public key algorithm"
    58 SUITE_B_INVALID_CURVE "Suite B: invalid ECC curve"
    59 SUITE_B_INVALID_SIGNATURE_ALGORITHM "Suite B: invalid signature algorithm"
    60 SUITE_B_LOS_NOT_ALLOWED "Suite B: curve not allowed for this LOS"
    61 SUITE_B_CANNOT_SIGN_P_384_WITH_P_256 "Suite B: cannot sign P-384 with P-256"
    62 HOSTNAME_MISMATCH "hostname mismatch"
    63 EMAIL_MISMATCH "email address mismatch"
    64 IP_ADDRESS_MISMATCH "IP address mismatch"
    65 DANE_NO_MATCH "no matching DANE TLSA records"
    66 EE_KEY_TOO_SMALL "EE certificate key too weak"
    67 CA_KEY_TOO_SMALL "CA certificate key too weak"
    68 CA_MD_TOO_WEAK "CA signature digest algorithm too weak"
    69 INVALID_CALL "invalid certificate verification context"
    70 STORE_LOOKUP "issuer certificate lookup error"
    71 NO_VALID_SCTS "certificate transparency required, but no valid SCTs found"
    72 PROXY_SUBJECT_NAME_VIOLATION "proxy subject name violation"
    73 OCSP_VERIFY_NEEDED "OCSP verification needed"
    74 OCSP_VERIFY_FAILED "OCSP verification failed"
    75 OCSP_CERT_UNKNOWN "OCSP unknown cert"
    76 UNSUPPORTED_SIGNATURE_ALGORITHM "cannot find certificate signature algorithm"
    77 SIGNATURE_ALGORITHM_MISMATCH "subject signature algorithm and issuer public key algorithm mismatch"
    78 SIGNATURE_ALGORITHM_INCONSISTENCY "cert info signature and signature algorithm mismatch"
    79 INVALID_CA "invalid CA certificate"
    80 PATHLEN_INVALID_FOR_NON_CA "Path length invalid for non-CA cert"
    81 PATHLEN_WITHOUT_KU_KEY_CERT_SIGN "Path length given without key usage keyCertSign"
    82 KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA "Key usage keyCertSign invalid for non-CA cert"
    83 ISSUER_NAME_EMPTY "Issuer name empty"
    84 SUBJECT_NAME_EMPTY "Subject name empty"
    85 MISSING_AUTHORITY_KEY_IDENTIFIER "Missing Authority Key Identifier"
    86 MISSING_SUBJECT_KEY_IDENTIFIER "Missing Subject Key Identifier"
    87 EMPTY_SUBJECT_ALT_NAME "Empty Subject Alternative Name extension"
    88 EMPTY_SUBJECT_SAN_NOT_CRITICAL "Subject empty and Subject Alt Name extension not critical"
    89 CA_BCONS_NOT_CRITICAL "Basic Constraints of CA cert not marked critical"
    90 AUTHORITY_KEY_IDENTIFIER_CRITICAL "Authority Key Identifier marked critical"
    91 SUBJECT_KEY_IDENTIFIER_CRITICAL "Subject Key Identifier marked critical"
    92 CA_CERT_MISSING_KEY_USAGE "CA cert does not include key usage extension"
    93 EXTENSIONS_REQUIRE_VERSION_3 "Using cert extension requires at least X509v3"
    94 EC_KEY_EXPLICIT_PARAMS "Certificate public key has explicit ECC parameters"
    95 RPK_UNTRUSTED "Raw public key untrusted, no trusted keys configured"
}

impl VerifyError {
    /// The error of OpenSSL's constant, `X509_V_ERR_CERT_HAS_EXPIRED`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("X509_V_ERR_")?;
        let found = ERRORS.iter().find(|(_, known, _)| *known == name);
        found.map(|(number, _, _)| Self(*number))
    }

    /// OpenSSL's constant, if the number has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        ERRORS
            .iter()
            .find(|(number, _, _)| *number == self.0)
            .map(|(_, name, _)| *name)
    }
}

/// OpenSSL's text.
impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ERRORS.iter().find(|(number, _, _)| *number == self.0) {
            Some((_, _, text)) => f.write_str(text),
            None => write!(f, "verification error {}", self.0),
        }
    }
}

/// The errors of `ca-ignore-err` or `crt-ignore-err`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct IgnoredErrors([u64; 4]);

impl IgnoredErrors {
    /// Reads `all`, or numbers and constants separated by commas.
    ///
    /// # Errors
    ///
    /// The word that is neither.
    pub fn parse(list: &str) -> Result<Self, String> {
        if list == "all" {
            return Ok(Self([u64::MAX; 4]));
        }
        let mut errors = Self::default();
        for word in list.split(',') {
            let number = word
                .parse()
                .ok()
                .or(VerifyError::parse(word).map(|error| error.0));
            let number: u8 = number.ok_or_else(|| {
                format!("'{word}' is neither the number nor the constant of an OpenSSL error")
            })?;
            errors.0[usize::from(number / 64)] |= 1 << (number % 64);
        }
        Ok(errors)
    }

    /// The set as bytes.
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// True when the error is ignored.
    #[must_use]
    pub fn contains(self, error: VerifyError) -> bool {
        self.0[usize::from(error.0 / 64)] & (1 << (error.0 % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_numbers_and_constants() {
        let errors = IgnoredErrors::parse("10,X509_V_ERR_CERT_REVOKED,68").expect("good");
        assert!(errors.contains(VerifyError::CERT_HAS_EXPIRED));
        assert!(errors.contains(VerifyError(23)) && errors.contains(VerifyError(68)));
        assert!(!errors.contains(VerifyError(18)));
        assert!(
            IgnoredErrors::parse("all")
                .expect("good")
                .contains(VerifyError(200))
        );
        assert!(
            IgnoredErrors::parse("10,foo")
                .expect_err("unknown")
                .contains("'foo'")
        );
        assert_eq!(VerifyError(10).name(), Some("CERT_HAS_EXPIRED"));
        assert_eq!(VerifyError(10).to_string(), "certificate has expired");
        assert!(
            ERRORS
                .iter()
                .enumerate()
                .all(|(index, error)| index == usize::from(error.0))
        );
    }
}
