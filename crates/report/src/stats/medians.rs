//! The median of each figure of several records.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::order::median;

/// A record with the median of each figure separately, over the records that have it. `None` if
/// there are no records.
pub fn medians<'a, T>(all: impl IntoIterator<Item = &'a T>) -> Option<T>
where
    T: Serialize + DeserializeOwned + 'a,
{
    let all: Vec<_> = all.into_iter().map(|one| json!(one)).collect();
    let middle = middle(&all.iter().collect::<Vec<_>>());
    serde_json::from_value(middle).ok().filter(|_| !all.is_empty())
}

fn middle(all: &[&Value]) -> Value {
    let numbers: Vec<_> = all.iter().filter_map(|one| one.as_f64()).collect();
    let records: Vec<_> = all.iter().filter_map(|one| one.as_object()).collect();
    if records.is_empty() {
        return json!(median(numbers));
    }
    let mut record = Map::new();
    for key in records.iter().flat_map(|one| one.keys()) {
        if !record.contains_key(key) {
            let figures: Vec<_> = records.iter().filter_map(|one| one.get(key)).collect();
            record.insert(key.clone(), middle(&figures));
        }
    }
    record.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Waits {
        p50: f64,
        p99: Option<f64>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Figures {
        rate: f64,
        #[serde(flatten)]
        waits: Waits,
        #[serde(skip_serializing_if = "Option::is_none")]
        readers: Option<Waits>,
    }

    #[test]
    fn each_figure_has_a_median_of_its_own() {
        let figures = |rate, p50, p99, readers: Option<f64>| Figures {
            rate,
            waits: Waits { p50, p99 },
            readers: readers.map(|p50| Waits { p50, p99: None }),
        };
        let all = [
            figures(1.0, 30.0, None, None),
            figures(3.0, 10.0, Some(5.0), Some(7.0)),
            figures(2.0, 20.0, Some(7.0), None),
        ];
        assert_eq!(medians(&all), Some(figures(2.0, 20.0, Some(6.0), Some(7.0))));
        assert_eq!(medians::<Figures>(&[]), None);
    }
}
