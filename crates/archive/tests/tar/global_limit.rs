//! The limit on global records: what it counts, and that setting one again costs nothing more.
//!
//! Global records are applied to every member behind them, so an archive could make each member as
//! expensive as it likes. The limit must stop that, and must not refuse an archive that sets the
//! same few records again and again, as `pax` does for each folder.

use crate::header_fixtures::{Header, record};
use crate::read_all::{Item, read_with};
use archive::decode::{DecodeError, DecodeLimits, Decoder, GLOBAL_RECORD_BYTES};

/// A global header with one record.
fn global(keyword: &str, value: &[u8]) -> Vec<u8> {
    let record = record(keyword, value);
    Header::ustar("x", record.len() as u64, b'g').with(&record)
}

/// The errors of an archive, and the user and attributes of the file at its end.
fn read_file(archive: &[Vec<u8>], limit: u64) -> (Vec<DecodeError>, Vec<u8>, Vec<Vec<u8>>) {
    let limits = DecodeLimits { global_bytes_max: limit, ..DecodeLimits::default() };
    let file = Header::ustar("file", 0, b'0').with(b"");
    let mut items = read_with(Decoder::new(limits), &[archive.concat(), file].concat());
    let Some(Item::Member { member, .. }) = items.pop() else { panic!("no file at the end") };
    let error = |item| match item {
        Item::Error(error) => Some(error),
        _ => None,
    };
    let errors = items.into_iter().filter_map(error).collect();
    (errors, member.user, member.xattrs.into_iter().map(|(_, value)| value).collect())
}

/// The cost of a record with that keyword and length.
fn cost(keyword: &str, value_bytes: usize) -> u64 {
    (keyword.len() + value_bytes) as u64 + GLOBAL_RECORD_BYTES
}

#[test]
fn a_record_that_is_set_again_and_again_takes_no_more_room() {
    let many: Vec<Vec<u8>> = (0..500)
        .map(|number| global("uname", format!("user of folder {number}").as_bytes()))
        .collect();
    let (errors, user, _) = read_file(&many, DecodeLimits::default().global_bytes_max);
    assert_eq!(errors, []);
    assert_eq!(user, b"user of folder 499");
}

#[test]
fn records_up_to_the_limit_are_taken_and_none_beyond() {
    let two = [global("uname", &[b'u'; 300]), global("gname", &[b'g'; 200])];
    let limit = cost("uname", 300) + cost("gname", 200);
    let (errors, user, _) = read_file(&two, limit);
    assert_eq!((errors, user), (vec![], vec![b'u'; 300]));

    let (errors, user, _) = read_file(&two, limit - 1);
    let refused = DecodeError::ExtendedTooLarge { bytes: limit, limit_bytes: limit - 1 };
    // Earlier records stay valid.
    assert_eq!((errors, user), (vec![refused], vec![b'u'; 300]));
}

#[test]
fn many_short_records_cost_as_much_as_one_long_one() {
    let many: Vec<Vec<u8>> =
        (0..100).map(|number| global(&format!("SCHILY.xattr.user.{number:02}"), b"")).collect();
    let (errors, ..) = read_file(&many, DecodeLimits::default().global_bytes_max);
    let taken = DecodeLimits::default().global_bytes_max / cost("SCHILY.xattr.user.00", 0);
    assert_eq!(errors.len() as u64, 100 - taken);
}

#[test]
fn a_shorter_value_gives_room_back_and_a_longer_one_takes_it() {
    let limit = cost("uname", 100) + cost("gname", 200);
    let shorter = [
        global("uname", &[b'u'; 250]),
        global("uname", &[b'v'; 100]),
        global("gname", &[b'g'; 200]),
    ];
    let (errors, user, _) = read_file(&shorter, limit);
    assert_eq!((errors, user), (vec![], vec![b'v'; 100]));

    let longer = [
        global("uname", &[b'u'; 100]),
        global("gname", &[b'g'; 200]),
        global("uname", &[b'v'; 101]),
    ];
    let (errors, user, _) = read_file(&longer, limit);
    let refused = DecodeError::ExtendedTooLarge { bytes: limit + 1, limit_bytes: limit };
    assert_eq!((errors, user), (vec![refused], vec![b'u'; 100]));
}

#[test]
fn of_two_spellings_of_an_attribute_the_later_record_holds() {
    let schily = |value: &[u8]| global("SCHILY.xattr.user.a", value);
    // "libarchive's" in base64.
    let libarchive = || global("LIBARCHIVE.xattr.user.a", b"bGliYXJjaGl2ZSdz");
    let attributes = |archive: &[Vec<u8>]| {
        let (errors, _, attributes) = read_file(archive, DecodeLimits::default().global_bytes_max);
        assert_eq!(errors, []);
        attributes
    };
    assert_eq!(attributes(&[schily(b"by star"), libarchive()]), [b"libarchive's"]);
    assert_eq!(attributes(&[libarchive(), schily(b"by star")]), [b"by star"]);
    let again = [schily(b"by star"), libarchive(), schily(b"by star again")];
    assert_eq!(attributes(&again), [b"by star again"]);
}
