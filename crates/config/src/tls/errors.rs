//! The names of OpenSSL's errors of verification, for `ca-ignore-err` and `crt-ignore-err`.

use ballast_model::VerifyErrors;

/// The highest number.
const NUMBER_MAX: u8 = 94;

/// Reads `all`, or numbers and names separated by commas.
///
/// # Errors
/// With HAProxy's words, when a part is neither, or out of range.
pub(crate) fn parse(text: &str) -> Result<VerifyErrors, String> {
    if text == "all" {
        return Ok(VerifyErrors::All);
    }
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        // Text after a number is ignored, as in HAProxy.
        let end = part.find(|c: char| !c.is_ascii_digit());
        let digits = &part[..end.unwrap_or(part.len())];
        let number = if !digits.is_empty() {
            let number = digits.parse().ok();
            number
                .filter(|number| (1..=NUMBER_MAX).contains(number))
                .ok_or_else(|| {
                    format!("ID '{part}' out of range (1..{NUMBER_MAX}) in error IDs list '{text}'")
                })?
        } else {
            let name = part.strip_prefix("X509_V_ERR_");
            let row = name.and_then(|name| NAMES.iter().find(|(_, known)| *known == name));
            let unknown = || format!("error constant '{part}' unknown in error IDs list '{text}'");
            row.map(|(number, _)| *number).ok_or_else(unknown)?
        };
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(VerifyErrors::Numbers(numbers))
}

/// Numbers and names, without `X509_V_ERR_`; from the documentation of
/// `X509_STORE_CTX_get_error`.
const NAMES: &[(u8, &str)] = &[
    (1, "UNSPECIFIED"),
    (2, "UNABLE_TO_GET_ISSUER_CERT"),
    (3, "UNABLE_TO_GET_CRL"),
    (4, "UNABLE_TO_DECRYPT_CERT_SIGNATURE"),
    (5, "UNABLE_TO_DECRYPT_CRL_SIGNATURE"),
    (6, "UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY"),
    (7, "CERT_SIGNATURE_FAILURE"),
    (8, "CRL_SIGNATURE_FAILURE"),
    (9, "CERT_NOT_YET_VALID"),
    (10, "CERT_HAS_EXPIRED"),
    (11, "CRL_NOT_YET_VALID"),
    (12, "CRL_HAS_EXPIRED"),
    (13, "ERROR_IN_CERT_NOT_BEFORE_FIELD"),
    (14, "ERROR_IN_CERT_NOT_AFTER_FIELD"),
    (15, "ERROR_IN_CRL_LAST_UPDATE_FIELD"),
    (16, "ERROR_IN_CRL_NEXT_UPDATE_FIELD"),
    (17, "OUT_OF_MEM"),
    (18, "DEPTH_ZERO_SELF_SIGNED_CERT"),
    (19, "SELF_SIGNED_CERT_IN_CHAIN"),
    (20, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"),
    (21, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
    (22, "CERT_CHAIN_TOO_LONG"),
    (23, "CERT_REVOKED"),
    (24, "NO_ISSUER_PUBLIC_KEY"),
    (25, "PATH_LENGTH_EXCEEDED"),
    (26, "INVALID_PURPOSE"),
    (27, "CERT_UNTRUSTED"),
    (28, "CERT_REJECTED"),
    (29, "SUBJECT_ISSUER_MISMATCH"),
    (30, "AKID_SKID_MISMATCH"),
    (31, "AKID_ISSUER_SERIAL_MISMATCH"),
    (32, "KEYUSAGE_NO_CERTSIGN"),
    (33, "UNABLE_TO_GET_CRL_ISSUER"),
    (34, "UNHANDLED_CRITICAL_EXTENSION"),
    (35, "KEYUSAGE_NO_CRL_SIGN"),
    (36, "UNHANDLED_CRITICAL_CRL_EXTENSION"),
    (37, "INVALID_NON_CA"),
    (38, "PROXY_PATH_LENGTH_EXCEEDED"),
    (39, "KEYUSAGE_NO_DIGITAL_SIGNATURE"),
    (40, "PROXY_CERTIFICATES_NOT_ALLOWED"),
    (41, "INVALID_EXTENSION"),
    (42, "INVALID_POLICY_EXTENSION"),
    (43, "NO_EXPLICIT_POLICY"),
    (44, "DIFFERENT_CRL_SCOPE"),
    (45, "UNSUPPORTED_EXTENSION_FEATURE"),
    (46, "UNNESTED_RESOURCE"),
    (47, "PERMITTED_VIOLATION"),
    (48, "EXCLUDED_VIOLATION"),
    (49, "SUBTREE_MINMAX"),
    (50, "APPLICATION_VERIFICATION"),
    (51, "UNSUPPORTED_CONSTRAINT_TYPE"),
    (52, "UNSUPPORTED_CONSTRAINT_SYNTAX"),
    (53, "UNSUPPORTED_NAME_SYNTAX"),
    (54, "CRL_PATH_VALIDATION_ERROR"),
    (55, "PATH_LOOP"),
    (56, "SUITE_B_INVALID_VERSION"),
    (57, "SUITE_B_INVALID_ALGORITHM"),
    (58, "SUITE_B_INVALID_CURVE"),
    (59, "SUITE_B_INVALID_SIGNATURE_ALGORITHM"),
    (60, "SUITE_B_LOS_NOT_ALLOWED"),
    (61, "SUITE_B_CANNOT_SIGN_P_384_WITH_P_256"),
    (62, "HOSTNAME_MISMATCH"),
    (63, "EMAIL_MISMATCH"),
    (64, "IP_ADDRESS_MISMATCH"),
    (65, "DANE_NO_MATCH"),
    (66, "EE_KEY_TOO_SMALL"),
    (67, "CA_KEY_TOO_SMALL"),
    (68, "CA_MD_TOO_WEAK"),
    (69, "INVALID_CALL"),
    (70, "STORE_LOOKUP"),
    (71, "NO_VALID_SCTS"),
    (72, "PROXY_SUBJECT_NAME_VIOLATION"),
    (73, "OCSP_VERIFY_NEEDED"),
    (74, "OCSP_VERIFY_FAILED"),
    (75, "OCSP_CERT_UNKNOWN"),
    (76, "UNSUPPORTED_SIGNATURE_ALGORITHM"),
    (77, "SIGNATURE_ALGORITHM_MISMATCH"),
    (78, "SIGNATURE_ALGORITHM_INCONSISTENCY"),
    (79, "INVALID_CA"),
    (80, "PATHLEN_INVALID_FOR_NON_CA"),
    (81, "PATHLEN_WITHOUT_KU_KEY_CERT_SIGN"),
    (82, "KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA"),
    (83, "ISSUER_NAME_EMPTY"),
    (84, "SUBJECT_NAME_EMPTY"),
    (85, "MISSING_AUTHORITY_KEY_IDENTIFIER"),
    (86, "MISSING_SUBJECT_KEY_IDENTIFIER"),
    (87, "EMPTY_SUBJECT_ALT_NAME"),
    (88, "EMPTY_SUBJECT_SAN_NOT_CRITICAL"),
    (89, "CA_BCONS_NOT_CRITICAL"),
    (90, "AUTHORITY_KEY_IDENTIFIER_CRITICAL"),
    (91, "SUBJECT_KEY_IDENTIFIER_CRITICAL"),
    (92, "CA_CERT_MISSING_KEY_USAGE"),
    (93, "EXTENSIONS_REQUIRE_VERSION_3"),
    (94, "EC_KEY_EXPLICIT_PARAMS"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_or_numbered() {
        assert_eq!(parse("all"), Ok(VerifyErrors::All));
        assert_eq!(
            parse("X509_V_ERR_CERT_HAS_EXPIRED,9,10"),
            Ok(VerifyErrors::Numbers(vec![9, 10]))
        );
        assert_eq!(parse("10x,,9"), Ok(VerifyErrors::Numbers(vec![9, 10])));
        for (text, message) in [
            (
                "foo",
                "error constant 'foo' unknown in error IDs list 'foo'",
            ),
            (
                "all,10",
                "error constant 'all' unknown in error IDs list 'all,10'",
            ),
            ("0", "ID '0' out of range (1..94) in error IDs list '0'"),
            (
                "9999",
                "ID '9999' out of range (1..94) in error IDs list '9999'",
            ),
        ] {
            assert_eq!(parse(text), Err(message.to_owned()));
        }
    }
}
