//! European calls by the binomial model of Cox, Ross and Rubinstein ("Option pricing: a simplified
//! approach", Journal of Financial Economics 7, 1979): a lattice of prices, folded from its leaves
//! to its root, layer by layer.

use serde::{Deserialize, Serialize};

/// A call option and its market.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Current price.
    pub spot: f64,
    /// Price at which the holder may buy.
    pub strike: f64,
    /// Standard deviation of a year's return.
    pub volatility: f64,
    /// Years until expiry.
    pub years: f64,
    /// Risk-free rate, continuously compounded.
    pub rate: f64,
}

impl Call {
    /// The dissertation's call, except for its strike.
    pub fn published(strike: f64) -> Self {
        Self { spot: 100.0, strike, volatility: 0.02, years: 1.0, rate: 0.01 }
    }
}

/// A lattice, folded up to some layer.
pub struct Lattice {
    /// Values of the layer: the worth of the call, by the number of steps up.
    values: Vec<f64>,
    /// Discounted weight of the value above.
    up: f64,
    /// Discounted weight of the value below.
    down: f64,
}

impl Lattice {
    /// The leaves of a lattice of `depth` layers: the worth of the call at expiry.
    pub fn new(call: &Call, depth: usize) -> Self {
        let step = call.years / depth as f64;
        let jump = call.volatility * step.sqrt();
        let discount = (-call.rate * step).exp();
        let rises = ((call.rate * step).exp() - (-jump).exp()) / (jump.exp() - (-jump).exp());
        let worth = |ups: usize| {
            let jumps = 2.0 * ups as f64 - depth as f64;
            (call.spot * (jump * jumps).exp() - call.strike).max(0.0)
        };
        Self {
            values: (0..=depth).map(worth).collect(),
            up: discount * rises,
            down: discount * (1.0 - rises),
        }
    }

    /// Folds a layer. Returns whether another follows.
    pub fn fold(&mut self) -> bool {
        for at in 1..self.values.len() {
            self.values[at - 1] = self.up * self.values[at] + self.down * self.values[at - 1];
        }
        self.values.pop();
        self.values.len() > 1
    }

    /// Returns the worth of the call at the lowest node of the layer; at the root, its price now.
    pub fn value(&self) -> f64 {
        self.values[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(call: &Call, depth: usize) -> f64 {
        let mut lattice = Lattice::new(call, depth);
        while lattice.fold() {}
        lattice.value()
    }

    /// The standard normal distribution function, by Simpson's rule.
    fn normal(x: f64) -> f64 {
        let (from, steps) = (-12.0_f64, 20_000);
        let width = (x - from) / f64::from(steps);
        let density = |at: f64| (-at * at / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let weight = |step: i32| match step {
            0 => 1.0,
            _ if step == steps => 1.0,
            _ if step % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let all = (0..=steps).map(|step| weight(step) * density(from + f64::from(step) * width));
        all.sum::<f64>() * width / 3.0
    }

    /// Black, Scholes and Merton: the limit of the lattice for ever more layers.
    fn limit(call: &Call) -> f64 {
        let Call { spot, strike, volatility, years, rate } = *call;
        let spread = volatility * years.sqrt();
        let far = ((spot / strike).ln() + (rate + volatility * volatility / 2.0) * years) / spread;
        spot * normal(far) - strike * (-rate * years).exp() * normal(far - spread)
    }

    /// The lattice's root as a sum over its leaves, weighted by probability.
    fn sum(call: &Call, depth: i32) -> f64 {
        let step = call.years / f64::from(depth);
        let jump = call.volatility * step.sqrt();
        let rises = ((call.rate * step).exp() - (-jump).exp()) / (jump.exp() - (-jump).exp());
        let mut paths = 1.0;
        let mut value = 0.0;
        for ups in 0..=depth {
            let end = call.spot * (jump * f64::from(2 * ups - depth)).exp();
            let chance = paths * rises.powi(ups) * (1.0 - rises).powi(depth - ups);
            value += chance * (end - call.strike).max(0.0);
            paths *= f64::from(depth - ups) / f64::from(ups + 1);
        }
        value * (-call.rate * call.years).exp()
    }

    #[test]
    fn a_lattice_is_the_sum_over_its_leaves() {
        for strike in [95.0, 100.0, 101.0, 105.0] {
            for volatility in [0.02, 0.3] {
                let call = Call { volatility, ..Call::published(strike) };
                for depth in [1, 2, 20, 200] {
                    let (folded, summed) = (price(&call, depth as usize), sum(&call, depth));
                    assert!((folded - summed).abs() < 1e-9, "{call:?} {depth}: {folded} {summed}");
                }
            }
        }
    }

    #[test]
    fn a_deep_lattice_is_near_the_closed_form() {
        // Worth 10.4506: spot and strike 100, 20 %, a year, 5 %.
        let usual = Call { spot: 100.0, strike: 100.0, volatility: 0.2, years: 1.0, rate: 0.05 };
        assert!((limit(&usual) - 10.4506).abs() < 1e-4, "{}", limit(&usual));
        for call in [usual, Call::published(100.0), Call::published(99.0)] {
            let [few, many] = [20, 2000].map(|depth| (price(&call, depth) - limit(&call)).abs());
            assert!(many < 2e-3 && many < few / 10.0 && few < 0.2, "{call:?}: {few} {many}");
        }
    }

    /// 20 steps up reach 109.4, so the dissertation's short options are worth nothing.
    #[test]
    fn the_published_call_is_out_of_reach_in_20_steps() {
        assert_eq!(price(&Call::published(110.0), 20), 0.0);
        let deep = price(&Call::published(110.0), 2000);
        assert!(deep > 0.0 && (deep - limit(&Call::published(110.0))).abs() < 1e-6, "{deep}");
    }
}
