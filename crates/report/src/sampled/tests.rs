//! What was seen as text.

use capture::operation::FileKind;

use super::*;

fn file(path: &str, position: Position) -> SampledFile {
    SampledFile {
        path: path.to_owned(),
        class: None,
        kind: FileKind::Regular,
        reads: true,
        writes: false,
        direct: Some(false),
        synchronous: Some(false),
        append: Some(false),
        size_bytes: Some(1 << 30),
        grown_bytes: Some(0),
        position: Some(position),
        processes: 1,
    }
}

fn none() -> Sampled {
    Sampled {
        seconds: 1.0,
        looks: 51,
        processes: 1,
        totals: Totals::default(),
        files: Vec::new(),
        files_left_out: 0,
        has_rings: false,
        refused: 0,
    }
}

#[test]
fn sentences_say_what_it_is_and_what_is_in_no_position() {
    let of = |forward_bytes, forward, backward| Position { forward_bytes, forward, backward };
    let sampled = Sampled {
        totals: Totals {
            read_calls: 1000,
            read_bytes: 100 << 20,
            device_read_bytes: 200 << 20,
            ..Totals::default()
        },
        files: vec![
            file("/srv/a/in-order", of(40 << 20, 30, 0)),
            file("/srv/a/at-random", of(10 << 20, 20, 18)),
            file("/srv/a/still", of(0, 0, 0)),
        ],
        has_rings: true,
        refused: 1,
        ..none()
    };
    let text = text(&sampled, "the reason", Style::PLAIN);
    let expected = "\
No calls were recorded: the reason.
Takeup sampled /proc instead: 1 process, 51 samples in 1.00 s, one every 20 ms.

         calls   bytes  a call  devices
read     1 000  105 MB  105 kB   210 MB
written      0     0 B       -      0 B

file              class  opened for    moved  forward  back  grown  direct  synchronous
/srv/a/in-order   ?      reading     41.9 MB       30     0    0 B      no           no
/srv/a/at-random  ?      reading     10.5 MB       20    18    0 B      no           no
/srv/a/still      ?      reading         0 B        0     0    0 B      no           no

- warning: no calls were recorded: the reason: these are samples of /proc
- 1 000 calls have read 105 MB, pipes and sockets included
- a/in-order: open for reading: its position moved forward by 41.9 MB, never back in 30 samples: \
in order, as far as samples show
- a/at-random: open for reading: its position moved forward by 10.5 MB, back in 18 of 38 samples: \
not in order
- 52.4 MB (50 %) of the bytes of calls moved no sampled position: they went through pread and \
pwrite, pipes and sockets, or files that no sample found open
- 105 MB (50 %) of the reads from devices came from no read call: they are read-ahead, or of \
mapped files, io_uring or libaio
- not known: the calls, their sizes, order and depth, pauses and syncs
- pread, pwrite, mapped files, io_uring and libaio move no position: at most the counters of the \
process include them
- files that are open for less than 20 ms may be missing
- a process uses io_uring: its requests are not in the counted calls
- 1 child process belongs to another user, and these numbers leave it out
";
    assert_eq!(text, expected);
}
