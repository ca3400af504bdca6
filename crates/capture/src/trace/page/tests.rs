//! Pages made by hand, against a naive writer of them, and pages of anything.

use proptest::prelude::*;

use super::*;

const HEADER_PAGE: &[u8] = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

fn layout() -> Layout {
    Layout::parse(HEADER_PAGE).unwrap()
}

fn header(kind: u32, delta: u64) -> [u8; 4] {
    let delta = u32::try_from(delta).unwrap();
    assert!(delta < 1 << DELTA_BITS);
    let word =
        if cfg!(target_endian = "big") { kind << DELTA_BITS | delta } else { delta << 5 | kind };
    word.to_ne_bytes()
}

/// A page as the kernel writes it, of times and contents.
fn page(time_ns: u64, events: &[(u64, Vec<u8>)], missed: Option<u64>) -> Vec<u8> {
    let mut data = Vec::new();
    let mut now = time_ns;
    for (time, content) in events {
        let mut delta = time - now;
        if delta >> DELTA_BITS != 0 {
            data.extend(header(TIME_EXTEND, delta & ((1 << DELTA_BITS) - 1)));
            data.extend(u32::try_from(delta >> DELTA_BITS).unwrap().to_ne_bytes());
            delta = 0;
        }
        let words = content.len().div_ceil(4);
        let mut content = content.clone();
        content.resize(words * 4, 0);
        if (1..=28).contains(&words) {
            data.extend(header(u32::try_from(words).unwrap(), delta));
        } else {
            data.extend(header(0, delta));
            data.extend(u32::try_from(content.len() + 4).unwrap().to_ne_bytes());
        }
        data.extend(content);
        now = *time;
    }
    let mut commit = data.len() as u64;
    if let Some(count) = missed {
        commit |= MISSED | MISSED_STORED;
        data.extend(count.to_ne_bytes());
    }
    [time_ns.to_ne_bytes().to_vec(), commit.to_ne_bytes().to_vec(), data].concat()
}

fn times_and_events(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let entries = Entries::of(&layout(), page).unwrap();
    entries.map(|entry| entry.unwrap()).map(|it| (it.time_ns, it.event.to_vec())).collect()
}

#[test]
fn a_page_of_this_kernel_has_its_parts() {
    assert_eq!(layout().page_bytes, 4096);
    assert!(Layout::parse(b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\n").is_err());
}

#[test]
fn what_was_lost_in_front_of_it_is_told() {
    let one = [(7, vec![1, 2, 3, 4])];
    let layout = layout();
    let missed = |page: &[u8]| Entries::of(&layout, page).unwrap().missed;
    assert_eq!(missed(&page(5, &one, None)), None);
    assert_eq!(missed(&page(5, &one, Some(44))), Some(Some(44)));
    let mut uncounted = page(5, &one, None);
    let commit = 8 | MISSED;
    uncounted[8..16].copy_from_slice(&commit.to_ne_bytes());
    assert_eq!(missed(&uncounted), Some(None));
    assert_eq!(times_and_events(&uncounted), one);
}

#[test]
fn padding_takes_time_and_no_room_behind_the_last_event() {
    let mut data = Vec::new();
    data.extend(header(PADDING, 10));
    data.extend(8_u32.to_ne_bytes());
    data.extend([9; 4]);
    data.extend(header(1, 5));
    data.extend([1; 4]);
    data.extend(header(PADDING, 0));
    data.extend([7; 40]);
    let commit = data.len() as u64;
    let whole = [100_u64.to_ne_bytes().to_vec(), commit.to_ne_bytes().to_vec(), data].concat();
    assert_eq!(times_and_events(&whole), [(115, vec![1; 4])]);
}

#[test]
fn a_time_stamp_keeps_the_bits_that_it_has_not() {
    let mut data = Vec::new();
    data.extend(header(TIME_STAMP, 3));
    data.extend(2_u32.to_ne_bytes());
    data.extend(header(1, 1));
    data.extend([1; 4]);
    let commit = data.len() as u64;
    let begun = 5_u64 << STAMP_BITS | 77;
    let whole = [begun.to_ne_bytes().to_vec(), commit.to_ne_bytes().to_vec(), data].concat();
    let expected = (5_u64 << STAMP_BITS) + (2 << DELTA_BITS) + 4;
    assert_eq!(times_and_events(&whole), [(expected, vec![1; 4])]);
}

#[test]
fn what_ends_too_early_is_an_error_and_the_end() {
    let layout = layout();
    let check = |page: &[u8]| Entries::of(&layout, page).map(|_| ()).unwrap_err();
    assert_eq!(check(&[0; 15]), LayoutError::ShortPage(15));
    let mut long = page(5, &[(7, vec![1; 4])], None);
    long[8..16].copy_from_slice(&500_u64.to_ne_bytes());
    assert_eq!(check(&long), LayoutError::PageLength { said: 500, has: 8 });
    let mut beyond = page(5, &[(7, vec![1; 4]), (8, vec![2; 4])], None);
    beyond[24..28].copy_from_slice(&header(28, 1));
    let all: Vec<_> = Entries::of(&layout, &beyond).unwrap().collect();
    assert_eq!(all.len(), 2);
    assert_eq!(all[1], Err(LayoutError::PageEntry(8)));
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        begun in 0_u64..1 << 50,
        events in prop::collection::vec(
            (0_u64..1 << 33, prop::collection::vec(any::<u8>(), 1..300)),
            0..12,
        ),
        missed in prop::option::of(any::<u64>()),
    ) {
        let mut now = begun;
        let written: Vec<(u64, Vec<u8>)> = events
            .into_iter()
            .map(|(delta, mut content)| {
                now += delta;
                content.resize(content.len().next_multiple_of(4), 0);
                (now, content)
            })
            .collect();
        let page = page(begun, &written, missed);
        prop_assert_eq!(times_and_events(&page), written);
        prop_assert_eq!(Entries::of(&layout(), &page).unwrap().missed, missed.map(Some));
    }

    #[test]
    fn no_page_panics_or_goes_on_for_ever(
        commit in prop::option::of(0_u64..5000),
        mut page in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        if let (Some(commit), true) = (commit, page.len() >= 16) {
            page[8..16].copy_from_slice(&commit.to_ne_bytes());
        }
        if let Ok(entries) = Entries::of(&layout(), &page) {
            prop_assert!(entries.count() <= page.len());
        }
    }
}
