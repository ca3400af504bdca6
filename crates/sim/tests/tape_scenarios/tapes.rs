//! The meaning that `device::tape::Tape` gives to all this.

use device::tape::{Access, Filemark, TapeRead, TapeWrite};

use crate::harness::{Harness, ROOM_BYTES, content};

pub fn meanings_of_reads(harness: &Harness) {
    let mut tape = harness.tape();
    assert_eq!(tape.write(&content(0, 4096)).unwrap(), TapeWrite::Whole);
    tape.write_filemark(Filemark::Immediate).unwrap();
    assert_eq!(tape.write(&content(1, 512)).unwrap(), TapeWrite::Whole);
    tape.write_filemark(Filemark::Synchronising).unwrap();
    tape.synchronise().unwrap();
    tape.rewind().unwrap();
    let mut buffer = vec![0; ROOM_BYTES];
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(4096));
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Filemark);
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(512));
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Filemark);
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::EndOfData);
}

pub fn meanings_of_writes(harness: &Harness) {
    let mut tape = harness.tape();
    let block = content(0, 1 << 20);
    let mut taken = 0;
    while tape.write(&block).unwrap() == TapeWrite::Whole {
        taken += 1;
        assert!(taken < 64, "the medium has no end");
    }
    assert_eq!(tape.write(&block).unwrap(), TapeWrite::Whole, "let through");
    assert_eq!(tape.write(&block).unwrap(), TapeWrite::EndOfMedium(0));
    tape.write_filemark(Filemark::Synchronising).unwrap();
}

pub fn larger_block_is_read_again(harness: &Harness) {
    let mut tape = harness.tape();
    tape.write(&content(0, 300_000)).unwrap();
    tape.write(&content(1, 512)).unwrap();
    tape.rewind().unwrap();
    let mut buffer = vec![0; 4096];
    while tape.read(&mut buffer).unwrap() == TapeRead::LargerBlock {
        buffer.resize(buffer.len() * 2, 0);
    }
    assert!(buffer[..300_000] == content(0, 300_000)[..]);
    assert_eq!(tape.read(&mut buffer).unwrap(), TapeRead::Block(512));
}

pub fn errors_name_the_place(harness: &Harness) {
    let mut tape = harness.tape();
    tape.write(&content(0, 512)).unwrap();
    drop(tape);
    let mut tape = harness.open(Access::Write).unwrap();
    tape.write(&content(0, 512)).unwrap();
    let error = tape.write(&content(0, harness.limits.1 + 1)).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("write"), "{said}");
    assert_eq!(error.place.file_number, Some(1), "{said}");
    assert_eq!(error.place.block_in_file, Some(1), "{said}");
}
