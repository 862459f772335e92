pub struct ImportReport;
pub struct Problem;
pub fn import_latency_tester() {}
