//! What puts a cause right: commands, where to run them, what they cost, how to undo and verify.

/// Where a command is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Where gpudx was run.
    Here,
    /// On the machine that holds the kernel module: the container's host.
    Host,
    /// Inside the container.
    Container,
    /// Where the container is started: the engine's command line, compose file or pod spec.
    Engine,
    /// On the hypervisor.
    Hypervisor,
    /// In the guest.
    Guest,
    /// In the program or its environment.
    Program,
    /// In the firmware setup, or with one's hands.
    Machine,
}

impl Place {
    /// The words on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Place::Here => "here",
            Place::Host => "host",
            Place::Container => "container",
            Place::Engine => "container engine",
            Place::Hypervisor => "hypervisor",
            Place::Guest => "guest",
            Place::Program => "program",
            Place::Machine => "machine",
        }
    }
}

/// What a remedy stops or loses. Ordered from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Impact {
    /// Nothing.
    None,
    /// A process is restarted.
    RestartsProcess,
    /// A container is recreated.
    RecreatesContainer,
    /// A service is restarted.
    RestartsService,
    /// A kernel module is reloaded; every GPU program stops.
    ReloadsModule,
    /// The machine reboots.
    Reboots,
    /// The machine is switched off and on.
    PowerCycle,
    /// Hardware is touched.
    Hardware,
}

impl Impact {
    /// The words on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Impact::None => "nothing is stopped",
            Impact::RestartsProcess => "restarts a process",
            Impact::RecreatesContainer => "recreates a container",
            Impact::RestartsService => "restarts a service",
            Impact::ReloadsModule => "reloads a module",
            Impact::Reboots => "reboots",
            Impact::PowerCycle => "power cycle",
            Impact::Hardware => "hardware",
        }
    }
}

/// One step: a command line, or an instruction where there is no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// The command, or the instruction.
    pub run: String,
    /// What it is for, a few words; empty when it is plain.
    pub why: String,
}

/// A remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Impact class.
    pub impact: Impact,
    /// What is lost or stopped, in words.
    pub stops: String,
    /// How to undo it.
    pub undo: String,
    /// How to see that it worked.
    pub verify: String,
    /// Tempting measures that will not help, and why in a few words.
    pub will_not_help: Vec<String>,
}

impl Remedy {
    /// A remedy without steps yet.
    pub fn new(impact: Impact, stops: impl Into<String>) -> Remedy {
        Remedy {
            steps: Vec::new(),
            impact,
            stops: stops.into(),
            undo: String::new(),
            verify: String::new(),
            will_not_help: Vec::new(),
        }
    }

    /// Adds a step.
    pub fn step(mut self, place: Place, run: impl Into<String>) -> Remedy {
        self.steps.push(Step { place, run: run.into(), why: String::new() });
        self
    }

    /// Adds a step with its purpose.
    pub fn step_to(mut self, place: Place, run: impl Into<String>, why: &str) -> Remedy {
        self.steps.push(Step { place, run: run.into(), why: why.to_owned() });
        self
    }

    /// Says how to undo it.
    pub fn undo(mut self, undo: impl Into<String>) -> Remedy {
        self.undo = undo.into();
        self
    }

    /// Says how to see that it worked.
    pub fn verify(mut self, verify: impl Into<String>) -> Remedy {
        self.verify = verify.into();
        self
    }

    /// Names a tempting measure that will not help.
    pub fn will_not_help(mut self, measure: impl Into<String>) -> Remedy {
        self.will_not_help.push(measure.into());
        self
    }
}
