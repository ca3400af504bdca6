//! Error texts of the system in the form of all messages: a small first letter, no error number.

use std::io;

/// Changes the error texts of the system in a library's message:
/// `cannot open: Permission denied (os error 13)` becomes `cannot open: permission denied`.
pub fn without_error_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(" (os error ") {
        let Some((number, behind)) = behind.split_once(')') else { break };
        if number.is_empty() || number.bytes().any(|byte| !byte.is_ascii_digit()) {
            break;
        }
        let (start, words) = match before.rsplit_once(": ") {
            Some((start, words)) => (&before[..start.len() + 2], words),
            None => ("", before),
        };
        out.push_str(start);
        out.push_str(&lowercase(words));
        rest = behind;
    }
    out + rest
}

/// `No such file or directory (os error 2)` becomes `no such file or directory`.
pub(super) fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    lowercase(text.split(" (os error").next().unwrap_or_default())
}

/// Makes the first letter small, except in abbreviations.
fn lowercase(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_left_out() {
        let check = |text: &str, expected: &str| assert_eq!(without_error_numbers(text), expected);
        check("cannot open: Permission denied (os error 13)", "cannot open: permission denied");
        check("Input/output error (os error 5)", "input/output error");
        check("a: No space left on device (os error 28), b", "a: no space left on device, b");
        check("RDMA failed (os error 1)", "RDMA failed");
        check("an (os error of) ours: Kept", "an (os error of) ours: Kept");
    }
}
