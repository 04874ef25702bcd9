//! The parts of a request's target that services use.

/// Path and query of a target: scheme and authority of an absolute one are left out.
pub(super) fn origin_form(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') {
        return target;
    }
    let Some(authority) = target.windows(3).position(|three| three == b"://") else {
        return target;
    };
    let rest = &target[authority + 3..];
    match rest.iter().position(|byte| *byte == b'/') {
        Some(path) => &rest[path..],
        None => b"/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_path_is_left_out() {
        assert_eq!(origin_form(b"/a?b://c"), b"/a?b://c");
        assert_eq!(origin_form(b"http://host:1/a?b"), b"/a?b");
        assert_eq!(origin_form(b"http://host"), b"/");
        assert_eq!(origin_form(b"*"), b"*");
    }
}
