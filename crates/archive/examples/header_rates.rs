//! How long encoding and decoding of headers take: `cargo run --release -p archive --example
//! header_rates`. Prints nanoseconds per member for the kinds of members that make up a backup: the
//! least of several rounds, which other work on the machine disturbs least.

#![allow(clippy::print_stdout)]

use archive::decode::{DecodeLimits, Decoder, Event};
use archive::encode::encode_member;
use archive::member::{Member, MemberKind, Timestamp};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let plain = Member {
        path: b"usr/share/doc/some-package/changelog.Debian.gz".to_vec(),
        kind: MemberKind::File,
        mode: 0o644,
        uid: 1000,
        gid: 1000,
        user: b"someone".to_vec(),
        group: b"users".to_vec(),
        modified: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 },
        size_bytes: 9000,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    };
    let fraction = Timestamp { seconds: 1_700_000_000, nanoseconds: 123_456_789 };
    let sub_second = Member { modified: fraction, ..plain.clone() };
    let long = [&[b'd'; 130][..], b"/", &[b'n'; 130]].concat();
    let long_path = Member { path: long, ..sub_second.clone() };
    let label = (b"security.selinux".to_vec(), b"unconfined_u:object_r:user_home_t:s0\0".to_vec());
    let labelled = Member { xattrs: vec![label], ..sub_second.clone() };
    let kinds = [
        ("plain", plain),
        ("sub-second", sub_second),
        ("long path", long_path),
        ("xattr", labelled),
    ];
    for (name, member) in kinds {
        println!("{name:12} encode {:6.1} ns   decode {:6.1} ns", encode(&member), decode(&member));
    }
}

const ROUNDS: u32 = 40;
const MEMBERS: u32 = 25_000;

/// Nanoseconds per member in the fastest of the rounds.
fn fastest(mut round: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    let least = times.min().expect("at least one round");
    least.as_nanos() as f64 / f64::from(MEMBERS)
}

fn encode(member: &Member) -> f64 {
    let mut out = Vec::with_capacity(1 << 20);
    fastest(|| {
        for _ in 0..MEMBERS {
            // A batch as large as a block, as the engine has it.
            if out.len() > (1 << 20) - 4096 {
                out.clear();
            }
            encode_member(black_box(member), &mut out).expect("a valid member");
        }
        black_box(&out);
    })
}

fn decode(member: &Member) -> f64 {
    let mut headers = Vec::new();
    encode_member(member, &mut headers).expect("a valid member");
    let mut decoder = Decoder::new(DecodeLimits::default());
    fastest(|| {
        for _ in 0..MEMBERS {
            for unit in black_box(&headers).chunks_exact(512) {
                let event = decoder.push(unit.try_into().expect("a whole unit"));
                if let Ok(Event::Member { member, .. }) = event {
                    black_box(member);
                }
            }
        }
    })
}
