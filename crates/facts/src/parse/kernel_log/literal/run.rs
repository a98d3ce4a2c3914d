//! What a sequence of atoms requires.

/// What is known of a part of an expression.
pub(super) struct Info {
    /// The one text that it matches, if it is only one.
    pub(super) exact: Option<String>,
    /// Literals of which each match holds at least one.
    pub(super) best: Option<Vec<String>>,
}

/// How often an atom stands.
pub(super) enum Repeat {
    Once,
    /// Perhaps not at all.
    Optional,
    /// At least once, perhaps more often.
    Some,
}

/// A run of atoms that follow one another without a gap.
pub(super) struct Run {
    text: String,
    pub(super) best: Option<Vec<String>>,
    gapless: bool,
}

impl Default for Run {
    fn default() -> Self {
        Run { text: String::new(), best: None, gapless: true }
    }
}

impl Run {
    pub(super) fn add(&mut self, atom: Info, repeat: &Repeat) {
        match (repeat, atom.exact) {
            (Repeat::Once, Some(text)) => self.text.push_str(&text),
            (Repeat::Some, Some(text)) => {
                self.text.push_str(&text);
                self.gap();
            }
            (Repeat::Optional, _) => self.gap(),
            (Repeat::Once | Repeat::Some, None) => {
                self.gap();
                self.offer(atom.best);
            }
        }
    }

    fn gap(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.offer((!text.is_empty()).then(|| vec![text]));
        self.gapless = false;
    }

    fn offer(&mut self, set: Option<Vec<String>>) {
        let Some(set) = set else { return };
        if self.best.as_ref().is_none_or(|best| worth(&set) > worth(best)) {
            self.best = Some(set);
        }
    }

    pub(super) fn finish(mut self) -> Info {
        let exact = self.gapless.then(|| self.text.clone());
        self.gap();
        Info { exact, best: self.best }
    }
}

/// Long literals are rare in a log, and few of them cost less than many.
fn worth(set: &[String]) -> usize {
    let shortest = set.iter().map(String::len).min().unwrap_or(0);
    shortest.saturating_sub(3 * (set.len().saturating_sub(1)))
}
