//! One table of scenarios for every tape: the drive in this process, the kernel's driver in the
//! lab, the virtual drive behind FUSE. The drive in this process behaves like the real driver,
//! because both pass this table.
//!
//! `cargo test -p sim --test tape_scenarios` runs it in this process; see [`harness`] for others.

#![allow(clippy::unwrap_used)]

mod blocks;
mod ends;
mod faults;
mod filemarks;
mod harness;
mod media;
mod motion;
mod random;
mod tapes;

use harness::{Harness, Kind, Medium, Place};

/// A line of the table.
struct Scenario {
    medium: Medium,
    /// Where it cannot hold, and why.
    except: &'static [(Kind, &'static str)],
    run: fn(&Harness),
}

impl Scenario {
    fn check(&self, place: Place) {
        let harness = match Harness::new(place, self.medium) {
            Ok(harness) => harness,
            Err(reason) => testkit::does_not_apply!(reason),
        };
        match self.except.iter().find(|(kind, _)| *kind == harness.kind) {
            Some((_, reason)) => testkit::does_not_apply!(reason),
            None => (self.run)(&harness),
        }
    }
}

macro_rules! scenarios {
    (
        everywhere { $($group:ident :: $name:ident, $medium:expr, [$($except:expr),*];)* }
        on_the_drive { $($own_group:ident :: $own:ident;)* }
    ) => {
        $(#[test]
        fn $name() {
            Scenario { medium: $medium, except: &[$($except),*], run: $group::$name }
                .check(Place::Drive);
        })*

        $(#[test]
        fn $own() {
            Scenario { medium: Medium::Broken, except: &[], run: $own_group::$own }
                .check(Place::Drive);
        })*

        /// The same, with FUSE between; faults are seen without a folder.
        mod folder {
            use super::*;

            $(#[test]
            fn $name() {
                testkit::require!(Fuse);
                Scenario { medium: $medium, except: &[$($except),*], run: $group::$name }
                    .check(Place::Folder);
            })*
        }
    };
}

const NO_NUMBERS: (Kind, &str) = (Kind::Tgtd, "tgtd answers neither LOCATE nor READ POSITION");
const STALE_END: (Kind, &str) =
    (Kind::Tgtd, "tgtd gives a buffer of old bytes at the end of the data");
const NO_RESIDUAL: (Kind, &str) = (Kind::Tgtd, "tgtd does not say how far SPACE got");
const TOO_FAR_BACK: (Kind, &str) =
    (Kind::Tgtd, "tgtd's SPACE backwards over filemarks goes one object too far");
const GARBLED: (Kind, &str) =
    (Kind::Tgtd, "tgtd sends as many bytes of a shorter block as the buffer is longer, not all");
const OVER_FILEMARKS: (Kind, &str) =
    (Kind::Tgtd, "tgtd's SPACE over blocks takes filemarks for blocks");

scenarios! {
    everywhere {
        blocks::variable_blocks_of_all_sizes, Medium::Scratch, [];
        blocks::fixed_blocks_of_all_sizes, Medium::Scratch, [];
        blocks::sizes_mixed, Medium::Scratch, [GARBLED];
        blocks::shorter_block_has_its_length, Medium::Scratch, [GARBLED];
        blocks::larger_block_is_passed_over, Medium::Scratch, [];
        blocks::wrong_fixed_size_steps_back, Medium::Scratch,
            [(Kind::Tgtd, "tgtd says medium error for a wrong length")];
        blocks::several_fixed_blocks_at_once, Medium::Scratch, [];
        blocks::fixed_blocks_up_to_a_filemark, Medium::Scratch, [];
        blocks::fixed_blocks_in_pieces, Medium::Scratch, [TOO_FAR_BACK];
        blocks::fixed_writes_are_whole_blocks, Medium::Scratch, [];
        blocks::fixed_blocks_read_as_variable, Medium::Scratch, [];
        blocks::nothing_is_written_or_read, Medium::Scratch, [];
        blocks::writes_above_the_limit_are_refused, Medium::Scratch, [];
        blocks::reads_above_the_limit_are_refused, Medium::Scratch, [];
        blocks::block_sizes_outside_the_limits, Medium::Scratch, [];
        blocks::block_size_outlives_a_close, Medium::Scratch, [];
        blocks::silent_lengths_lose_the_rest, Medium::Scratch,
            [(Kind::Tgtd, "tgtd heeds no SILI bit")];

        filemarks::filemark_reads_as_nothing, Medium::Scratch, [];
        filemarks::close_behind_data_writes_one, Medium::Scratch, [];
        filemarks::close_writes_two_on_request, Medium::Scratch, [];
        filemarks::close_behind_a_filemark_writes_none, Medium::Scratch, [];
        filemarks::close_behind_an_immediate_one_writes_none, Medium::Scratch, [];
        filemarks::close_behind_a_synchronisation_writes_none, Medium::Scratch, [];
        filemarks::close_after_reading_writes_none, Medium::Scratch, [];
        filemarks::rewind_behind_data_writes_one, Medium::Scratch, [];
        filemarks::back_spacing_behind_data_writes_one, Medium::Scratch, [TOO_FAR_BACK];
        filemarks::seek_behind_data_writes_one, Medium::Scratch, [NO_NUMBERS];
        filemarks::forward_spacing_behind_data_writes_none, Medium::Scratch, [];
        filemarks::several_at_once, Medium::Scratch, [];
        filemarks::synchronising_writes_nothing, Medium::Scratch, [];
        filemarks::immediate_ones_read_back, Medium::Scratch, [];
        filemarks::state_is_asked_between_blocks, Medium::Scratch, [];

        motion::file_and_block_numbers, Medium::Scratch, [];
        motion::flags_of_the_beginning_and_of_files, Medium::Scratch, [];
        motion::numbers_count_filemarks, Medium::Scratch, [NO_NUMBERS];
        motion::seek_to_every_object, Medium::Scratch, [NO_NUMBERS];
        motion::seek_past_the_end, Medium::Scratch, [NO_NUMBERS];
        motion::forward_over_filemarks, Medium::Scratch, [];
        motion::back_over_filemarks, Medium::Scratch, [TOO_FAR_BACK];
        motion::back_past_the_beginning, Medium::Scratch, [TOO_FAR_BACK];
        motion::over_blocks_in_both_directions, Medium::Scratch, [];
        motion::forward_over_blocks_stops_at_a_filemark, Medium::Scratch, [OVER_FILEMARKS];
        motion::back_over_blocks_stops_at_a_filemark, Medium::Scratch, [OVER_FILEMARKS];
        motion::numbers_outlive_a_close, Medium::Scratch, [];
        motion::fixed_read_up_to_a_filemark_then_space, Medium::Scratch, [TOO_FAR_BACK];

        ends::end_of_data_behind_a_filemark, Medium::Scratch, [STALE_END];
        ends::end_of_data_behind_a_block, Medium::Scratch, [STALE_END];
        ends::blank_medium, Medium::Fresh(16), [STALE_END];
        ends::to_the_end_keeps_the_file_number, Medium::Scratch, [NO_RESIDUAL];
        ends::to_the_end_fast_loses_it, Medium::Scratch, [];
        ends::append_at_the_end, Medium::Scratch, [];
        ends::forward_past_the_end, Medium::Scratch, [NO_RESIDUAL];
        ends::writing_in_the_middle_ends_the_data, Medium::Scratch, [];
        ends::writing_over_a_filemark_ends_the_data, Medium::Scratch, [TOO_FAR_BACK];
        ends::warnings_alternate, Medium::Fresh(8), [];
        ends::what_was_taken_reads_back, Medium::Fresh(8), [];
        ends::filemark_behind_the_warning, Medium::Fresh(8), [];
        ends::fixed_blocks_at_the_warning, Medium::Fresh(8), [];
        ends::physical_end, Medium::Fresh(8), [(Kind::Tgtd, "tgtd's medium has no end")];

        media::no_medium, Medium::Fresh(16), [];
        media::protected_medium, Medium::Fresh(16), [];
        media::protected_medium_reads, Medium::Fresh(16), [];
        media::read_only_open_writes_nothing, Medium::Scratch, [];
        media::second_opener_is_refused, Medium::Scratch, [];
        media::another_medium_begins_anew, Medium::Fresh(16),
            [(Kind::Tgtd, "tgtd announces no change of medium")];
        media::ejected_medium_is_gone, Medium::Fresh(16), [];
        media::loaded_again, Medium::Fresh(16), [];
        media::counters_count, Medium::Scratch,
            [(Kind::Fuse, "there are no files of the kernel for it")];
        media::density_and_state, Medium::Scratch, [(Kind::Tgtd, "tgtd has no density code")];

        tapes::meanings_of_reads, Medium::Scratch, [STALE_END];
        tapes::meanings_of_writes, Medium::Fresh(8), [];
        tapes::larger_block_is_read_again, Medium::Scratch, [GARBLED];
        tapes::errors_name_the_place, Medium::Scratch, [];
    }

    on_the_drive {
        faults::unreadable_block;
        faults::unreadable_block_before;
        faults::unreadable_at_first;
        faults::unreadable_among_fixed_blocks;
        faults::block_cannot_be_written;
        faults::lost_blocks_surface_at_a_synchronising_filemark;
        faults::lost_blocks_surface_at_a_synchronisation;
        faults::lost_blocks_surface_at_close;
        faults::immediate_filemark_tells_nothing;
        faults::reset_loses_position_and_buffer;
        faults::reset_ends_with_a_rewind;
        faults::changed_behind_our_back;
        faults::removed_behind_our_back;
        faults::answers_are_garbage;
        faults::answers_are_refused;
        faults::block_is_read_short;
        faults::compression_is_not_applied;
        faults::drive_without_numbers;
        faults::drive_with_vague_ends;
        faults::rewinding_device_rewinds;
    }
}
