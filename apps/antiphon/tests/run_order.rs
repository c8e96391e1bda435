//! `run --profile`: finds locks that are taken in both orders, with the sites of both.

mod common;

use common::{Folder, has_keys, output, stderr};
use serde_json::Value;

#[test]
fn an_inversion_is_reported_with_the_call_sites_of_both_orders() {
    let folder = Folder::new("orders");
    let program = folder.compile("orders.c", &[]);
    for lock in ["shfl-mutex", "glibc"] {
        let file = folder.path("report.json");
        let arguments = ["run", "--profile", "--lock", lock, "--report", &file, "--", &program];
        let output = output(&arguments);
        assert_eq!(output.status.code(), Some(7));
        let text = std::fs::read(&file).expect("a report");
        let report: Value = serde_json::from_slice(&text).expect("JSON");
        let order = &report["order"];
        has_keys(order, &["depth_mean", "depth_max", "nest_mean", "nest_max", "edges"]);
        // 20 locks in 8 spans: 4 spans take 2 each, and 4 take 3 each.
        let means = ["depth_mean", "nest_mean"].map(|key| order[key].as_f64());
        assert_eq!(means, [Some(1.8), Some(2.5)], "{order:#}");
        assert_eq!((&order["depth_max"], &order["nest_max"]), (&3.into(), &3.into()));
        // The pair that is taken under the third lock is not an inversion.
        let inversions = order["inversions"].as_array().expect("a list");
        assert_eq!(inversions.len(), 1, "{order:#}");
        let sites = |step: &Value| {
            let of = |lock: &str| step[lock]["site"].as_str().unwrap_or("").to_owned();
            (of("held"), of("taken"), step["count"].as_u64())
        };
        let mut steps: Vec<_> =
            inversions[0]["steps"].as_array().expect("a list").iter().map(sites).collect();
        steps.sort_by_key(|step| step.2);
        for (step, held, taken, count) in
            [(0, "take_right+", "take_left_after+", 1), (1, "take_left+", "take_right_after+", 3)]
        {
            let step = &steps[step];
            assert!(step.0.starts_with(held) && step.1.starts_with(taken), "{steps:?}");
            assert_eq!(step.2, Some(count));
        }
        let said = stderr(&output);
        assert!(said.contains("Taken in both orders"), "{said}");
        // Locks are named after their variables.
        let line = said.lines().find(|line| line.starts_with("right  take_right+"));
        assert!(line.is_some_and(|line| line.contains("  left   take_left_after+")), "{said}");
        assert!(said.contains("2.50 on average, 3 at most"), "{said}");
    }
}
