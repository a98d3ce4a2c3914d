//! The multiprocessors and how they are grouped. libcuda refuses a GPU (code 100) that has none.

use crate::memory::Memory;

/// Graphics processing clusters.
const GPCS: u16 = 7;
/// Texture processing clusters in each, with two multiprocessors in each of them.
const TPCS_PER_GPC: u16 = 7;
/// Room for this many multiprocessors in the branches up to 555.
const ROOM: usize = 512;
/// Bytes of one multiprocessor's entry: six 16-bit numbers.
const ENTRY: usize = 12;

/// `GR_GET_GPC_MASK`: all clusters are there.
pub(super) fn mask() -> u32 {
    (1 << GPCS) - 1
}

/// `GR_GET_GLOBAL_SM_ORDER`: where each multiprocessor lies.
pub(super) fn order(parameters: Memory) {
    let mut sms = 0_u16;
    for tpc in 0..GPCS * TPCS_PER_GPC {
        let (gpc, local_tpc) = (tpc / TPCS_PER_GPC, tpc % TPCS_PER_GPC);
        for local_sm in 0..2 {
            let entry = usize::from(sms) * ENTRY;
            let fields = [gpc, local_tpc, local_sm, tpc, gpc, local_tpc];
            for (field, value) in fields.into_iter().enumerate() {
                parameters.set_u16(entry + field * 2, value);
            }
            sms += 1;
        }
    }
    parameters.set_u16(ROOM * ENTRY, sms);
    parameters.set_u16(ROOM * ENTRY + 2, GPCS * TPCS_PER_GPC);
}
