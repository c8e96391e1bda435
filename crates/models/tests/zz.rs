use antiphon_models::{Limits, beginning_with};
#[test]
fn zz() {
    let names = std::env::var("N").unwrap();
    let secs = std::env::var("S").map_or(20, |s| s.parse().unwrap());
    for name in names.split(',') {
        for entry in beginning_with(name) {
            let t = std::time::Instant::now();
            let outcome = entry.check(Limits { executions: u64::MAX, time: std::time::Duration::from_secs(secs) });
            println!("{} {:?}\n{}", entry.name(), t.elapsed(), outcome);
            if std::env::var("V").is_ok() { outcome.assert_passed(); }
        }
    }
}
