//! The layout of an event, from its `format` file (Documentation/trace/events.rst).
//!
//! Types, offsets and numbers of fields differ between kernels; only their names are known before.

use crate::trace::error::LayoutError;

/// Limits on the fields of an event, and on the bytes that they are in.
const FIELDS_MAX: usize = 256;
const EVENT_BYTES_MAX: usize = 1 << 16;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without the size of an array.
    pub name: String,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    pub is_signed: bool,
}

impl Field {
    /// Its value, sign-extended; the first 8 bytes of a longer field. `None` if the event ends
    /// before it.
    pub fn value(&self, event: &[u8]) -> Option<u64> {
        let value = place(event, self.offset, self.size)?;
        if !self.is_signed || self.size >= 8 || self.size == 0 {
            return Some(value);
        }
        let unused = 64 - 8 * self.size;
        Some((((value << unused).cast_signed()) >> unused).cast_unsigned())
    }
}

/// A number of `size` bytes (8 at most), in the byte order of this machine.
pub(crate) fn place(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let size = size.min(8);
    let found = bytes.get(offset..offset.checked_add(size)?)?;
    let mut whole = [0; 8];
    let from = if cfg!(target_endian = "big") { 8 - size } else { 0 };
    whole[from..from + size].copy_from_slice(found);
    Some(u64::from_ne_bytes(whole))
}

/// An event's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The ID that events of its kind begin with.
    pub number: u16,
    /// Its fields, including those that all events have.
    pub fields: Vec<Field>,
}

impl EventFormat {
    /// From the text of a `format` file.
    ///
    /// ```
    /// use capture::trace::format::EventFormat;
    ///
    /// let text = b"name: sys_exit_read\nID: 835\nformat:\n\
    ///     \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    ///     \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\nprint fmt: \"0x%lx\", REC->ret\n";
    /// let format = EventFormat::parse(text)?;
    /// assert_eq!(format.number, 835);
    /// assert_eq!(format.field("ret").map(|it| it.offset), Some(16));
    /// # Ok::<(), capture::trace::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// When it has no number, or a field of it no place.
    pub fn parse(text: &[u8]) -> Result<EventFormat, LayoutError> {
        let text = String::from_utf8_lossy(text);
        let number = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let number = number.and_then(|it| it.trim().parse().ok()).ok_or(LayoutError::NoNumber)?;
        Ok(EventFormat { number, fields: fields(&text)? })
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The fields in the lines of a text; lines that speak of something else are skipped.
pub(crate) fn fields(text: &str) -> Result<Vec<Field>, LayoutError> {
    let mut found = Vec::new();
    for line in text.lines().take_while(|line| !line.starts_with("print fmt")) {
        let Some(rest) = line.trim().strip_prefix("field:") else { continue };
        let field = field(rest).ok_or_else(|| LayoutError::Field(line.trim().to_owned()))?;
        if found.len() == FIELDS_MAX {
            return Err(LayoutError::TooManyFields);
        }
        found.push(field);
    }
    Ok(found)
}

fn field(text: &str) -> Option<Field> {
    let mut parts = text.split(';');
    let declared = parts.next()?.trim();
    // `char rwbs[10]` is an array, `__data_loc char[] op_str` a type.
    let declared = match declared.split_once('[') {
        Some((before, behind)) if !behind.contains(' ') => before,
        _ => declared,
    };
    let name = declared.trim().rsplit([' ', '*']).next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        let Some((key, value)) = part.trim().split_once(':') else { continue };
        let number = value.trim().parse::<usize>().ok();
        match key {
            "offset" => offset = number,
            "size" => size = number,
            "signed" => is_signed = number == Some(1),
            _ => {}
        }
    }
    let (offset, size) = (offset?, size?);
    let end = offset.checked_add(size)?;
    if name.is_empty() || end > EVENT_BYTES_MAX {
        return None;
    }
    Some(Field { name: name.to_owned(), offset, size, is_signed })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUBMIT: &[u8] = b"name: io_uring_submit_req\nID: 2140\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:void * ctx;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] op_str;\toffset:52;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"field: %p\", REC->ctx\n";

    #[test]
    fn names_lose_their_types_and_sizes() {
        let format = EventFormat::parse(SUBMIT).unwrap();
        let names: Vec<&str> = format.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["common_type", "common_pid", "ctx", "rwbs", "op_str"]);
        assert_eq!(format.number, 2140);
        assert!(format.field("common_pid").unwrap().is_signed);
    }

    #[test]
    fn what_has_no_place_is_refused() {
        assert_eq!(EventFormat::parse(b"name: x\n"), Err(LayoutError::NoNumber));
        let check =
            |field: &str| EventFormat::parse(format!("ID: 1\n\tfield:{field}\n").as_bytes());
        assert!(matches!(check("int a; size:4;"), Err(LayoutError::Field(_))));
        assert!(matches!(check("int a; offset:-1; size:4;"), Err(LayoutError::Field(_))));
        assert!(matches!(check("; offset:1; size:4;"), Err(LayoutError::Field(_))));
        assert!(matches!(check("int a; offset:65536; size:4;"), Err(LayoutError::Field(_))));
        let many = "\tfield:int a;\toffset:0;\tsize:4;\n".repeat(257);
        let many = format!("ID: 1\n{many}");
        assert_eq!(EventFormat::parse(many.as_bytes()), Err(LayoutError::TooManyFields));
    }

    #[test]
    fn a_sign_is_extended_and_an_end_is_respected() {
        let field = |offset, size, is_signed| Field { name: "x".into(), offset, size, is_signed };
        let bytes = (-5_i32).to_ne_bytes();
        assert_eq!(field(0, 4, true).value(&bytes), Some((-5_i64).cast_unsigned()));
        assert_eq!(field(0, 4, false).value(&bytes), Some(u64::from((-5_i32).cast_unsigned())));
        assert_eq!(field(1, 4, false).value(&bytes), None);
        assert_eq!(field(usize::MAX, 4, false).value(&bytes), None);
        assert_eq!(field(0, 0, true).value(&bytes), Some(0));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(ID: [0-9]{1,6}\n)?(\tfield:.{0,40};?\n){0,4}.{0,80}") {
            let _ = EventFormat::parse(text.as_bytes());
        }
    }
}
