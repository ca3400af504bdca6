//! Pictures of an invented machine in two sizes, and the effect of keys.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

use machine::counters::disk;
use ratatui::Terminal;
use ratatui::backend::{CrosstermBackend, TestBackend};
use ratatui::buffer::Cell;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use report::table::Colour;
use storage::queue::Queue;
use watch::Reading;
use watch::intervals::IntervalMaker;
use watch::record::RecordWriter;
use watch::tapes::TapeCounters;

use crate::draw::{Look, draw};
use crate::run::{Player, ScreenSource};
use crate::timeline::Timeline;
use crate::view::{Page, View, Wish};
use report::glyphs::Glyphs;

/// The counters at a second: a volume over a mirror of two disks, a fast disk, a disk that hangs
/// from the third second on, and an idle one.
fn reading(second: u64) -> Reading {
    let reads: u64 = (0..second).map(|second| 1000 + second % 4 * 400).sum();
    let busy = |number: &str, name: &str, reads: u64| {
        let (sectors, time) = (reads * 16, reads * 2 / 5);
        format!(" {number} {name} {reads} 0 {sectors} {time} 0 0 0 0 4 {} {time}", second * 700)
    };
    let writes = second * 2000;
    let hung = second.min(2) * 500;
    let rows = [
        busy("253 0", "dm-0", reads),
        busy("9 0", "md0", reads),
        busy("8 0", "sda", reads / 2),
        busy("8 16", "sdb", reads / 2),
        format!(
            " 259 0 nvme0n1 0 0 0 0 {writes} {} {} {} 1 {} {writes}",
            writes * 30,
            writes * 256,
            writes / 2,
            second * 950
        ),
        format!(" 8 32 sdc {hung} 0 {} {hung} 0 0 0 0 3 {hung} {hung}", hung * 8),
        " 7 0 loop0 12 0 96 1 0 0 0 0 0 1 1".to_owned(),
    ];
    let queue = |made_of: &[&str]| Queue {
        scheduler: Some("none".to_owned()),
        max_sectors_kb: Some(1280),
        nr_requests: Some(32),
        device_depth: Some(32),
        rotational: Some(0),
        made_of: made_of.iter().map(|name| (*name).to_owned()).collect(),
        ..Queue::default()
    };
    let made_of: [(&str, &[&str]); 7] = [
        ("dm-0", &["md0"]),
        ("md0", &["sda2", "sdb"]),
        ("sda", &[]),
        ("sdb", &[]),
        ("nvme0n1", &[]),
        ("sdc", &[]),
        ("loop0", &[]),
    ];
    Reading {
        at_seconds: second as f64,
        unix_seconds: 1_795_163_581 + second as i64,
        rows: disk::rows(rows.join("\n").as_bytes()).unwrap(),
        in_flight: BTreeMap::new(),
        tapes: BTreeMap::new(),
        queues: made_of.iter().map(|(name, below)| ((*name).to_owned(), queue(below))).collect(),
    }
}

fn timeline(seconds: u64) -> Timeline {
    let mut watch = IntervalMaker::default();
    let mut timeline = Timeline::default();
    let intervals = (0..=seconds).filter_map(|second| watch.next(reading(second)));
    intervals.for_each(|interval| timeline.push(interval));
    timeline
}

fn view(timeline: &Timeline) -> View {
    let mut view = View::new(None, Glyphs::Unicode);
    view.go_on(timeline);
    view
}

fn look(colour: Colour) -> Look {
    Look { title: "takeup watch".to_owned(), colour }
}

fn terminal(
    width: u16,
    height: u16,
    view: &mut View,
    timeline: &Timeline,
) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, timeline, &look(Colour::Plain))).unwrap();
    terminal
}

/// The picture as text, without trailing spaces.
fn picture(width: u16, height: u16, view: &mut View, timeline: &Timeline) -> String {
    let terminal = terminal(width, height, view, timeline);
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

fn press(view: &mut View, timeline: &Timeline, keys: &[KeyCode]) {
    for key in keys {
        let wish = view.press(KeyEvent::new(*key, KeyModifiers::NONE), timeline);
        assert_eq!(wish, Wish::None, "{key:?}");
    }
}

fn typed(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

#[test]
fn all_devices_in_80_columns() {
    let timeline = timeline(9);
    insta::assert_snapshot!(picture(80, 24, &mut view(&timeline), &timeline));
}

#[test]
fn all_devices_in_200_columns() {
    let timeline = timeline(30);
    insta::assert_snapshot!(picture(200, 40, &mut view(&timeline), &timeline));
}

#[test]
fn one_device_with_all_that_is_known_of_it() {
    let timeline = timeline(9);
    let mut view = view(&timeline);
    press(&mut view, &timeline, &[KeyCode::Char('/')]);
    press(&mut view, &timeline, &typed("SDC"));
    press(&mut view, &timeline, &[KeyCode::Enter]);
    let found = picture(80, 24, &mut view, &timeline);
    assert!(found.contains("\n>sdc ") && !found.contains("nvme0n1"), "{found}");
    press(&mut view, &timeline, &[KeyCode::Enter]);
    assert_eq!(view.page, Page::Details);
    insta::assert_snapshot!(picture(80, 24, &mut view, &timeline));
}

#[test]
fn the_page_of_keys_has_room_in_80_columns_and_24_lines() {
    let timeline = timeline(2);
    let mut view = view(&timeline);
    press(&mut view, &timeline, &[KeyCode::Char('?')]);
    let text = picture(80, 24, &mut view, &timeline);
    for line in crate::help::lines() {
        assert!(text.contains(line.trim_end()), "{line}\n{text}");
    }
    press(&mut view, &timeline, &[KeyCode::Esc]);
    assert_eq!(view.page, Page::Devices);
}

/// Names of devices in the order of their rows.
fn shown(view: &mut View, timeline: &Timeline) -> Vec<String> {
    view.shows_sentences = false;
    let text = picture(80, 24, view, timeline);
    let rows = text.lines().skip(2).take(21);
    let name = |line: &str| {
        let word = line.trim_start_matches(|it: char| !it.is_ascii_alphanumeric());
        word.split(' ').next().unwrap_or_default().to_owned()
    };
    rows.map(name).filter(|name| !name.is_empty()).collect()
}

#[test]
fn devices_are_sorted_filtered_and_laid_flat_and_idle_ones_are_shown_on_demand() {
    let timeline = timeline(9);
    let mut view = view(&timeline);
    let tree = ["dm-0", "md0", "sda", "sdb", "nvme0n1", "sdc"];
    assert_eq!(shown(&mut view, &timeline), tree);
    press(&mut view, &timeline, &typed("i"));
    assert_eq!(shown(&mut view, &timeline).last().unwrap(), "loop0");
    press(&mut view, &timeline, &typed("is"));
    // By bytes; lower layers stay below.
    let sorted = ["nvme0n1", "dm-0", "md0", "sda", "sdb", "sdc"];
    assert_eq!(shown(&mut view, &timeline), sorted);
    press(&mut view, &timeline, &typed("t/S"));
    assert!(view.is_typing);
    press(&mut view, &timeline, &typed("dx"));
    assert_eq!(shown(&mut view, &timeline), ["no"]);
    press(&mut view, &timeline, &[KeyCode::Backspace, KeyCode::Enter]);
    assert_eq!(shown(&mut view, &timeline), ["sda", "sdb", "sdc"]);
    press(&mut view, &timeline, &[KeyCode::Esc]);
    assert_eq!(shown(&mut view, &timeline).len(), tree.len());
    let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(quit, &timeline), Wish::Quit);
}

#[test]
fn a_pause_holds_the_picture_while_more_is_seen_and_can_go_back() {
    let mut timeline = timeline(9);
    let mut view = view(&timeline);
    press(&mut view, &timeline, &[KeyCode::Char(' ')]);
    let before = picture(80, 24, &mut view, &timeline);
    assert!(before.contains("PAUSE"));
    let mut watch = IntervalMaker::default();
    watch.next(reading(9));
    timeline.push(watch.next(reading(10)).unwrap());
    assert!(!view.go_on(&timeline));
    assert_eq!(picture(80, 24, &mut view, &timeline), before);
    press(&mut view, &timeline, &[KeyCode::Left]);
    let earlier = picture(80, 24, &mut view, &timeline);
    assert!(before.contains(":10  1.00 s") && earlier.contains(":09  1.00 s"), "{earlier}");
    press(&mut view, &timeline, &[KeyCode::Home, KeyCode::Left]);
    assert_eq!(view.place.number, 0);
    press(&mut view, &timeline, &[KeyCode::Char(' ')]);
    assert!(view.go_on(&timeline));
    assert!(picture(80, 24, &mut view, &timeline).contains(":11  1.00 s"));
}

#[test]
fn where_there_is_little_room_the_chosen_device_is_seen() {
    let timeline = timeline(9);
    let mut view = view(&timeline);
    for (key, expected) in
        [(KeyCode::PageDown, ">sdc"), (KeyCode::PageUp, ">dm-0"), (KeyCode::Down, ">└ md0")]
    {
        press(&mut view, &timeline, &[key]);
        let text = picture(60, 8, &mut view, &timeline);
        assert!(text.contains(expected) && text.contains(" device "), "{key:?}\n{text}");
    }
    for (width, height) in [(1, 1), (39, 24), (40, 6), (80, 3), (300, 100)] {
        let text = picture(width, height, &mut view, &timeline);
        assert_eq!(text.lines().count(), usize::from(height));
    }
}

#[test]
fn without_colours_nothing_is_styled_and_with_them_something_is() {
    let timeline = timeline(9);
    let styles = |colour| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let mut view = view(&timeline);
        terminal.draw(|frame| draw(frame, &mut view, &timeline, &look(colour))).unwrap();
        let cells = terminal.backend().buffer().content().to_vec();
        let is_plain = |cell: &Cell| {
            cell.fg == Color::Reset && cell.bg == Color::Reset && cell.modifier.is_empty()
        };
        cells.iter().filter(|cell| !is_plain(cell)).count()
    };
    assert_eq!(styles(Colour::Plain), 0);
    assert!(styles(Colour::Ansi) > 100);
}

/// Text that reverses the writing direction, clears the screen, and has a one-byte introducer of
/// control sequences.
const HOSTILE: &str = "\u{202e}\u{1b}[2J\u{9b}2J";

/// Names and settings of devices are foreign text.
#[test]
fn no_page_hands_a_terminal_what_it_would_obey() {
    let hostile = |name: &str| format!("{HOSTILE}{name}");
    let at = |second: u64| {
        let mut reading = reading(second);
        reading.rows.iter_mut().for_each(|row| row.name = hostile(&row.name));
        reading.tapes.insert(hostile("st0"), drive(second));
        let queues = std::mem::take(&mut reading.queues).into_iter();
        reading.queues = queues
            .map(|(name, queue)| {
                let scheduler = queue.scheduler.as_deref().map(hostile);
                let write_cache = Some(hostile("write back"));
                let made_of = queue.made_of.iter().map(|it| hostile(it)).collect();
                (hostile(&name), Queue { scheduler, write_cache, made_of, ..queue })
            })
            .collect();
        // The last device is gone.
        if second == 9 {
            reading.rows.pop();
        }
        reading
    };
    let mut watch = IntervalMaker::default();
    let mut timeline = Timeline::default();
    (0..10).filter_map(|second| watch.next(at(second))).for_each(|it| timeline.push(it));
    let mut view = view(&timeline);
    let look = Look { title: hostile("takeup watch"), colour: Colour::Ansi };
    let check = |view: &mut View| {
        let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
        terminal.draw(|frame| draw(frame, view, &timeline, &look)).unwrap();
        let cells = terminal.backend().buffer().content();
        let text: String = cells.iter().map(Cell::symbol).collect();
        let obeyed = |it: char| it.is_control() || it == '\u{202e}';
        let found = text.find(obeyed).map(|at| text[at..].chars().take(40).collect::<String>());
        assert_eq!(found, None, "{:?}", view.page);
        assert!(text.contains(r"\342\200\256"), "{text}");
    };
    check(&mut view);
    press(&mut view, &timeline, &typed("/\u{202e}"));
    check(&mut view);
    press(&mut view, &timeline, &[KeyCode::Enter]);
    check(&mut view);
    press(&mut view, &timeline, &[KeyCode::Enter]);
    assert_eq!(view.page, Page::Details);
    check(&mut view);
}

/// Counts the bytes written.
#[derive(Clone, Default)]
struct Line(Rc<std::cell::Cell<usize>>);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes to the terminal: an unchanged picture costs almost nothing, and one interval less than a
/// whole picture.
#[test]
fn only_what_has_changed_goes_to_the_terminal() {
    let all = timeline(9);
    let mut view = view(&all);
    let line = Line::default();
    let backend = CrosstermBackend::new(line.clone());
    let area = ratatui::layout::Rect::new(0, 0, 80, 24);
    let options = ratatui::TerminalOptions { viewport: ratatui::Viewport::Fixed(area) };
    let mut terminal = Terminal::with_options(backend, options).unwrap();
    let mut sent = |view: &mut View| {
        terminal.draw(|frame| draw(frame, view, &all, &look(Colour::Ansi))).unwrap();
        line.0.take()
    };
    let (first, same) = (sent(&mut view), sent(&mut view));
    view.place.number -= 1;
    let other = sent(&mut view);
    assert!(first > 1500 && same < 40 && other > same && other < first, "{first} {same} {other}");
}

#[test]
fn a_terminal_without_unicode_gets_none() {
    let timeline = timeline(9);
    let mut view = View::new(None, Glyphs::Ascii);
    view.go_on(&timeline);
    let text = picture(100, 30, &mut view, &timeline);
    assert!(text.is_ascii() && text.contains("`-md0"), "{text}");
}

#[test]
fn a_record_is_played_to_its_end_and_any_place_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let mut writer = RecordWriter::create(&path).unwrap();
    (0..=3500).for_each(|second| writer.write(&reading(second)).unwrap());
    drop(writer);
    let mut player = Player::open(path, |_: &mut Reading| {}).unwrap();
    assert_eq!(player.total(), Some(3500));
    let mut timeline = Timeline::default();
    let mut view = View::new(player.total(), Glyphs::Unicode);
    for (keys, expected) in [
        (vec![KeyCode::Right, KeyCode::Right], 2),
        (vec![KeyCode::Char(']')], 62),
        (vec![KeyCode::End], 3499),
        // Dropped long before.
        (vec![KeyCode::Home, KeyCode::Right], 1),
    ] {
        press(&mut view, &timeline, &keys);
        player.fill(&mut timeline, view.place.number).unwrap();
        assert_eq!(view.place.number, expected);
        let second = expected + 1;
        let here = timeline.get(expected).unwrap();
        assert_eq!(here.unix_seconds, reading(second).unix_seconds, "{keys:?}");
        if expected == 3499 {
            assert!(timeline.first() > 0 && timeline.get(1).is_none());
        }
    }
    let text = picture(80, 24, &mut view, &timeline);
    assert!(text.contains("takeup watch  2 of 3500  "), "{text}");
    // Time advances by itself, faster on request, and stops at the end.
    press(&mut view, &timeline, &typed(" +"));
    assert!(view.go_on(&timeline) && view.place.number == 2 && view.place.speed == 2);
    view.place.number = 3499;
    assert!(view.go_on(&timeline) && !view.place.goes_on && !view.go_on(&timeline));
}

#[test]
fn a_tape_drive_has_lines_of_its_own() {
    let at = |second: u64| Reading {
        at_seconds: second as f64,
        tapes: BTreeMap::from([("st0".to_owned(), drive(second))]),
        ..Reading::default()
    };
    let mut watch = IntervalMaker::default();
    let mut timeline = Timeline::default();
    (0..3).filter_map(|second| watch.next(at(second))).for_each(|it| timeline.push(it));
    let mut view = view(&timeline);
    let text = picture(80, 10, &mut view, &timeline);
    let lines =
        crate::lines::ScreenLines::new(Colour::Plain).of(timeline.get(1).unwrap(), Some(80));
    insta::assert_snapshot!(format!("{text}--- lines\n{lines}"));
    press(&mut view, &timeline, &typed("/sda"));
    assert!(!picture(80, 10, &mut view, &timeline).contains("st0"));
}

/// Blocks of 256 KiB, 2 ms each, and a filemark now and then.
fn drive(second: u64) -> TapeCounters {
    TapeCounters {
        write_cnt: second * 400,
        write_byte_cnt: second * 400 * 262_144,
        write_ns: second * 800_000_000,
        other_cnt: second,
        io_ns: second * 850_000_000,
        in_flight: 1,
        ..TapeCounters::default()
    }
}
