//! What the view shows, and what keys do. Knows rows and keys, no files and no terminal.

use super::reading::{Calls, Row, Subject, Tone};
use mcproof_record::counted;
use mcproof_trace::calls::CallKey;
use mcproof_trace::filter::Filter;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

const KEYS: &str = "enter whole call  / filter  f follow  n next error  ? keys  q quit";

const ALL_KEYS: [&str; 9] = [
    "up, down, k, j      previous or next call",
    "page up, page down  a page up or down",
    "home, end, g, G     first or last call",
    "n, N                next or previous error",
    "f                   follow: stay at the last call",
    "enter               show the call as a whole; again or esc: back to the list",
    "/                   edit the filter, such as `method:tools/call status:error`; enter applies it, esc drops it",
    "?                   these keys",
    "q, ctrl-c           quit",
];

pub(super) enum Reaction {
    Nothing,
    Filter(Filter),
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pane {
    List,
    Whole,
    Keys,
}

pub(super) struct Screen {
    name: String,
    calls: Calls,
    was_read: bool,
    selected: usize,
    /// The last row stays selected as rows come.
    follows: bool,
    pane: Pane,
    /// The call that is shown as a whole, once it was read.
    whole: Option<(CallKey, Vec<String>)>,
    asked: Option<CallKey>,
    top: usize,
    /// The filter that applies, as it was typed.
    filter: String,
    /// The filter that is being typed, and what is wrong with it.
    editing: Option<(String, Option<String>)>,
    has_color: bool,
    /// Rows of the list and lines of the call at the last drawing.
    heights: (usize, usize),
}

impl Screen {
    pub(super) fn new(name: String, filter: String, has_color: bool) -> Self {
        Self {
            name,
            calls: Calls::default(),
            was_read: false,
            selected: 0,
            follows: true,
            pane: Pane::List,
            whole: None,
            asked: None,
            top: 0,
            filter,
            editing: None,
            has_color,
            heights: (1, 1),
        }
    }

    pub(super) fn take(&mut self, calls: Calls) {
        let selected = self.key();
        (self.calls, self.was_read) = (calls, true);
        let last = self.calls.rows.len().saturating_sub(1);
        self.selected = match selected {
            _ if self.follows => last,
            // Rows that come or go above must not move the selection to another call.
            Some(key) => self.calls.rows.iter().position(|row| row.subject == Subject::Call(key)).unwrap_or(self.selected.min(last)),
            None => self.selected.min(last),
        };
        // It may have got its response.
        self.asked = None;
    }

    pub(super) fn take_whole(&mut self, key: CallKey, lines: Vec<String>) {
        if self.whole.as_ref().is_none_or(|(shown, _)| *shown != key) {
            self.top = 0;
        }
        self.whole = Some((key, lines));
    }

    /// The call that has to be read to be shown. Each is asked for once.
    pub(super) fn wanted(&mut self) -> Option<CallKey> {
        let key = self.key()?;
        (self.asked.replace(key) != Some(key)).then_some(key)
    }

    fn row(&self) -> Option<&Row> {
        self.calls.rows.get(self.selected)
    }

    fn key(&self) -> Option<CallKey> {
        match self.row()?.subject {
            Subject::Call(key) => Some(key),
            Subject::Note(_) => None,
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Reaction {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Reaction::Quit;
        }
        if self.editing.is_some() {
            return self.edit(key.code);
        }
        let (list, whole) = self.heights;
        match (key.code, self.pane) {
            (KeyCode::Char('q'), _) | (KeyCode::Esc, Pane::List) => return Reaction::Quit,
            (KeyCode::Esc | KeyCode::Char('?'), Pane::Keys) | (KeyCode::Esc | KeyCode::Enter, Pane::Whole) => self.pane = Pane::List,
            (KeyCode::Char('?'), _) => self.pane = Pane::Keys,
            (KeyCode::Char('/'), _) => self.editing = Some((self.filter.clone(), None)),
            (KeyCode::Char('f'), _) => {
                self.follows = !self.follows;
                if self.follows {
                    self.selected = self.calls.rows.len().saturating_sub(1);
                }
            }
            (KeyCode::Char('n'), _) => self.next_error(self.selected + 1..self.calls.rows.len()),
            (KeyCode::Char('N'), _) => {
                let before = self.calls.rows[..self.selected.min(self.calls.rows.len())].iter().rposition(|row| row.tone == Tone::Wrong);
                before.into_iter().for_each(|index| self.select(index));
            }
            (KeyCode::Enter, _) => self.pane = Pane::Whole,
            (code, Pane::Whole) => {
                // The drawing keeps the last page full.
                self.top = moved(code, self.top, whole, self.lines().len());
            }
            (code, _) => {
                let last = self.calls.rows.len().saturating_sub(1);
                let next = moved(code, self.selected, list, last);
                if next != self.selected {
                    self.select(next);
                }
            }
        }
        Reaction::Nothing
    }

    fn select(&mut self, index: usize) {
        self.selected = index;
        self.follows = index + 1 == self.calls.rows.len();
    }

    fn next_error(&mut self, among: std::ops::Range<usize>) {
        let found = among.into_iter().find(|index| self.calls.rows[*index].tone == Tone::Wrong);
        found.into_iter().for_each(|index| self.select(index));
    }

    fn edit(&mut self, code: KeyCode) -> Reaction {
        let Some((text, mistake)) = &mut self.editing else { return Reaction::Nothing };
        *mistake = None;
        match code {
            KeyCode::Char(character) => text.push(character),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Esc => self.editing = None,
            KeyCode::Enter => match Filter::parse(text) {
                Ok(filter) => {
                    self.filter = std::mem::take(text);
                    self.editing = None;
                    return Reaction::Filter(filter);
                }
                Err(error) => *mistake = Some(error.hint.map_or(error.message.clone(), |hint| format!("{}; {hint}", error.message))),
            },
            _ => {}
        }
        Reaction::Nothing
    }

    /// What is shown of the selected row as a whole.
    fn lines(&self) -> &[String] {
        match (self.row().map(|row| &row.subject), &self.whole) {
            (Some(Subject::Note(lines)), _) => lines,
            (Some(Subject::Call(key)), Some((shown, lines))) if key == shown => lines,
            _ => &[],
        }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let [top, middle, bottom] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
        frame.render_widget(Line::styled(self.title(), self.style(Tone::Heading)), top);
        frame.render_widget(self.footer(), bottom);
        match self.pane {
            Pane::Keys => frame.render_widget(Paragraph::new(ALL_KEYS.map(Line::raw).to_vec()), middle),
            Pane::Whole => self.draw_whole(frame, middle),
            Pane::List => {
                // Below twenty lines the list needs all of them.
                let half = if middle.height >= 20 { middle.height / 2 } else { 0 };
                let [list, whole] = Layout::vertical([Constraint::Min(1), Constraint::Length(half)]).areas(middle);
                self.draw_list(frame, list);
                if half > 0 {
                    self.draw_whole(frame, whole);
                }
            }
        }
    }

    fn draw_list(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let height = usize::from(area.height).max(1);
        self.heights.0 = height;
        let first = self.selected.saturating_sub(height / 2).min(self.calls.rows.len().saturating_sub(height));
        let rows = self.calls.rows.iter().enumerate().skip(first).take(height).map(|(index, row)| {
            let style = self.style(row.tone);
            let (mark, style) = if index == self.selected { ("> ", style.add_modifier(Modifier::REVERSED)) } else { ("  ", style) };
            Line::from(vec![Span::styled(mark, style), Span::styled(row.text.as_str(), style)])
        });
        frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()), area);
    }

    fn draw_whole(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let block = Block::bordered().border_style(self.style(Tone::Heading));
        let inner = block.inner(area);
        let height = usize::from(inner.height).max(1);
        self.heights.1 = height;
        self.top = self.top.min(self.lines().len().saturating_sub(height));
        let lines: Vec<Line<'_>> = self.lines().iter().skip(self.top).take(height).map(|line| Line::raw(line.as_str())).collect();
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }

    fn title(&self) -> String {
        let Calls { rows, count, dropped, is_open, error } = &self.calls;
        let shown = rows.iter().filter(|row| matches!(row.subject, Subject::Call(_))).count();
        let calls = match shown == *count {
            true => counted(*count, "call"),
            false => format!("{shown} of {}", counted(*count, "call")),
        };
        let state = match (error, is_open, self.follows) {
            _ if !self.was_read => "reading".to_owned(),
            (Some(error), _, _) => format!("unreadable: {error}"),
            (None, true, true) => "following".to_owned(),
            (None, true, false) => "open".to_owned(),
            (None, false, _) => "complete".to_owned(),
        };
        let dropped = if *dropped > 0 { format!("  {dropped} earlier ones are left out") } else { String::new() };
        let filter = if self.filter.is_empty() { String::new() } else { format!("  filter: {}", self.filter) };
        format!("{}  {calls}  {state}{dropped}{filter}", self.name)
    }

    fn footer(&self) -> Line<'_> {
        match &self.editing {
            None => Line::styled(KEYS, Style::new().add_modifier(Modifier::DIM)),
            Some((text, None)) => Line::raw(format!("filter: {text}_")),
            Some((text, Some(mistake))) => Line::styled(format!("filter: {text}_  {mistake}"), self.style(Tone::Wrong)),
        }
    }

    fn style(&self, tone: Tone) -> Style {
        let color = match tone {
            Tone::Heading => return Style::new().add_modifier(Modifier::BOLD),
            Tone::Fine => return Style::new(),
            Tone::Open => Color::Yellow,
            Tone::Wrong => Color::Red,
        };
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }
}

/// Where a key leads in a list whose last place is `last`.
fn moved(code: KeyCode, from: usize, page: usize, last: usize) -> usize {
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => from + 1,
        KeyCode::PageUp => from.saturating_sub(page),
        KeyCode::PageDown => from + page,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => from,
    };
    to.min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn row(key: u64, tone: Tone) -> Row {
        Row { subject: Subject::Call(CallKey(key)), text: format!("call {key}"), tone }
    }

    fn with(keys: std::ops::RangeInclusive<u64>) -> Calls {
        let rows: Vec<Row> = keys.map(|key| row(key, if key % 5 == 0 { Tone::Wrong } else { Tone::Fine })).collect();
        Calls { count: rows.len(), rows, is_open: true, ..Calls::default() }
    }

    fn press(screen: &mut Screen, keys: &[KeyCode]) -> Vec<Reaction> {
        keys.iter().map(|code| screen.press(KeyEvent::new(*code, KeyModifiers::NONE))).collect()
    }

    fn text(screen: &mut Screen, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_last_call_stays_selected_until_another_one_is() {
        let mut screen = Screen::new("a.mcptrace".into(), String::new(), true);
        screen.take(with(1..=8));
        assert_eq!(screen.wanted(), Some(CallKey(8)));
        assert_eq!(screen.wanted(), None, "asked for once");
        screen.take(with(1..=9));
        assert_eq!(screen.wanted(), Some(CallKey(9)));
        press(&mut screen, &[KeyCode::Up, KeyCode::Up]);
        assert_eq!(screen.wanted(), Some(CallKey(7)));
        screen.take(with(3..=12));
        assert_eq!(screen.key(), Some(CallKey(7)), "the same call, at another place");
        press(&mut screen, &[KeyCode::Char('G')]);
        screen.take(with(3..=13));
        assert_eq!(screen.key(), Some(CallKey(13)));
        press(&mut screen, &[KeyCode::Char('N'), KeyCode::Char('N')]);
        assert_eq!(screen.key(), Some(CallKey(5)));
        press(&mut screen, &[KeyCode::Char('n')]);
        assert_eq!(screen.key(), Some(CallKey(10)));
    }

    #[test]
    fn a_filter_applies_when_it_is_right_and_says_what_is_wrong_otherwise() {
        let mut screen = Screen::new("a.mcptrace".into(), String::new(), false);
        let typed = |text: &str| text.chars().map(KeyCode::Char).collect::<Vec<_>>();
        press(&mut screen, &typed("/status:bad"));
        assert!(matches!(press(&mut screen, &[KeyCode::Enter])[..], [Reaction::Nothing]));
        assert!(text(&mut screen, 10).contains("status:bad_  "), "{}", text(&mut screen, 10));
        press(&mut screen, &[KeyCode::Backspace; 3]);
        press(&mut screen, &typed("ok"));
        assert!(matches!(press(&mut screen, &[KeyCode::Enter])[..], [Reaction::Filter(_)]));
        assert!(text(&mut screen, 10).contains("filter: status:ok"));
        assert!(matches!(press(&mut screen, &typed("q"))[..], [Reaction::Quit]));
    }

    #[test]
    fn every_height_shows_the_selected_call_and_a_high_one_the_whole_of_it() {
        let mut screen = Screen::new("a.mcptrace".into(), String::new(), true);
        assert!(text(&mut screen, 10).contains("reading"), "nothing is said of what was not read");
        screen.take(with(1..=100));
        screen.take_whole(CallKey(100), (0..50).map(|line| format!("line {line}")).collect());
        for height in [3, 5, 24, 60] {
            assert!(text(&mut screen, height).contains("> call 100"), "{}", text(&mut screen, height));
        }
        assert!(text(&mut screen, 24).contains("line 0") && !text(&mut screen, 10).contains("line 0"));
        press(&mut screen, &[KeyCode::Enter, KeyCode::End]);
        assert!(text(&mut screen, 10).contains("line 49"), "{}", text(&mut screen, 10));
        assert!(text(&mut screen, 1).lines().count() >= 1);
        press(&mut screen, &[KeyCode::Enter, KeyCode::Char('?')]);
        assert!(text(&mut screen, 12).contains("edit the filter"));
    }
}
