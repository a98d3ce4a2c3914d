//! What NVML tells of a GPU's condition: memory errors, spare rows, performance state, PCIe link.

/// The link as the driver sees it, in generations and lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkHealth {
    /// PCIe generation now. An idle GPU goes down to 1 by design.
    pub generation: Option<u8>,
    /// Highest generation that GPU and slot can do together.
    pub generation_max: Option<u8>,
    /// Lanes now.
    pub width: Option<u8>,
    /// Most lanes that GPU and slot can do together.
    pub width_max: Option<u8>,
    /// Packets that were sent again since the last reset. A few are normal.
    pub replays: Option<u64>,
}

/// Condition of one GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuHealth {
    /// A row (or, before Ampere, a page) waits for the next reset to be replaced.
    pub remap_pending: Option<bool>,
    /// Replacing a row failed: the spares of that bank are used up.
    pub remap_failed: Option<bool>,
    /// Rows replaced for uncorrectable errors.
    pub remapped_uncorrectable: Option<u64>,
    /// Uncorrectable memory errors since the driver was loaded or the GPU was reset.
    pub uncorrectable_volatile: Option<u64>,
    /// Uncorrectable memory errors over the GPU's life.
    pub uncorrectable_aggregate: Option<u64>,
    /// `Reset Required` of nvidia-smi's reset status.
    pub reset_required: Option<bool>,
    /// Performance state, 0 (most) to 15 (least).
    pub performance_state: Option<u8>,
    /// Utilization in percent.
    pub utilization_percent: Option<u8>,
    /// PCIe link.
    pub link: LinkHealth,
}

impl GpuHealth {
    /// Takes what a later output tells.
    pub(crate) fn update(&mut self, later: &GpuHealth) {
        take(&mut self.remap_pending, later.remap_pending);
        take(&mut self.remap_failed, later.remap_failed);
        take(&mut self.remapped_uncorrectable, later.remapped_uncorrectable);
        take(&mut self.uncorrectable_volatile, later.uncorrectable_volatile);
        take(&mut self.uncorrectable_aggregate, later.uncorrectable_aggregate);
        take(&mut self.reset_required, later.reset_required);
        take(&mut self.performance_state, later.performance_state);
        take(&mut self.utilization_percent, later.utilization_percent);
        take(&mut self.link.generation, later.link.generation);
        take(&mut self.link.generation_max, later.link.generation_max);
        take(&mut self.link.width, later.link.width);
        take(&mut self.link.width_max, later.link.width_max);
        take(&mut self.link.replays, later.link.replays);
    }

    /// Whether the GPU is at work: an idle one tells nothing about its link. Data-center GPUs idle
    /// in P0, so that the state counts only where the utilization is not known.
    pub fn is_loaded(&self) -> bool {
        match self.utilization_percent {
            Some(percent) => percent >= 20,
            None => self.performance_state.is_some_and(|state| state <= 2),
        }
    }
}

fn take<T: Copy>(known: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *known = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_gpu_is_not_loaded_and_a_later_output_adds() {
        let mut health = GpuHealth { performance_state: Some(0), ..GpuHealth::default() };
        assert!(health.is_loaded());
        health.update(&GpuHealth { utilization_percent: Some(0), ..GpuHealth::default() });
        assert!(!health.is_loaded());
        health.update(&GpuHealth { utilization_percent: Some(97), ..GpuHealth::default() });
        assert!(health.is_loaded());
        assert_eq!(health.performance_state, Some(0));
    }
}
