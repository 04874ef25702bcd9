//! Hashed passwords, as `crypt(3)` of the system's library knows them.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::LazyLock;

/// The names of the library: libxcrypt's and glibc's, and that of libxcrypt without old symbols.
const LIBRARIES: [&CStr; 2] = [c"libcrypt.so.1", c"libcrypt.so.2"];

/// Bytes of `struct crypt_data`, aligned to 8: glibc's has 131,232, libxcrypt's 32,768.
const DATA_WORDS: usize = 20 * 1024;

/// `char *crypt_r(const char *phrase, const char *setting, struct crypt_data *data)`.
type CryptFunction = unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void) -> *mut c_char;

/// The function, where the machine has the library. It is looked up when it is first needed: a program
/// that is linked with the library would not start without it, and few configurations use it.
static CRYPT: LazyLock<Option<CryptFunction>> = LazyLock::new(find);

#[expect(
    unsafe_code,
    reason = "a function of a library is looked up by its name"
)]
fn find() -> Option<CryptFunction> {
    LIBRARIES.into_iter().find_map(|name| {
        // SAFETY: the name ends in a zero byte. The library is never closed, and its constructors
        // have no demands.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        // SAFETY: the library is open, and the name ends in a zero byte.
        let symbol = unsafe { libc::dlsym(library, c"crypt_r".as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        // SAFETY: `crypt_r` has this signature in every libcrypt (crypt(3)), and is not null.
        Some(unsafe { std::mem::transmute::<*mut c_void, CryptFunction>(symbol) })
    })
}

/// Whether the machine has a library that hashes passwords.
pub fn can_hash_passwords() -> bool {
    CRYPT.is_some()
}

/// Whether `password` is the one that was hashed to `hash`, in any format that the library knows. A
/// format that it does not know, or no library, matches no password. It may take a second of
/// processor time: the hash says how much. The comparison takes as long whatever the difference.
#[expect(unsafe_code, reason = "crypt_r takes pointers")]
pub fn password_matches(password: &[u8], hash: &str) -> bool {
    let Some(crypt) = *CRYPT else {
        return false;
    };
    let (Ok(password), Ok(setting)) = (CString::new(password), CString::new(hash)) else {
        return false;
    };
    // Zeroes mean "not initialised", and `u64` gives the alignment that the structure needs.
    let mut data = vec![0_u64; DATA_WORDS];
    // SAFETY: both texts end in a zero byte; `data` is zeroed, large enough and aligned for the
    // structure of every libcrypt, and used by this call alone.
    let computed = unsafe {
        crypt(
            password.as_ptr(),
            setting.as_ptr(),
            data.as_mut_ptr().cast(),
        )
    };
    if computed.is_null() {
        return false;
    }
    // SAFETY: the result is a text in `data`, which lives until the end of this function.
    let computed = unsafe { CStr::from_ptr(computed) }.to_bytes();
    // `*0` and `*1` say that it failed.
    !computed.starts_with(b"*") && equal_in_constant_time(computed, hash.as_bytes())
}

/// Whether two secrets are the same. They are compared to the end, so that the time it takes does not
/// tell where they differ.
pub fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    let differences = one
        .iter()
        .zip(other)
        .fold(0_u8, |found, (one, other)| found | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_to_the_end() {
        assert!(equal_in_constant_time(b"", b""));
        assert!(equal_in_constant_time(b"secret", b"secret"));
        for other in [&b""[..], b"secre", b"secrets", b"Secret", b"secreT"] {
            assert!(!equal_in_constant_time(b"secret", other), "{other:?}");
            assert!(!equal_in_constant_time(other, b"secret"), "{other:?}");
        }
    }

    #[test]
    fn passwords_are_those_that_were_hashed() {
        if !can_hash_passwords() {
            eprintln!("SKIPPED: this machine has no libcrypt");
            return;
        }
        let hashes = [
            "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1",
            "$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.",
            "$6$rounds=1000$abcdefgh$nhYjN017qxiYztzyUpZtPnUQcnLy62KsunSLHNeLahp2EHPlAKmFFlrjEwSXGo2kgY5hR2.peKEg2VGUqIJJu1",
            "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
            "$y$j75$abcdefgh$uMUXG79B2cFpoAYyDccUnsaH/aGTyBYMlnQidzyag01",
        ];
        for hash in hashes {
            assert!(password_matches(b"secret", hash), "{hash}");
            assert!(!password_matches(b"Secret", hash), "{hash}");
            assert!(!password_matches(b"", hash), "{hash}");
        }
        for unknown in ["", "y", "$9$abc$def", "*0", "secret\0", "$6$abc$def"] {
            assert!(!password_matches(b"secret", unknown), "{unknown}");
        }
        assert!(!password_matches(b"sec\0ret", hashes[0]));
    }
}
