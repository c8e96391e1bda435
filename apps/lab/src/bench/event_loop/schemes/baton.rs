//! Programs that know of each other: all players of a run on a CPU are members of one domain, which
//! is theirs alone.

use antiphon_coop::{BoostOptions, Booster, Domain, DomainOptions, Group, WEIGHT};

use super::super::player::{Player, Seen};
use super::{Seat, cooperative};
use crate::compete::tier_stats::TierStats;

/// Plays, with the baton.
///
/// # Errors
///
/// One line: there is no domain to be had.
pub fn play(player: Player, seat: Seat) -> Result<Seen, String> {
    let member = domain(&seat)?.join(group(&seat), WEIGHT);
    let mut member = member.map_err(|error| error.to_string())?;
    let seen = cooperative::play(player, seat, &mut member)?;
    let tier_stats = member.status().as_ref().map(TierStats::of_member).unwrap_or_default();
    Ok(Seen { tier_stats, ..seen })
}

/// Plays with a boost. The players of a group get its share according to their needs.
///
/// # Errors
///
/// One line: it may not be boosted, or there is no domain to be had.
pub fn boosted(player: Player, seat: Seat) -> Result<Seen, String> {
    let options = BoostOptions { options: seat.schedule.0, ..BoostOptions::default() };
    let booster = Booster::start(options).map_err(|refused| refused.to_string())?;
    let member = domain(&seat)?.weigh(group(&seat), WEIGHT);
    let member = member.map_err(|error| error.to_string())?;
    let seen = cooperative::play(player, seat, &mut booster.boost(member))?;
    Ok(Seen { tier_stats: TierStats::of_booster(&booster), ..seen })
}

/// The domain of the CPU on which this thread runs.
fn domain(seat: &Seat) -> Result<Domain, String> {
    let name = seat.domain.as_ref().ok_or("no domain was made")?;
    let cpus = antiphon_linux::allowed();
    let &cpu = cpus.first().ok_or("this program may run nowhere")?;
    Domain::open(name, DomainOptions { cpu, schedule: seat.schedule.0 })
        .map_err(|error| error.to_string())
}

fn group(seat: &Seat) -> Group {
    if seat.one_group { Group::Number(1) } else { Group::Own }
}
