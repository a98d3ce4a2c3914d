//! Looks for words at four places of a text at once. One look alone waits at every byte, since the
//! next state of the automaton is known only when the last one has been read from memory; four
//! that do not wait for each other keep the processor busy.

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;

/// A shorter text is not worth dividing.
const LEAST_BYTES: usize = 4 << 10;

/// Where each line begins in which a word is found, in order. `covered` is given a line and the
/// place of a word in it, and tells where the search goes on when the word does not count there.
pub(super) fn lines_with_words(
    dfa: &DFA,
    text: &[u8],
    covered: &dyn Fn(&[u8], usize) -> Option<usize>,
) -> Vec<usize> {
    let Ok(start) = dfa.start_state(Anchored::No) else { return Vec::new() };
    let mut lanes = divided(text, start);
    loop {
        let steps = lanes.iter().map(|lane| lane.rest().len()).min().unwrap_or(0);
        if steps == 0 {
            break;
        }
        let (states, done) = walk_together(dfa, &lanes, steps);
        for (lane, state) in lanes.iter_mut().zip(states) {
            lane.advance(done, state);
            if dfa.is_match(state) {
                lane.found_word(dfa, start, covered);
            }
        }
    }
    for lane in &mut lanes {
        lane.walk_alone(dfa, start, covered);
    }
    lanes.into_iter().flat_map(Lane::into_found).collect()
}

/// Divides a text at ends of lines.
fn divided(text: &[u8], start: StateID) -> [Lane<'_>; 4] {
    let mut rest = text;
    let mut base = 0;
    [4, 3, 2, 1].map(|left| {
        let share = if text.len() < LEAST_BYTES { rest.len() } else { rest.len() / left };
        let end = if left == 1 { rest.len() } else { line_end(rest, share) };
        let (own, others) = rest.split_at(end);
        let lane = Lane { text: own, base, at: 0, state: start, found: Vec::new() };
        rest = others;
        base += end;
        lane
    })
}

/// The end of the line that holds this place.
fn line_end(text: &[u8], place: usize) -> usize {
    let behind = text.get(place..).unwrap_or_default();
    memchr::memchr(b'\n', behind).map_or(text.len(), |end| place + end + 1)
}

/// Walks all lanes by the same number of bytes, at most `steps`, to where one of them has found a
/// word. Returns the states there and the number of bytes.
fn walk_together(dfa: &DFA, lanes: &[Lane<'_>; 4], steps: usize) -> ([StateID; 4], usize) {
    let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(|index| lanes[index].state);
    let [one, two, three, four] =
        [0, 1, 2, 3].map(|index| lanes[index].rest().get(..steps).unwrap_or_default());
    let mut done = 0;
    for (((one, two), three), four) in one.iter().zip(two).zip(three).zip(four) {
        a = dfa.next_state(Anchored::No, a, *one);
        b = dfa.next_state(Anchored::No, b, *two);
        c = dfa.next_state(Anchored::No, c, *three);
        d = dfa.next_state(Anchored::No, d, *four);
        done += 1;
        let any = dfa.is_special(a) | dfa.is_special(b) | dfa.is_special(c) | dfa.is_special(d);
        if any {
            break;
        }
    }
    ([a, b, c, d], done)
}

/// A part of a text, and how far it was walked.
struct Lane<'t> {
    text: &'t [u8],
    /// Where the part begins in the text.
    base: usize,
    at: usize,
    state: StateID,
    found: Vec<usize>,
}

impl<'t> Lane<'t> {
    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize, state: StateID) {
        self.at += bytes;
        self.state = state;
    }

    /// Notes the line in which a word ends here, and goes on behind it.
    fn found_word(
        &mut self,
        dfa: &DFA,
        start: StateID,
        covered: &dyn Fn(&[u8], usize) -> Option<usize>,
    ) {
        let length = dfa.pattern_len(dfa.match_pattern(self.state, 0));
        let word = self.at.saturating_sub(length);
        let before = self.text.get(..word).unwrap_or_default();
        let begin = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        let end = line_end(self.text, word);
        let line = self.text.get(begin..end).unwrap_or_default();
        self.at = if let Some(end) = covered(line, word - begin) {
            begin + end
        } else {
            self.found.push(self.base + begin);
            end
        };
        self.state = start;
    }

    fn walk_alone(
        &mut self,
        dfa: &DFA,
        start: StateID,
        covered: &dyn Fn(&[u8], usize) -> Option<usize>,
    ) {
        while let Some(byte) = self.text.get(self.at) {
            self.advance(1, dfa.next_state(Anchored::No, self.state, *byte));
            if dfa.is_match(self.state) {
                self.found_word(dfa, start, covered);
            }
        }
    }

    fn into_found(self) -> Vec<usize> {
        self.found
    }
}
