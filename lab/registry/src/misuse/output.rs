//! Parsing of a misuse program's output. `misuses/misuse.h` describes its lines.

use heapdrome_schema::{Ending, MisuseOutcome, MisuseStage};

/// Maximum length of a message in characters.
const LONGEST: usize = 160;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) outcome: MisuseOutcome,
    pub(super) stage: Option<MisuseStage>,
    pub(super) said: Option<String>,
    pub(super) harm: Option<String>,
}

/// Parses the output of a program that ended with `ending`.
pub(super) fn read(output: &str, ending: Ending) -> Found {
    let mut found = Found {
        outcome: MisuseOutcome::NotTried,
        stage: None,
        said: None,
        harm: None,
    };
    let mut reached = None;
    let mut before = None;
    for line in output.lines().map(str::trim) {
        let (mark, more) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            "" => {}
            "@misuse" => reached = Some(MisuseStage::Misuse),
            "@free" => reached = Some(MisuseStage::Free),
            "@later" => reached = Some(MisuseStage::Later),
            "@exit" => reached = Some(MisuseStage::Exit),
            "@cannot" => before = Some(more.to_owned()),
            "@harm" => {
                found.harm.get_or_insert_with(|| more.to_owned());
            }
            _ if reached.is_none() => before = Some(shortened(line)),
            _ if found.said.is_none() => {
                found.said = Some(shortened(line));
                found.stage = reached;
            }
            _ => {}
        }
    }
    if reached.is_none() {
        found.said = before;
        return found;
    }
    found.stage = found.stage.or(reached);
    found.outcome = outcome(&found, ending, reached == Some(MisuseStage::Exit));
    found
}

fn outcome(found: &Found, ending: Ending, to_its_end: bool) -> MisuseOutcome {
    let went_on = ending == Ending::Exited(0) && to_its_end;
    match (ending, found.said.is_some()) {
        (Ending::TimedOut, _) => MisuseOutcome::Hung,
        (_, true) if went_on => MisuseOutcome::Warned,
        (_, true) => MisuseOutcome::Detected,
        (_, false) if !went_on => MisuseOutcome::Killed,
        _ if found.harm.is_some() => MisuseOutcome::Harmed,
        _ => MisuseOutcome::Unharmed,
    }
}

/// Shortens a message to [`LONGEST`] characters and an ellipsis, and cuts it between two words.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        None => line.to_owned(),
        Some((end, _)) => {
            let kept = &line[..end];
            let words = kept.rsplit_once(' ').map_or(kept, |(words, _)| words);
            format!("{words}…")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDED: Ending = Ending::Exited(0);
    const ABORTED: Ending = Ending::Killed(6);

    fn outcome(output: &str, ending: Ending) -> (MisuseOutcome, Option<MisuseStage>) {
        let found = read(output, ending);
        (found.outcome, found.stage)
    }

    #[test]
    fn a_message_counts_where_it_was_said_and_by_what_followed() {
        use MisuseOutcome::{Detected, Hung, Warned};
        let at = |stage| Some(stage);
        let cases = [
            ("@misuse \nno!\n", ABORTED, Detected, MisuseStage::Misuse),
            ("@misuse \n@free \nno", ABORTED, Detected, MisuseStage::Free),
            (
                "@misuse \n@free \n\n@later \n@exit \nno\n",
                ABORTED,
                Detected,
                MisuseStage::Exit,
            ),
            (
                "@misuse \nno\n@free \n@later \n@exit \n",
                ENDED,
                Warned,
                MisuseStage::Misuse,
            ),
            ("@misuse \n@free \nno", ENDED, Detected, MisuseStage::Free),
            (
                "@misuse \nno\n",
                Ending::TimedOut,
                Hung,
                MisuseStage::Misuse,
            ),
        ];
        for (output, ending, expected, stage) in cases {
            assert_eq!(outcome(output, ending), (expected, at(stage)), "{output}");
        }
    }

    #[test]
    fn silence_is_told_apart_by_ending_and_harm() {
        use MisuseOutcome::{Harmed, Killed, Unharmed};
        let whole = "@misuse \n@free \n@later \n@exit \n";
        assert_eq!(outcome(whole, ENDED).0, Unharmed);
        assert_eq!(outcome("@misuse \n", Ending::Killed(11)).0, Killed);
        assert_eq!(outcome("@misuse \n", ENDED).0, Killed);
        assert_eq!(outcome(whole, Ending::Exited(9)).0, Killed);
        let harmed = read(
            "@misuse \n@free \n@later \n@harm two overlap\n@exit \n",
            ENDED,
        );
        assert_eq!(harmed.outcome, Harmed);
        assert_eq!(harmed.harm.as_deref(), Some("two overlap"));
    }

    #[test]
    fn what_comes_before_the_misuse_says_nothing_about_it() {
        let found = read("a banner\n@misuse \n@free \n@later \n@exit \n", ENDED);
        assert_eq!((found.outcome, found.said), (MisuseOutcome::Unharmed, None));
        let found = read("malloc comes from elsewhere\n", Ending::Exited(2));
        assert_eq!(found.outcome, MisuseOutcome::NotTried);
        assert_eq!(found.said.as_deref(), Some("malloc comes from elsewhere"));
        let found = read("\n@cannot there is no memory\n", ENDED);
        assert_eq!(found.said.as_deref(), Some("there is no memory"));
    }
}
