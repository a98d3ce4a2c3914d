//! A run parses only the tables that it asks. One test in its own file, and so its own process.

use nvabi::{cuda_result, table};

#[test]
fn a_look_up_parses_its_own_table_alone() {
    assert!(table::names().count() > 30);
    assert!(table::parsed().is_empty(), "nothing is parsed at start-up");
    assert_eq!(cuda_result::by_code(803).unwrap().name, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    assert_eq!(table::parsed(), ["cuda_results"]);
}
