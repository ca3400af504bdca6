//! An iSCSI target (RFC 7143), with only what Linux needs: one unit, one connection per session, no
//! authentication, no digests, error recovery level 0.
//!
//! Commands are executed one at a time, in the order of arrival. The target always requests the
//! data for the drive (InitialR2T=Yes, ImmediateData=No): immediate data would save a round trip on
//! loopback and double the code.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use sim::tape::ScsiTarget;

/// Longest data segment accepted in one PDU, as announced to the initiator.
const SEGMENT_BYTES_MAX: usize = 1 << 20;

/// Longest sequence of data for one request; longer data need several requests.
const BURST_BYTES_MAX: u32 = 1 << 20;

/// Most data of one command: the largest block and some.
const COMMAND_BYTES_MAX: usize = 64 << 20;

/// Commands that may be in flight beyond those answered.
const WINDOW: u32 = 32;

/// PDUs kept while a command waits for its data: one outstanding command per slot.
const WAITING_MAX: usize = 2 * WINDOW as usize;

const HEADER_BYTES: usize = 48;
const NO_TAG: [u8; 4] = [0xff; 4];
const FINAL: u8 = 0x80;

/// A protocol data unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    header: [u8; HEADER_BYTES],
    data: Vec<u8>,
}

impl Pdu {
    fn new(opcode: u8, flags: u8) -> Pdu {
        let mut header = [0; HEADER_BYTES];
        header[0] = opcode;
        header[1] = flags;
        Pdu { header, data: Vec::new() }
    }

    /// An answer, with the task tag of its request.
    fn answer(opcode: u8, flags: u8, to: &Pdu) -> Pdu {
        let mut pdu = Pdu::new(opcode, flags);
        pdu.header[16..20].copy_from_slice(&to.header[16..20]);
        pdu
    }

    fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    fn is_immediate(&self) -> bool {
        self.header[0] & 0x40 != 0
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = &self.header[at..at + 4];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn set_word(&mut self, at: usize, value: u32) {
        self.header[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn read(input: &mut impl Read) -> io::Result<Pdu> {
        let mut header = [0; HEADER_BYTES];
        input.read_exact(&mut header)?;
        let additional = usize::from(header[4]) * 4;
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        if length > SEGMENT_BYTES_MAX {
            return Err(io::Error::other("a data segment is longer than allowed"));
        }
        let mut skipped = vec![0; additional];
        input.read_exact(&mut skipped)?;
        // Segments are padded to four bytes.
        let mut data = vec![0; length.next_multiple_of(4)];
        input.read_exact(&mut data)?;
        data.truncate(length);
        Ok(Pdu { header, data })
    }

    fn write(mut self, output: &mut impl Write) -> io::Result<()> {
        let length = (self.data.len() as u32).to_be_bytes();
        self.header[5..8].copy_from_slice(&length[1..]);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
        output.write_all(&self.header)?;
        output.write_all(&self.data)
    }
}

/// One connection, which is one session.
pub struct Connection<'target, Stream> {
    stream: Stream,
    target: &'target ScsiTarget,
    status_number: u32,
    expected_command: u32,
    /// Longest data segment that the initiator accepts.
    segment_bytes: usize,
    /// PDUs that arrived while a command waited for its data.
    waiting: VecDeque<Pdu>,
}

impl<'target, Stream: Read + Write> Connection<'target, Stream> {
    /// A connection before its login.
    pub fn new(stream: Stream, target: &'target ScsiTarget) -> Self {
        Connection {
            stream,
            target,
            status_number: 1,
            expected_command: 0,
            // Default until the initiator negotiates (RFC 7143, 13.12).
            segment_bytes: 8192,
            waiting: VecDeque::new(),
        }
    }

    /// Serves until the initiator logs out or closes.
    ///
    /// # Errors
    /// When the connection breaks or the initiator breaks the protocol.
    pub fn serve(mut self) -> io::Result<()> {
        loop {
            let pdu = match self.waiting.pop_front() {
                Some(pdu) => pdu,
                None => match Pdu::read(&mut self.stream) {
                    Ok(pdu) => pdu,
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    Err(error) => return Err(error),
                },
            };
            match pdu.opcode() {
                0x00 => self.answer_nop(&pdu)?,
                0x01 => self.execute(&pdu)?,
                // Task management: no task is in progress at this point, so all have ended.
                0x02 => {
                    self.count_command(&pdu);
                    self.send(Pdu::answer(0x22, FINAL, &pdu))?;
                }
                0x03 => self.log_in(&pdu)?,
                0x06 => {
                    self.count_command(&pdu);
                    return self.send(Pdu::answer(0x26, FINAL, &pdu));
                }
                other => {
                    return Err(io::Error::other(format!("opcode {other:#04x} is not known")));
                }
            }
        }
    }

    /// The next command must have the following number, unless it is immediate.
    fn count_command(&mut self, pdu: &Pdu) {
        if !pdu.is_immediate() {
            self.expected_command = pdu.word(24).wrapping_add(1);
        }
    }

    /// Sends a PDU with a status, which gets its own number.
    fn send(&mut self, pdu: Pdu) -> io::Result<()> {
        self.send_unnumbered(pdu)?;
        self.status_number = self.status_number.wrapping_add(1);
        Ok(())
    }

    fn send_unnumbered(&mut self, mut pdu: Pdu) -> io::Result<()> {
        pdu.set_word(24, self.status_number);
        pdu.set_word(28, self.expected_command);
        pdu.set_word(32, self.expected_command.wrapping_add(WINDOW - 1));
        pdu.write(&mut self.stream)?;
        self.stream.flush()
    }

    fn answer_nop(&mut self, pdu: &Pdu) -> io::Result<()> {
        self.count_command(pdu);
        if pdu.header[16..20] == NO_TAG {
            return Ok(());
        }
        let mut answer = Pdu::answer(0x20, FINAL, pdu);
        answer.header[20..24].copy_from_slice(&NO_TAG);
        answer.data.clone_from(&pdu.data);
        self.send(answer)
    }

    /// Agrees to the stage that the initiator wants next and answers its keys.
    fn log_in(&mut self, pdu: &Pdu) -> io::Result<()> {
        self.expected_command = pdu.word(24);
        let keys = keys(&pdu.data);
        if let Some(bytes) = keys
            .iter()
            .find(|(key, _)| *key == "MaxRecvDataSegmentLength")
            .and_then(|(_, value)| value.parse().ok())
        {
            self.segment_bytes = usize::clamp(bytes, 512, SEGMENT_BYTES_MAX);
        }
        let stage = pdu.header[1] >> 2 & 3;
        // T, CSG and NSG as requested: everything fits into one PDU.
        let mut answer = Pdu::answer(0x23, pdu.header[1] & 0x8f, pdu);
        answer.header[8..14].copy_from_slice(&pdu.header[8..14]);
        // A handle for the session, which must not be zero when the login is over.
        answer.header[15] = 1;
        for (key, value) in keys.iter().filter_map(|(key, value)| reply(key, value)) {
            answer.data.extend(format!("{key}={value}\0").bytes());
        }
        if stage == 1 {
            let limit = format!("MaxRecvDataSegmentLength={SEGMENT_BYTES_MAX}\0");
            answer.data.extend(limit.bytes());
        } else {
            answer.data.extend(b"TargetPortalGroupTag=1\0");
        }
        self.send(answer)
    }

    fn execute(&mut self, pdu: &Pdu) -> io::Result<()> {
        self.count_command(pdu);
        let expected = pdu.word(20) as usize;
        if expected > COMMAND_BYTES_MAX {
            return Err(io::Error::other("a command has more data than allowed"));
        }
        let reads = pdu.header[1] & 0x40 != 0;
        let writes = pdu.header[1] & 0x20 != 0;
        let data = if writes { self.receive(pdu, expected)? } else { Vec::new() };
        let mut command = [0; 16];
        command.copy_from_slice(&pdu.header[32..48]);
        let completion = self.target.execute(&command, &data);
        let mut answer = Pdu::answer(0x21, FINAL, pdu);
        let moved = match (reads, writes) {
            (true, _) => {
                let sent = completion.data.len().min(expected);
                let count = self.send_data(pdu, &completion.data[..sent])?;
                answer.set_word(36, count);
                completion.data.len()
            }
            (false, true) if completion.sense.is_none() => written(&command, expected),
            (false, _) => expected,
        };
        if moved < expected {
            answer.header[1] |= 0x02;
            answer.set_word(44, (expected - moved) as u32);
        } else if moved > expected {
            answer.header[1] |= 0x04;
            answer.set_word(44, (moved - expected) as u32);
        }
        if let Some(sense) = completion.sense {
            // CHECK CONDITION.
            answer.header[3] = 0x02;
            answer.data.extend((sense.len() as u16).to_be_bytes());
            answer.data.extend(sense);
        }
        self.send(answer)
    }

    /// Data-In PDUs; returns how many.
    fn send_data(&mut self, to: &Pdu, data: &[u8]) -> io::Result<u32> {
        let mut number = 0;
        for (index, part) in data.chunks(self.segment_bytes).enumerate() {
            let offset = index * self.segment_bytes;
            let last = offset + part.len() == data.len();
            let mut pdu = Pdu::answer(0x25, if last { FINAL } else { 0 }, to);
            pdu.header[20..24].copy_from_slice(&NO_TAG);
            pdu.set_word(36, number);
            pdu.set_word(40, offset as u32);
            pdu.data = part.to_vec();
            self.send_unnumbered(pdu)?;
            number += 1;
        }
        Ok(number)
    }

    /// Requests the command's data, burst by burst.
    fn receive(&mut self, command: &Pdu, expected: usize) -> io::Result<Vec<u8>> {
        let mut data = Vec::with_capacity(expected);
        let mut number = 0;
        while data.len() < expected {
            let burst = (expected - data.len()).min(BURST_BYTES_MAX as usize);
            let mut request = Pdu::answer(0x31, FINAL, command);
            request.header[8..16].copy_from_slice(&command.header[8..16]);
            request.set_word(20, number + 1);
            request.set_word(36, number);
            request.set_word(40, data.len() as u32);
            request.set_word(44, burst as u32);
            self.send_unnumbered(request)?;
            let until = data.len() + burst;
            while data.len() < until {
                let pdu = self.next_data(command)?;
                if pdu.word(40) as usize != data.len() || data.len() + pdu.data.len() > until {
                    return Err(io::Error::other("data out of order"));
                }
                data.extend(pdu.data);
            }
            number += 1;
        }
        Ok(data)
    }

    /// The next Data-Out of this command; other PDUs are kept for later.
    fn next_data(&mut self, command: &Pdu) -> io::Result<Pdu> {
        loop {
            let pdu = Pdu::read(&mut self.stream)?;
            if pdu.opcode() == 0x05 && pdu.header[16..20] == command.header[16..20] {
                return Ok(pdu);
            }
            if self.waiting.len() == WAITING_MAX {
                return Err(io::Error::other("too many commands at once"));
            }
            self.waiting.push_back(pdu);
        }
    }
}

/// Bytes used by a successful command: data that the initiator sent beyond are residual.
fn written(command: &[u8; 16], expected: usize) -> usize {
    match command[0] {
        // MODE SELECT contains the length of its parameters.
        0x15 => expected.min(usize::from(command[4])),
        _ => expected,
    }
}

/// `key=value` pairs, each ended by a zero byte.
fn keys(data: &[u8]) -> Vec<(&str, &str)> {
    data.split(|byte| *byte == 0)
        .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='))
        .collect()
}

/// The negotiated values, by the rules of RFC 7143, 13.
fn reply<'key>(key: &'key str, value: &str) -> Option<(&'key str, String)> {
    let number = |limit: u32, least: bool| {
        let theirs: u32 = value.parse().unwrap_or(limit);
        if least { theirs.min(limit) } else { theirs.max(limit) }.to_string()
    };
    let value = match key {
        "AuthMethod" | "HeaderDigest" | "DataDigest" => "None".to_owned(),
        "InitialR2T" | "DataPDUInOrder" | "DataSequenceInOrder" => "Yes".to_owned(),
        "ImmediateData" | "IFMarker" | "OFMarker" => "No".to_owned(),
        "MaxConnections" | "MaxOutstandingR2T" => "1".to_owned(),
        "ErrorRecoveryLevel" | "DefaultTime2Retain" => "0".to_owned(),
        "DefaultTime2Wait" => number(2, false),
        "MaxBurstLength" | "FirstBurstLength" => number(BURST_BYTES_MAX, true),
        // Names and declarations need no answer.
        "InitiatorName"
        | "InitiatorAlias"
        | "TargetName"
        | "SessionType"
        | "MaxRecvDataSegmentLength" => return None,
        _ => "NotUnderstood".to_owned(),
    };
    Some((key, value))
}
