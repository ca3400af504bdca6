//! Random operations on the drive in this process, against a tape that is a list and a number.

use device::tape::raw::{MtOperation, RawTape};
use proptest::prelude::*;
use sim::tape::{
    Cartridge, Object, OnClose, OpenDirection, OpenMode, Readiness, VirtualDrive, VirtualTape,
};

use crate::harness::content;

#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize),
    Read,
    Filemarks(i32),
    ImmediateFilemark,
    Rewind,
    ForwardFilemarks(i32),
    BackwardFilemarks(i32),
    ForwardBlocks(i32),
    BackwardBlocks(i32),
    EndOfData,
    Seek(i32),
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1..3000_usize).prop_map(Act::Write),
        6 => Just(Act::Read),
        2 => (0..3).prop_map(Act::Filemarks),
        1 => Just(Act::ImmediateFilemark),
        2 => Just(Act::Rewind),
        2 => (1..4).prop_map(Act::ForwardFilemarks),
        2 => (1..4).prop_map(Act::BackwardFilemarks),
        2 => (1..6).prop_map(Act::ForwardBlocks),
        2 => (1..6).prop_map(Act::BackwardBlocks),
        1 => Just(Act::EndOfData),
        2 => (0..30).prop_map(Act::Seek),
        1 => Just(Act::Close),
    ]
}

/// A tape as st.rst explains it to people.
#[derive(Default)]
struct Naive {
    objects: Vec<Object>,
    position: usize,
    /// The last thing was a write, so that some operations write a filemark first.
    writing: bool,
    written: u64,
}

impl Naive {
    fn put(&mut self, object: Object) {
        self.objects.truncate(self.position);
        self.objects.push(object);
        self.position += 1;
    }

    fn is_filemark(&self, at: usize) -> bool {
        self.objects[at] == Object::Filemark
    }

    /// Executes it, and returns the result of a read: the block, or nothing.
    fn act(&mut self, act: Act) -> Option<Vec<u8>> {
        let ends_the_file =
            matches!(act, Act::Rewind | Act::BackwardFilemarks(_) | Act::Seek(_) | Act::Close);
        let was_writing = std::mem::take(&mut self.writing);
        if was_writing && ends_the_file {
            self.put(Object::Filemark);
        }
        match act {
            Act::Write(bytes) => {
                self.put(Object::Block(content(self.written, bytes)));
                self.written += 1;
                self.writing = true;
            }
            Act::Read => {
                let object = self.objects.get(self.position).cloned();
                self.position += usize::from(object.is_some());
                if let Some(Object::Block(block)) = object {
                    return Some(block);
                }
            }
            Act::Filemarks(count) => (0..count).for_each(|_| self.put(Object::Filemark)),
            Act::ImmediateFilemark => self.put(Object::Filemark),
            Act::Rewind => self.position = 0,
            Act::ForwardFilemarks(mut count) => {
                while count > 0 && self.position < self.objects.len() {
                    count -= i32::from(self.is_filemark(self.position));
                    self.position += 1;
                }
            }
            Act::BackwardFilemarks(count) => {
                // Over the one that was just written, too.
                let mut count = count + i32::from(was_writing);
                while count > 0 && self.position > 0 {
                    self.position -= 1;
                    count -= i32::from(self.is_filemark(self.position));
                }
            }
            Act::ForwardBlocks(count) => {
                for _ in 0..count {
                    if self.position == self.objects.len() {
                        break;
                    }
                    self.position += 1;
                    if self.is_filemark(self.position - 1) {
                        break;
                    }
                }
            }
            Act::BackwardBlocks(count) => {
                for _ in 0..count {
                    if self.position == 0 {
                        break;
                    }
                    self.position -= 1;
                    if self.is_filemark(self.position) {
                        break;
                    }
                }
            }
            Act::EndOfData => self.position = self.objects.len(),
            Act::Seek(position) => self.position = (position as usize).min(self.objects.len()),
            Act::Close => {}
        }
        None
    }
}

fn open(drive: &VirtualDrive) -> VirtualTape {
    let mode = OpenMode {
        direction: OpenDirection::ReadWrite,
        readiness: Readiness::Needed,
        on_close: OnClose::Stay,
    };
    drive.open_raw(mode).unwrap()
}

/// Executes it on the drive; partial success of the operation may be an error.
fn act_on(tape: &mut VirtualTape, act: Act, written: u64) -> Option<Vec<u8>> {
    let mut operate = |operation, count| drop(tape.operate(operation, count));
    match act {
        Act::Write(bytes) => assert_eq!(tape.write(&content(written, bytes)).unwrap(), bytes),
        Act::Read => {
            let mut buffer = vec![0; 4096];
            let bytes = tape.read(&mut buffer).unwrap_or(0);
            buffer.truncate(bytes);
            return (bytes > 0).then_some(buffer);
        }
        Act::Filemarks(count) => tape.operate(MtOperation::WriteFilemarks, count).unwrap(),
        Act::ImmediateFilemark => tape.operate(MtOperation::WriteFilemarksImmediate, 1).unwrap(),
        Act::Rewind => tape.operate(MtOperation::Rewind, 1).unwrap(),
        Act::ForwardFilemarks(count) => operate(MtOperation::ForwardFilemarks, count),
        Act::BackwardFilemarks(count) => operate(MtOperation::BackwardFilemarks, count),
        Act::ForwardBlocks(count) => operate(MtOperation::ForwardBlocks, count),
        Act::BackwardBlocks(count) => operate(MtOperation::BackwardBlocks, count),
        Act::EndOfData => tape.operate(MtOperation::EndOfData, 1).unwrap(),
        Act::Seek(position) => operate(MtOperation::Seek, position),
        Act::Close => {}
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_tape_is_a_list_and_a_number(acts in prop::collection::vec(act(), 1..60)) {
        let cartridge = Cartridge::of_capacity(64 << 20);
        let drive = VirtualDrive::loaded(cartridge.clone());
        let mut tape = open(&drive);
        let mut naive = Naive::default();
        for (number, act) in acts.into_iter().enumerate() {
            let got = act_on(&mut tape, act, naive.written);
            if matches!(act, Act::Close) {
                tape.close().unwrap();
                tape = open(&drive);
            }
            let expected = naive.act(act);
            prop_assert_eq!(got, expected, "{}: {:?}", number, act);
            prop_assert_eq!(drive.position(), naive.position as u64, "{}: {:?}", number, act);
            let status = tape.status().unwrap();
            if status.file_number >= 0 && status.block_number >= 0 {
                let before = &naive.objects[..naive.position];
                let files = before.iter().filter(|object| **object == Object::Filemark).count();
                prop_assert_eq!(status.file_number as usize, files, "{}: {:?}", number, act);
            }
        }
        drop(tape);
        naive.act(Act::Close);
        prop_assert_eq!(cartridge.objects().unwrap(), naive.objects);
    }
}
