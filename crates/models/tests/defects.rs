//! What the published ShflLock code gets wrong.

#[macro_use]
mod common;

models! {
    ["shfl-defects"];
    defect_a_and_b_free_is_free_again: ["shfl-defects/a-b-"],
    defect_f_whoever_waits_is_not_overtaken: ["shfl-defects/f-"],
}
