//! Sizes as people type them: `64KiB`, `16M`, `1.5MB`, and bare bytes.

/// # Errors
/// Says what a size looks like.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a valid size: write one such as 64KiB, 16MiB or 1MB; a bare number counts bytes");
    let number_length = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_length);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let scale: u32 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let bytes = number * f64::from(scale);
    if bytes < 1.0 {
        return Err("a size is at least one byte".into());
    }
    if bytes > f64::from(LARGEST) {
        return Err(format!("`{text}` is more than 2GiB, which mcproof does not keep in memory"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and LARGEST, as was just checked")]
    Ok(bytes as usize)
}

const LARGEST: u32 = 2 << 30;

/// The same for the head of a response, which hyper reads into no less than this.
///
/// # Errors
/// It is no size, or too small.
pub fn parse_head_size(text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        bytes if bytes < 8192 => Err("the head of a response may always have 8KiB".into()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_type_them() {
        let check = |text, bytes: Option<usize>| assert_eq!(parse_size(text).ok(), bytes, "{text:?}");
        check("100", Some(100));
        check("64KiB", Some(65_536));
        check("64k", Some(65_536));
        check("1.5 MiB", Some(1_572_864));
        check("16M", Some(16_777_216));
        check("1GB", Some(1_000_000_000));
        check("10kb", Some(10_000));
        check("2G", Some(2_147_483_648));
        for text in ["", "0", "M", "-1", "3G", "5 days", "1e3", "1.2.3k", "many"] {
            check(text, None);
        }
        assert!(parse_head_size("1k").is_err());
        assert_eq!(parse_head_size("8KiB"), Ok(8192));
    }
}
