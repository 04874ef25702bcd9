//! Numbers and texts as people read them.

/// Escapes what has a meaning in HTML and SVG; control characters are left out.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// At most so many characters, with dots for the rest.
pub(super) fn shorten(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}

/// A number without decimals, with commas between thousands.
pub(super) fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with three digits, and `k` or `M` for an axis.
pub(super) fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{}M", three_digits(n / 1e6)),
        n if n >= 1e4 => format!("{}k", three_digits(n / 1e3)),
        n if n >= 1e3 => count(n),
        n => three_digits(n),
    }
}

/// Microseconds, with the unit that fits.
pub(super) fn duration(us: f64) -> String {
    match us {
        us if us >= 120e6 => {
            let seconds = (us / 1e6).round() as u64;
            format!("{} min {:02} s", seconds / 60, seconds % 60)
        }
        us if us >= 1e6 => format!("{} s", three_digits(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{us:.0} \u{b5}s"),
    }
}

/// At least three digits that count, and no zeros behind the point.
fn three_digits(number: f64) -> String {
    let decimals = match number {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.decimals$}");
    if decimals == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share of all, in percent.
pub(super) fn percent(part: u64, all: u64) -> String {
    let share = part as f64 / all.max(1) as f64 * 100.0;
    match share {
        s if s > 0.0 && s < 0.01 => "less than 0.01 %".to_owned(),
        s if s < 1.0 => format!("{s:.2} %"),
        s => format!("{s:.1} %"),
    }
}

/// How much more or less than before, in percent.
pub(super) fn change(before: f64, after: f64) -> String {
    if before <= 0.0 {
        return "-".to_owned();
    }
    let change = (after / before - 1.0) * 100.0;
    let sign = if change < 0.0 { "\u{2212}" } else { "+" };
    match change.abs() {
        c if c < 0.05 => "equal".to_owned(),
        c if c >= 1000.0 => format!("{} times", three_digits(after / before)),
        c => format!("{sign}{c:.1} %"),
    }
}

/// A date and a time, from seconds since 1970.
pub(super) fn date(unix_s: f64) -> String {
    let seconds = unix_s.max(0.0) as u64;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut left) = (1970, days);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
        left + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_become_markup() {
        assert_eq!(
            escape("<a href=\"x\">'&\u{1b}"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp; "
        );
        assert_eq!(shorten("weight 50%", 20), "weight 50%");
        assert_eq!(shorten("weight 50%", 8), "weight\u{2026}");
    }

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!(
            [0.0, 999.0, 1000.4, 1_234_567.0].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0.5, 2.0, 1500.0, 12_000.0, 2.5e6].map(short),
            ["0.5", "2", "1,500", "12k", "2.5M"]
        );
        let durations = [5.0, 1500.0, 12_340.0, 123_400.0, 1e6, 61.5e6, 125e6];
        assert_eq!(
            durations.map(duration),
            [
                "5 \u{b5}s",
                "1.5 ms",
                "12.3 ms",
                "123 ms",
                "1 s",
                "61.5 s",
                "2 min 05 s"
            ]
        );
        assert_eq!(percent(1, 1_000_000), "less than 0.01 %");
        assert_eq!(percent(1, 300), "0.33 %");
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(change(100.0, 125.0), "+25.0 %");
        assert_eq!(change(100.0, 50.0), "\u{2212}50.0 %");
        assert_eq!(change(100.0, 100.01), "equal");
        assert_eq!(change(1.0, 20.0), "20 times");
        assert_eq!(change(0.0, 20.0), "-");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0.0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_825_600.9), "2000-02-29 12:00:00 UTC");
        assert_eq!(date(1_795_834_915.0), "2026-11-28 03:01:55 UTC");
    }
}
