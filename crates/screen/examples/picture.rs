//! A picture of the screen as SVG: `picture RECORD INTERVAL COLUMNS LINES [KEYS]`, with intervals
//! counted from 1. scripts/watch-pictures uses it for docs/watch.md.

use std::path::PathBuf;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use report::glyphs::Glyphs;
use report::table::Colour;
use screen::draw::{Look, draw};
use screen::run::{Player, ScreenSource};
use screen::timeline::Timeline;
use screen::view::View;
use watch::Reading;

/// Size of a character, in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [record, interval, columns, lines, keys @ ..] = arguments.as_slice() else {
        return Err("usage: picture RECORD INTERVAL COLUMNS LINES [KEYS]".into());
    };
    let mut player = Player::open(PathBuf::from(record), |_: &mut Reading| {})?;
    let number = interval.parse::<u64>()?.saturating_sub(1);
    let mut timeline = Timeline::default();
    player.fill(&mut timeline, number)?;
    let mut view = View::new(None, Glyphs::Unicode);
    view.place.number = number;
    let (columns, lines): (u16, u16) = (columns.parse()?, lines.parse()?);
    let mut terminal = Terminal::new(TestBackend::new(columns, lines))?;
    let look = Look { title: "takeup watch".to_owned(), colour: Colour::Ansi };
    for key in keys.concat().chars() {
        terminal.draw(|frame| draw(frame, &mut view, &timeline, &look))?;
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        view.press(KeyEvent::new(code, KeyModifiers::NONE), &timeline);
    }
    terminal.draw(|frame| draw(frame, &mut view, &timeline, &look))?;
    std::io::Write::write_all(&mut std::io::stdout(), svg(terminal.backend().buffer()).as_bytes())?;
    Ok(())
}

fn svg(buffer: &Buffer) -> String {
    let (columns, lines) = (buffer.area.width, buffer.area.height);
    let (width, height) = (f64::from(columns) * WIDTH + 16.0, f64::from(lines) * HEIGHT + 16.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#16181d\"/>\n"
    );
    for y in 0..lines {
        let mut x = 0;
        while x < columns {
            let first = &buffer[(x, y)];
            let is_same = |it: &u16| {
                let cell = &buffer[(*it, y)];
                cell.fg == first.fg && cell.modifier == first.modifier
            };
            let end = (x..columns).find(|it| !is_same(it)).unwrap_or(columns);
            let words: String = (x..end).map(|it| buffer[(it, y)].symbol()).collect();
            text.push_str(&run(first, &words, x, y, end - x));
            x = end;
        }
    }
    text + "</svg>"
}

/// Characters of one style.
fn run(cell: &Cell, words: &str, x: u16, y: u16, count: u16) -> String {
    let (left, top) = (f64::from(x) * WIDTH + 8.0, f64::from(y) * HEIGHT + 8.0);
    let length = f64::from(count) * WIDTH;
    let is = |modifier| cell.modifier.contains(modifier);
    let mut text = String::new();
    let ink = match cell.fg {
        _ if is(Modifier::REVERSED) => "#16181d",
        Color::Cyan => "#6cc7d6",
        Color::Yellow => "#e3c16f",
        Color::Red => "#ef7b72",
        Color::Green => "#8cc26b",
        _ if is(Modifier::DIM) => "#8b919c",
        _ => "#d8dbe2",
    };
    if is(Modifier::REVERSED) {
        text = format!(
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{HEIGHT}\" \
             fill=\"#c3c7d0\"/>\n"
        );
    }
    if words.trim().is_empty() {
        return text;
    }
    let weight = if is(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text + &format!(
        "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" xml:space=\"preserve\" \
         fill=\"{ink}\"{weight}>{words}</text>\n",
        top + 13.0
    )
}
