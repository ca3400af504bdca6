//! What the user has chosen to see, and the effect of keys on it. Nothing is drawn here.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use watch::intervals::{DeviceInterval, Interval};

use crate::timeline::{Quantity, Timeline};
use report::device_tree::{self, DeviceRow};
use report::glyphs::Glyphs;

/// Maximum length of the filter.
const FILTER_CHARACTERS_MAX: usize = 40;
/// Playback speeds of a record, in intervals per interval.
const SPEEDS: [u32; 5] = [1, 2, 5, 10, 50];

/// The page on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    #[default]
    Devices,
    /// Details of the chosen device.
    Details,
    /// The keys.
    Help,
}

/// The order of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The kernel's order.
    #[default]
    Kernel,
    /// The largest first.
    By(Quantity),
}

/// A request of a key beyond the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// End the program.
    Quit,
    /// Suspend the program.
    Stop,
    /// Redraw everything, because another program has written to the terminal.
    Redraw,
}

/// The position in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimePlace {
    /// The number of the interval.
    pub number: u64,
    /// Whether time goes on.
    pub goes_on: bool,
    /// The playback speed.
    pub speed: u32,
}

/// The view.
#[derive(Clone, Debug)]
pub struct View {
    pub page: Page,
    /// The position in time.
    pub place: TimePlace,
    /// Number of intervals of a record; `None` for a watch without a known end.
    pub total: Option<u64>,
    /// How devices are sorted.
    pub order: Order,
    /// The quantity of the graphs.
    pub quantity: Quantity,
    /// The text that shown names must contain; empty for all.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
    /// Whether devices are a tree of layers.
    pub is_tree: bool,
    /// Whether idle devices are shown.
    pub shows_idle: bool,
    /// Whether findings are shown.
    pub shows_sentences: bool,
    /// The chosen device.
    pub chosen: Option<String>,
    /// Number of lines that are scrolled past.
    pub(crate) scrolled: usize,
    pub(crate) glyphs: Glyphs,
}

impl View {
    /// The view of a watch, or of a record with this many intervals.
    pub fn new(total: Option<u64>, glyphs: Glyphs) -> View {
        View {
            page: Page::Devices,
            place: TimePlace { number: 0, goes_on: true, speed: SPEEDS[0] },
            total,
            order: Order::Kernel,
            quantity: Quantity::Throughput,
            filter: String::new(),
            is_typing: false,
            is_tree: true,
            shows_idle: false,
            shows_sentences: true,
            chosen: None,
            scrolled: 0,
            glyphs,
        }
    }

    /// The visible rows of an interval.
    pub(crate) fn rows(&self, interval: &Interval, timeline: &Timeline) -> Vec<DeviceRow> {
        let weight = |device: &DeviceInterval| match self.order {
            Order::Kernel => 0.0,
            Order::By(quantity) => quantity.of(device),
        };
        let weight: device_tree::Weight<'_> =
            if self.order == Order::Kernel { None } else { Some(&weight) };
        let mut rows = if self.is_tree && self.filter.is_empty() {
            device_tree::rows(&interval.devices, weight, self.glyphs)
        } else {
            device_tree::flat(&interval.devices, weight)
        };
        let wanted = self.filter.to_lowercase();
        rows.retain(|row| {
            let device = &interval.devices[row.device];
            device.name.to_lowercase().contains(&wanted)
                && (self.shows_idle || self.is_noticed(device, timeline))
        });
        rows
    }

    fn is_noticed(&self, device: &DeviceInterval, timeline: &Timeline) -> bool {
        device.is_busy()
            || !device.findings.is_empty()
            || timeline.was_busy(&device.name, self.place.number)
    }

    /// Handles a key. `timeline` has the present intervals.
    pub fn press(&mut self, key: KeyEvent, timeline: &Timeline) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::Quit,
                KeyCode::Char('z') => Wish::Stop,
                KeyCode::Char('l') => Wish::Redraw,
                _ => Wish::None,
            };
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Wish::None;
        }
        match key.code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.turn_to(Page::Help),
            KeyCode::Enter => self.turn_to(Page::Details),
            KeyCode::Esc if self.page != Page::Devices => self.page = Page::Devices,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => {
                self.page = Page::Devices;
                self.is_typing = true;
            }
            KeyCode::Char('s') => self.order = self.next_order(),
            KeyCode::Char('g') => self.quantity = self.quantity.next(),
            KeyCode::Char('t') => self.is_tree = !self.is_tree,
            KeyCode::Char('i') => self.shows_idle = !self.shows_idle,
            KeyCode::Char('e') => self.shows_sentences = !self.shows_sentences,
            code => self.move_by(code, timeline),
        }
        Wish::None
    }

    fn turn_to(&mut self, page: Page) {
        self.page = if self.page == page { Page::Devices } else { page };
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(typed) if self.filter.chars().count() < FILTER_CHARACTERS_MAX => {
                self.filter.push(typed);
            }
            _ => {}
        }
    }

    fn next_order(&self) -> Order {
        match self.order {
            Order::Kernel => Order::By(Quantity::ALL[0]),
            Order::By(quantity) if quantity.next() == Quantity::ALL[0] => Order::Kernel,
            Order::By(quantity) => Order::By(quantity.next()),
        }
    }

    fn move_by(&mut self, code: KeyCode, timeline: &Timeline) {
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.choose(timeline, -1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(timeline, 1),
            KeyCode::PageUp => self.choose(timeline, -10),
            KeyCode::PageDown => self.choose(timeline, 10),
            KeyCode::Char(' ') => self.pause_or_go_on(timeline),
            KeyCode::Left => self.step(timeline, -1),
            KeyCode::Right => self.step(timeline, 1),
            KeyCode::Char('[') => self.step(timeline, -60),
            KeyCode::Char(']') => self.step(timeline, 60),
            KeyCode::Home => self.step(timeline, i64::MIN),
            KeyCode::End => self.step(timeline, i64::MAX),
            KeyCode::Char('+') => self.change_speed(1),
            KeyCode::Char('-') => self.change_speed(-1),
            _ => {}
        }
    }

    fn choose(&mut self, timeline: &Timeline, by: isize) {
        let Some(interval) = timeline.get(self.place.number) else { return };
        let rows = self.rows(interval, timeline);
        let names: Vec<&str> = rows
            .iter()
            .filter(|row| !row.is_repeat)
            .map(|row| interval.devices[row.device].name.as_str())
            .collect();
        let at = names.iter().position(|name| Some(*name) == self.chosen.as_deref());
        let last = names.len().saturating_sub(1);
        let to = at.unwrap_or(0).saturating_add_signed(by).min(last);
        self.chosen = names.get(to).map(|name| (*name).to_owned());
    }

    /// The last interval that exists, or will exist.
    fn last(&self, timeline: &Timeline) -> u64 {
        self.total.unwrap_or_else(|| timeline.next()).saturating_sub(1)
    }

    fn first(&self, timeline: &Timeline) -> u64 {
        if self.total.is_some() { 0 } else { timeline.first() }
    }

    fn pause_or_go_on(&mut self, timeline: &Timeline) {
        let is_at_end = self.place.number >= self.last(timeline);
        self.place.goes_on = !self.place.goes_on;
        if self.place.goes_on && self.total.is_some() && is_at_end {
            self.place.number = 0;
        }
    }

    fn step(&mut self, timeline: &Timeline, by: i64) {
        self.place.goes_on = false;
        let (first, last) = (self.first(timeline), self.last(timeline));
        let to = self.place.number.saturating_add_signed(by);
        self.place.number = to.clamp(first, last.max(first));
    }

    fn change_speed(&mut self, by: isize) {
        let at = SPEEDS.iter().position(|it| *it == self.place.speed).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(SPEEDS.len() - 1);
        self.place.speed = SPEEDS[to];
    }

    /// Advances time: to the newest interval of a watch, or the next one of a record. Returns
    /// whether the interval changed.
    pub(crate) fn go_on(&mut self, timeline: &Timeline) -> bool {
        let before = self.place;
        match self.total {
            _ if !self.place.goes_on => self.place.number = before.number.max(timeline.first()),
            None => self.place.number = timeline.next().saturating_sub(1),
            Some(total) if before.number + 1 < total => self.place.number += 1,
            Some(_) => self.place.goes_on = false,
        }
        self.place != before
    }
}
