//! The counters of a drive model.

/// Times and bytes since the model was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeCounters {
    /// Bytes that passed the interface.
    pub host_bytes: u128,
    /// Their size on the medium.
    pub compressed_bytes: u128,
    /// Bytes that passed the head, in billionths of a byte.
    pub medium_nanobytes: u128,
    /// Stops for lack of data (or of room, when reading), each with a reposition.
    pub back_hitches: u64,
    /// Time in back-hitches and run-ups.
    pub back_hitch_ns: u64,
    /// Time in which the tape stood and waited for data.
    pub still_ns: u64,
    /// Wraps that ended.
    pub turns: u64,
    /// Time in turns.
    pub turn_ns: u64,
    /// Ways to another place.
    pub winds: u64,
    /// Time of winding.
    pub wind_ns: u64,
    /// Synchronising operations that had to stop the tape.
    pub synchronisations: u64,
    /// Their time after the buffer was empty.
    pub synchronise_ns: u64,
    /// Time in which the host waited for the buffer.
    pub host_blocked_ns: u64,
    /// The part of it in which no tape passed the head: the host's loss to motion.
    pub lost_ns: u64,
    /// Time in each step.
    pub step_ns: Vec<u64>,
    /// The most that the buffer held, native bytes.
    pub buffer_bytes_most: u64,
}

impl TapeCounters {
    /// All zero, for a drive with this many steps.
    pub fn new(steps: usize) -> TapeCounters {
        TapeCounters {
            host_bytes: 0,
            compressed_bytes: 0,
            medium_nanobytes: 0,
            back_hitches: 0,
            back_hitch_ns: 0,
            still_ns: 0,
            turns: 0,
            turn_ns: 0,
            winds: 0,
            wind_ns: 0,
            synchronisations: 0,
            synchronise_ns: 0,
            host_blocked_ns: 0,
            lost_ns: 0,
            step_ns: vec![0; steps],
            buffer_bytes_most: 0,
        }
    }

    /// Time in which bytes passed the head.
    pub fn streaming_ns(&self) -> u64 {
        self.step_ns.iter().sum()
    }

    /// Time in which the tape was in motion, which wears drive and medium.
    pub fn motion_ns(&self) -> u64 {
        self.streaming_ns() + self.back_hitch_ns + self.turn_ns + self.wind_ns
    }
}
