//! Runs on a drive of `sim` in this process, where every object on the medium can be seen and
//! faults can be ordered, and on targets that are no tape.
#![allow(clippy::unwrap_used)]

mod media;
mod plain;
mod runs;

use device::tape::{Access, Filemark, TapeDrive};
use experiment::plan::{Plan, Stop};
use experiment::record::{Cell, Factor, Level, Role, RunRecord};
use experiment::run::Executor;
use flow::cancel::Cancel;
use loads::tape::{TapeBenchError, TapeExecutor, TapeOptions};
use sim::tape::{Cartridge, Object, VirtualDrive};

/// Bytes of a MiB.
pub const MIB: u64 = 1 << 20;

/// A cell of these levels.
pub fn cell(levels: &[(&str, &str)]) -> Cell {
    let level = |text: &str| match text.parse() {
        Ok(number) => Level::Number(number),
        Err(_) => Level::Text(text.to_owned()),
    };
    levels.iter().map(|(name, text)| ((*name).to_owned(), level(text))).collect()
}

/// A plan with these factors, of files of 3 MiB in blocks of 64 KiB where they do not say.
pub fn plan(path: &str, factors: &[(&str, &[&str])]) -> Plan {
    let mut all: Vec<(&str, &[&str])> = factors.to_vec();
    if !factors.iter().any(|(name, _)| *name == "block_bytes") {
        all.push(("block_bytes", &["65536"]));
    }
    let factor = |(name, levels): &(&str, &[&str])| {
        let levels = levels.iter().map(|level| cell(&[(name, level)])[*name].clone()).collect();
        Factor { name: (*name).to_owned(), levels, role: Role::Setting, present: None }
    };
    Plan {
        kind: "tape".into(),
        title: String::new(),
        paths: vec![path.to_owned()],
        length_bytes: 3 * MIB,
        seed: 5,
        stop: Stop::default(),
        random_reads: 0,
        run_seconds: 0.0,
        commands: None,
        factors: all.iter().map(factor).collect(),
    }
}

/// An executor on a drive in this process.
pub fn executor(
    drive: &VirtualDrive,
    factors: &[(&str, &[&str])],
    options: TapeOptions,
) -> Result<TapeExecutor, TapeBenchError> {
    TapeExecutor::on_drive(Box::new(drive.clone()), &plan("drive", factors), options)
}

/// Runs the first cell of the plan that `factors` make, so many times.
pub fn runs(
    executor: &mut TapeExecutor,
    factors: &[(&str, &[&str])],
    count: usize,
) -> Vec<Result<RunRecord, TapeBenchError>> {
    let cell = plan("drive", factors).cells()[0].clone();
    (0..count).map(|_| executor.execute(&cell, &Cancel::new())).collect()
}

/// What is on the medium: lengths of blocks, 0 for a filemark.
pub fn objects(cartridge: &Cartridge) -> Vec<usize> {
    let length = |object: &Object| match object {
        Object::Block(block) => block.len(),
        Object::Filemark => 0,
    };
    cartridge.objects().unwrap().iter().map(length).collect()
}

/// Files on the medium: blocks before each filemark, and behind the last one.
pub fn files(cartridge: &Cartridge) -> Vec<usize> {
    objects(cartridge).split(|&length| length == 0).map(<[usize]>::len).collect()
}

/// Writes blocks of other data, and a filemark.
pub fn write_foreign(drive: &VirtualDrive, blocks: usize) {
    let mut tape = drive.open(Access::Write).unwrap();
    for _ in 0..blocks {
        tape.write(&[7; 10_240]).unwrap();
    }
    tape.write_filemark(Filemark::Synchronising).unwrap();
}
