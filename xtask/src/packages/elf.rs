//! The newest glibc that a program needs: over all versions of symbols that it refers to. Knows `objdump`.

use std::path::Path;
use std::process::Command;

use super::cannot;

/// Major and minor number.
pub(crate) type Version = (u32, u32);

/// Nothing for a program that is linked with no library of the system.
///
/// # Errors
/// `objdump` cannot be started, or does not take the file.
pub(crate) fn glibc(program: &Path) -> Result<Option<Version>, String> {
    let output = Command::new("objdump").arg("-p").arg(program).output().map_err(|error| cannot("run objdump on", program, &error))?;
    if !output.status.success() {
        return Err(format!("objdump does not read {}: {}", program.display(), String::from_utf8_lossy(&output.stderr)));
    }
    newest(&String::from_utf8_lossy(&output.stdout)).map_err(|why| format!("{}: {why}", program.display()))
}

/// From the references in what `objdump -p` prints.
fn newest(text: &str) -> Result<Option<Version>, String> {
    let mut versions = Vec::new();
    for word in text.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_")) {
        let mut numbers = word.split('.').map(|number| number.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) => versions.push((major, minor)),
            _ => return Err(format!("GLIBC_{word} is no number")),
        }
    }
    if versions.is_empty() && text.contains("NEEDED") {
        return Err("needs libraries, but no version of glibc is named".into());
    }
    Ok(versions.into_iter().max())
}

/// # Errors
/// A program needs a newer glibc than promised.
pub(crate) fn judge(needs: &[(&str, Option<Version>)], newest: Version) -> Result<(), String> {
    match needs.iter().find_map(|(name, needed)| needed.filter(|needed| *needed > newest).map(|needed| (name, needed))) {
        None => Ok(()),
        Some((name, (major, minor))) => Err(format!("{name} needs glibc {major}.{minor}; {}.{} is promised", newest.0, newest.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_reference_counts() {
        let reference = |version: &str| {
            format!(
                "Version References:\n  required from libc.so.6:\n    0x09691a75 0x00 12 GLIBC_2.2.5\n    0x06969188 0x00 14 GLIBC_{version}\n"
            )
        };
        assert_eq!(newest(&reference("2.28")), Ok(Some((2, 28))));
        assert_eq!(newest(&reference("2.3.4")), Ok(Some((2, 3))));
        assert_eq!(newest("no dynamic section"), Ok(None));
        assert!(newest("NEEDED libc.so.6").is_err() && newest("GLIBC_PRIVATE").is_err());
        assert!(judge(&[("a", Some((2, 28))), ("b", None)], (2, 28)).is_ok());
        assert_eq!(judge(&[("a", Some((2, 34)))], (2, 28)), Err("a needs glibc 2.34; 2.28 is promised".into()));
    }
}
