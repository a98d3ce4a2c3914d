//! `gpudx demo [CASE]`: a recorded case, judged anew by the engine as it stands.

use std::io::Write;
use std::path::Path;

use facts::raw::{ItemName, RawItem, RawSet};
use render::story::Stage;

use crate::args::{ColorWhen, DemoArgs, ReportArgs};
use crate::exit::Exit;
use crate::judge::Judged;
use crate::{output, source};

use super::report;

/// A recorded case that the binary carries.
struct Recorded {
    name: &'static str,
    title: &'static str,
    text: &'static str,
}

/// The stages of one real case, in the order in which they were met.
static STAGES: [Recorded; 3] = [
    Recorded {
        name: "flagship-1-container",
        title: "in the container",
        text: include_str!("../../../../cases/uvm.hmm/flagship-1-container/text/report.txt"),
    },
    Recorded {
        name: "flagship-2-host-hang",
        title: "on the host",
        text: include_str!("../../../../cases/uvm.hmm/flagship-2-host-hang/text/report.txt"),
    },
    Recorded {
        name: "flagship-3-cured",
        title: "on the host, after the remedy",
        text: include_str!("../../../../cases/healthy/flagship-3-cured/text/report.txt"),
    },
];

/// Walks through the stages, runs one case, or lists them. A demonstration that could be shown is
/// a success, whatever the case is about.
pub(crate) fn run(args: &DemoArgs, color: ColorWhen) -> Exit {
    match &args.case {
        None if args.list => list(),
        None => walk(color),
        Some(case) => match STAGES.iter().find(|stage| stage.name == case) {
            Some(stage) => show(&stage.raw(), stage.name, color),
            None => show_folder(case, color),
        },
    }
}

impl Recorded {
    fn raw(&self) -> RawSet {
        let name = ItemName::Text("report.txt".to_owned());
        RawSet::from_iter([RawItem::new(name, self.text.as_bytes())])
    }

    fn judged(&self) -> Result<Judged, Exit> {
        report::judged(&self.raw())
    }
}

fn list() -> Exit {
    output::print(Exit::Fine, |out| {
        STAGES.iter().try_for_each(|stage| writeln!(out, "{:<22} {}", stage.name, stage.title))
    })
}

fn walk(color: ColorWhen) -> Exit {
    let mut stages = Vec::new();
    for recorded in &STAGES {
        let Judged { facts, diagnosis } = match recorded.judged() {
            Ok(judged) => judged,
            Err(exit) => return exit,
        };
        let title = format!("{} ({})", recorded.title, recorded.name);
        stages.push(Stage { title, facts, diagnosis });
    }
    let options = output::options(color, false);
    output::print(Exit::Fine, |out| render::story::write(out, &stages, options))
}

fn show(raw: &RawSet, name: &str, color: ColorWhen) -> Exit {
    match report::judged(raw) {
        Ok(judged) => {
            report::print(judged, name, &ReportArgs::default(), color);
            Exit::Fine
        }
        Err(exit) => exit,
    }
}

fn show_folder(case: &str, color: ColorWhen) -> Exit {
    let path = Path::new(case);
    if !path.is_dir() {
        let message = format!("no recorded case “{case}” and no folder of one (gpudx demo --list)");
        return output::complain(&message, Exit::Usage);
    }
    match source::inputs(&[path.to_owned()]) {
        Ok(raw) => show(&raw, case, color),
        Err(message) => output::complain(&message, Exit::Undetermined),
    }
}
