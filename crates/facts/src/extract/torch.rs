//! PyTorch's entry in the facts, made when something is first known of it.

use crate::model::Facts;
use crate::model::framework::Torch;
use crate::observed::{Observed, Origin, Seen};

/// PyTorch's entry; `origin` is where it was first read when it is new.
pub(crate) fn entry<'a>(facts: &'a mut Facts, origin: &Origin) -> &'a mut Torch {
    if !facts.framework.torch.is_seen() {
        facts.framework.torch = Observed::seen(Torch::default(), origin.clone());
    }
    match &mut facts.framework.torch {
        Observed::Seen(Seen { value, .. }) => value,
        Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {
            unreachable!("it was entered in the line above")
        }
    }
}
