//! Laws that hold for every case of the corpus, whatever it is about: a verdict stands and falls
//! with its evidence, does not hang on how a text was pasted, and never rests on what nobody saw.

mod corpus;
mod ignorance;
mod invariance;
mod omission;
mod removal;
mod rewrite;
mod sifting;
