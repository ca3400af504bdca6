//! Any bytes as a page of the kernel's ring buffer, as the layout of pages and as that of an event.
//! Lengths in a page are claims; every event has to be within it.

use capture::trace::format::EventFormat;
use capture::trace::page::{Entries, Layout};

/// `events/header_page` of a kernel of 64 bits with pages of 4 KiB.
const HEADER_PAGE: &[u8] = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const EVENT: &[u8] = b"name: sys_enter_pread64\nID: 800\nformat:\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:loff_t pos;\toffset:40;\tsize:8;\tsigned:0;\n";

/// Checks one input.
pub fn check(input: &[u8]) {
    let event = EventFormat::parse(EVENT).expect("the format of an event");
    entries(&Layout::parse(HEADER_PAGE).expect("the layout of a page"), &event, input);
    // What the bytes say of a page, or of an event, holds of themselves as well.
    match (Layout::parse(input), EventFormat::parse(input)) {
        (Ok(layout), Ok(format)) => entries(&layout, &format, input),
        (Ok(layout), Err(error)) => {
            assert!(!error.to_string().is_empty());
            entries(&layout, &event, input);
        }
        (Err(error), _) => assert!(!error.to_string().is_empty()),
    }
}

fn entries(layout: &Layout, format: &EventFormat, page: &[u8]) {
    let Ok(entries) = Entries::of(layout, page) else { return };
    let mut count = 0;
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        };
        count += 1;
        let within = page.as_ptr_range();
        let own = entry.event.as_ptr_range();
        assert!(within.start <= own.start && own.end <= within.end && !entry.event.is_empty());
        for field in &format.fields {
            let fits = field.offset.saturating_add(field.size.min(8)) <= entry.event.len();
            assert_eq!(field.value(entry.event).is_some(), fits);
        }
    }
    // Each of them has four bytes of its own at least.
    assert!(count <= page.len() / 4);
}
