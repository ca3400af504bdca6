//! Values of a job's options: sizes, times, numbers, lists of names, and `${NAME}`.

use std::time::Duration;

use super::fault::LineFault;

/// Longest name of a section; fio cuts it at 255 bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// Most jobs of a section, and files of a job.
pub const NUMBER_MAX: u64 = 1_000_000;

/// Bytes, and percents of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeOrPercent {
    /// Bytes, where a number of them is given.
    pub bytes: Option<u64>,
    /// Percents of the file.
    pub percent: u64,
}

impl SizeOrPercent {
    /// Takes a value of fio's: a size, or a percentage.
    pub fn add(&mut self, value: &str) -> Result<(), LineFault> {
        match value.strip_suffix('%') {
            Some(number) => {
                let number: u64 = number.parse().map_err(|_| LineFault::Share)?;
                self.percent = self.percent.max(number);
            }
            None => {
                let bytes = bytes(value).ok_or(LineFault::Size)?;
                self.bytes = Some(bytes.max(self.bytes.unwrap_or(0)));
            }
        }
        Ok(())
    }

    /// A number of bytes takes the place of another one; a percentage stays beside it.
    pub fn over(self, general: SizeOrPercent) -> SizeOrPercent {
        SizeOrPercent {
            bytes: self.bytes.or(general.bytes),
            percent: self.percent.max(general.percent),
        }
    }

    /// Bytes of a file of so many, at most.
    pub fn of_file(self, file_bytes: u64) -> u64 {
        let share = u128::from(file_bytes) * u128::from(self.percent) / 100;
        self.bytes.unwrap_or(0).max(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// Names that are divided by colons; one with a backslash before it is part of a name.
pub fn names(text: &str) -> Result<Vec<String>, LineFault> {
    let mut names = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let name = names.last_mut().expect("there is one from the start");
        match letter {
            '\\' if letters.peek() == Some(&':') => name.extend(letters.next()),
            ':' => names.push(String::new()),
            // The rest is looked at when the name is known in full.
            _ => name.push(letter),
        }
    }
    let is_odd = |name: &String| name.is_empty() || name == "-" || name.contains(['$', '`', '"']);
    if names.iter().any(is_odd) { Err(LineFault::Files) } else { Ok(names) }
}

/// A plain number of jobs or files.
pub fn number(text: &str) -> Result<u64, LineFault> {
    let number: Option<u64> = text.parse().ok();
    number.filter(|number| (1..=NUMBER_MAX).contains(number)).ok_or(LineFault::Number)
}

/// Whether all names that it makes stay in their folder.
pub fn is_harmless_format(text: &str) -> bool {
    let known = ["$jobname", "$jobnum", "$filenum"];
    let rest = known.iter().fold(text.to_owned(), |rest, keyword| rest.replace(keyword, ""));
    !text.is_empty() && rest.chars().all(is_plain_letter)
}

/// Whether a letter means nothing but itself in a name.
pub fn is_plain_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.% ".contains(letter)
}

/// Whether a letter means nothing but itself in a value.
pub fn is_plain_value(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.,:/%+ ".contains(letter)
}

/// fio's sizes (fio(1), "parameter types"): powers of 1024, or of 1000 with `kB`, which is fewer.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok().filter(|number| *number > 0)?;
    let power = match &text[end..] {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 1,
        "m" | "mb" | "mi" | "mib" => 2,
        "g" | "gb" | "gi" | "gib" => 3,
        "t" | "tb" | "ti" | "tib" => 4,
        // Zones of a length that is not known here: more than any file has.
        "z" => return Some(u64::MAX >> 8),
        _ => return None,
    };
    number.checked_mul(1024u64.pow(power))
}

/// fio's times (fio(1), "parameter types"): seconds, unless a unit says otherwise.
pub fn time(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u32 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "" | "s" => Duration::from_secs(1),
        "ms" => Duration::from_millis(1),
        "us" => Duration::from_micros(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    unit.checked_mul(number)
}

/// A value with each `${NAME}` replaced, as fio does it; what it becomes is checked afterwards like
/// any other value.
pub fn expanded(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, LineFault> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let (name, after) = behind.split_once('}').ok_or(LineFault::Value)?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(LineFault::Value);
        }
        let value = variable(name).filter(|value| !value.is_empty());
        whole.push_str(before);
        whole.push_str(&value.ok_or_else(|| LineFault::Variable(name.to_owned()))?);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}
