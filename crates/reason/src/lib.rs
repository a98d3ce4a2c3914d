//! Reasoning: facts in, a differential diagnosis out. Pure, infallible, in milliseconds.
//!
//! [`diagnose()`] derives the [`symptom`]s, lets every [`cause`] of the catalogue weigh the facts,
//! turns each [`weigh::Weighing`] into a verdict in one place, lets a specific cause explain the
//! general one away, and names the observation that would best separate what is left. It never
//! guesses: what nothing fits is undetermined.

#![forbid(unsafe_code)]

pub mod cause;
pub mod causes;
pub mod diagnose;
mod engine;
pub mod evidence;
pub mod experiment;
pub mod explain_away;
mod gpu_bars;
pub mod gpu_state;
pub mod layers;
pub mod machine;
pub mod need;
pub mod next_step;
mod peers;
pub mod readings;
pub mod remedy;
pub mod stuck;
pub mod symptom;
pub mod weigh;
pub mod xid_burst;

pub use cause::Cause;
pub use causes::CAUSES;
pub use diagnose::{Diagnosis, State, diagnose};
pub use evidence::{Evidence, Strength};
pub use need::Need;
pub use remedy::{Impact, Place, Remedy};
pub use symptom::{Symptom, SymptomId};
pub use weigh::{Verdict, Weighing};
